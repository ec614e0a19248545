"""The arrays of a formula by number: what a kernel stored of one stands for it in all that follows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula.parts import Flags, Parts, exactly


class Tape:
    """Counts the arrays that a formula makes, in their order, which is the same in each call.

    kept: values that replace the arrays of these numbers, known without error.
    """

    def __init__(self, kept: Mapping[int, NDArray[np.float64]] | None = None) -> None:
        self._kept = kept or {}
        self._count = 0

    def next(self) -> int:
        """Number of the next array."""
        self._count += 1
        return self._count

    def taken(self, number: int, parts: Parts) -> Parts:
        """The array of a number: what was kept of it, else `parts`."""
        values = self._kept.get(number)
        if values is None or values.size != parts.v.size:
            return parts
        nan = np.isnan(values).reshape(parts.v.shape)
        flag: Flags | None = nan * np.uint8(2) if nan.any() else None
        return exactly(values.reshape(parts.v.shape), flag)
