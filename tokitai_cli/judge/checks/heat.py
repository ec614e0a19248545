"""Where in an output the error lies, in a coarse grid."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.judged import HeatRecord
from tokitai_cli.judge.checks.target import Target

_MOST_CELLS = 16  # along each side
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_AT_LIMIT = _LETTERS.index("m")


class HeatTally:
    """The largest value in each cell; chunks arrive in any order."""

    def __init__(self, target: Target) -> None:
        self.columns = target.shape[-1] if target.shape else 1
        self.rows = math.prod(target.shape[:-1])
        height, width = min(self.rows, _MOST_CELLS), min(self.columns, _MOST_CELLS)
        self._cells = np.zeros((height, width))
        self._edges = -(-np.arange(width) * self.columns // max(width, 1))

    def measured(self, start: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cells of the values at the flat positions from `start`."""
        cells = np.zeros(self._cells.shape)
        height, _ = cells.shape
        end = start + values.size
        rows = np.arange(start // self.columns, (end - 1) // self.columns + 1)
        begins = (rows[:, None] * self.columns + self._edges).ravel()
        # The part of a cell that begins before the chunk counts to that cell.
        begins = begins[np.searchsorted(begins, start, "right") - 1 : np.searchsorted(begins, end)]
        maxima = np.maximum.reduceat(values, np.maximum(begins - start, 0))
        down = begins // self.columns * height // self.rows
        across = np.searchsorted(self._edges, begins % self.columns, "right") - 1
        np.maximum.at(cells, (down, across), maxima)
        return cells

    def add(self, cells: NDArray[np.float64]) -> None:
        """Take in the cells of one chunk."""
        np.maximum(self._cells, cells, out=self._cells)

    def record(self, unit: Literal["bound", "ulp"]) -> HeatRecord | None:
        """Return the evidence; None where there is no error."""
        if not self._cells.any():
            return None
        levels = ["".join(map(_letter, row)) for row in self._cells.tolist()]
        return HeatRecord(unit=unit, rows=self.rows, columns=self.columns, levels=levels)


def _letter(value: float) -> str:
    if value <= 0:
        return "."
    if not math.isfinite(value):
        return _LETTERS[-1]
    fraction, exponent = math.frexp(value)
    place = _AT_LIMIT + exponent - (fraction == 0.5)
    return _LETTERS[min(max(place, 0), len(_LETTERS) - 1)]
