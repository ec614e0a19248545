"""Kinds of draws that a profile may name: what each one is for and what may be set, stated once."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

import msgspec

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.model.spec import Draw, Spec, Variant, draw_of, drawn_buffers

SETTINGS = tuple(name for name in Draw.__struct_fields__ if name != "kind")


class Group(enum.Enum):
    """What a kind fills: any array, the integers of an array of indices, or what another one gives."""

    NUMBERS = enum.auto()
    INDICES = enum.auto()
    DERIVED = enum.auto()


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of draw.

    numbers: settings that are numbers, with their defaults, in the order in which evidence shows them.
    others: further settings. needs: the one that a profile must give, and what it is.
    exact: whether sums of it are meant to be exact.
    random: whether roundings on it may be taken as independent, so that bound-prob may refute: random
        signs or a wide range. On constant or strongly biased data correct kernels exceed that bound.
    """

    group: Group = Group.NUMBERS
    numbers: Mapping[str, float] = {}
    others: tuple[str, ...] = ()
    needs: tuple[str, str] = ("", "")
    exact: bool = False
    random: Callable[[Draw], bool] = lambda draw: False

    @property
    def settings(self) -> frozenset[str]:
        """Names of everything that may be set."""
        return frozenset((*self.numbers, *self.others, *filter(None, self.needs[:1])))


def _is_wide(draw: Draw) -> bool:
    lo, hi = setting(draw, "lo"), setting(draw, "hi")
    return hi - lo >= max(abs(lo), abs(hi)) / 2


_SCALE = {"scale": 1.0}
_INDICES = Kind(group=Group.INDICES, needs=("below", "the number of rows"))
_FOLLOWS = ("of", "the array that it follows")
KINDS: Mapping[str, Kind] = {
    "normal": Kind(numbers={"value": 0.0, **_SCALE}, random=lambda draw: not draw.value),
    "uniform": Kind(numbers={"lo": 0.0, "hi": 1.0}, random=_is_wide),
    "log-uniform": Kind(numbers={"lo": -8.0, "hi": 0.0}, others=("sign",)),
    "exact-int": Kind(numbers=_SCALE, others=("axis",), exact=True),
    "exact-int-ramp": Kind(numbers=_SCALE, others=("axis",), exact=True),
    "cancelling": Kind(numbers=_SCALE, others=("axis",), random=lambda draw: True),
    "large": Kind(others=("axis",)),
    "subnormal": Kind(others=("axis",)),
    "special": Kind(numbers=_SCALE, others=("axis",)),
    "constant": Kind(numbers={"value": 1.0}),
    "constant-rows": Kind(numbers={"value": 0.0, **_SCALE}),
    "one-large": Kind(numbers={"value": 12.0, **_SCALE}, others=("at",)),
    "masked": Kind(numbers=_SCALE),
    "all-masked": Kind(numbers=_SCALE),
    "plus-inf": Kind(numbers=_SCALE),
    "nan-rows": Kind(numbers=_SCALE),
    "softmax": Kind(numbers={**_SCALE, "value": 12.0}, others=("at",)),
    "power-of-two": Kind(numbers={"lo": -1.0, "hi": 1.0}),
    "row-mean": Kind(group=Group.DERIVED, needs=_FOLLOWS),
    "row-rstd": Kind(group=Group.DERIVED, numbers={"value": 1e-5}, needs=_FOLLOWS),
    "index-uniform": _INDICES,
    "index-unique": _INDICES,
    "index-hot": _INDICES,
    "index-out-of-range": _INDICES,
}


def setting(draw: Draw, name: str) -> float:
    """The number that `draw` sets, or its kind's default. KeyError for a setting that it lacks."""
    value = getattr(draw, name)
    return KINDS[draw.kind].numbers[name] if value is None else float(value)


def draws_are_random(spec: Spec, variant: Variant, profile: str) -> bool:
    """Whether every float array that a case draws is of random sign or wide.

    The probabilistic bound assumes independent roundings (Higham and Mary 2019). A profile that is
    not of the spec says nothing.
    """
    if profile not in spec.profiles:
        return False
    names = [name for name, buffer in drawn_buffers(variant).items() if buffer.dtype in FORMATS]
    draws = [draw_of(spec, variant, profile, name) for name in names]
    return bool(draws) and all(KINDS[draw.kind].random(draw) for draw in draws)
