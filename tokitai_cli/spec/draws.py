"""Whether the draws of a spec name generators, with settings that these have."""

from __future__ import annotations

import math
from collections.abc import Collection

from tokitai_cli.dtypes import DTYPES
from tokitai_cli.errors import near
from tokitai_cli.model.draws import KINDS, SETTINGS, Group
from tokitai_cli.model.spec import Draw
from tokitai_cli.spec.document import Document, KeyPath
from tokitai_cli.spec.symbols import check_expression


def check_draw(
    document: Document, path: KeyPath, draw: Draw | str, params: Collection[str]
) -> None:
    """Raise SpecError where a draw names no generator or gives it settings that it lacks."""
    short = isinstance(draw, str)
    name = draw if isinstance(draw, str) else draw.kind
    at = path if short else (*path, "kind")
    kind = KINDS.get(name)
    if kind is None:
        raise document.fault(at, f"unknown generator `{name}`", near(name, KINDS))
    for setting in SETTINGS:
        here = (*path, setting)
        if document.given(here) and setting not in kind.settings:
            allowed = ", ".join(sorted(kind.settings)) or "none"
            message = f"`{name}` has no setting `{setting}`"
            raise document.fault(here, message, f"its settings: {allowed}", at_key=True)
    needed, what = kind.needs
    if needed and not document.given((*path, needed)):
        mend = f"write {{kind: {name}, {needed}: ...}}"
        raise document.fault(path, f"`{name}` needs `{needed}`, {what}", mend)
    if isinstance(draw, Draw):
        _check_values(document, path, draw, params)


def check_dtype(document: Document, path: KeyPath, draw: Draw | str, dtype: str) -> None:
    """Raise SpecError where a generator cannot fill an array of `dtype`."""
    name = draw if isinstance(draw, str) else draw.kind
    if KINDS[name].group is Group.INDICES and DTYPES[dtype].kind not in {"signed", "unsigned"}:
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
