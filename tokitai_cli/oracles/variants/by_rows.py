"""The answer for a large case by blocks of its rows, several at a time on threads.

A block's temporaries stay in a core's cache, and no more than the answer is ever whole.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.oracles.formula.parts import BLOCK
from tokitai_cli.oracles.output_parts import ArrayParts, OutputParts
from tokitai_cli.oracles.variants import row_blocks
from tokitai_cli.oracles.variants.replay import replay as in_single
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.oracles.variants.wrong_formulas import Recorded

# Elements of the outputs in a part, of which sides are told where the two differ anywhere in it.
_PART = 1 << 21
# Elements of the longest rows in a block, and rows that a formula is recorded on.
_BLOCK = 1 << 17
_FEW = (16, 61)
_PRODUCTS = frozenset(("matmul", "dot", "einsum"))

# What the formula gives of some rows, and whether each output's sides are alike.
Evaluated = tuple[dict[str, ArrayParts], dict[str, bool]]
Evaluate = Callable[[FormulaCall, Request], Evaluated]


class Sample(NamedTuple):
    """Some rows of a large case, and what the formula gives of these alone in float64."""

    param: str
    rows: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]


class _Piece(NamedTuple):
    """Rows that are evaluated at once, and the part that they belong to."""

    part: int
    rows: slice


def recorded_on_rows(
    call: FormulaCall, request: Request, record: Callable[[FormulaCall], Recorded]
) -> tuple[Recorded, Sample] | None:
    """What the formula of a large case consists of, from a few of its rows.

    None where the case is small, or where more rows are other operations or longer sums.
    """
    param = _param_of(call, request)
    if not param:
        return None
    count = call.params[param]
    few, more = _FEW[0], max(_FEW[1], BLOCK // max(_longest(call, request, param), 1))
    if count <= more:
        return None
    found = []
    for number in (few, more):
        rows = np.unique(np.linspace(0, count - 1, number).astype(np.int64))
        try:
            found.append(record(row_blocks.with_rows(call, request, param, rows)))
        except (ArithmeticError, IndexError, TypeError, ValueError):
            return None
    less, formula = found
    if less.operations != formula.operations or less.behind != formula.behind:
        return None
    return formula, Sample(param, rows, formula.values)


def by_rows(
    call: FormulaCall, request: Request, formula: Recorded, evaluate: Evaluate
) -> dict[str, ArrayParts] | None:
    """References and errors of all outputs; None where the case is small, or its rows are correlated."""
    layout = _layout(call, request, formula)
    if layout is None:
        return None
    sample, shapes, pieces, products = layout
    look = functools.partial(_looked_at, call, request, sample.param, shapes, evaluate)
    whole = _Whole(shapes, pieces)
    with parallel.sharing(1 if products else parallel.threads()):
        for piece, found in zip(pieces, parallel.in_order(look, pieces), strict=True):
            if found is None:
                return None
            whole.add(piece, found)
        parts = whole.parts()
        if not _alike(parts, sample.values, sample.rows):
            return None
        beside = functools.partial(_alike_beside, call, request, sample.param, parts)
        return parts if all(parallel.in_order(beside, _strided(pieces))) else None


def replay_by_rows(
    call: FormulaCall, request: Request, formula: Recorded
) -> dict[str, NDArray[Any]] | None:
    """The formula in float32 by blocks of rows; None where it is taken as a whole."""
    layout = _layout(call, request, formula)
    if layout is None or layout.products:
        return None
    sample, shapes, pieces, _ = layout

    def look(piece: _Piece) -> dict[str, NDArray[Any]]:
        rows = np.arange(piece.rows.start, piece.rows.stop)
        return in_single(row_blocks.with_rows(call, request, sample.param, rows).call)

    found: dict[str, NDArray[Any]] = {}
    for piece, values in zip(pieces, parallel.in_order(look, pieces), strict=True):
        for name, shape in shapes.items():
            if name not in found:
                found[name] = np.empty(shape, values[name].dtype)
            found[name][piece.rows] = values[name]
    return found


class _Layout(NamedTuple):
    """A case that is taken apart: its sample, the outputs' shapes, and the pieces in order."""

    sample: Sample
    shapes: dict[str, tuple[int, ...]]
    pieces: list[_Piece]
    #: Whether it has products: BLAS adds in an order that hangs on their size, so that pieces are
    #: whole parts, and has threads of its own.
    products: bool


def _layout(call: FormulaCall, request: Request, formula: Recorded) -> _Layout | None:
    sample = formula.sample
    if sample is None or sample.values.keys() != request.outputs.keys():
        return None
    count, shapes = call.params[sample.param], dict[str, tuple[int, ...]]()
    for name, values in sample.values.items():
        if not values.ndim or values.shape[0] != sample.rows.size:
            return None
        shapes[name] = (count, *values.shape[1:])
    size = sum(math.prod(shape) for shape in shapes.values())
    if size < 2 * _PART:
        return None
    products = any(one.name in _PRODUCTS for one in formula.operations)
    step = count if products else _step(_longest(call, request, sample.param))
    return _Layout(sample, shapes, list(_pieces(count, size // _PART, step)), products)


def _param_of(call: FormulaCall, request: Request) -> str:
    """The param that counts the rows of a case that may be large; "" for none."""
    param = row_blocks.param_of(call, request)
    narrow = all(dtype in FORMATS and dtype != "float64" for dtype in request.outputs.values())
    if not param or not narrow:
        return ""
    extents = [array.size for array in call.inputs.values()]
    extents += [row_blocks.elements(call, request, name) for name in request.outputs]
    large = max(extents) >= 2 * _PART or call.params[param] * 2 >= _PART
    return param if large else ""


def _longest(call: FormulaCall, request: Request, param: str) -> int:
    """Elements of the longest row, of inputs and outputs."""
    count = max(call.params[param], 1)
    rows = [row_blocks.elements(call, request, name) // count for name in request.outputs]
    rows += [
        array.size // count
        for name, array in call.inputs.items()
        if param in request.shapes.get(name, ())
    ]
    return max(rows, default=1)


def _step(longest: int) -> int:
    """Rows of a block: as many as whole blocks of the formula's own, which begin where rows do."""
    step = max(BLOCK // max(longest, 1), 1)
    return step * max(1, _BLOCK // (step * max(longest, 1)))


def _pieces(count: int, parts: int, step: int) -> Iterator[_Piece]:
    start = 0
    for part, size in enumerate(one.size for one in np.array_split(np.arange(count), parts)):
        for first in range(start, start + size, step):
            yield _Piece(part, slice(first, min(first + step, start + size)))
        start += size


def _strided(pieces: list[_Piece]) -> Iterator[NDArray[np.int64]]:
    """All rows in as many groups as there are pieces, neighbours in different ones."""
    count = pieces[-1].rows.stop
    for first in range(len(pieces)):
        yield np.arange(first, count, len(pieces))


def _alike_beside(
    call: FormulaCall,
    request: Request,
    param: str,
    parts: Mapping[str, ArrayParts],
    rows: NDArray[np.int64],
) -> bool:
    """Whether rows have the values in `parts` beside other rows too: else rows are correlated."""
    return _alike(
        parts, row_blocks.with_rows(call, request, param, rows).in_double(np.asarray), rows
    )


def _alike(
    parts: Mapping[str, ArrayParts], values: Mapping[str, Any], rows: NDArray[np.int64]
) -> bool:
    """Whether the outputs have these values in these rows."""
    return all(
        row_blocks.alike(np.asarray(values[name]), one.reference[rows])
        for name, one in parts.items()
    )


def _looked_at(
    call: FormulaCall,
    request: Request,
    param: str,
    shapes: Mapping[str, tuple[int, ...]],
    evaluate: Evaluate,
    piece: _Piece,
) -> Evaluated | None:
    """What the formula gives of the rows; None where that is not as many."""
    stored = {
        name: np.reshape(array, shapes[name])[piece.rows]
        for name, array in request.precision.outputs.items()
    }
    precision = msgspec.structs.replace(request.precision, outputs=stored)
    mine = msgspec.structs.replace(request, precision=precision)
    rows = np.arange(piece.rows.start, piece.rows.stop)
    found, alike = evaluate(row_blocks.with_rows(call, mine, param, rows), mine)
    fits = all(found[name].reference.shape == (rows.size, *shapes[name][1:]) for name in shapes)
    return (found, alike) if fits else None


class _Whole:
    """The answer as it is put together, piece by piece in order."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], pieces: list[_Piece]) -> None:
        self._found: dict[str, ArrayParts] = {
            name: OutputParts(reference=np.empty(shape)) for name, shape in shapes.items()
        }
        self._last = {piece.part: piece for piece in pieces}
        self._waiting: list[tuple[_Piece, Evaluated]] = []

    def add(self, piece: _Piece, found: Evaluated) -> None:
        """Take in one piece; whether sides are told is settled when its part is there."""
        self._waiting.append((piece, found))
        if piece is self._last[piece.part]:
            for name in self._found:
                same = all(alike.get(name, True) for _, (_, alike) in self._waiting)
                for one, (parts, _) in self._waiting:
                    self._put(name, parts[name], one.rows, same=same)
            self._waiting.clear()

    def parts(self) -> dict[str, ArrayParts]:
        """The whole answer."""
        return self._found

    def _put(self, name: str, parts: ArrayParts, rows: slice, *, same: bool) -> None:
        if same and parts.error_below is not None and parts.error_above is not None:
            error = np.maximum(parts.error_below, parts.error_above)
            parts = msgspec.structs.replace(parts, error=error, error_below=None, error_above=None)
        self._found[name] = _with_rows(self._found[name], parts, rows)


def _with_rows(whole: ArrayParts, parts: ArrayParts, rows: slice) -> ArrayParts:
    """With some rows of the answer put in; sides where any has them, in place of one error."""
    if parts.error is not None and whole.error_below is not None:
        parts = _sided(parts)
    elif parts.error_below is not None and whole.error is not None:
        whole = _sided(whole)
    missing = {
        part.field: np.zeros(whole.reference.shape, array.dtype)
        for part, array in parts.given()
        if getattr(whole, part.field) is None
    }
    if missing:
        whole = msgspec.structs.replace(whole, **missing)
    for part, array in parts.given():
        getattr(whole, part.field)[rows] = array
    return whole


def _sided(parts: ArrayParts) -> ArrayParts:
    """With an error for each side in place of one for both."""
    assert parts.error is not None
    return msgspec.structs.replace(
        parts, error=None, error_below=parts.error, error_above=parts.error.copy()
    )
