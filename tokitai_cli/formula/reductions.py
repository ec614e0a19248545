"""Rules of sums, largest and smallest elements, and products of matrices.

A sum of n terms in any order has at most n - 1 additions on its longest path, so it is off by
gamma_{n-1} times the sum of magnitudes (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., section 4.2); by nothing where all terms are multiples of a quantum q and the sum of magnitudes
is at most 2^24 q, since then every partial sum is a float32. A product of matrices has n roundings a
term (section 3.5).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.formula.parts import (
    Flags,
    Floats,
    Parts,
    blocks,
    cut_parts,
    exactly,
    flags,
    largest_flag,
)
from tokitai_cli.formula.precision import current

# Of float64 sums and products, which are off themselves by at most n 2^-53 times the sum of magnitudes.
OWN = 2.0**-53
Axes = tuple[int, ...]


def quantum(x: Floats) -> Floats:
    """Largest power of two of which each x is a multiple; infinite for 0, NaN and infinities."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    low = (whole & -whole).astype(np.float64)
    return np.where(whole == 0, np.inf, np.ldexp(low, exponent - 53))


def sums_exactly(size: Floats, shared: Floats) -> NDArray[np.bool_]:
    """Where sums of multiples of `shared`, whose magnitudes add up to `size`, need no rounding."""
    form = FORMATS[current().accumulate]
    fits = (shared > 0) & (shared >= 2 * form.half_smallest)
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

    def with_more(self, other: Sums) -> Sums:
        """The sum over both sets of terms."""
        added: list[Any] = [one + two for one, two in zip(self[:6], other[:6], strict=True)]
        either: list[Any] = [one | two for one, two in zip(self[7:11], other[7:11], strict=True)]
        least, worst = np.minimum(self.quantum, other.quantum), np.maximum(self.n, other.n)
        fields: list[Any] = [*added, least, *either, worst]
        return Sums(*fields)


def _sums_of(a: Parts, axes: Axes) -> Sums:
    """Sums of one block, reduced axes kept as 1."""
    v = a.v.sum(axis=axes, keepdims=True)
    none = np.zeros(v.shape, bool)
    never = np.zeros(v.shape, np.uint8)
    if a.finite:
        if a.point:
            size = np.abs(a.v).sum(axis=axes, keepdims=True)
            least = quantum(a.v).min(axis=axes, keepdims=True)
            plus, minus = (size + v) / 2, (size - v) / 2
            return Sums(v, v, v, size, plus, minus, least, none, none, none, none, never)
        lo, hi = a.lo.sum(axis=axes, keepdims=True), a.hi.sum(axis=axes, keepdims=True)
        size = np.maximum(np.abs(a.lo), np.abs(a.hi)).sum(axis=axes, keepdims=True)
        return Sums(v, lo, hi, size, size, size, np.zeros(v.shape), none, none, none, none, never)
    live = np.ones(a.v.shape, bool) if a.n is None else a.n != 2
    certain = live if a.n is None else a.n == 0
    lo = np.where(np.isfinite(a.lo), a.lo, 0.0)
    hi = np.where(np.isfinite(a.hi), a.hi, 0.0)
    some = {
        "may_plus": (a.hi == np.inf) & live,
        "may_minus": (a.lo == -np.inf) & live,
        "is_plus": (a.lo == np.inf) & certain,
        "is_minus": (a.hi == -np.inf) & certain,
    }
    found = {name: where.any(axis=axes, keepdims=True) for name, where in some.items()}
    return Sums(
        v,
        lo.sum(axis=axes, keepdims=True),
        hi.sum(axis=axes, keepdims=True),
        np.maximum(np.abs(lo), np.abs(hi)).sum(axis=axes, keepdims=True),
        np.maximum(hi, 0).sum(axis=axes, keepdims=True),
        np.maximum(-lo, 0).sum(axis=axes, keepdims=True),
        np.zeros(v.shape),
        **found,
        n=never if a.n is None else a.n.max(axis=axes, keepdims=True),
    )


def gathered(a: Parts, axes: Axes) -> Sums:
    """Sums over `axes`, kept as 1, block by block."""
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(a.v.shape))
    whole: list[Any] | None = None
    for index in blocks(a.v.shape):
        part = _sums_of(cut_parts(a, index), axes)
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


def settled(sums: Sums, gamma: float, count: int) -> Parts:
    """What a float32 sum may give, from the partial results of its terms."""
    top = current().top
    v, size = sums.v, sums.size
    error = (gamma * (1 + 2.0**-28) + count * OWN) * size
    exact = sums_exactly(size, sums.quantum) & np.isfinite(size) & ~np.isnan(v)
    error = np.where(exact, 0.0, error)
    lo, hi = sums.lo - error, sums.hi + error
    over = sums.plus * (1 + gamma) >= top  # partial sums may run over
    under = sums.minus * (1 + gamma) >= top
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
    gamma = np.array([current().gamma(i) for i in range(count)]).reshape(column)
    own = (np.arange(count) * OWN).reshape(column)

    def along(x: Floats) -> Floats:
        return np.cumsum(x, axis=axis)

    def ever(where: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray(np.logical_or.accumulate(where, axis=axis))

    v = along(a.v)
    live = np.ones(v.shape, bool) if a.n is None else a.n != 2
    certain = live if a.n is None else a.n == 0
    lo, hi = np.where(np.isfinite(a.lo), a.lo, 0.0), np.where(np.isfinite(a.hi), a.hi, 0.0)
    least = np.minimum.accumulate(quantum(a.v), axis=axis) if a.point else np.zeros(v.shape)
    n = np.zeros(v.shape, np.uint8) if a.n is None else np.maximum.accumulate(a.n, axis=axis)
    sums = Sums(
        v,
        along(lo),
        along(hi),
        along(np.maximum(np.abs(lo), np.abs(hi))),
        along(np.maximum(hi, 0)),
        along(np.maximum(-lo, 0)),
        least,
        ever((a.hi == np.inf) & live),
        ever((a.lo == -np.inf) & live),
        ever((a.lo == np.inf) & certain),
        ever((a.hi == -np.inf) & certain),
        n,
    )
    part = settled(sums, 0.0, 0)
    if part.point:
        return part
    exact = sums_exactly(sums.size, sums.quantum)
    error = np.where(exact, 0.0, (gamma * (1 + 2.0**-28) + own) * sums.size)
    return Parts(v, part.lo - error, part.hi + error, part.n)


def broadcast(a: Parts, shape: tuple[int, ...]) -> Parts:
    """The block in a larger shape."""
    fields: list[Any] = [None if x is None else np.broadcast_to(x, shape) for x in a]
    return Parts(*fields)


def added_at(acc: Parts, index: Any, values: Parts) -> Parts:
    """`numpy.add.at`: `values` added to the elements of `acc` that `index` names, in any order."""
    shape = acc.v.shape
    fields: dict[str, Floats] = {}
    spread = broadcast(values, np.broadcast_shapes(values.v.shape, acc.v[index].shape))
    if not (acc.finite and spread.finite):
        message = "numpy.add.at of NaN or infinities has no rule"
        raise TypeError(message)
    counts = np.zeros(shape)
    np.add.at(counts, index, 1.0)
    start = np.abs(acc.lo)
    for name, base, more in (
        ("v", acc.v, spread.v),
        ("lo", acc.lo, spread.lo),
        ("hi", acc.hi, spread.hi),
        ("size", start, np.maximum(np.abs(spread.lo), np.abs(spread.hi))),
    ):
        fields[name] = np.array(base, dtype=np.float64)
        np.add.at(fields[name], index, more)
    least = np.where(acc.v == 0, np.inf, quantum(acc.v)) if acc.point else np.zeros(shape)
    if spread.point:
        np.minimum.at(least, index, quantum(spread.v))
    else:
        np.minimum.at(least, index, 0.0)
    terms = counts + (acc.v != 0)
    gammas = np.array([current().gamma(k) for k in range(int(terms.max(initial=0)) + 1)])
    additions = np.maximum(terms - 1, 0).astype(np.int64)
    size = fields["size"]
    error = (gammas[additions] * (1 + 2.0**-28) + counts * OWN) * size
    error = np.where(sums_exactly(size, least), 0.0, error)
    over = size * (1 + gammas[additions]) >= current().top
    lo = np.where(over, -np.inf, fields["lo"] - error)
    hi = np.where(over, np.inf, fields["hi"] + error)
    if not error.any() and not over.any() and acc.point and spread.point:
        return exactly(fields["v"])
    return Parts(fields["v"], lo, hi, flags(over, np.zeros(shape, bool)))
