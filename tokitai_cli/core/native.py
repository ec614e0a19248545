"""The compiled inner loops of large cases (`kernels/native`), where this process has been given them.

numpy's code is the reference of each: what is computed here is the same to the bit. Whoever runs cases
builds and checks the library once (`run.native_loops`); without it everything goes by numpy.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Set to "off": everything by numpy.
SWITCH = "TOKITAI_NATIVE"
# Elements of an output, or of an input, from which the library is worth its first build.
LARGE = 1 << 20


class MismatchError(Exception):
    """The library gives something else than numpy's code: a fault of the tool, or of a compiler."""


class Library:
    """A loaded library; `digest` is the sha256 of its file."""

    def __init__(self, path: Path, digest: str) -> None:
        self.digest = digest
        self.functions = ctypes.CDLL(str(path))
        self.functions.tokitai_sides.restype = None
        self.functions.tokitai_walk.restype = None
        self.functions.tokitai_words.restype = None
        self.functions.tokitai_normals.restype = None
        self.functions.tokitai_round.restype = ctypes.c_int64
        self.functions.tokitai_widen.restype = None
        self.functions.tokitai_sequential.restype = None


# A library is put in place once; which code may use it hangs on the context.
_state: dict[str, Library] = {}
_BY_NUMPY: contextvars.ContextVar[bool] = contextvars.ContextVar("by numpy", default=False)


def use(loops: Library | None) -> None:
    """Compute by this library from here on, in all threads; by numpy with None."""
    _state.clear()
    if loops is not None:
        _state["library"] = loops


def library() -> Library | None:
    """What to compute by; None for numpy."""
    return None if _BY_NUMPY.get() else _state.get("library")


@contextlib.contextmanager
def by_numpy() -> Iterator[None]:
    """Compute what is inside by numpy."""
    token = _BY_NUMPY.set(True)
    try:
        yield
    finally:
        _BY_NUMPY.reset(token)


@contextlib.contextmanager
def by(loops: Library | None) -> Iterator[None]:
    """Compute what is inside, in all threads, by this library, or by numpy with None."""
    before = _state.get("library")
    use(loops)
    try:
        yield
    finally:
        use(before)


def address(array: NDArray[Any] | None) -> int | None:
    """Of an array's first element; None for none, a null pointer."""
    return None if array is None else array.ctypes.data


def is_plain(array: NDArray[Any]) -> bool:
    """Whether C code can read its elements one behind the other."""
    return isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """The array, copied where C code could not read it."""
    return array if is_plain(array) else np.ascontiguousarray(array)
