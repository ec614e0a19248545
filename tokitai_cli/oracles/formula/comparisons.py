"""Comparisons of tracked arrays, and logic of the conditions that come of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tokitai_cli.oracles.formula.tracked import Decision, Tracked

_AND = ("bitwise_and", "logical_and")
_OR = ("bitwise_or", "logical_or")


def compared(operation: Callable[[Any, Any], Any]) -> Callable[[Tracked, Tracked], Decision]:
    """Return the rule of a comparison: open where the ends of the intervals say different things."""
    equality = operation in (np.equal, np.not_equal)

    def apply(a: Tracked, b: Tracked) -> Decision:
        one, other = a.parts, b.parts
        holds = operation(one.v, other.v)
        if one.point and other.point:
            return Decision(holds)
        if equality:
            apart = (one.hi < other.lo) | (one.lo > other.hi)
            same = apart | ((one.lo == one.hi) & (other.lo == other.hi))
        else:
            corners = [operation(x, y) for x in (one.lo, one.hi) for y in (other.lo, other.hi)]
            every = functools.reduce(np.logical_and, corners)
            same = every | ~functools.reduce(np.logical_or, corners)
        is_open = ~same
        flags = [np.zeros((), np.uint8) if p.n is None else p.n for p in (one, other)]
        if one.n is not None or other.n is not None:
            sure = (flags[0] == 2) | (flags[1] == 2)
            told = np.isfinite(one.v) & np.isfinite(other.v)
            is_open = np.where(sure, told, is_open | (flags[0] > 0) | (flags[1] > 0))
        return Decision(holds, is_open)

    return apply


def is_nan(a: Tracked) -> Decision:
    """Where a value is NaN."""
    holds, n = np.isnan(a.parts.v), a.parts.n
    if n is None:
        return Decision(holds)
    return Decision(holds, (n == 1) | (holds != (n == 2)))


def is_infinite(a: Tracked) -> Decision:
    """Where a value is an infinity."""
    p = a.parts
    surely = (p.lo == p.hi) & np.isinf(p.lo)
    maybe = np.isinf(p.lo) | np.isinf(p.hi)
    is_open = maybe & ~surely
    if p.n is not None:
        is_open, surely = np.where(p.n == 2, False, is_open | (p.n == 1)), surely & (p.n != 2)
    return Decision(np.isinf(p.v) & (surely | is_open), is_open)


def is_finite(a: Tracked) -> Decision:
    """Where a value is a number."""
    nan, infinite = is_nan(a), is_infinite(a)
    holds = ~(nan.holds | infinite.holds)
    return Decision(holds, nan.open | (infinite.open & ~nan.holds))


def logic(name: str, inputs: tuple[Any, ...]) -> Decision | None:
    """A ufunc of conditions that is one again; None for others."""
    if name in ("invert", "logical_not"):
        return Decision(~inputs[0].holds, inputs[0].open)
    if name not in (*_AND, *_OR):
        return None
    a, b = (x if isinstance(x, Decision) else Decision(np.asarray(x) != 0) for x in inputs)
    if name in _AND:
        is_open = (a.open | a.holds) & (b.open | b.holds) & (a.open | b.open)
        return Decision(a.holds & b.holds, is_open)
    is_open = (a.open | ~a.holds) & (b.open | ~b.holds) & (a.open | b.open)
    return Decision(a.holds | b.holds, is_open)
