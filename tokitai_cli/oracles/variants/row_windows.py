"""The windows of a large answer: the memory that they lie in, and the evaluation of their pieces.

Worker processes evaluate pieces beside each other. The fields of the large output lie in memory that all
of them see; what belongs to small outputs they give back.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import Floats, NotByRowsError
from tokitai_cli.core.workers import Workers
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants import row_blocks
from tokitai_cli.oracles.variants.by_rows import Whole
from tokitai_cli.oracles.variants.row_fields import Fields, RowFields, Stored
from tokitai_cli.oracles.variants.row_layout import Piece, strided

# Elements of a window that are at most still needed with the next one, beside a part and two rows.
_NEEDED = 1 << 17


class Window(NamedTuple):
    """The fields of the large output between two flat positions, up to the end of a part."""

    part: int
    start: int
    stop: int
    fields: Fields


class Begun(NamedTuple):
    """The window that pieces are evaluated into from now on."""

    part: int
    start: int


class _Seen(NamedTuple):
    """One piece: whether its sides differ, its largest magnitude, and its part of small outputs."""

    sided: bool
    largest: float
    small: dict[str, ArrayParts]
    alike: dict[str, bool]


class RowWindows:
    """One pass over a large output by windows."""

    def __init__(self, rows: RowFields, stored: list[Stored], workers: Workers) -> None:
        self._rows, self._stored = rows, stored
        self.parts = parts_of(rows)
        sizes = [some[-1].rows.stop - some[0].rows.start for some in self.parts]
        most = 2 * (max(sizes) + 1) * rows.width + _NEEDED
        names = [*rows.names, *(one.field for one in stored)]
        self._room = {name: workers.floats(most) for name in names}
        self.small = Whole(rows.small, rows.layout.pieces)
        self.window: Window | None = None
        self.largest = 0.0
        self._begin = workers.work(self._begun)
        self._pieces = workers.work(self._evaluated)
        self._beside = workers.work(self._values_beside)

    def next(self, part: int, start: int) -> bool:
        """Make the window of a part, from a position that is still needed; whether sides differ in it.

        Where they do not, both are the larger one.
        """
        before = self.window
        if before is not None:
            for array in self._room.values():
                left = array[start - before.start : before.stop - before.start]
                array[: left.size] = left
        self._begin.everywhere(Begun(part, start))
        assert self.window is not None
        pieces = self.parts[part]
        sided = False
        for piece, seen in zip(pieces, self._pieces.in_order(range(len(pieces))), strict=True):
            sided |= seen.sided
            self.largest = max(self.largest, seen.largest)
            self.small.put(piece, seen.small, seen.alike)
        if not sided:
            first = pieces[0].rows.start * self._rows.width
            bring_together(self.window.fields, slice(first - start, None))
        self._require_independent(self.window)
        return sided

    def _begun(self, begun: Begun) -> None:
        part, start = begun
        stop = self.parts[part][-1].rows.stop * self._rows.width
        fields = {name: array[: stop - start] for name, array in self._room.items()}
        self.window = Window(part, start, stop, fields)

    def _evaluated(self, number: int) -> _Seen:
        """Put a piece of the window's part in its place."""
        assert self.window is not None
        part, start, _, fields = self.window
        piece, width = self.parts[part][number], self._rows.width
        found = self._rows.on(piece, self._stored)
        at = slice(piece.rows.start * width - start, piece.rows.stop * width - start)
        for name, array in found.fields.items():
            fields[name][at] = array
        small = {name: found.parts[name] for name in self._rows.small}
        largest = self._largest_of(found.fields["reference"])
        return _Seen(found.sided, largest, small, dict(found.alike))

    def _largest_of(self, reference: Floats) -> float:
        magnitude = np.abs(reference)
        top = float(magnitude.max())
        if top < self._rows.overflow:
            return top
        return float(np.max(magnitude, initial=0.0, where=magnitude < self._rows.overflow))

    def _require_independent(self, window: Window) -> None:
        """Raise NotByRowsError where rows of a part have other values beside others."""
        sample = self._rows.layout.sample
        if sample.independent:
            return
        first, last = _rows_of(self.parts[window.part])
        references = {
            name: array[first:last] for name, array in self.small.arrays("reference").items()
        }
        references[self._rows.large] = self._reference(window)

        def alike(some: NDArray[np.int64] | slice, values: Mapping[str, Any]) -> bool:
            return all(
                row_blocks.alike(np.asarray(one), references[name][some])
                for name, one in values.items()
            )

        within = (sample.rows >= first) & (sample.rows < last)
        values = {name: sample.values[name][within] for name in references}
        if not alike(sample.rows[within] - first, values):
            raise NotByRowsError
        groups = list(strided(self.parts[window.part]))
        for some, (is_alike, small) in zip(groups, self._beside.in_order(groups), strict=True):
            if not is_alike or not alike(_within(some, first), small):
                raise NotByRowsError

    def _reference(self, window: Window) -> NDArray[np.float64]:
        """Of the rows of the window's part, in their shape."""
        rows = self._rows
        first, last = _rows_of(self.parts[window.part])
        part = window.fields["reference"][first * rows.width - window.start :]
        return part.reshape(last - first, *rows.layout.shapes[rows.large][1:])

    def _values_beside(self, some: slice) -> tuple[bool, dict[str, NDArray[Any]]]:
        """Rows of the window's part beside others.

        Whether the large output's are alike, and the values of the others.
        """
        assert self.window is not None
        rows = self._rows
        first, _ = _rows_of(self.parts[self.window.part])
        values = row_blocks.in_double(rows.call, rows.request, rows.layout.sample.param, some)
        if values is None:
            return False, {}
        reference = self._reference(self.window)[_within(some, first)]
        alike = row_blocks.alike(np.asarray(values[rows.large]), reference)
        return alike, {name: np.asarray(values[name]) for name in rows.small}


def parts_of(rows: RowFields) -> list[list[Piece]]:
    """Pieces by the part that they belong to."""
    groups = itertools.groupby(rows.layout.pieces, key=lambda piece: piece.part)
    return [list(some) for _, some in groups]


def _rows_of(pieces: list[Piece]) -> tuple[int, int]:
    return pieces[0].rows.start, pieces[-1].rows.stop


def _within(rows: slice, first: int) -> slice:
    """The same rows, counted from `first`."""
    return slice(rows.start - first, None, rows.step)


def bring_together(fields: Fields, where: slice) -> None:
    """One error for both sides, the larger one."""
    below, above = fields["error_below"][where], fields["error_above"][where]
    np.maximum(below, above, out=below)
    above[:] = below
