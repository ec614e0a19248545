"""Generators that a profile may name, with the settings that each one takes."""

from __future__ import annotations

import math
from collections.abc import Collection

from tokitai_cli.errors import near
from tokitai_cli.model.spec import Draw
from tokitai_cli.spec.document import Document, KeyPath
from tokitai_cli.spec.symbols import check_expression

SETTINGS = ("lo", "hi", "value", "below", "scale", "axis", "sign", "at", "of")
_INDEX = frozenset({"below"})
_DERIVED = frozenset({"of"})
KINDS: dict[str, frozenset[str]] = {
    "normal": frozenset({"value", "scale"}),
    "uniform": frozenset({"lo", "hi"}),
    "log-uniform": frozenset({"lo", "hi", "sign"}),
    "exact-int": frozenset({"scale", "axis"}),
    "exact-int-ramp": frozenset({"scale", "axis"}),
    "cancelling": frozenset({"scale", "axis"}),
    "large": frozenset({"axis"}),
    "subnormal": frozenset({"axis"}),
    "special": frozenset({"scale", "axis"}),
    "constant": frozenset({"value"}),
    "constant-rows": frozenset({"value", "scale"}),
    "one-large": frozenset({"value", "scale", "at"}),
    "masked": frozenset({"scale"}),
    "all-masked": frozenset({"scale"}),
    "plus-inf": frozenset({"scale"}),
    "nan-rows": frozenset({"scale"}),
    "softmax": frozenset({"value", "scale", "at"}),
    "power-of-two": frozenset({"lo", "hi"}),
    "row-mean": _DERIVED,
    "row-rstd": _DERIVED | {"value"},
    "index-uniform": _INDEX,
    "index-unique": _INDEX,
    "index-hot": _INDEX,
    "index-out-of-range": _INDEX,
}


def check_draw(
    document: Document, path: KeyPath, draw: Draw | str, params: Collection[str]
) -> None:
    """Raise SpecError where a draw names no generator or gives it settings that it lacks."""
    short = isinstance(draw, str)
    name = draw if isinstance(draw, str) else draw.kind
    at = path if short else (*path, "kind")
    settings = KINDS.get(name)
    if settings is None:
        raise document.fault(at, f"unknown generator `{name}`", near(name, KINDS))
    for setting in SETTINGS:
        here = (*path, setting)
        if document.given(here) and setting not in settings:
            allowed = ", ".join(sorted(settings)) or "none"
            message = f"`{name}` has no setting `{setting}`"
            raise document.fault(here, message, f"its settings: {allowed}", at_key=True)
    if settings is _INDEX and not document.given((*path, "below")):
        mend = f"write {{kind: {name}, below: ...}}"
        raise document.fault(path, f"`{name}` needs `below`, the number of rows", mend)
    if "of" in settings and not document.given((*path, "of")):
        mend = f"write {{kind: {name}, of: ...}}"
        raise document.fault(path, f"`{name}` needs `of`, the array that it follows", mend)
    if isinstance(draw, Draw):
        _check_values(document, path, draw, params)


def check_dtype(document: Document, path: KeyPath, draw: Draw | str, dtype: str) -> None:
    """Raise SpecError where a generator cannot fill an array of `dtype`."""
    name = draw if isinstance(draw, str) else draw.kind
    if KINDS[name] is _INDEX and ("float" in dtype or dtype == "bool"):
        mend = "give the array an integer dtype, or another draw"
        raise document.fault(path, f"`{name}` draws integers, the array is {dtype}", mend)


def _check_values(document: Document, path: KeyPath, draw: Draw, params: Collection[str]) -> None:
    for setting, value in (("lo", draw.lo), ("hi", draw.hi), ("scale", draw.scale)):
        if value is not None and not math.isfinite(value):
            raise document.fault((*path, setting), f"{value} is no finite number")
    if draw.scale is not None and draw.scale <= 0:
        raise document.fault((*path, "scale"), f"{draw.scale} is not positive")
    if draw.lo is not None and draw.hi is not None and draw.lo > draw.hi:
        message = f"lo {draw.lo} is above hi {draw.hi}"
        raise document.fault((*path, "lo"), message, "swap the two")
    if draw.at is not None:
        if not draw.at:
            raise document.fault((*path, "at"), "no place", "name at least one column, such as 0")
        for index, place in enumerate(draw.at):
            check_expression(document, (*path, "at", index), place, params)
    if draw.below is not None:
        check_expression(document, (*path, "below"), draw.below, params)
