"""The larger of two arrays, of large ones computed part by part where it is asked for."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Elements below which the array is simply made.
_LARGE = 1 << 20
# Elements at a time.
_BLOCK = 1 << 17


def larger_of(left: Floats, right: Floats) -> Floats:
    """`np.maximum(left, right)`: an array, or what behaves as one and holds none of its own."""
    if left is right:
        return left
    if left.size < _LARGE or left.shape != right.shape:
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


class _LargerOf(np.lib.mixins.NDArrayOperatorsMixin):
    """The larger of two arrays of one shape. An index gives a part; all else the whole array."""

    def __init__(self, one: Floats, other: Floats) -> None:
        self._both = one, other
        self.shape, self.size, self.ndim = one.shape, one.size, one.ndim
        self.dtype = one.dtype

    def __getitem__(self, index: Any) -> Floats:
        one, other = self._both
        larger: Floats = np.maximum(one[index], other[index])
        return larger

    def reshape(self, *shape: Any) -> Floats:
        """In another shape."""
        one, other = (array.reshape(*shape) for array in self._both)
        return cast("Floats", _LargerOf(one, other))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy  # it is a new one
        whole: NDArray[Any] = np.maximum(*self._both)
        return whole.astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        plain = [np.asarray(one) if isinstance(one, _LargerOf) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **more)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)
