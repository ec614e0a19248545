"""Results of large operations that are kept while a case is asked about.

A formula is called several times with the same inputs: to record its operations, for its bound, and for
the probable bound. What hangs on no permission of these calls is computed once.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.rounding import widened

_Result = TypeVar("_Result")
_MOST = 10
# Elements of an input from which its float64 values are kept.
WORTH = 1 << 20


class _Kept(NamedTuple):
    """An operation with its operands, and what came of it."""

    name: str
    operands: Sequence[NDArray[Any]]
    result: Any


_ONE_AT_A_TIME = threading.Lock()
# The latest used first; None where nothing is kept.
_KEPT: contextvars.ContextVar[list[_Kept] | None] = contextvars.ContextVar("kept", default=None)


@contextlib.contextmanager
def keeping() -> Iterator[None]:
    """Compute nothing twice inside that is asked for by `once`."""
    if _KEPT.get() is not None:
        yield
        return
    token = _KEPT.set([])
    try:
        yield
    finally:
        _KEPT.reset(token)


def once(name: str, operands: Sequence[NDArray[Any]], make: Callable[[], _Result]) -> _Result:
    """What `make` returns of the operands: not to be changed, as it may be given out again."""
    kept = _KEPT.get()
    if kept is None:
        return make()
    for one in tuple(kept):
        if one.name == name and all(map(_same, one.operands, operands)):
            _put_first(kept, one)
            result: _Result = one.result
            return result
    result = make()
    _put_first(kept, _Kept(name, operands, result))
    return result


class Wide(NamedTuple):
    """An input in float64: not to be changed, as it may be given out again."""

    values: NDArray[np.float64]
    #: Where it is NaN; None where it is so nowhere.
    nan: NDArray[np.bool_] | None


def wide(values: NDArray[Any]) -> Wide:
    """An input in float64; a large one is kept."""
    return once("wide", (values,), lambda: _wide(values)) if values.size >= WORTH else _wide(values)


def _wide(values: NDArray[Any]) -> Wide:
    found = widened(values)
    nan = np.isnan(found)
    return Wide(found, nan if nan.any() else None)


def _put_first(kept: list[_Kept], new: _Kept) -> None:
    with _ONE_AT_A_TIME:
        kept[:] = [new, *(one for one in kept if one is not new)][:_MOST]


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Whether arrays are equal, and lie in memory alike: BLAS adds in an order that hangs on that."""
    if (left.dtype, left.shape, left.strides) != (right.dtype, right.shape, right.strides):
        return False
    return left.ctypes.data == right.ctypes.data or np.array_equal(left, right)
