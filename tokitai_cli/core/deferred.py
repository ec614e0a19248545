"""Arrays that are computed part by part where they are read, and whole only where that is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.workers import Workers

Floats = NDArray[np.float64]


class NotByRowsError(Exception):
    """What was taken for an array of independent rows is none: it has to be computed as a whole."""


class PartwiseArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A float64 array of which an index gives a part; all else asks for the whole array."""

    shape: tuple[int, ...]
    dtype = np.dtype(np.float64)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def whole(self) -> Floats:
        """All of it."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self.whole()
        return whole.astype(dtype or self.dtype, copy=bool(copy))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        plain = [one.whole() if isinstance(one, PartwiseArray) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **more)

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.whole(), name)


class Pass(Protocol):
    """Who goes over an answer by windows of its rows, in order, each computed once."""

    #: The largest magnitude that the output's format holds, of what was seen so far.
    largest: float

    def windows(self, workers: Workers) -> Iterator[int]:
        """Compute window after window; gives the flat position behind each, when it can be read.

        `workers` see each window too; who has work for them has told them of it.
        """
        ...

    def release(self, start: int) -> None:
        """Say that nothing in front of a flat position is read again during the pass."""
        ...

    def keep(self, positions: NDArray[np.int64]) -> None:
        """Say which flat positions, in their order, are read after the pass too."""
        ...

    def show(self, riders: Sequence[Rider]) -> None:
        """Show every window of the next pass to these."""
        ...


class Rider(Protocol):
    """Who looks at the windows of a pass, each before the next one is computed."""

    def begin(self, workers: Workers) -> None:
        """Tell the pass's workers, before they start, what there will be to do for them."""
        ...

    def advance(self, stop: int) -> int:
        """Look at all that lies in front of a flat position; the one from which more is needed."""
        ...


class Source(Protocol):
    """Who computes the fields of an output's answer."""

    def whole(self, name: str, field: str) -> Floats:
        """The field of all elements, in the output's shape."""
        ...

    def between(self, name: str, field: str, start: int, stop: int) -> Floats:
        """The field between two flat positions."""
        ...

    def at(self, name: str, field: str, positions: NDArray[np.int64]) -> Floats:
        """The field at flat positions."""
        ...

    def pass_of(self, name: str) -> Pass | None:
        """Who goes over the output by windows; None where it is not too large to be whole."""
        ...


class DeferredArray(PartwiseArray):
    """A field of what `source` answers of the output `name`."""

    def __init__(self, source: Source, name: str, field: str, shape: tuple[int, ...]) -> None:
        self._source, self._name, self._field = source, name, field
        self.shape = shape
        self._flat: DeferredArray | None = None

    def whole(self) -> Floats:
        """All of it."""
        return self._source.whole(self._name, self._field).reshape(self.shape)

    @property
    def by_windows(self) -> Pass | None:
        """Who goes over it by windows."""
        return self._source.pass_of(self._name)

    def reshape(self, *shape: Any) -> Self:
        """In another shape; the flat form is one object, however often it is asked for."""
        wanted = shape[0] if isinstance(shape[0], tuple) else shape
        if wanted == (-1,):
            wanted = (self.size,)
        if wanted == self.shape:
            return self
        if len(wanted) > 1:
            return cast("Self", DeferredArray(self._source, self._name, self._field, wanted))
        if self._flat is None:
            self._flat = DeferredArray(self._source, self._name, self._field, wanted)
        return cast("Self", self._flat)

    def __getitem__(self, index: Any) -> Any:
        width = math.prod(self.shape[1:])
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(self.shape[0])
            part = self._source.between(self._name, self._field, start * width, stop * width)
            return part.reshape(-1, *self.shape[1:])
        if isinstance(index, np.ndarray) and index.dtype == np.int64 and index.ndim == 1:
            if width == 1:
                return self._source.at(self._name, self._field, index)
            places = (index[:, None] * width + np.arange(width)).reshape(-1)
            some = self._source.at(self._name, self._field, places)
            return some.reshape(-1, *self.shape[1:])
        if isinstance(index, int | np.integer) and width == 1:
            at = int(index)
            return self._source.between(self._name, self._field, at, at + 1)[0]
        return self.whole()[index]


def pass_of(array: Any) -> Pass | None:
    """Who goes over an array by windows; None for one that is whole."""
    return array.by_windows if isinstance(array, DeferredArray) else None
