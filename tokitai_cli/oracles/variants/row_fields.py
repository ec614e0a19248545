"""The fields of a large case's answer on some of its rows: what one evaluation of the formula gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import Floats, NotByRowsError
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants import row_blocks
from tokitai_cli.oracles.variants.by_rows import EVERYWHERE, Evaluate, looked_at
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.oracles.variants.row_layout import PART, Layout, Piece, layout_of
from tokitai_cli.oracles.variants.wrong_formulas import Recorded

# An output beside the large one has at most this share of its elements: it is kept whole.
_SMALL = 8
_FIELDS = {*EVERYWHERE, "error"}

# Flat, by name.
Fields = dict[str, Floats]
Outputs = Mapping[str, NDArray[Any]]


class Stored(NamedTuple):
    """Outputs that a kernel stored, and the name of the field of errors that they leave."""

    field: str
    outputs: dict[str, NDArray[Any]]


class OnRows(NamedTuple):
    """What the formula gives of some rows: fields of the large output, and the answer."""

    fields: Fields
    #: Whether the large output's errors below and above differ.
    sided: bool
    parts: dict[str, ArrayParts]
    alike: dict[str, bool]


class RowFields:
    """A formula whose answer is one large output, with small ones beside it."""

    def __init__(
        self,
        call: FormulaCall,
        request: Request,
        formula: Recorded,
        layout: Layout,
        evaluate: Evaluate,
    ) -> None:
        self.call, self.request, self.formula = call, request, formula
        self.layout, self.evaluate = layout, evaluate
        sizes = {name: math.prod(shape) for name, shape in layout.shapes.items()}
        self.large = max(sizes, key=lambda name: sizes[name])
        self.width = math.prod(layout.shapes[self.large][1:])
        self.longest = layout.sample.longest
        self.names = EVERYWHERE if request.probable else EVERYWHERE[:-1]

    @property
    def small(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the other outputs."""
        return {name: one for name, one in self.layout.shapes.items() if name != self.large}

    @property
    def overflow(self) -> float:
        """Least magnitude that the large output cannot hold."""
        return FORMATS[self.request.outputs[self.large]].overflow

    def on(self, piece: Piece, stored: list[Stored]) -> OnRows:
        """All fields on the rows of a piece; raises NotByRowsError where they are no such answer."""
        param, shapes = self.layout.sample.param, self.layout.shapes
        found = looked_at(self.call, self.request, param, shapes, self.evaluate, piece)
        if found is None or any(map(_has_more, found[0].values())):
            raise NotByRowsError
        parts, alike = found
        fields = self.fields_of(parts[self.large])
        sided = parts[self.large].error_below is not None and not alike[self.large]
        for one in stored:
            narrower = self._refined(piece, one)
            error = np.maximum(fields["error_below"], fields["error_above"])
            fields[one.field] = np.fmin(narrower, error)
        return OnRows(fields, sided, parts, alike)

    def on_sample(self, rows: NDArray[np.int64]) -> dict[str, ArrayParts]:
        """The answer for some rows by themselves; raises NotByRowsError as `on` does."""
        less = row_blocks.with_rows(self.call, self.request, self.layout.sample.param, rows)
        found, _ = self.evaluate(less, self.request)
        if any(map(_has_more, found.values())):
            raise NotByRowsError
        return found

    def fields_of(self, parts: ArrayParts) -> Fields:
        """The fields of an answer of some rows, or of all."""
        errors = parts.errors()
        if errors is None or (self.request.probable and parts.error_probable is None):
            raise NotByRowsError
        arrays = (parts.reference, *errors, parts.error_probable)
        return {
            name: array.reshape(-1)
            for name, array in zip(EVERYWHERE, arrays, strict=True)
            if array is not None
        }

    def _refined(self, piece: Piece, stored: Stored) -> Floats:
        """The larger of both errors that stored outputs leave."""
        precision = msgspec.structs.replace(self.request.precision, outputs=stored.outputs)
        request = msgspec.structs.replace(self.request, precision=precision, probable=False)
        param, shapes = self.layout.sample.param, self.layout.shapes
        found = looked_at(self.call, request, param, shapes, self.evaluate, piece)
        errors = None if found is None else found[0][self.large].errors()
        if errors is None:
            raise NotByRowsError
        return np.maximum(*errors).reshape(-1)


def row_fields(
    call: FormulaCall, request: Request, formula: Recorded, evaluate: Evaluate
) -> RowFields | None:
    """The case taken apart so; None for one without a large output of independent rows."""
    layout = layout_of(call, request, formula)
    if layout is None or layout.one_by_one or request.precision.outputs or request.precision.forms:
        return None
    formats = [FORMATS.get(request.outputs[name]) for name in layout.shapes]
    if any(form is None or form.overflows != "infinity" for form in formats):
        return None
    sizes = sorted(math.prod(shape) for shape in layout.shapes.values())
    if sizes[-1] < PART or sum(sizes[:-1]) * _SMALL > sizes[-1]:
        return None
    if call.params[layout.sample.param] < 2 * (layout.pieces[-1].part + 1):
        return None  # a row of a part is seen beside another one of it
    return RowFields(call, request, formula, layout, evaluate)


def _has_more(parts: ArrayParts) -> bool:
    return any(part.field not in _FIELDS for part, _ in parts.given())
