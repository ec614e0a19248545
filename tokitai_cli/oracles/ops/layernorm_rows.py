"""Mean, variance and rstd of rows of c columns, with bounds for two passes and for Welford's updates.

mu = mean of x, d = x - mu, v = mean of d^2, r = 1 / sqrt(v + eps). Notation: u = 2^-24, gamma_k and
G(h, k) as in `bounds`, h = additions on the longest path of a row's sum, M1 = mean of |x|, M2 =
sqrt(mean of x^2). Every step below multiplies a value by 1 + theta with the stated |theta| (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., Lemmas 3.1 and 3.3, section 4.2 for sums).

Two passes, the variance from differences to the mean that was stored:
mean: h additions; a division, or a reciprocal and a product: Delta = G(h, 2) M1. On profiles whose sums
    are meant to be exact, and are (see `exact`), the additions round nothing: Delta = gamma_2 |mu|.
variance: a mean that is off by delta, |delta| <= Delta, makes the exact mean of squares v + delta^2.
    Differences to it are rounded once and count twice, squares once, sums h times, the division twice:
    the computed one lies from v (1 - g) to (v + Delta^2)(1 + g), g = G(h, 5). This is why the bound is
    one-sided: an error of the mean only ever makes the variance larger (T. F. Chan, G. H. Golub, R. J.
    LeVeque, "Algorithms for computing the sample variance", Amer. Statist. 37(3), 1983).

Welford (B. P. Welford, Technometrics 4(3), 1962; merges as in the same paper): a set of a elements
takes in one of b <= a, single elements in turn and then sets in pairs, by D = m_b - m_a, m = m_a + D b
/ n, Q = Q_a + Q_b + D^2 a b / n. With L = log2 c:
mean: a merge leaves gamma_4 D b / n + u |m| and passes on the sets' errors, weighed. The second sum,
    over all merges, is at most h u M1; the first, by Cauchy and Schwarz with sum D^2 a b / n = c v, at
    most gamma_4 sqrt(2 (1 + L) v). With 1 / (1 - 8 h u) for what errors make of errors:
        Delta = (G(h, 2) M1 + gamma_4 sqrt(2 (1 + L) v)) / (1 - 8 h u).
variance: D is off by the errors of two means. Over all merges that makes 2 sqrt(v) w + w^2 of v, again
    by Cauchy and Schwarz, where w^2 is the mean of the squared errors of the means that were used. In
    turn, these are means of the first k elements, whose squares add up to at most 4 c M2^2 (Hardy's
    inequality); each of at most L rounds of pairs adds 2 M2^2:
        w = sqrt(4 + 3 L) (G(h, 2) M2 + gamma_4 sqrt(2 (1 + L) v)) / (1 - 8 h u).
    The computed one lies from v (1 - g) - 2 sqrt(v) w, or 0, to (v + w^2)(1 + g) + 2 sqrt(v) w, with two
    additions a merge and ten further roundings, g = G(2 h, 10). Unlike that of two passes it may be too
    small, by about the condition number M2 / sqrt(v) times more than v g.

rstd: eps is added with one rounding, of which the root keeps half, and krs = 2 ulp of 2 u each are
    allowed to rsqrtf (the HIP and CUDA tables stay within that), or division and root with one rounding
    each: kappa = (2 krs + 1) u + gamma_2. So rlo <= rstd <= rhi with (1 - kappa) and (1 + kappa) over
    the root of the largest and the least variance, each with eps.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.oracles.bounds import UNIT_ROUNDOFF, compound, gamma
from tokitai_cli.oracles.exact import EXACT_UNITS
from tokitai_cli.oracles.rows import Array, Floats

OVERFLOW = FORMATS["float32"].overflow / 4
_RSQRT_ULPS = 2
_KAPPA = (2 * _RSQRT_ULPS + 1) * UNIT_ROUNDOFF + gamma(2)


class Arguments(msgspec.Struct, frozen=True):
    """What the op reads: rows of x, gamma and beta in their own dtypes, eps, and h.

    unit: what the entries of x are counted in, on a profile whose sums are meant to be exact; else 0.
    welford: whether mean and variance are updated together.
    """

    x: Array
    gamma: Array
    beta: Array
    eps: float
    steps: int
    unit: float
    welford: bool


class Rows(msgspec.Struct, frozen=True):
    """A block of rows in float64: per element d, per row all the others, as columns [rows, 1].

    finite: rows without NaN and infinities. unknown: rows that are left open. `delta` is Delta;
    `drift` is w, None for two passes.
    """

    d: Floats
    mean: Floats
    variance: Floats
    rstd: Floats
    delta: Floats
    drift: Floats | None
    finite: NDArray[np.bool_]
    unknown: NDArray[np.bool_]

    def limits(self, given: Arguments) -> tuple[Floats, Floats]:
        """Return (rlo, rhi)."""
        if self.drift is None:
            g, shift, both = compound(given.steps, 5), self.delta, np.zeros(self.delta.shape)
        else:
            g, shift = compound(2 * given.steps, 10), self.drift
            both = 2 * np.sqrt(self.variance) * shift
        least = np.maximum(self.variance * (1 - g) - both, 0.0)
        most = (self.variance + shift**2) * (1 + g) + both
        return (1 - _KAPPA) / np.sqrt(most + given.eps), (1 + _KAPPA) / np.sqrt(least + given.eps)


def statistics(part: Array, given: Arguments) -> Rows:
    """Statistics of a block of rows of x and what a kernel's may be off by."""
    x = part.astype(np.float64)
    size = np.abs(x)
    total = size.sum(axis=1, keepdims=True)
    width = x.shape[1]
    mean = x.mean(axis=1, keepdims=True)
    d = np.subtract(x, mean, out=x)
    squares = np.square(d, out=size)
    variance = squares.mean(axis=1, keepdims=True)
    degenerate = (variance + given.eps == 0) & (total > 0)
    near = (total >= OVERFLOW) | (variance * width >= OVERFLOW)
    finite = np.isfinite(total)
    delta, drift = compound(given.steps, 2) * (total / width), None
    if given.welford:
        delta, drift = _welford(given.steps, width, total / width, mean, variance)
    else:
        delta = np.where(total < EXACT_UNITS * given.unit, gamma(2) * np.abs(mean), delta)
    return Rows(
        d=d,
        mean=mean,
        variance=variance,
        rstd=1.0 / np.sqrt(variance + given.eps),
        delta=delta,
        drift=drift,
        finite=finite,
        unknown=finite & (degenerate | near),
    )


def _welford(
    steps: int, width: int, size: Floats, mean: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Delta and w of rows whose mean of |x| is `size`."""
    rounds = math.log2(max(width, 1))
    own = gamma(4) * np.sqrt(2 * (1 + rounds) * variance)
    more = 8 * steps * UNIT_ROUNDOFF
    factor = 1 / (1 - more) if more < 1 else math.inf
    square = np.sqrt(variance + np.square(mean))
    delta = factor * (compound(steps, 2) * size + own)
    return delta, factor * math.sqrt(4 + 3 * rounds) * (compound(steps, 2) * square + own)
