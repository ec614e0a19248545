"""Rules of sums, largest and smallest elements, and products of matrices.

A sum of n terms in any order has at most n - 1 additions on its longest path, so it is off by
gamma_{n-1} times the sum of magnitudes (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., section 4.2); by nothing where all terms are multiples of a quantum q and the sum of magnitudes
is at most 2^24 q, since then every partial sum is a float32. A product of matrices has n roundings a
term (section 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula.parts import (
    Flags,
    Floats,
    Parts,
    blocks,
    cut_parts,
    exactly,
    flags,
    largest_flag,
    shared_out,
)
from tokitai_cli.oracles.formula.precision import OVERFLOW, ROUNDING_SUMS, accumulator, current

# Of float64 sums and products, which are off themselves by at most n 2^-53 times the sum of magnitudes.
OWN = 2.0**-53
Axes = tuple[int, ...]


def quantum(x: Floats) -> Floats:
    """Largest power of two of which each x is a multiple; infinite for 0, NaN and infinities.

    0 for what is far below the numbers of float32.
    """
    bits = np.ascontiguousarray(x).view(np.int64).reshape(x.shape)
    exponent = (bits >> 52) & 0x7FF
    whole = bits & ((1 << 52) - 1) | (1 << 52)
    last_place = (np.maximum(exponent - 52, 0) << 52).view(np.float64)
    special = (x == 0) | (exponent == 0x7FF)
    return np.where(special, np.inf, (whole & -whole) * last_place)


def sums_exactly(size: Floats, shared: Floats) -> NDArray[np.bool_]:
    """Where sums of multiples of `shared`, whose magnitudes add up to `size`, need no rounding."""
    form = accumulator(current().accumulate)
    least = form.smallest_normal if current().flush_to_zero else 2 * form.half_smallest
    fits = (shared > 0) & (shared >= least) & (ROUNDING_SUMS not in current().forms)
    return np.asarray(fits & (size <= 2.0**form.precision * shared))


class Sums(NamedTuple):
    """Partial results of a sum over its axes.

    Sums of v, of finite ends, of magnitudes, of positive and of negative ends; the least quantum where
    all terms are points; where a term may be, or is, an infinity; the worst NaN flag.
    """

    v: Floats
    lo: Floats
    hi: Floats
    size: Floats
    plus: Floats
    minus: Floats
    quantum: Floats
    may_plus: NDArray[np.bool_]
    may_minus: NDArray[np.bool_]
    is_plus: NDArray[np.bool_]
    is_minus: NDArray[np.bool_]
    n: Flags

    def with_more(self, more: Sums) -> Sums:
        """The sum over both sets of terms."""
        added: list[Any] = [one + two for one, two in zip(self[:6], more[:6], strict=True)]
        either: list[Any] = [one | two for one, two in zip(self[7:11], more[7:11], strict=True)]
        least, worst = np.minimum(self.quantum, more.quantum), np.maximum(self.n, more.n)
        fields: list[Any] = [*added, least, *either, worst]
        return Sums(*fields)

    def folded(self, fold: Callable[[np.ufunc, NDArray[Any]], NDArray[Any]]) -> Sums:
        """Sums of these terms, `fold` being told how two values of a field become one."""
        ufuncs = (*[np.add] * 6, np.minimum, *[np.logical_or] * 4, np.maximum)
        done: dict[int, Any] = {}  # fields are often one and the same array
        for by, x in zip(ufuncs, [*self], strict=True):
            if id(x) not in done:
                done[id(x)] = fold(by, x)
        return Sums(*(done[id(x)] for x in self))


def terms_of(a: Parts) -> Sums:
    """Sums of one term each."""
    least = quantum(a.v) if a.point else np.zeros(a.v.shape)
    no, never = np.zeros(a.v.shape, bool), np.zeros(a.v.shape, np.uint8)
    if a.finite:
        size = np.maximum(np.abs(a.lo), np.abs(a.hi))
        return Sums(a.v, a.lo, a.hi, size, size, size, least, no, no, no, no, never)
    live = ~no if a.n is None else a.n != 2
    certain = live if a.n is None else a.n == 0
    lo, hi = np.where(np.isfinite(a.lo), a.lo, 0.0), np.where(np.isfinite(a.hi), a.hi, 0.0)
    return Sums(
        v=a.v,
        lo=lo,
        hi=hi,
        size=np.maximum(np.abs(lo), np.abs(hi)),
        plus=np.maximum(hi, 0),
        minus=np.maximum(-lo, 0),
        quantum=least,
        may_plus=(a.hi == np.inf) & live,
        may_minus=(a.lo == -np.inf) & live,
        is_plus=(a.lo == np.inf) & certain,
        is_minus=(a.hi == -np.inf) & certain,
        n=never if a.n is None else a.n,
    )


def _sums_of(a: Parts, axes: Axes) -> Sums:
    """Sums of one block, reduced axes kept as 1."""
    sums = terms_of(a).folded(lambda by, x: by.reduce(x, axis=axes, keepdims=True))
    if a.point and a.finite:
        return sums._replace(plus=(sums.size + sums.v) / 2, minus=(sums.size - sums.v) / 2)
    return sums


def gathered(a: Parts, axes: Axes) -> Sums:
    """Sums over `axes`, kept as 1, block by block."""
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(a.v.shape))
    whole: list[Any] | None = None

    def summed(index: tuple[slice, ...]) -> tuple[tuple[slice, ...], Sums]:
        return index, _sums_of(cut_parts(a, index), axes)

    for index, part in shared_out(summed, blocks(a.v.shape), a.v.size):
        if part.v.shape == shape:
            whole = list(part if whole is None else Sums(*whole).with_more(part))
            continue
        place = tuple(slice(None) if axis in axes else one for axis, one in enumerate(index))
        if whole is None:
            start = (0, 0, 0, 0, 0, 0, np.inf, False, False, False, False, 0)
            fields: tuple[Any, ...] = part
            whole = [
                np.full(shape, value, field.dtype)
                for value, field in zip(start, fields, strict=True)
            ]
        here = Sums(*(field[place] for field in whole)).with_more(part)
        for field, new in zip(whole, here, strict=True):
            field[place] = new
    assert whole is not None
    return Sums(*whole)


def total(a: Parts, axes: Axes, additions: int | None = None) -> Parts:
    """Sum over `axes`, kept as 1. `additions` on the longest path: all but one term where not said."""
    count = math.prod(a.v.shape[axis] for axis in axes)
    if count == 0:
        shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(a.v.shape))
        return exactly(np.zeros(shape))
    if count == 1:
        return a
    sums = gathered(a, axes)
    return settled(sums, current().gamma(count - 1 if additions is None else additions), count)


def settled(sums: Sums, gamma: Any, count: Any) -> Parts:
    """What float32 sums of `count` terms may give, from the partial results of these."""
    top = current().top
    v, size = sums.v, sums.size
    error = (gamma * (1 + 2.0**-28) + count * OWN) * size
    if current().flush_to_zero:  # else sums are exact where they are subnormal
        error = error + count * current().least
    exact = sums_exactly(size, sums.quantum) & np.isfinite(size) & ~np.isnan(v)
    error = np.where(exact, 0.0, error)
    lo, hi = sums.lo - error, sums.hi + error
    over = sums.plus * (1 + gamma) >= top  # partial sums may run over
    under = sums.minus * (1 + gamma) >= top
    if bool((over | under).any()):
        current().applied_rules.add(OVERFLOW)
    may_plus, may_minus = sums.may_plus | over, sums.may_minus | under
    n = largest_flag(
        sums.n if sums.n.any() else None,
        flags(may_plus & may_minus, sums.is_plus & sums.is_minus),
    )
    lo = np.where(may_minus, -np.inf, np.where(sums.is_plus, np.inf, lo))
    hi = np.where(may_plus, np.inf, np.where(sums.is_minus, -np.inf, hi))
    if n is None and bool(exact.all()) and not bool((may_plus | may_minus).any()):
        return exactly(v)
    return Parts(v, lo, np.maximum(lo, hi), n)


def largest(a: Parts, axes: Axes) -> Parts:
    """Largest element over `axes`, kept as 1. A NaN may be handed on or dropped, as by `maximum`."""
    v = a.v.max(axis=axes, keepdims=True)
    if a.n is None:
        if a.point:
            return exactly(v)
        return Parts(v, a.lo.max(axis=axes, keepdims=True), a.hi.max(axis=axes, keepdims=True))
    lo = np.where(a.n > 0, -np.inf, a.lo).max(axis=axes, keepdims=True)
    hi = np.where(a.n == 2, -np.inf, a.hi).max(axis=axes, keepdims=True)
    worst = a.n.max(axis=axes, keepdims=True)
    all_nan = a.n.min(axis=axes, keepdims=True) == 2
    n = np.where(all_nan, np.uint8(2), np.minimum(worst, 1))
    return Parts(v, lo, hi, n)


def prefix_sums(a: Parts, axis: int) -> Parts:
    """Cumulative sums along `axis`: the i-th, from 0, has i additions at most."""
    count = a.v.shape[axis]
    column = [1] * a.v.ndim
    column[axis] = count
    gammas = np.array([current().gamma(i) for i in range(count)]).reshape(column)
    sums = terms_of(a).folded(lambda by, x: by.accumulate(x, axis=axis))
    return settled(sums, gammas, np.arange(1, count + 1).reshape(column))
