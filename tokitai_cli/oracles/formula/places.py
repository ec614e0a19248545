"""Rules of places and whole numbers: elements taken at places, and integer division."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula.known import NoRuleError
from tokitai_cli.oracles.formula.parts import Parts, exactly, largest_flag
from tokitai_cli.oracles.formula.tracked import Tracked, certain_index, track

# Places that rounding may leave open for one element.
_MOST_PLACES = 64


def taken(a: Any, index: Any, axis: int | None = -1) -> Tracked:
    """Elements at places, as of `argmax`; of a place that rounding leaves open, all that it may be."""
    array = track(a)
    if not isinstance(index, Tracked) or index.parts.point:
        places = certain_index(index)
        return array.moved(lambda part: np.take_along_axis(part, places, axis))
    first, last = (end.astype(np.int64) for end in (index.parts.lo, index.parts.hi))
    spread = int((last - first).max(initial=0))
    if index.parts.n is not None or spread >= _MOST_PLACES:
        raise NoRuleError(
            f"rounding leaves {spread + 1} indices of numpy.take_along_axis undetermined"
        )
    # The formula's own places give the value, and all between the ends what a kernel may take.
    own = taken(array, index.parts.v.astype(np.int64), axis)
    for step in range(spread + 1):
        other = taken(array, np.minimum(first + step, last), axis).parts
        flag = largest_flag(own.parts.n, other.n)
        low, high = np.fmin(own.parts.lo, other.lo), np.fmax(own.parts.hi, other.hi)
        own = Tracked(Parts(own.parts.v, low, high, flag))
    return own


def whole(ufunc: np.ufunc) -> Callable[[Tracked, Tracked], Tracked]:
    """The rule of an integer division, which is exact for whole numbers."""

    def apply(a: Tracked, b: Tracked) -> Tracked:
        for x in (a, b):
            known = x.parts.point and x.parts.n is None
            if not known or not np.array_equal(x.parts.v, np.rint(x.parts.v)):
                raise NoRuleError(f"numpy.{ufunc.__name__} has a rule for integers only")
        if not b.parts.v.all():
            raise NoRuleError(f"numpy.{ufunc.__name__} by 0 is undefined in C")
        return Tracked(exactly(ufunc(a.parts.v, b.parts.v)))

    return apply


def rising(a: Tracked, axis: int) -> NDArray[np.int64]:
    """Places of numbers without error in rising order, of equal ones the first one first."""
    if not a.parts.point:
        raise NoRuleError(
            "argsort of numbers that rounding may change has no rule: take the largest one by one with "
            "argmax, which gives all places that may be it"
        )
    return np.argsort(a.parts.v, axis=axis, kind="stable")
