"""Whether the draws of a spec name generators, with settings that these have."""

from __future__ import annotations

import math
from collections.abc import Collection

from tokitai_cli.core import python_source
from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.errors import SpecError, near
from tokitai_cli.core.model.draws import KINDS, SETTINGS, Group, kind_of
from tokitai_cli.core.model.spec import Draw
from tokitai_cli.spec.reader.document import Document, KeyPath
from tokitai_cli.spec.reader.symbols import check_expression, check_function, check_real


def check_draw(
    document: Document, path: KeyPath, draw: Draw | str, params: Collection[str]
) -> None:
    """Raise SpecError where a draw names no generator or gives it settings that it lacks."""
    short = isinstance(draw, str)
    name = draw if isinstance(draw, str) else draw.kind
    at = path if short else (*path, "kind")
    if ":" in name:
        _check_function(document, at, name)
    elif name not in KINDS:
        raise document.fault(at, f"unknown generator `{name}`", near(name, KINDS))
    kind = kind_of(draw)
    for setting in SETTINGS:
        here = (*path, setting)
        if document.given(here) and setting not in kind.settings:
            allowed = ", ".join(sorted(kind.settings)) or "none"
            message = f"`{name}` has no setting `{setting}`"
            raise document.fault(here, message, f"its settings: {allowed}", at_key=True)
    needed, what = kind.needs
    if needed and not document.given((*path, needed)):
        hint = f"write {{kind: {name}, {needed}: ...}}"
        raise document.fault(path, f"`{name}` needs `{needed}`, {what}", hint)
    if isinstance(draw, Draw):
        _check_values(document, path, draw, params)


def check_dtype(document: Document, path: KeyPath, draw: Draw | str, dtype: str) -> None:
    """Raise SpecError where a generator cannot fill an array of `dtype`."""
    name = draw if isinstance(draw, str) else draw.kind
    if kind_of(draw).integers and DTYPES[dtype].kind not in {"signed", "unsigned"}:
        hint = "give the array an integer dtype, or another draw"
        raise document.fault(path, f"`{name}` draws integers, the array is {dtype}", hint)
    if not isinstance(draw, str):
        for index, part in enumerate(draw.parts or []):
            check_dtype(document, (*path, "parts", index, "draw"), part.draw, dtype)


def _check_function(document: Document, path: KeyPath, name: str) -> None:
    check_function(document, path, name)
    file, _, function = name.rpartition(":")
    try:
        python_source.check_function(document.file.parent / file, function, python_source.DRAW)
    except SpecError as error:
        raise document.fault(path, error.message, error.hint) from None


def _check_parts(document: Document, path: KeyPath, draw: Draw, params: Collection[str]) -> None:
    if not draw.parts:
        raise document.fault((*path, "parts"), "no part", "write - {draw: ..., share: 0.9}")
    for index, part in enumerate(draw.parts):
        here = (*path, "parts", index, "draw")
        check_draw(document, here, part.draw, params)
        if kind_of(part.draw).group not in (Group.NUMBERS, Group.INDICES, Group.PATTERN):
            hint = "name a generator that needs no other array"
            raise document.fault(here, "a part cannot be drawn so", hint)


def _check_values(document: Document, path: KeyPath, draw: Draw, params: Collection[str]) -> None:
    _check_numbers(document, path, draw, params)
    if draw.at is not None:
        if not draw.at:
            raise document.fault((*path, "at"), "no place", "name at least one column, such as 0")
        for index, place in enumerate(draw.at):
            check_expression(document, (*path, "at", index), place, params)
    for setting in ("below", "end"):
        if (size := getattr(draw, setting)) is not None:
            check_expression(document, (*path, setting), size, params)
    if draw.parts is not None:
        _check_parts(document, path, draw, params)


def _check_numbers(document: Document, path: KeyPath, draw: Draw, params: Collection[str]) -> None:
    for setting in ("lo", "hi", "scale", "value"):
        value = getattr(draw, setting)
        if isinstance(value, str):
            check_real(document, (*path, setting), value, params)
        elif value is not None and setting != "value" and not math.isfinite(value):
            raise document.fault((*path, setting), f"{value} is not a finite number")
    if isinstance(draw.scale, float) and draw.scale <= 0:
        raise document.fault((*path, "scale"), f"{draw.scale} is not positive")
    if isinstance(draw.lo, float) and isinstance(draw.hi, float) and draw.lo > draw.hi:
        message = f"lo {draw.lo} is above hi {draw.hi}"
        raise document.fault((*path, "lo"), message, "swap the two")
