"""The answer for a large case by blocks of its rows, several at a time on threads.

A block's temporaries stay in a core's cache, and no more than the answer is ever whole.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.oracles.formula.kept import keeping
from tokitai_cli.oracles.formula.parts import BLOCK
from tokitai_cli.oracles.output_parts import ArrayParts, OutputParts
from tokitai_cli.oracles.variants import row_blocks
from tokitai_cli.oracles.variants.replay import replay as in_single
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.oracles.variants.single_product import is_product_by_rows
from tokitai_cli.oracles.variants.wrong_formulas import PRODUCTS, Recorded

# Elements of the outputs in a part, of which sides are told where the two differ anywhere in it.
PART = 1 << 21
# Elements of the longest rows in a block, and rows that a formula is recorded on.
_BLOCK = 1 << 17
_FEW = (16, 61)
# What every piece has, where one of them has it.
EVERYWHERE = ("reference", "error_below", "error_above", "error_probable")

# What the formula gives of some rows, and whether each output's sides are alike.
Evaluated = tuple[dict[str, ArrayParts], dict[str, bool]]
Evaluate = Callable[[FormulaCall, Request], Evaluated]


class Sample(msgspec.Struct):
    """Some rows of a large case, and what the formula gives of these alone in float64."""

    param: str
    rows: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]
    #: Whether it was seen that rows have the same values beside any others.
    independent: bool = False


class Piece(NamedTuple):
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
    few, more = _FEW[0], max(_FEW[1], BLOCK // max(longest_row(call, request, param), 1))
    if count <= more:
        return None
    found = []
    for number in (few, more):
        rows = row_blocks.some_rows(call, request, param, number)
        try:
            found.append(record(row_blocks.with_rows(call, request, param, rows)))
        except row_blocks.TOO_FEW:
            return None
    less, formula = found
    if less.operations != formula.operations or less.behind != formula.behind:
        return None
    return formula, Sample(param, rows, formula.values)


def by_rows(
    call: FormulaCall,
    request: Request,
    formula: Recorded,
    evaluate: Evaluate,
    *,
    only_error: bool = False,
) -> dict[str, ArrayParts] | None:
    """References and errors of all outputs; None where the case is small, or its rows are correlated.

    only_error: the larger of both errors alone is wanted, where rows were seen to be independent.
    """
    layout = layout_of(call, request, formula)
    if layout is None:
        return None
    sample, shapes, pieces, products = layout
    only_error = only_error and sample.independent
    whole = Whole(shapes, pieces)

    def look(piece: Piece) -> bool:
        found = looked_at(call, request, sample.param, shapes, evaluate, piece)
        if found is not None:
            parts, alike = found
            whole.put(piece, _one_error(parts) if only_error else parts, alike)
        return found is not None

    # The parts of a product take all threads, one after the other.
    each = map if products else parallel.in_order
    if not all(each(look, pieces)):
        return None
    parts = whole.parts()
    if not sample.independent:
        sample.independent = _alike(parts, sample.values, sample.rows) and (
            is_product_by_rows(call, request, sample.param)
            or all(
                each(
                    functools.partial(_alike_beside, call, request, sample.param, parts),
                    _strided(pieces),
                )
            )
        )
    return parts if sample.independent else None


def replay_by_rows(
    call: FormulaCall, request: Request, formula: Recorded
) -> dict[str, NDArray[Any]] | None:
    """The formula in float32 by blocks of rows; None where it is taken as a whole."""
    layout = layout_of(call, request, formula)
    if layout is None or layout.products:
        return None
    sample, shapes, pieces, _ = layout

    def look(piece: Piece) -> dict[str, NDArray[Any]]:
        return in_single(row_blocks.with_rows(call, request, sample.param, piece.rows).call)

    found: dict[str, NDArray[Any]] = {}
    for piece, values in zip(pieces, parallel.in_order(look, pieces), strict=True):
        for name, shape in shapes.items():
            if name not in found:
                found[name] = np.empty(shape, values[name].dtype)
            found[name][piece.rows] = values[name]
    return found


class Layout(NamedTuple):
    """A case that is taken apart: its sample, the outputs' shapes, and the pieces in order."""

    sample: Sample
    shapes: dict[str, tuple[int, ...]]
    pieces: list[Piece]
    #: Whether it has products: BLAS adds in an order that hangs on their size, so that pieces are
    #: whole parts, and has threads of its own.
    products: bool


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
    products = any(one.name in PRODUCTS for one in formula.operations)
    size = sum(math.prod(shape) for shape in shapes.values())
    if not products:  # few outputs of long rows are as much work
        size = max(size, count * longest_row(call, request, sample.param))
    if size < 2 * PART:
        return None
    step = count if products else _step(longest_row(call, request, sample.param))
    return Layout(sample, shapes, list(_pieces(count, size // PART, step)), products)


def _param_of(call: FormulaCall, request: Request) -> str:
    """The param that counts the rows of a case that may be large; "" for none."""
    param = row_blocks.param_of(call, request)
    if not param or "float64" in request.outputs.values():
        return ""
    extents = [array.size for array in call.inputs.values()]
    extents += [row_blocks.elements(call, request, name) for name in request.outputs]
    large = max(extents) >= 2 * PART or call.params[param] * 2 >= PART
    return param if large else ""


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


def _strided(pieces: list[Piece]) -> Iterator[NDArray[np.int64]]:
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
    values = row_blocks.in_double(call, request, param, rows)
    return values is not None and _alike(parts, values, rows)


def _alike(
    parts: Mapping[str, ArrayParts], values: Mapping[str, Any], rows: NDArray[np.int64]
) -> bool:
    """Whether the outputs have these values in these rows."""
    return all(
        row_blocks.alike(np.asarray(values[name]), row_blocks.taken(one.reference, rows))
        for name, one in parts.items()
    )


def looked_at(
    call: FormulaCall,
    request: Request,
    param: str,
    shapes: Mapping[str, tuple[int, ...]],
    evaluate: Evaluate,
    piece: Piece,
) -> Evaluated | None:
    """What the formula gives of the rows; None where that is not as many, or leaves integers open."""
    stored = {
        name: np.reshape(array, shapes[name])[piece.rows]
        for name, array in request.precision.outputs.items()
    }
    precision = msgspec.structs.replace(request.precision, outputs=stored)
    mine = msgspec.structs.replace(request, precision=precision)
    try:
        with keeping():
            found, alike = evaluate(row_blocks.with_rows(call, mine, param, piece.rows), mine)
    except row_blocks.TOO_FEW:
        return None
    count = piece.rows.stop - piece.rows.start
    fits = all(
        found[name].reference.shape == (count, *shapes[name][1:]) and found[name].allowed is None
        for name in shapes
    )
    return (found, alike) if fits else None


def _one_error(parts: Mapping[str, ArrayParts]) -> dict[str, ArrayParts]:
    """The larger of both errors of each output that has them, and no reference."""
    found = {}
    for name, one in parts.items():
        errors = one.errors()
        error = None if errors is None else np.maximum(*errors)
        found[name] = OutputParts(reference=np.zeros(()), error=error)
    return found


class Whole:
    """The answer as it is put together: each piece by its thread, as new pages take the most time."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], pieces: list[Piece]) -> None:
        self._shapes = shapes
        self._pieces = pieces
        self._one_at_a_time = threading.Lock()
        self._arrays: dict[str, dict[str, NDArray[Any]]] = {name: {} for name in shapes}
        #: Outputs' parts of which a piece has sides that are not alike.
        self._sided: set[tuple[str, int]] = set()
        #: Outputs' rows that have one error for both sides from the beginning, by where they start.
        self._one_error: set[tuple[str, int]] = set()

    def put(
        self, piece: Piece, answer: Mapping[str, ArrayParts], alike: Mapping[str, bool]
    ) -> None:
        """Take in one piece."""
        for name in self._shapes:
            for part, array in answer[name].given():
                if not array.ndim:  # a reference that nobody asked for
                    continue
                field = "error_below" if part.field == "error" else part.field
                self._array(name, field, array.dtype)[piece.rows] = array
            if answer[name].error is not None:
                with self._one_at_a_time:
                    self._one_error.add((name, piece.rows.start))
            if answer[name].error_below is not None and not alike.get(name, True):
                with self._one_at_a_time:
                    self._sided.add((name, piece.part))

    def _array(self, name: str, field: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        with self._one_at_a_time:
            if field not in self._arrays[name]:
                # numpy gives empty arrays huge pages, and those of zeros none.
                make = np.empty if field in EVERYWHERE else np.zeros
                self._arrays[name][field] = make(self._shapes[name], dtype)
            return self._arrays[name][field]

    def arrays(self, field: str) -> dict[str, NDArray[Any]]:
        """A field that every output has, as far as it was put together."""
        return {name: self._arrays[name][field] for name in self._shapes}

    def parts(self) -> dict[str, ArrayParts]:
        """The whole answer; one error for both sides in parts of the case in which all are alike."""
        return {name: self._parts(name) for name in self._shapes}

    def _parts(self, name: str) -> ArrayParts:
        arrays = self._arrays[name]
        if "error_below" in arrays:
            sided = any(one == name for one, _ in self._sided)
            if "error_above" in arrays:
                self._bring_together(name, sided=sided)
            if not sided:
                arrays.pop("error_above", None)
                arrays["error"] = arrays.pop("error_below")
        fields: dict[str, Any] = dict(arrays)
        fields.setdefault("reference", np.broadcast_to(0.0, self._shapes[name]))
        return OutputParts(**fields)

    def _bring_together(self, name: str, *, sided: bool) -> None:
        """One error for both sides where parts are alike; sided: in both arrays, else in the first."""
        below, above = (self._arrays[name][field] for field in ("error_below", "error_above"))
        for piece in self._pieces:
            alone = (name, piece.rows.start) in self._one_error
            if (name, piece.part) in self._sided and not alone:
                continue
            if not alone:
                np.maximum(below[piece.rows], above[piece.rows], out=below[piece.rows])
            if sided:
                above[piece.rows] = below[piece.rows]
