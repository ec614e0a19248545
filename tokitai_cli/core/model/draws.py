"""Kinds of draws that a profile may name: what each one is for and what may be set, stated once."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

import msgspec

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.buffers import draw_of, drawn_buffers
from tokitai_cli.core.model.spec import Draw, Part, Spec, Variant

SETTINGS = tuple(name for name in Draw.__struct_fields__ if name != "kind")


class Group(enum.Enum):
    """What a kind gives.

    Any array element by element, indices below a bound, an array as a whole, elements of several kinds,
    what another array gives, or what a user's function does.
    """

    NUMBERS = enum.auto()
    INDICES = enum.auto()
    PATTERN = enum.auto()
    MIX = enum.auto()
    DERIVED = enum.auto()
    FUNCTION = enum.auto()


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of draw."""

    group: Group = Group.NUMBERS
    #: Settings that are numbers, with their defaults, in the order in which evidence shows them.
    #: others: further settings.
    numbers: Mapping[str, float] = {}
    further: tuple[str, ...] = ()
    #: The one that a profile must give, and what it is.
    needs: tuple[str, str] = ("", "")
    #: Whether it fills arrays of integers alone.
    integers: bool = False
    #: Whether sums of it are meant to be exact.
    exact: bool = False
    #: Whether roundings on it may be taken as independent, so that bound-prob may refute: random
    #: signs or a wide range. On constant or strongly biased data correct kernels exceed that bound.
    random: Callable[[Draw], bool] = lambda draw: False

    @property
    def settings(self) -> frozenset[str]:
        """Names of everything that may be set."""
        return frozenset((*self.numbers, *self.further, *filter(None, self.needs[:1])))


def _is_wide(draw: Draw) -> bool:
    lo, hi = setting(draw, "lo"), setting(draw, "hi")
    if isinstance(lo, str) or isinstance(hi, str):  # not known before there is a shape
        return False
    return hi - lo >= max(abs(lo), abs(hi)) / 2


_SCALE = {"scale": 1.0}
_INDICES = Kind(group=Group.INDICES, integers=True, needs=("below", "the number of rows"))
_FOLLOWS = ("of", "the array that it follows")
KINDS: Mapping[str, Kind] = {
    "normal": Kind(numbers={"value": 0.0, **_SCALE}, random=lambda draw: not draw.value),
    "uniform": Kind(numbers={"lo": 0.0, "hi": 1.0}, random=_is_wide),
    "log-uniform": Kind(numbers={"lo": -8.0, "hi": 0.0}, further=("sign",)),
    "exact-int": Kind(numbers=_SCALE, further=("axis",), exact=True),
    "exact-int-ramp": Kind(numbers=_SCALE, further=("axis",), exact=True),
    "cancelling": Kind(numbers=_SCALE, further=("axis",), random=lambda draw: True),
    "large": Kind(further=("axis",)),
    "subnormal": Kind(further=("axis",)),
    "special": Kind(numbers=_SCALE, further=("axis",)),
    "constant": Kind(numbers={"value": 1.0}),
    "constant-rows": Kind(numbers={"value": 0.0, **_SCALE}),
    "one-large": Kind(numbers={"value": 12.0, **_SCALE}, further=("at",)),
    "placed": Kind(numbers={"value": 1.0, **_SCALE}, needs=("at", "the columns that get `value`")),
    "sorted": Kind(numbers={"lo": 0.0, "hi": 1.0}),
    "falling": Kind(numbers={"lo": 0.0, "hi": 1.0}),
    "ties": Kind(numbers={"value": 4.0, **_SCALE}),
    "sorted-ties": Kind(numbers={"value": 4.0, **_SCALE}),
    "zero-rows": Kind(numbers=_SCALE),
    "masked": Kind(numbers=_SCALE),
    "all-masked": Kind(numbers=_SCALE),
    "plus-inf": Kind(numbers=_SCALE),
    "nan-rows": Kind(numbers=_SCALE),
    "softmax": Kind(numbers={**_SCALE, "value": 12.0}, further=("at",)),
    "power-of-two": Kind(numbers={"lo": -1.0, "hi": 1.0}),
    "halfway": Kind(numbers={"value": 8.0}),
    "arange": Kind(group=Group.PATTERN, numbers={"value": 0.0}),
    "permutation": Kind(group=Group.PATTERN),
    "one-hot": Kind(group=Group.PATTERN, numbers={"value": 1.0}),
    "limits": Kind(group=Group.PATTERN),
    "segments": Kind(group=Group.PATTERN, integers=True, needs=("below", "the number of segments")),
    "offsets": Kind(group=Group.PATTERN, integers=True, needs=("end", "the value of the last one")),
    "mix": Kind(group=Group.MIX, needs=("parts", "a list of {draw: ..., share: ...}")),
    "row-mean": Kind(group=Group.DERIVED, needs=_FOLLOWS),
    "row-rstd": Kind(group=Group.DERIVED, numbers={"value": 1e-5}, needs=_FOLLOWS),
    "index-uniform": _INDICES,
    "index-unique": _INDICES,
    "index-hot": _INDICES,
    "index-out-of-range": _INDICES,
}


_ZERO = Draw(kind="constant", value=0)
# Profiles that may tell what a spec's own do not, and what they are for.
CANDIDATES: Mapping[str, tuple[Draw, str]] = {
    "normal": (Draw(kind="normal"), "N(0,1)"),
    "exact-int": (Draw(kind="exact-int"), "small integers, whose sums are exact"),
    "log-uniform": (Draw(kind="log-uniform"), "magnitudes over many binades"),
    "powers": (
        Draw(kind="power-of-two", lo=-8, hi=0),
        "powers of two, of which some times a number lie halfway between integers",
    ),
    "uniform": (Draw(kind="uniform", lo=0, hi=1), "one sign"),
    "tiny": (Draw(kind="normal", scale=2.0**-10), "small values, at which added constants matter"),
    "wide": (Draw(kind="normal", scale=8), "large values, at which functions saturate"),
    "large": (
        Draw(kind="normal", scale=100),
        "values of about 100, at which functions may overflow",
    ),
    "negative": (
        Draw(kind="uniform", lo=-60000, hi=-50000),
        "all below the start value of a maximum",
    ),
    "ties": (Draw(kind="exact-int", scale=2), "few values, so that several are equal"),
    "one-large": (Draw(kind="one-large", scale=1), "one large value in each row"),
    "cancelling": (Draw(kind="cancelling"), "large terms that nearly cancel"),
    "offset": (Draw(kind="normal", value=100), "a mean far from 0, beside which squares cancel"),
    "steep": (
        Draw(kind="uniform", lo=-80, hi=80),
        "values whose exponentials are huge, yet finite",
    ),
    "overflowing": (
        Draw(kind="uniform", lo=-200, hi=200),
        "values whose exponentials overflow, where the formula's result does not",
    ),
    "some-zeros": (
        Draw(kind="mix", parts=[Part(draw="normal", share=3), Part(draw=_ZERO, share=1)]),
        "zeros among other values",
    ),
    "zero-rows": (Draw(kind="zero-rows"), "rows of zeros, whose sums and norms are 0"),
}
_FUNCTION = Kind(group=Group.FUNCTION)


def kind_of(draw: Draw | str) -> Kind:
    """The kind of a draw, `file.py:function` too. KeyError for a name that is none."""
    name = draw if isinstance(draw, str) else draw.kind
    return _FUNCTION if ":" in name else KINDS[name]


def setting(draw: Draw, name: str) -> float | str:
    """The number or expression that `draw` sets, or its kind's default.

    KeyError for a setting that it lacks.
    """
    value = getattr(draw, name)
    return kind_of(draw).numbers[name] if value is None else value


def functions_of(spec: Spec, variant: Variant) -> tuple[str, ...]:
    """Each `file.py:function` that draws arrays of the variant, on any of its profiles."""
    draws = (
        draw_of(spec, variant, profile, name)
        for profile in variant.profiles or spec.profiles
        for name in drawn_buffers(variant)
    )
    return tuple(dict.fromkeys(draw.kind for draw in draws if ":" in draw.kind))


def draws_are_random(spec: Spec, variant: Variant, profile: str) -> bool:
    """Whether every float array that a case draws is of random sign or wide.

    The probabilistic bound assumes independent roundings (Higham and Mary 2019). A profile that is
    not of the spec says nothing.
    """
    if profile not in spec.profiles:
        return False
    names = [name for name, buffer in drawn_buffers(variant).items() if buffer.dtype in FORMATS]
    draws = [draw_of(spec, variant, profile, name) for name in names]
    return bool(draws) and all(kind_of(draw).random(draw) for draw in draws)
