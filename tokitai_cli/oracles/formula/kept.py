"""Results of large operations that are kept while a case is asked about.

A formula is called several times with the same inputs: to record its operations, for its bound, and for
the probable bound. What hangs on no permission of these calls is computed once.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

_Result = TypeVar("_Result")
_MOST = 4


class _Kept(NamedTuple):
    """An operation with its operands, and what came of it."""

    name: str
    operands: Sequence[NDArray[Any]]
    result: Any


# The latest first; None where nothing is kept.
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
    for one in kept:
        if one.name == name and all(map(_same, one.operands, operands)):
            result: _Result = one.result
            return result
    result = make()
    kept.insert(0, _Kept(name, operands, result))
    del kept[_MOST:]
    return result


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Whether arrays are equal, and lie in memory alike: BLAS adds in an order that hangs on that."""
    if (left.dtype, left.shape, left.strides) != (right.dtype, right.shape, right.strides):
        return False
    return left is right or np.array_equal(left, right)
