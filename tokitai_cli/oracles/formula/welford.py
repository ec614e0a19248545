"""Means and variances that are updated together (B. P. Welford, Technometrics 4(3), 1962).

A set of a elements takes in one of b <= a by D = m_b - m_a, m = m_a + D b / n, Q = Q_a + Q_b +
D^2 a b / n: single elements in turn, then sets in pairs. With h additions on the longest path,
G(h, k) = gamma_h + gamma_k + gamma_h gamma_k, L = log2 of the number of elements, M1 the mean of |x|, M2
the root of the mean of x^2, v the variance, and f = 1 / (1 - 8 h u) for errors of errors:

    mean: off by f (G(h, 2) M1 + gamma_4 sqrt(2 (1 + L) v))
    variance: with w = sqrt(4 + 3 L) f (G(h, 2) M2 + gamma_4 sqrt(2 (1 + L) v)) and g = G(2 h, 10), from
        max(0, v (1 - g) - 2 sqrt(v) w) to (v + w^2)(1 + g) + 2 sqrt(v) w

The errors of the means enter the variance to first order, and on either side: M2 / sqrt(v) is its
condition number (T. F. Chan, G. H. Golub, R. J. LeVeque, Amer. Statist. 37(3), 1983).
"""

from __future__ import annotations

import math

import numpy as np

from tokitai_cli.oracles.formula.parts import Floats, Parts
from tokitai_cli.oracles.formula.precision import U, current
from tokitai_cli.oracles.formula.tracked import Tracked

Axes = tuple[int, ...]


def _gamma(k: float) -> float:
    return k * U / (1 - k * U) if k * U < 1 else math.inf


def _compound(h: int, k: int) -> float:
    return _gamma(h) + _gamma(k) + _gamma(h) * _gamma(k)


def _steps(x: Floats, axes: Axes) -> tuple[int, float, float]:
    """h, L and f."""
    count = math.prod(x.shape[axis] for axis in axes)
    rounds = current().rounds
    steps = max(0, count - 1) if rounds is None else rounds
    more = 8 * steps * U
    return steps, math.log2(max(count, 1)), 1 / (1 - more) if more < 1 else math.inf


def mean(part: Parts, x: Parts, axes: Axes) -> Parts:
    """The mean `part` of x. One of infinities may become NaN with the next update.

    Where x has errors the mean lies between those of its ends, and M1 and v are taken at the end that is
    farther from 0.
    """
    current().applied_rules.add("mean")
    steps, rounds, factor = _steps(x.v, axes)
    shape = part.v.shape
    with np.errstate(all="ignore"):
        far = np.abs(x.v) if x.point else np.maximum(np.abs(x.lo), np.abs(x.hi))
        spread = x.v.var(axis=axes) if x.point else np.square(far).mean(axis=axes)
        own = _gamma(4) * np.sqrt(2 * (1 + rounds) * spread.reshape(shape))
        off = factor * (_compound(steps, 2) * far.mean(axis=axes).reshape(shape) + own)
        infinite = np.isinf(part.v) | ~np.isfinite(off)
        low, high = (end.mean(axis=axes).reshape(shape) for end in (x.lo, x.hi))
        lo = np.where(infinite, -np.inf, np.fmin(low, part.v) - off)
        hi = np.where(infinite, np.inf, np.fmax(high, part.v) + off)
    if not infinite.any():
        return Parts(part.v, lo, hi, part.n)
    flag = np.zeros(shape, np.uint8) if part.n is None else part.n
    return Parts(part.v, lo, hi, np.where(infinite, np.maximum(flag, np.uint8(1)), flag))


def variance(part: Parts, away: Tracked, axes: Axes) -> Parts:
    """The sum `part` of squares of the distances `away` from a mean: the variance times their number."""
    current().applied_rules.add("variance")
    x, known = away.parts.v, away.known
    assert known.centred_at is not None
    steps, rounds, factor = _steps(x, axes)
    count = math.prod(x.shape[axis] for axis in axes)
    with np.errstate(all="ignore"):
        v = part.v / count
        root = np.sqrt(v)
        square = np.sqrt(v + np.square(known.centred_at.reshape(part.v.shape)))
        own = _gamma(4) * np.sqrt(2 * (1 + rounds) * v)
        w = factor * math.sqrt(4 + 3 * rounds) * (_compound(steps, 2) * square + own)
        g = _compound(2 * steps, 10)
        low = np.maximum(v * (1 - g) - 2 * root * w, 0.0) * count
        high = ((v + np.square(w)) * (1 + g) + 2 * root * w) * count
        usable = np.isfinite(high)
    return Parts(part.v, np.where(usable, low, part.lo), np.where(usable, high, part.hi), part.n)
