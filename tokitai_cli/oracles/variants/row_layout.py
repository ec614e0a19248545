"""How a large case is taken apart by rows: what the formula is on a few of them, and blocks of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula.parts import BLOCK, SHARED
from tokitai_cli.oracles.variants import row_blocks
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.oracles.variants.wrong_formulas import PRODUCTS, Recorded

# Elements of the outputs in a part, of which sides are told where the two differ anywhere in it.
PART = 1 << 21
# Elements of the longest rows in a block, and rows that a formula is recorded on.
_BLOCK = 1 << 17
_FEW = (16, 61)
# Fewer rows than these may be long ones, from so many on where they have so many elements together.
_LEAST_LONG, _WORTH = 4, 1 << 18


class Sample(msgspec.Struct):
    """Some rows of a large case, and what the formula gives of these alone in float64."""

    param: str
    rows: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]
    #: Elements of a row of the largest array that the formula makes or reads.
    longest: int
    #: Whether its products are of matrices within rows: their size is that of one row.
    batched: bool
    #: Whether it was seen that rows have the same values beside any others.
    independent: bool = False


class Piece(NamedTuple):
    """Rows that are evaluated at once, and the part that they belong to."""

    part: int
    rows: slice


class Layout(NamedTuple):
    """A case that is taken apart: its sample, the outputs' shapes, and the pieces in order."""

    sample: Sample
    shapes: dict[str, tuple[int, ...]]
    pieces: list[Piece]
    #: Whether it has products over several rows: BLAS adds in an order that hangs on their size, so
    #: that pieces are whole parts.
    products: bool
    #: Whether a piece takes all threads: BLAS has its own, and one of so long rows is worth it.
    one_by_one: bool


def recorded_on_rows(
    call: FormulaCall, request: Request, record: Callable[[FormulaCall], Recorded]
) -> tuple[Recorded, Sample] | None:
    """What the formula of a large case consists of, from a few of its rows.

    None where the case is small, or where more rows are other operations or longer sums.
    """
    param = row_blocks.param_of(call, request)
    if not param or "float64" in request.outputs.values():
        return None
    count, longest = call.params[param], longest_row(call, request, param)
    few, more = _FEW[0], max(_FEW[1], BLOCK // max(longest, 1))
    is_large = count > more and _is_large(call, request)
    if not is_large and (count < _LEAST_LONG or count * longest < _WORTH):
        return None

    def on(number: int) -> Recorded:
        rows = row_blocks.some_rows(call, request, param, number)
        found = record(row_blocks.with_rows(call, request, param, rows))
        return found._replace(sample=rows)

    try:
        less = _on_one(on)
        if not is_large and (less is None or count * max(longest, less.largest) < 2 * PART):
            return None
        if less is not None and (not is_large or (less.matrices and less.largest * more > PART)):
            few, more = 1, 2
        else:
            less = on(few)
        formula = on(more)
    except row_blocks.TOO_FEW:
        return None
    if less.operations != formula.operations or less.behind != formula.behind:
        return None
    if not row_blocks.naming_of(
        call, request, param
    ):  # else rows are as long as they are named often
        longest = max(longest, (formula.largest - less.largest) // (more - few))
    batched = less.matrices == formula.matrices
    return formula, Sample(param, formula.sample, formula.values, longest, batched)


def _on_one(on: Callable[[int], Recorded]) -> Recorded | None:
    """The formula of one row; None where it takes more."""
    try:
        return on(1)
    except row_blocks.TOO_FEW:
        return None


def _is_large(call: FormulaCall, request: Request) -> bool:
    """Whether an input, an output or the number of rows is large."""
    param = row_blocks.param_of(call, request)
    extents = [array.size for array in call.inputs.values()]
    extents += [row_blocks.elements(call, request, name) for name in request.outputs]
    return max(extents) >= 2 * PART or call.params[param] * 2 >= PART


def layout_of(call: FormulaCall, request: Request, formula: Recorded) -> Layout | None:
    """How the case is taken apart; None for one that is small, or has other rows than its outputs'."""
    sample = formula.sample
    if sample is None or sample.values.keys() != request.outputs.keys():
        return None
    count, shapes = call.params[sample.param], dict[str, tuple[int, ...]]()
    for name, values in sample.values.items():
        if not values.ndim or values.shape[0] != sample.rows.size:
            return None
        shapes[name] = (count, *values.shape[1:])
    products = any(one.name in PRODUCTS for one in formula.operations) and not sample.batched
    size = sum(math.prod(shape) for shape in shapes.values())
    if products:
        enough, step, one_by_one = size, count, True
    else:  # few outputs of long rows are as much work
        size = max(size, count * longest_row(call, request, sample.param))
        enough, step = max(size, count * sample.longest), _step(sample.longest)
        one_by_one = step * sample.longest >= SHARED
    if enough < 2 * PART:
        return None
    pieces = list(_pieces(count, max(size // PART, 1), step))
    return Layout(sample, shapes, pieces, products, one_by_one)


def longest_row(call: FormulaCall, request: Request, param: str) -> int:
    """Elements of the longest row, of inputs and outputs."""
    count = max(call.params[param], 1)
    rows = [row_blocks.elements(call, request, name) // count for name in request.outputs]
    naming = row_blocks.naming_of(call, request, param)
    counts = {param, naming.counted if naming else param}
    rows += [
        array.size // count
        for name, array in call.inputs.items()
        if counts & set(request.shapes.get(name, ()))
    ]
    return max(rows, default=1)


def _step(longest: int) -> int:
    """Rows of a block: as many as whole blocks of the formula's own, which begin where rows do."""
    step = max(BLOCK // max(longest, 1), 1)
    return step * max(1, _BLOCK // (step * max(longest, 1)))


def _pieces(count: int, parts: int, step: int) -> Iterator[Piece]:
    start = 0
    for part, size in enumerate(one.size for one in np.array_split(np.arange(count), parts)):
        for first in range(start, start + size, step):
            yield Piece(part, slice(first, min(first + step, start + size)))
        start += size


def strided(pieces: list[Piece]) -> Iterator[slice]:
    """All rows of the pieces in about as many groups, of two at least, neighbours in different ones."""
    first, last = pieces[0].rows.start, pieces[-1].rows.stop
    groups = max(1, min(len(pieces), (last - first) // 2))
    for start in range(first, first + groups):
        yield slice(start, last, groups)
