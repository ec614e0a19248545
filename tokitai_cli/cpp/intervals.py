"""Intervals of numbers: what sums, products, quotients and functions of C++ make of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

#: A whole number, a fraction where real numbers are divided, or an infinity.
Number = int | Fraction | float
_LARGEST = 1 << 62  # beyond which a number counts as infinite


class Interval(NamedTuple):
    """All numbers from `low` to `high`; nothing where `low` is more."""

    low: Number
    high: Number

    @property
    def is_empty(self) -> bool:
        """Whether no number is in it."""
        return self.low > self.high

    @property
    def number(self) -> Number | None:
        """The only number in it; None where there are several or none."""
        return self.low if self.low == self.high else None

    def within(self, outer: Interval) -> bool:
        """Whether all of it is in the outer one."""
        return self.is_empty or (outer.low <= self.low and self.high <= outer.high)


UNKNOWN = Interval(-math.inf, math.inf)
NOTHING = Interval(math.inf, -math.inf)
_BIT = Interval(0, 1)


def point(number: Number) -> Interval:
    """One number."""
    return Interval(number, number)


def hull(parts: Sequence[Interval]) -> Interval:
    """The smallest interval that holds all of them; an empty one of none."""
    full = [one for one in parts if not one.is_empty]
    if not full:
        return NOTHING
    return Interval(min(one.low for one in full), max(one.high for one in full))


def meet(left: Interval, right: Interval) -> Interval:
    """What is in both."""
    return Interval(max(left.low, right.low), min(left.high, right.high))


def plus(left: Interval, right: Interval) -> Interval:
    """Sums."""
    return Interval(_sum(left.low, right.low), _sum(left.high, right.high))


def times(left: Interval, right: Interval) -> Interval:
    """Products."""
    low, high = left
    if right.low == right.high:  # a number
        one, other = _product(low, right.low), _product(high, right.low)
        return Interval(one, other) if one <= other else Interval(other, one)
    ends = [_product(a, b) for a in (low, high) for b in right]
    return Interval(min(ends), max(ends))


def scaled(interval: Interval, factor: Number) -> Interval:
    """Products with a number."""
    return times(interval, point(factor))


def divided(interval: Interval, by: Interval, *, real: bool = False) -> Interval:
    """Quotients; of whole numbers both ways of rounding. A divisor is never 0."""
    if by.low < 0 or by.high <= 0 or (real and by.low == 0):
        return UNKNOWN
    least = max(by.low, 1) if not real else by.low
    high = _quotient(interval.high, least if interval.high > 0 else by.high)
    low = _quotient(interval.low, least if interval.low < 0 else by.high)
    if real:
        return Interval(low, high)
    return Interval(_floor(low), _floor(high) if high >= 0 else _ceil(high))


def rounded(interval: Interval) -> Interval:
    """Whole numbers that its numbers may be rounded to."""
    return Interval(_floor(interval.low), _ceil(interval.high))


def _sum(one: Number, other: Number) -> Number:
    return _bounded(one + other)


def _product(one: Number, other: Number) -> Number:
    return 0 if 0 in (one, other) else _bounded(one * other)


def _quotient(one: Number, by: Number) -> Number:
    if math.isinf(by):
        return 0 if math.isfinite(one) else one
    if isinstance(one, int) and isinstance(by, int):
        return one // by if one % by == 0 else Fraction(one, by)
    return one if math.isinf(one) else Fraction(one) / Fraction(by)


def _floor(one: Number) -> Number:
    return one if math.isinf(one) else math.floor(one)


def _ceil(one: Number) -> Number:
    return one if math.isinf(one) else math.ceil(one)


def _bounded(one: Number) -> Number:
    if math.isinf(one) or -_LARGEST <= one <= _LARGEST:
        return one
    return math.inf if one > 0 else -math.inf


# Functions and operators by their names


def applied(name: str, given: Sequence[Interval]) -> Interval:
    """What a function or an operator makes of numbers; all of them where it is not known."""
    if any(one.is_empty for one in given):
        return NOTHING
    if name.startswith("__shfl"):
        at = int("_sync" in name)
        return given[at] if len(given) > at else UNKNOWN
    table = _FUNCTIONS.get(name) or _FUNCTIONS.get(name[:-1])
    return table(*given) if table is not None and len(given) in _COUNTS[table] else UNKNOWN


def _least(*given: Interval) -> Interval:
    return Interval(min(one.low for one in given), min(one.high for one in given))


def _greatest(*given: Interval) -> Interval:
    return Interval(max(one.low for one in given), max(one.high for one in given))


def _both_bits(one: Interval, other: Interval) -> Interval:
    positive = [each.high for each in (one, other) if each.low >= 0]
    return Interval(0, min(positive)) if positive else UNKNOWN


def _all_bits(one: Interval, other: Interval) -> Interval:
    top = max(one.high, other.high)
    if min(one.low, other.low) < 0 or math.isinf(top):
        return Interval(0, math.inf) if min(one.low, other.low) >= 0 else UNKNOWN
    return Interval(0, (1 << int(top).bit_length()) - 1)


def _power(one: Interval) -> Interval:
    return Interval(_power_of_two(one.low), _power_of_two(one.high))


def _power_of_two(by: Number) -> Number:
    return math.inf if by > _LARGEST.bit_length() else 1 << max(0, int(by))


def _left(one: Interval, by: Interval) -> Interval:
    return times(one, _power(by)) if by.low >= 0 else UNKNOWN


def _right(one: Interval, by: Interval) -> Interval:
    return divided(one, _power(by)) if by.low >= 0 else UNKNOWN


def _size(one: Interval) -> Interval:
    return Interval(max(0, one.low, -one.high), max(-one.low, one.high))


def _clamped(value: Interval, low: Interval, high: Interval) -> Interval:
    del value
    return Interval(low.low, high.high)


def _bits(one: Interval) -> Interval:
    del one
    return Interval(0, 64)


def _true(one: Interval) -> Interval:
    del one
    return _BIT


_FUNCTIONS: Mapping[str, Callable[..., Interval]] = {
    **dict.fromkeys(("min", "fmin", "fminf", "umin", "llmin", "ullmin"), _least),
    **dict.fromkeys(("max", "fmax", "fmaxf", "umax", "llmax", "ullmax"), _greatest),
    **dict.fromkeys(("abs", "fabs", "fabsf", "labs", "llabs"), _size),
    **dict.fromkeys(("floor", "ceil", "round", "rint", "trunc", "lround", "lrint"), rounded),
    **dict.fromkeys(("__float2int_rd", "__float2int_rn", "__float2int_rz"), rounded),
    **dict.fromkeys(("__popc", "__popcll", "__ffs", "__ffsll", "__clz", "__clzll"), _bits),
    "clamp": _clamped, "!": _true, "&": _both_bits, "|": _all_bits, "^": _all_bits,
    "<<": _left, ">>": _right, "*": times,
}  # fmt: skip
_COUNTS: Mapping[Callable[..., Interval], tuple[int, ...]] = {
    _least: (2,), _greatest: (2,), _size: (1,), rounded: (1,), _bits: (1,), _clamped: (3,),
    _true: (1,), _both_bits: (2,), _all_bits: (2,), _left: (2,), _right: (2,), times: (2,),
}  # fmt: skip
