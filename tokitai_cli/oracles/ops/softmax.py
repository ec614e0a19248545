"""Softmax of rows and its vector-Jacobian product: float64 reference, error bounds, float32 replay.

Notation: u = 2^-24, gamma_k = k u / (1 - k u) and theta_k any number of at most that size (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., Lemma 3.1); h = additions on the longest
path of a row's sum, c - 1 for any order; G(h, k) = gamma_h + gamma_k + gamma_h gamma_k.

Forward, s_i = exp(t_i) / D with t = x - max x and D = sum exp(t). A stable float32 kernel gives
    t: x_i - max is rounded once, an error of u |t_i| in the exponent; below -104 every float32
        exponential is 0, so that |t_i| counts up to 104 only.
    exp: kexp = 2 ulp of 2 u each; the tables of expf in the HIP math API documentation and in the CUDA
        C++ Programming Guide ("Mathematical Functions") stay within that. Together they make
        a_i = u min(|t_i|, 104) + 2 kexp u.
    D: the term errors weighed by their share, sum_j s_j a_j, and gamma_h for the additions (Higham,
        section 4.2); a kernel that flushes subnormal exponentials loses up to c 2^-126 more.
    quotient: kdiv = 3, for a division or for a product with a reciprocal.
    Then num_i is the sum of the four, rho_i = num_i / (1 - num_i) bounds what they make of s_i relative
    to it, and e = s rho + 2^-126, the last term for a subnormal result. Dividing by 1 - num_i covers
    the terms of second order. The same algorithm is analysed in P. Blanchard, D. J. Higham, N. J.
    Higham, "Accurately computing the log-sum-exp and softmax functions", IMA J. Numer. Anal. 41(4),
    2021, 2311-2330.
Not finite (IEEE 754-2019, 6.1 and 7.2): a row with a NaN has NaN exponentials; in one with +inf, or
    of -inf alone, max - max is infinity minus infinity; all of it is NaN. Other -inf give exactly 0.

Gradient, s_i (g_i - P) with P = sum g s, A = sum |g s|. The sum has an error of (gamma_h + one
    rounding for each product) A, the difference and the outer product one rounding each:
    e = |s| (G(h, 3) A + gamma_3 (|g| + |P|)). float16 products are exact in float32, so one rounding
    of the three stays for this reference. For wider inputs products may be subnormal: each loses up to
    2^-149, and so does the result.
Not finite: float64 follows the same rules as float32 here, as float16 products cannot overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.model.case import DROPPED, LAST_DROPPED, BufferPlan, Case, Expectation, Replay
from tokitai_cli.numerics import round_to
from tokitai_cli.oracles.bounds import UNIT_ROUNDOFF, additions, compound, gamma
from tokitai_cli.oracles.builtin import BuiltIn
from tokitai_cli.oracles.properties import one, permuted, remainder, row_sum, shifted_rows
from tokitai_cli.oracles.rows import (
    FLOATS,
    Array,
    Floats,
    Singles,
    as_matrix,
    blocks,
    misfit,
    named,
    outputs,
    refuse_flushing,
    threads,
    tree_sum,
)

_EXP_ULPS = 2
_DIVISION = 3
_LEAST_EXPONENT = 104.0
_SMALLEST = FORMATS["float32"].smallest_normal
_TINY = 2.0**-149
_THREADS = 256


def expect_forward(case: Case, arrays: Mapping[str, Array]) -> dict[str, Expectation]:
    """Softmax of the rows of x; reads `x`, judges `y` of the same shape.

    SpecError where the spec's arrays or reduction are none of this op, NotRunError where float32 has
    no bound for the length.
    """
    x, _ = read_forward(case, arrays)
    rows = as_matrix(x)
    steps = additions(case, rows.shape[1])
    reference, error = np.empty(rows.shape), np.empty(rows.shape)
    with np.errstate(all="ignore"):
        for part in blocks(*rows.shape):
            reference[part], error[part] = _forward(rows[part].astype(np.float64), steps)
    return {"y": _expectation(rows, x.shape, reference, error, _forward_without(rows))}


def expect_gradient(case: Case, arrays: Mapping[str, Array]) -> dict[str, Expectation]:
    """Product of g with the Jacobian of softmax at s; reads `g` and `s`, judges `grad_x`."""
    g, s, _ = read_gradient(case, arrays)
    g_rows, s_rows = as_matrix(g), as_matrix(s)
    steps = additions(case, g_rows.shape[1])
    wide = g.dtype != np.float16 or s.dtype != np.float16
    reference, error = np.empty(g_rows.shape), np.empty(g_rows.shape)
    with np.errstate(all="ignore"):
        for part in blocks(*g_rows.shape):
            pair = g_rows[part].astype(np.float64), s_rows[part].astype(np.float64)
            reference[part], error[part] = _gradient(*pair, steps, wide=wide)
    without = _gradient_without(g_rows, s_rows)
    return {"grad_x": _expectation(g_rows, g.shape, reference, error, without)}


def replay_forward(case: Case, arrays: Mapping[str, Array], seed: int) -> dict[str, Replay]:
    """Float32 softmax in the order of a block of threads; exponentials are numpy's, within an ulp.

    No bit-exact repetition: it stands for the same-precision emulation that flat limits were made for.
    """
    x, plan = read_forward(case, arrays)
    rows, count = as_matrix(x), threads(case, 0, _THREADS)
    values = np.empty(rows.shape, dtype=np.float32)
    with np.errstate(all="ignore"):
        for part in blocks(*rows.shape):
            terms = rows[part].astype(np.float32)
            terms = np.exp(terms - np.fmax.reduce(terms, axis=1)[:, None])
            values[part] = terms / tree_sum(terms, count)[:, None]
    return {"y": _replay(values, x.shape, plan.dtype)}


def replay_gradient(case: Case, arrays: Mapping[str, Array], seed: int) -> dict[str, Replay]:
    """Float32 gradient in the order of a block of threads, products and sums rounded on their own."""
    g, s, plan = read_gradient(case, arrays)
    g_rows, s_rows, count = as_matrix(g), as_matrix(s), threads(case, 0, _THREADS)
    values = np.empty(g_rows.shape, dtype=np.float32)
    with np.errstate(all="ignore"):
        for part in blocks(*g_rows.shape):
            left, right = g_rows[part].astype(np.float32), s_rows[part].astype(np.float32)
            values[part] = right * (left - tree_sum(left * right, count)[:, None])
    return {"grad_x": _replay(values, g.shape, plan.dtype)}


def read_forward(case: Case, arrays: Mapping[str, Array]) -> tuple[Array, BufferPlan]:
    """`x` and the plan of `y`; SpecError where the spec's arrays are none of this op."""
    refuse_flushing(case)
    (x,) = named(case, arrays, {"x": FLOATS})
    return x, outputs(case, {"y": x.shape})["y"]


def read_gradient(case: Case, arrays: Mapping[str, Array]) -> tuple[Array, Array, BufferPlan]:
    """`g`, `s` and the plan of `grad_x`; SpecError where the spec's arrays are none of this op."""
    refuse_flushing(case)
    g, s = named(case, arrays, {"g": FLOATS, "s": FLOATS})
    if g.shape != s.shape:
        said = f"g {list(g.shape)} and s {list(s.shape)} have different shapes"
        raise misfit(case, said, "softmax takes one g for each s")
    return g, s, outputs(case, {"grad_x": g.shape})["grad_x"]


def _replay(values: Singles, shape: tuple[int, ...], dtype: str) -> Replay:
    return Replay(values=round_to(values.astype(np.float64), dtype).reshape(shape))


def _expectation(
    rows: Array,
    shape: tuple[int, ...],
    reference: Floats,
    error: Floats,
    without: Callable[[str], Floats],
) -> Expectation:
    terms = int(rows.shape[1])
    kinds = DROPPED if terms > 1 else ()
    return Expectation(
        reference=reference.reshape(shape),
        error=error.reshape(shape),
        terms=terms,
        dropped={kind: lambda kind=kind: without(kind).reshape(shape) for kind in kinds},
    )


def _forward(x: Floats, steps: int) -> tuple[Floats, Floats]:
    """Reference and error of a block of rows."""
    u = UNIT_ROUNDOFF
    t = x - x.max(axis=1, keepdims=True)
    s = np.exp(t)
    total = s.sum(axis=1, keepdims=True)
    s /= total
    masked = np.isneginf(t)
    relative = np.abs(t, out=t)
    np.minimum(relative, _LEAST_EXPONENT, out=relative)
    relative *= u
    relative += 2 * _EXP_ULPS * u
    weighed = np.einsum("ij,ij->i", s, relative)[:, None]
    relative += weighed + (gamma(steps) + _DIVISION * u) + x.shape[1] * _SMALLEST / total
    error = relative / (1.0 - relative)
    error *= s
    error += _SMALLEST
    error[masked | np.isnan(s)] = 0.0
    return s, error


def _forward_without(rows: Array) -> Callable[[str], Floats]:
    """Softmax whose sum lacks a row's last or largest exponential."""

    def without(kind: str) -> Floats:
        wrong = np.empty(rows.shape)
        with np.errstate(all="ignore"):
            for part in blocks(*rows.shape):
                x = rows[part].astype(np.float64)
                terms = np.exp(x - x.max(axis=1, keepdims=True))
                kept = terms.copy()
                lines = np.arange(x.shape[0])
                kept[lines, -1 if kind == LAST_DROPPED else np.argmax(terms, axis=1)] = 0.0
                wrong[part] = terms / kept.sum(axis=1, keepdims=True)
        return wrong

    return without


def _gradient(g: Floats, s: Floats, steps: int, *, wide: bool) -> tuple[Floats, Floats]:
    """Reference and error of a block of rows; `wide` inputs have products that may be subnormal."""
    terms = g * s
    total = terms.sum(axis=1, keepdims=True)
    size = np.abs(terms, out=terms).sum(axis=1, keepdims=True)
    error = np.abs(g)
    error += np.abs(total)
    error *= gamma(3)
    error += compound(steps, 3) * size
    if wide:
        error += g.shape[1] * _TINY
    reference = g - total
    reference *= s
    error *= np.abs(s)
    if wide:
        error += _TINY
        overflow = size >= FORMATS["float32"].overflow / 2
        error[np.broadcast_to(overflow, error.shape) & np.isfinite(reference)] = np.inf
    error[~np.isfinite(reference)] = 0.0
    return reference, error


def _gradient_without(g_rows: Array, s_rows: Array) -> Callable[[str], Floats]:
    """Gradient whose sum lacks a row's last or largest term."""

    def without(kind: str) -> Floats:
        wrong = np.empty(g_rows.shape)
        with np.errstate(all="ignore"):
            for part in blocks(*g_rows.shape):
                g, s = g_rows[part].astype(np.float64), s_rows[part].astype(np.float64)
                terms = g * s
                lines = np.arange(g.shape[0])
                heaviest = np.argmax(np.abs(terms), axis=1)
                terms[lines, -1 if kind == LAST_DROPPED else heaviest] = 0.0
                wrong[part] = s * (g - terms.sum(axis=1, keepdims=True))
        return wrong

    return without


ORACLES = {
    "softmax.fwd": BuiltIn(
        read_forward,
        expect_forward,
        replay_forward,
        {
            "row-sum": ("y", row_sum(one)),
            "shift-invariance": ("y", shifted_rows),
            "permutation-equivariance": ("y", permuted("x")),
        },
    ),
    "softmax.grad": BuiltIn(
        read_gradient,
        expect_gradient,
        replay_gradient,
        {
            "row-sum": ("grad_x", row_sum(remainder)),
            "permutation-equivariance": ("grad_x", permuted("g", "s")),
        },
    ),
}
