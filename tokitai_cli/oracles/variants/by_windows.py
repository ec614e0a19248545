"""The answer for a large case that is never whole: evaluated while it is judged, window after window.

A window is a part of the rows, as `by_rows` has them, with a few rows of the one before. What is read
behind it is evaluated again, in the formula's own blocks, so that all bits are those of the window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import DeferredArray, Floats, NotByRowsError, Rider
from tokitai_cli.core.larger_of import larger_of, least_of
from tokitai_cli.core.workers import Workers
from tokitai_cli.oracles.formula.parts import BLOCK
from tokitai_cli.oracles.output_parts import ArrayParts, OutputParts
from tokitai_cli.oracles.variants.by_rows import by_rows
from tokitai_cli.oracles.variants.row_fields import Fields, Outputs, RowFields, Stored
from tokitai_cli.oracles.variants.row_layout import Piece
from tokitai_cli.oracles.variants.row_windows import RowWindows, Window, bring_together, parts_of

# Blocks that are kept after they were evaluated again, and that one array of places may ask for.
_BLOCKS_KEPT, _BLOCKS_ASKED = 8, 16


class _Refined(msgspec.Struct):
    """An error that a kernel's other outputs leave, and in which pass it was asked for last."""

    stored: Stored
    error: DeferredArray
    asked: int


class ByWindows:
    """Computes an answer of which one output is large (`core.deferred.Source` and `Pass`).

    It serves one thread, which may give parts of what is computed to others, and worker processes.
    """

    def __init__(self, rows: RowFields) -> None:
        self._rows = rows
        self._parts = parts_of(rows)
        #: Of each part whether its sides differ, None before it was seen.
        self._sided: list[bool | None] = [None] * len(self._parts)
        self._whole: dict[str, ArrayParts] = {}
        self._refined_whole: Fields = {}
        self._small: dict[str, ArrayParts] = {}
        self._sample: tuple[bytes, dict[str, ArrayParts]] = (b"", {})
        self._refined: list[_Refined] = []
        self._numbers = itertools.count()
        self._blocks: dict[int, Fields] = {}
        self._positions = np.zeros(0, np.int64)
        self._kept: Fields = {}
        self._riders: Sequence[Rider] = ()
        self._running: RowWindows | None = None
        self._passes = self._from = 0
        #: Rows of a block of the formula's own.
        self._step = max(BLOCK // max(rows.longest, 1), 1)
        self._places = (self._positions, self._positions)
        self.largest = math.nan

    def parts(self) -> dict[str, ArrayParts]:
        """The answer, of arrays that are computed where they are read."""
        found = {}
        for name, shape in self._rows.layout.shapes.items():
            fields: dict[str, Any] = {
                field: DeferredArray(self, name, field, shape) for field in self._rows.names
            }
            found[name] = OutputParts[NDArray[Any]](**fields)
        return found

    def refine(self, outputs: Outputs) -> Floats:
        """The smaller error that the other outputs of a kernel leave to the large one."""
        others = {name: array for name, array in outputs.items() if name != self._rows.large}
        for one in self._refined:
            known = one.stored.outputs
            if all(known[name].tobytes() == array.tobytes() for name, array in others.items()):
                one.asked = self._passes
                return cast("Floats", one.error)
        self._refined = [one for one in self._refined if one.asked == self._passes]
        field = f"refined {next(self._numbers)}"
        stored = Stored(field, {name: array.copy() for name, array in others.items()})
        shape = self._rows.layout.shapes[self._rows.large]
        error = DeferredArray(self, self._rows.large, field, shape)
        self._refined.append(_Refined(stored, error, self._passes))
        self._blocks.clear()
        return cast("Floats", error)

    @property
    def is_whole(self) -> bool:
        """Whether the answer was asked for as a whole."""
        return bool(self._whole)

    # A pass (`core.deferred.Pass`).

    def pass_of(self, name: str) -> ByWindows | None:
        """Itself for the large output, unless that was made whole."""
        return self if name == self._rows.large and not self.is_whole else None

    def release(self, start: int) -> None:
        """See `core.deferred.Pass`."""
        self._from = start

    def keep(self, positions: NDArray[np.int64]) -> None:
        """See `core.deferred.Pass`."""
        self._positions = positions
        self._places = (positions, np.arange(positions.size))

    def show(self, riders: Sequence[Rider]) -> None:
        """See `core.deferred.Pass`."""
        self._riders = riders

    def windows(self, workers: Workers) -> Iterator[int]:
        """See `core.deferred.Pass`. Raises NotByRowsError where rows are no independent ones."""
        riders, self._riders = self._riders, ()
        running = RowWindows(self._rows, [one.stored for one in self._refined], workers)
        for one in riders:
            one.begin(workers)
        self._running = running
        workers.start()
        self._from, self.largest = 0, 0.0
        self._blocks.clear()
        for part in range(len(self._parts)):
            self._sided[part] = running.next(part, self._from)
            self.largest = running.largest
            window = self._window
            assert window is not None
            if not part:
                self._kept = {name: np.empty(self._positions.size) for name in window.fields}
            self._keep_of(window)
            yield window.stop
            self._from = min(self._from, *(one.advance(window.stop) for one in riders), window.stop)
        self._rows.layout.sample.independent = True
        self._small = running.small.parts()
        self._running = None
        self._passes += 1

    @property
    def _window(self) -> Window | None:
        """What can be read now."""
        return None if self._running is None else self._running.window

    def _keep_of(self, window: Window) -> None:
        low, high = np.searchsorted(self._positions, [window.start, window.stop])
        some = self._positions[low:high] - window.start
        for name, array in window.fields.items():
            self._kept[name][low:high] = array[some]

    # A source (`core.deferred.Source`).

    def whole(self, name: str, field: str) -> Floats:
        """See `core.deferred.Source`. Raises NotByRowsError where there is none."""
        if name != self._rows.large and self._small:
            return _field(self._small[name], field)
        rows = self._rows
        stored = next((one.stored for one in self._refined if one.stored.field == field), None)
        if stored is not None:
            if field not in self._refined_whole:
                self._refined_whole[field] = self._all_refined(stored)
            return self._refined_whole[field]
        if not self._whole:
            self._whole = by_rows(rows.call, rows.request, rows.formula, rows.evaluate) or {}
        if not self._whole:
            raise NotByRowsError
        return _field(self._whole[name], field)

    def _all_refined(self, stored: Stored) -> Floats:
        rows = self._rows
        precision = msgspec.structs.replace(rows.request.precision, outputs=stored.outputs)
        request = msgspec.structs.replace(rows.request, precision=precision)
        found = by_rows(rows.call, request, rows.formula, rows.evaluate, only_error=True)
        errors = found and found[rows.large].errors()
        if not errors:
            raise NotByRowsError
        plain = (self.whole(rows.large, field) for field in ("error_below", "error_above"))
        return least_of(larger_of(*errors), larger_of(*plain))

    def between(self, name: str, field: str, start: int, stop: int) -> Floats:
        """See `core.deferred.Source`."""
        window = self._window
        if (
            window is not None
            and name == self._rows.large
            and field in window.fields
            and window.start <= start <= stop <= window.stop
        ):
            return window.fields[field][start - window.start : stop - window.start]
        if self._is_whole(name):
            return self.whole(name, field).reshape(-1)[start:stop]
        runs, width, at = list[tuple[int, int, int]](), self._rows.width, start
        while at < stop and len(runs) <= _BLOCKS_ASKED:
            first = self._block_of(at // width)
            runs.append((first, at, min(self._end_of(first) * width, stop)))
            at = runs[-1][2]
        if at < stop or not self._are_seen(first for first, _, _ in runs):
            return self.whole(name, field).reshape(-1)[start:stop]
        found = [
            self._block(first)[field][low - first * width : high - first * width]
            for first, low, high in runs
        ]
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0), *found])

    def at(self, name: str, field: str, positions: NDArray[np.int64]) -> Floats:
        """See `core.deferred.Source`."""
        if not self._passes and self._window is None and not self.is_whole:
            return self._of_sample(name, field, positions)
        if self._is_whole(name):
            return self.whole(name, field).reshape(-1)[positions]
        if self._positions.size and field in self._kept and self._window is None:
            if self._places[0] is not positions:  # as for the field before
                places = np.searchsorted(self._positions, positions)
                self._places = positions, np.minimum(places, self._positions.size - 1)
            if np.array_equal(self._positions[self._places[1]], positions):
                return self._kept[field][self._places[1]]
        return self._of_blocks(field, positions)

    def _is_whole(self, name: str) -> bool:
        return self.is_whole or name != self._rows.large

    def _of_sample(self, name: str, field: str, positions: NDArray[np.int64]) -> Floats:
        """A field at all places of some rows, before there was a pass."""
        width = math.prod(self._rows.layout.shapes[name][1:])
        rows = positions[::width] // width
        every = (rows[:, None] * width + np.arange(width)).reshape(-1)
        if not np.array_equal(every, positions):
            return self.whole(name, field).reshape(-1)[positions]
        if self._sample[0] != rows.tobytes():
            self._sample = rows.tobytes(), self._rows.on_sample(rows)
        return self._rows.fields_of(self._sample[1][name])[field]

    def _of_blocks(self, field: str, positions: NDArray[np.int64]) -> Floats:
        """A field at places outside of the window, evaluated again; whole where they are many."""
        rows = positions // self._rows.width
        starts = np.array([pieces[0].rows.start for pieces in self._parts])
        part = starts[np.searchsorted(starts, rows, "right") - 1]
        first = part + (rows - part) // self._step * self._step
        # Neighbours are mostly of one block.
        bounds = [0, *(np.flatnonzero(first[1:] != first[:-1]) + 1).tolist(), positions.size]
        runs = [(int(first[at]), slice(at, to)) for at, to in itertools.pairwise(bounds)]
        if len(runs) > _BLOCKS_ASKED or not self._are_seen(one for one, _ in runs):
            return self.whole(self._rows.large, field).reshape(-1)[positions]
        found = [
            self._block(one)[field][positions[some] - one * self._rows.width] for one, some in runs
        ]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _block_of(self, row: int) -> int:
        """The first row of the block that a row is of."""
        start: int = self._parts[self._part_of(row)][0].rows.start
        return start + (row - start) // self._step * self._step

    def _end_of(self, first: int) -> int:
        """The row behind the block that begins with one."""
        stop: int = self._parts[self._part_of(first)][-1].rows.stop
        return min(first + self._step, stop)

    def _are_seen(self, blocks: Iterable[int]) -> bool:
        """Whether it is known of all parts that blocks are of whether sides differ."""
        return all(self._sided[self._part_of(first)] is not None for first in blocks)

    def _part_of(self, row: int) -> int:
        return next(part for part, some in enumerate(self._parts) if row < some[-1].rows.stop)

    def _block(self, first: int) -> Fields:
        """The fields of the formula's own block that begins with a row; the last ones are kept."""
        if first in self._blocks:
            return self._blocks[first]
        part = self._part_of(first)
        rows = slice(first, self._end_of(first))
        stored = [one.stored for one in self._refined]
        fields = self._rows.on(Piece(part, rows), stored).fields
        if not self._sided[part]:
            fields = {name: array.copy() for name, array in fields.items()}
            bring_together(fields, slice(None))
        while len(self._blocks) >= _BLOCKS_KEPT:
            del self._blocks[next(iter(self._blocks))]
        self._blocks[first] = fields
        return fields


def _field(parts: ArrayParts, field: str) -> Floats:
    errors = parts.errors()
    assert errors is not None
    sides = {"error_below": errors[0], "error_above": errors[1]}
    found: Floats = sides[field] if field in sides else getattr(parts, field)
    return found
