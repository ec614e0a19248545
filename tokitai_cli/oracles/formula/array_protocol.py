"""What numpy's protocols ask of any array of a formula: shapes, and all that moves elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# Functions and methods of numpy that move elements of their first argument and change none.
MOVES = frozenset({
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "copy", "diagonal",
    "expand_dims", "flatten", "flip", "fliplr", "flipud", "moveaxis", "ravel", "repeat", "reshape",
    "roll", "rollaxis", "rot90", "squeeze", "swapaxes", "take", "tile", "transpose",
})  # fmt: skip


class Moving(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose elements can be moved: `moved` applies a function to whatever carries them."""

    __array_priority__ = 1000

    def plain(self) -> NDArray[Any]:
        """The values alone."""
        raise NotImplementedError

    def moved(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        """Apply what moves elements and changes none."""
        raise NotImplementedError

    shape = property(lambda self: self.plain().shape)
    ndim = property(lambda self: self.plain().ndim)
    size = property(lambda self: self.plain().size)
    dtype = property(lambda self: self.plain().dtype)

    @property
    def T(self) -> Self:  # noqa: N802 - numpy's name
        """Axes reversed."""
        return self.moved(np.transpose)

    def __len__(self) -> int:
        return len(self.plain())

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        return self.moved(lambda array: np.asarray(array[key]))

    def __getattr__(self, name: str) -> Any:
        """A method that moves elements, or numpy's function of the method's name."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if name in MOVES:
            return lambda *args, **kwargs: self.moved(
                lambda array: getattr(array, name)(*args, **kwargs)
            )
        function = getattr(np, name)
        return lambda *args, **kwargs: function(self, *args, **kwargs)
