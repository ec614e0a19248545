"""The answer for a large case by blocks of its rows, several at a time on threads.

A block's temporaries stay in a core's cache, and no more than the answer is ever whole.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.oracles.formula.kept import keeping
from tokitai_cli.oracles.output_parts import ArrayParts, OutputParts
from tokitai_cli.oracles.variants import row_blocks
from tokitai_cli.oracles.variants.replay import replay as in_single
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.oracles.variants.row_layout import Layout, Piece, layout_of, strided
from tokitai_cli.oracles.variants.single_product import is_product_by_rows
from tokitai_cli.oracles.variants.wrong_formulas import Recorded

# What every piece has, where one of them has it.
EVERYWHERE = ("reference", "error_below", "error_above", "error_probable")

# What the formula gives of some rows, and whether each output's sides are alike.
Evaluated = tuple[dict[str, ArrayParts], dict[str, bool]]
Evaluate = Callable[[FormulaCall, Request], Evaluated]
_Index = TypeVar("_Index")
_Result = TypeVar("_Result")


def each(
    layout: Layout, work: Callable[[_Index], _Result], of: Iterable[_Index]
) -> Iterator[_Result]:
    """What `work` returns for each piece, or each group of rows, in order."""
    return map(work, of) if layout.one_by_one else parallel.in_order(work, of)


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
    sample, shapes, pieces = layout.sample, layout.shapes, layout.pieces
    only_error = only_error and sample.independent
    whole = Whole(shapes, pieces)

    def look(piece: Piece) -> bool:
        found = looked_at(call, request, sample.param, shapes, evaluate, piece)
        if found is not None:
            parts, alike = found
            whole.put(piece, _one_error(parts) if only_error else parts, alike)
        return found is not None

    if not all(each(layout, look, pieces)):
        return None
    parts = whole.parts()
    if not sample.independent:
        sample.independent = _alike(parts, sample.values, sample.rows) and (
            is_product_by_rows(call, request, sample.param)
            or all(
                each(
                    layout,
                    functools.partial(_alike_beside, call, request, sample.param, parts),
                    strided(pieces),
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
    sample, shapes, pieces = layout.sample, layout.shapes, layout.pieces

    def look(piece: Piece) -> dict[str, NDArray[Any]]:
        return in_single(row_blocks.with_rows(call, request, sample.param, piece.rows).call)

    found: dict[str, NDArray[Any]] = {}
    for piece, values in zip(pieces, each(layout, look, pieces), strict=True):
        for name, shape in shapes.items():
            if name not in found:
                found[name] = np.empty(shape, values[name].dtype)
            found[name][piece.rows] = values[name]
    return found


def _alike_beside(
    call: FormulaCall,
    request: Request,
    param: str,
    parts: Mapping[str, ArrayParts],
    rows: slice,
) -> bool:
    """Whether rows have the values in `parts` beside other rows too: else rows are correlated."""
    values = row_blocks.in_double(call, request, param, rows)
    return values is not None and _alike(parts, values, rows)


def _alike(
    parts: Mapping[str, ArrayParts], values: Mapping[str, Any], rows: NDArray[np.int64] | slice
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
