"""The larger of two arrays, of large ones computed part by part where it is asked for."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import PartwiseArray

Floats = NDArray[np.float64]
# Elements below which the array is simply made.
_LARGE = 1 << 20
# Elements at a time.
_BLOCK = 1 << 17


def larger_of(left: Floats, right: Floats) -> Floats:
    """`np.maximum(left, right)`: an array, or what behaves as one and holds none of its own."""
    if left is right:
        return left
    whole = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
    if (whole and left.size < _LARGE) or left.shape != right.shape:
        return np.maximum(left, right)
    return cast("Floats", _LargerOf(left, right))


def least_of(left: Floats, right: Floats) -> Floats:
    """`np.fmin(left, right)` of arrays of one shape, of which either may be `larger_of`."""
    least = np.empty(left.shape)
    flat, near, far = (array.reshape(-1) for array in (least, left, right))
    for start in range(0, flat.size, _BLOCK):
        at = slice(start, start + _BLOCK)
        np.fmin(near[at], far[at], out=flat[at])
    return least


class _LargerOf(PartwiseArray):
    """The larger of two arrays of one shape."""

    def __init__(self, one: Floats, other: Floats) -> None:
        self._both = one, other
        self.shape = one.shape

    def whole(self) -> Floats:
        """All of it."""
        larger: Floats = np.maximum(*(np.asarray(one) for one in self._both))
        return larger

    def __getitem__(self, index: Any) -> Floats:
        one, other = self._both
        larger: Floats = np.maximum(one[index], other[index])
        return larger

    def reshape(self, *shape: Any) -> Floats:
        """In another shape."""
        one, other = (array.reshape(*shape) for array in self._both)
        return cast("Floats", _LargerOf(one, other))
