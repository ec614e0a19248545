"""Rules of + - * / and what is made of them, on blocks (see `parts`). IEEE 754-2019, sections 4 to 7."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula import native_rules
from tokitai_cli.oracles.formula.parts import (
    Floats,
    Parts,
    exactly,
    flags,
    largest_flag,
    nearest,
    operated,
    rounded,
)
from tokitai_cli.oracles.formula.precision import current

Mask = NDArray[np.bool_]


def add(a: Parts, b: Parts) -> Parts:
    """a + b."""
    if (done := native_rules.binary("add", a, b)) is not None:
        return done
    v = a.v + b.v
    n = largest_flag(a.n, b.n)
    if a.point and b.point:
        # The sum of two float32 is exact in float64 where the error that Knuth's TwoSum gives is 0.
        back = v - a.v
        inexact = (a.v - (v - back)) + (b.v - back)
        exact = (nearest(v) == v) & (inexact == 0)
        if a.finite and b.finite:
            return operated(exactly(v, n), exact)
    lo, hi = a.lo + b.lo, a.hi + b.hi
    if a.finite and b.finite:
        return operated(Parts(v, lo, hi, n), _same(a, b, lo, hi))
    ap, am, bp, bm = a.hi == np.inf, a.lo == -np.inf, b.hi == np.inf, b.lo == -np.inf
    a_plus, a_minus, b_plus, b_minus = _certain(a, b)
    n = largest_flag(n, flags((ap & bm) | (am & bp), (a_plus & b_minus) | (a_minus & b_plus)))
    # One side is infinite for sure: what is a number is that infinity.
    lo = np.where(np.isnan(lo), np.inf, lo)
    hi = np.where(np.isnan(hi), -np.inf, hi)
    hi = np.maximum(lo, hi)
    return operated(Parts(v, lo, hi, n), _same(a, b, lo, hi))


def _certain(a: Parts, b: Parts) -> tuple[Mask, Mask, Mask, Mask]:
    """Where a is +inf and -inf for sure, and b."""
    return a.lo == np.inf, a.hi == -np.inf, b.lo == np.inf, b.hi == -np.inf


def _same(a: Parts, b: Parts, lo: Floats, hi: Floats) -> Mask | None:
    """Where both operands are points and their sum is exact, or an infinity."""
    points = (a.lo == a.hi) & (b.lo == b.hi)
    if not points.any():
        return None
    back = lo - a.lo
    inexact = (a.lo - (lo - back)) + (b.lo - back)
    exact = (lo == hi) & (nearest(lo) == lo) & ((inexact == 0) | np.isinf(lo))
    return np.asarray(points & exact)


def negative(a: Parts) -> Parts:
    """Return -a, which is exact."""
    return exactly(-a.v, a.n) if a.point else Parts(-a.v, -a.hi, -a.lo, a.n)


def subtract(a: Parts, b: Parts) -> Parts:
    """a - b."""
    if (done := native_rules.binary("subtract", a, b)) is not None:
        return done
    return add(a, negative(b))


def ends(values: Iterable[Floats]) -> tuple[Floats, Floats]:
    """Least and largest of several arrays, NaN left out."""
    values = list(values)
    return functools.reduce(np.fmin, values), functools.reduce(np.fmax, values)


def multiply(a: Parts, b: Parts) -> Parts:
    """a * b."""
    if (done := native_rules.binary("multiply", a, b)) is not None:
        return done
    v = a.v * b.v
    n = largest_flag(a.n, b.n)
    if a.finite and b.finite:
        if a.point and b.point:  # 24 by 24 bits fit float64's 53
            return operated(exactly(v, n), nearest(v) == v)
        lo, hi = ends(_corners(a, b))
        points = lo == hi
        exact = points & (nearest(lo) == lo) if points.any() else None
        return operated(Parts(v, lo, hi, n), exact)
    a_zero, b_zero = (a.lo <= 0) & (a.hi >= 0), (b.lo <= 0) & (b.hi >= 0)
    a_inf, b_inf = np.isinf(a.lo) | np.isinf(a.hi), np.isinf(b.lo) | np.isinf(b.hi)
    sure = (_zero(a) & b_inf & (b.lo == b.hi)) | (_zero(b) & a_inf & (a.lo == a.hi))
    n = largest_flag(n, flags((a_zero & b_inf) | (b_zero & a_inf), sure))
    lo, hi = ends(np.where(np.isnan(corner), 0.0, corner) for corner in _corners(a, b))
    exact = (lo == hi) & (a.lo == a.hi) & (b.lo == b.hi) & ((nearest(lo) == lo) | np.isinf(lo))
    return operated(Parts(v, lo, hi, n), exact)


def _zero(a: Parts) -> Mask:
    return np.asarray((a.lo == 0) & (a.hi == 0))


def _corners(a: Parts, b: Parts) -> Sequence[Floats]:
    if a.point:
        return (a.v * b.lo, a.v * b.hi)
    if b.point:
        return (a.lo * b.v, a.hi * b.v)
    return (a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi)


def square(a: Parts) -> Parts:
    """a * a, which is not negative."""
    if (done := native_rules.square(a)) is not None:
        return done
    v = a.v * a.v
    if a.point:
        with np.errstate(invalid="ignore"):
            return operated(exactly(v, a.n), (nearest(v) == v) | np.isnan(v))
    low, high = np.abs(a.lo), np.abs(a.hi)
    near = np.where((a.lo <= 0) & (a.hi >= 0), 0.0, np.minimum(low, high))
    far = np.maximum(low, high)
    lo, hi = near * near, far * far
    same = lo == hi
    exact = same & (nearest(lo) == lo) if same.any() else None
    return operated(Parts(v, lo, hi, a.n), exact)


def divide(a: Parts, b: Parts) -> Parts:
    """a / b, rounded once, or taken as a product with 1 / b: two further roundings."""
    extra = 2 * current().ulp("divide")
    if (done := native_rules.binary("divide", a, b, extra)) is not None:
        return done
    v = a.v / b.v
    n = largest_flag(a.n, b.n)
    one_sign = bool((b.lo > 0).all()) or bool((b.hi < 0).all())
    if a.finite and b.finite and one_sign:
        if a.point and b.point:
            # By a reciprocal only powers of two divide exactly.
            halved = np.abs(np.frexp(b.v)[0]) == 0.5
            exact = (nearest(v) == v) & (v * b.v == a.v) & (halved | (a.v == 0))
            return operated(exactly(v, n), exact, extra)
        corners = (a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi)
        lo, hi = ends(corners)
        return rounded(Parts(v, lo, hi, n), extra)
    flip = b.hi <= 0
    a_lo, a_hi = np.where(flip, -a.hi, a.lo), np.where(flip, -a.lo, a.hi)
    b_lo, b_hi = np.where(flip, -b.hi, b.lo), np.where(flip, -b.lo, b.hi)
    across = b_lo < 0
    b_lo, b_hi = np.where(b_lo == 0, 0.0, b_lo), np.where(b_hi == 0, 0.0, b_hi)
    a_zero, b_zero = (a_lo <= 0) & (a_hi >= 0), b_lo <= 0
    a_inf, b_inf = np.isinf(a_lo) | np.isinf(a_hi), np.isinf(b_lo) | np.isinf(b_hi)
    sure = (_zero(a) & _zero(b)) | (a_inf & (a_lo == a_hi) & b_inf & (b_lo == b_hi))
    n = largest_flag(n, flags((a_zero & b_zero) | (a_inf & b_inf), sure))
    lo, hi = ends((a_lo / b_lo, a_lo / b_hi, a_hi / b_lo, a_hi / b_hi))
    lo, hi = np.where(np.isnan(lo), 0.0, lo), np.where(np.isnan(hi), 0.0, hi)
    # A computed zero has a sign of its own, which no interval knows: x / 0 is either infinity.
    either = across | ((b_lo == 0) & ~_zero(a))
    lo, hi = np.where(either, -np.inf, lo), np.where(either, np.inf, hi)
    exact = (a_lo == a_hi) & (b_lo == b_hi) & (lo == hi) & ((lo == 0) | np.isinf(lo))
    return operated(Parts(v, lo, hi, n), exact, extra)


def absolute(a: Parts) -> Parts:
    """|a|, which is exact."""
    if a.point:
        return exactly(np.abs(a.v), a.n)
    low, high = np.abs(a.lo), np.abs(a.hi)
    near = np.where((a.lo <= 0) & (a.hi >= 0), 0.0, np.minimum(low, high))
    return Parts(np.abs(a.v), near, np.maximum(low, high), a.n)


def maximum(a: Parts, b: Parts) -> Parts:
    """The larger of two. A NaN may be handed on, as numpy does, or dropped, as fmaxf does."""
    v = np.maximum(a.v, b.v)
    if a.point and b.point and a.n is None and b.n is None:
        return exactly(v)
    lo, hi = np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi)
    if a.n is None and b.n is None:
        return Parts(v, lo, hi)
    a_n, b_n = (np.uint8(0) if part.n is None else part.n for part in (a, b))
    a_sure, b_sure = a_n == 2, b_n == 2
    # Ends of what is NaN for sure mean nothing, and may be NaN.
    lo = np.where(a_sure, b.lo, np.where(a_n > 0, np.fmin(lo, b.lo), lo))
    hi = np.where(a_sure, b.hi, hi)
    lo = np.where(b_sure, a.lo, np.where(b_n > 0, np.fmin(lo, a.lo), lo))
    hi = np.where(b_sure, a.hi, hi)
    n = np.where(a_sure & b_sure, 2, np.minimum(np.maximum(a_n, b_n), 1)).astype(np.uint8)
    return Parts(v, lo, hi, np.broadcast_to(n, v.shape))


def minimum(a: Parts, b: Parts) -> Parts:
    """The smaller of two, as `maximum`."""
    return negative(maximum(negative(a), negative(b)))
