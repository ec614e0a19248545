"""Where the failing elements of an output lie: the shape of the fault, for whoever has to mend it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.judged import PatternRecord
from tokitai_cli.judge.checks.numbers import elements_text, shown

_TILES = (256, 128, 64, 32, 16, 8, 4)

# A region explains the failures where at least half of it fails and nothing outside does.
_DENSE = 0.5
_DENSE_LONG = 0.95  # of what begins in the first half: many scattered elements reach to the end

_SHOWN_RANGES = 6


def pattern_of(
    failing: NDArray[np.bool_], shape: tuple[int, ...], got: NDArray[Any] | None = None
) -> PatternRecord | None:
    """Return the pattern of the flat mask `failing`; None where nothing fails.

    Arrays of more than two axes are seen as a matrix of all but the last axis by the last. `got` are
    the values: where all failing ones are the same, the pattern says so.
    """
    count = int(np.count_nonzero(failing))
    if count == 0:
        return None
    found = _placed(failing, count, shape)
    values = "" if got is None or count < 2 else _throughout(got[failing])
    return msgspec.structs.replace(found, values=values)


def _throughout(got: NDArray[Any]) -> str:
    """The one value that all of `got` have, in words; empty where there are several."""
    first = got[0]
    if not (np.isnan(got).all() if np.isnan(first) else (got == first).all()):
        return ""
    return "all NaN" if np.isnan(first) else f"all {shown(first)}" if first else "all zeros"


def _placed(failing: NDArray[np.bool_], count: int, shape: tuple[int, ...]) -> PatternRecord:
    if count == failing.size:
        detail = f"all {count} elements" if count > 1 else "the only element"
        return PatternRecord(kind="every-element", detail=detail)
    columns = shape[-1] if len(shape) >= 2 else failing.size
    matrix = failing.reshape(-1, columns)
    found = (
        _strided(failing, columns)
        or _tail(failing, count, columns)
        or _tile_edges(matrix, count)
        or _lines(matrix, count, axis=0)
        or _lines(matrix, count, axis=1)
    )
    return found or PatternRecord(
        kind="scattered", detail=elements_text(count, failing.size) + _spread(matrix)
    )


def _tail(failing: NDArray[np.bool_], count: int, columns: int) -> PatternRecord | None:
    """Find a dense flat suffix that ends with the last element."""
    first = int(np.argmax(failing))
    length = failing.size - first
    share = _DENSE if 2 * length <= failing.size else _DENSE_LONG
    if not failing[-1] or count < share * length or first == 0:
        return None
    if length == 1:
        return PatternRecord(kind="tail", detail=f"the last of {failing.size} elements")
    detail = f"the last {length} of {failing.size} elements, from flat index {first}"
    if columns < failing.size:
        detail += f" (row {first // columns}, column {first % columns})"
    return PatternRecord(kind="tail", detail=detail)


def _tile_edges(matrix: NDArray[np.bool_], count: int) -> PatternRecord | None:
    """Find failures in the partial last tile only, or only at one edge of each tile."""
    rows, columns = np.flatnonzero(matrix.any(axis=1)), np.flatnonzero(matrix.any(axis=0))
    for tile in _TILES:
        for name, extent, lines, other in (
            ("columns", matrix.shape[1], columns, matrix.shape[0]),
            ("rows", matrix.shape[0], rows, matrix.shape[1]),
        ):
            rest = extent % tile
            if extent <= tile or other < 2:
                continue
            if rest and lines[0] >= extent - rest and count >= _DENSE * rest * other:
                detail = f"tile {tile}: the partial last tile of {name} ({extent} = "
                detail += f"{extent // tile} x {tile} + {rest})"
                return PatternRecord(kind="tile-edges", detail=detail)
            edges = _edge_lines(lines, tile)
            due = extent // tile
            if edges and lines.size >= max(2, due - 1) and count >= _DENSE * lines.size * other:
                detail = f"tile {tile}: the {edges} of each tile's {name}{_every(lines, name)}"
                return PatternRecord(kind="tile-edges", detail=detail)
    return None


def _edge_lines(lines: NDArray[np.intp], tile: int) -> str:
    if bool((lines % tile == tile - 1).all()):
        return "last"
    return "first" if bool((lines % tile == 0).all()) else ""


def _lines(matrix: NDArray[np.bool_], count: int, *, axis: int) -> PatternRecord | None:
    """Find whole rows (axis 0) or columns (axis 1)."""
    extent, other = matrix.shape[axis], matrix.shape[1 - axis]
    if extent < 2 or other < 2 or count < 2:
        return None
    lines = np.flatnonzero(matrix.any(axis=1 - axis))
    if lines.size > extent // 2 or count < _DENSE * lines.size * other:
        return None
    name = "rows" if axis == 0 else "columns"
    whole = "whole " if count == lines.size * other else ""
    word = name if lines.size > 1 else name.removesuffix("s")
    detail = f"{whole}{word} {ranges(lines)}{_every(lines, name)} ({lines.size} of {extent})"
    return PatternRecord(kind=name, detail=detail)


def _strided(failing: NDArray[np.bool_], columns: int) -> PatternRecord | None:
    """Find every n-th element of an array of one axis."""
    words = _every(np.flatnonzero(failing), "elements") if columns == failing.size else ""
    if not words:
        return None
    count = elements_text(int(np.count_nonzero(failing)), failing.size)
    return PatternRecord(kind="strided", detail=f"{words.removeprefix(', ')} ({count})")


def _every(lines: NDArray[np.intp], name: str) -> str:
    """What regular `lines` are, as in `, every 16th row from row 3`: three or more, evenly apart."""
    steps = np.diff(lines)
    if lines.size < 3 or steps[0] < 2 or (steps != steps[0]).any():
        return ""
    one = name.removesuffix("s")
    return f", every {_ordinal(int(steps[0]))} {one} from {one} {lines[0]}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return str(number) + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _spread(matrix: NDArray[np.bool_]) -> str:
    if matrix.shape[0] < 2:
        return ""
    rows, columns = matrix.any(axis=1), matrix.any(axis=0)
    return (
        f", in {np.count_nonzero(rows)} of {matrix.shape[0]} rows and "
        f"{np.count_nonzero(columns)} of {matrix.shape[1]} columns"
    )


def ranges(lines: NDArray[np.intp]) -> str:
    """Sorted line numbers as text: 3, 5, 9 to 13."""
    breaks = np.flatnonzero(np.diff(lines) > 1) + 1
    parts = [
        str(run[0]) if run.size == 1 else f"{run[0]} to {run[-1]}"
        for run in np.split(lines, breaks)[:_SHOWN_RANGES]
    ]
    return ", ".join(parts) + (", ..." if breaks.size + 1 > _SHOWN_RANGES else "")
