"""Matrix products: float64 reference, error bounds, and the replay of a sequential f32 kernel.

The op is P[r, c] = sum over t < n of X[r, t] Y[t, c], with X and Y views of the inputs. A correct
kernel forms each product and each sum in float32, fused or not, and rounds once to the output's
dtype. Notation: u = 2^-24, gamma_k = k u / (1 - k u), S = sum |X| |Y|, h = additions on the longest
path of the reduction (n - 1 for any order; a spec that claims a tree gives its own).

Worst case, e = gamma_(h+1) S
    N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 3: each term takes
    part in at most h additions, so the computed sum is sum of x y (1 + theta), |theta| <= gamma_h;
    u bounds a fused step as it bounds the addition alone. float16 and bfloat16 products have 22 and
    16 significand bits and are exact in float32, so h would do. h + 1 leaves u S for the rounding
    of this float64 reference, which is at most n 2^-53 S: enough for n < 2^28. For float32 inputs
    the products are rounded too, and one more is added: gamma_(h+2).
Underflow, n 2^-150
    float16 products are multiples of 2^-48 and never underflow in float32. Where the smallest nonzero
    product of other inputs lies below 2^-126, each of n products may lose half the smallest float32
    subnormal; sums do not underflow (Higham, ch. 2). With flush_to_zero each product and each sum
    may lose 2^-126: 2 n 2^-126.
Flushed inputs
    With flush_to_zero, e also has sum |X| |Y| over the terms with a subnormal operand.
Exact sums, e = 0
    All products are multiples of a power of two, found from the lowest bits of the entries. Where
    S is below 2^24 such units, so is every partial sum, and float32 holds it: any order gives the
    exact result. Small integers are the use of it.
Probable form, gammaP_(h+1)(10) S
    gammaP_k(lambda) = exp(lambda sqrt(k) u + k u^2 / (1 - u)) - 1: N. J. Higham, T. Mary, "A new
    approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019,
    A2815-A2835. It assumes independent roundings of mean zero; lambda = 10 fails about 3e-10 of
    the time over 1e8 outputs at n = 8192. n 2^-53 is added for this reference.
Overflow of the accumulator
    No partial sum exceeds S (1 + gamma). Where that may reach float32's threshold T (never for float16
    inputs) the kernel may overflow or not as its order has it: e is infinite, nothing is judged. But
    where |P| - e >= T no order stays below T to its end, and where the terms of the other sign cannot
    reach T by themselves, (S - |P|) / 2 in all, it overflows with P's sign: infinity is due.
Not finite
    IEEE 754-2019, 6.1 and 7.2, for the n terms: NaN where a term is NaN or 0 times infinity, or where
    terms of both infinities meet; else the infinity of those terms. Counted on indicators of the
    inputs, as BLAS need not keep the rules. All else is computed with such entries set to zero.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.model.case import HEAVIEST_DROPPED, LAST_DROPPED, Case, Expectation
from tokitai_cli.oracles.bounds import additions, gamma, gamma_probable
from tokitai_cli.oracles.builtin import BuiltIn
from tokitai_cli.oracles.exact import EXACT_UNITS, require_exact, unit_of
from tokitai_cli.oracles.ops.gemm_nonfinite import mark_special
from tokitai_cli.oracles.ops.gemm_operands import (
    Operands,
    Product,
    cleaned,
    grad_a,
    grad_b,
    products_normal,
)
from tokitai_cli.oracles.ops.gemm_replay import replay_sequential
from tokitai_cli.oracles.rows import Array

_LAMBDA = 10.0
_SINGLE = FORMATS["float32"]
# Reduction length up to which S is summed in float32, inflated by what that may lose.
_SINGLE_UP_TO = 1 << 20


def expect(operands: Operands, case: Case, arrays: Mapping[str, Array]) -> dict[str, Expectation]:
    """Compute reference, bounds and mutants of the product's one output.

    SpecError where the spec's arrays or reduction are none of this op, NotRunError where an
    exact-int profile cannot be exact at this shape, or float32 has no bound for the length.
    """
    product = operands(case, arrays)
    steps = additions(case, product.terms) + (2 if product.has("float32") else 1)
    reference, sums = _reference_and_sums(product)
    unit = _unit(product, sums) if products_normal(product) else 0.0
    require_exact(case, product.names, sums, reference, unit, product.output)
    exact = sums < EXACT_UNITS * unit
    unknown = _may_overflow(reference, sums, gamma(steps))
    error = sums  # one array: the bound takes the place of the sums
    error *= gamma(steps)
    lost = _absolute_error(case, product, error)
    if not lost:
        error[exact] = 0.0
    error[unknown] = np.inf
    mark_special(product, reference, error, flush=case.variant.flush_to_zero)
    probable = gamma_probable(steps, _LAMBDA) + product.terms * 2.0**-53
    return {
        product.output.name: Expectation(
            reference=reference,
            error=error,
            probable_ratio=None if lost else min(1.0, probable / gamma(steps)),
            terms=product.terms,
            dropped=_mutants(product, reference),
        )
    }


def _may_overflow(
    reference: NDArray[np.float64], sums: NDArray[np.float64], relative: float
) -> NDArray[np.bool_]:
    """Elements whose float32 accumulator may overflow, unless each one must."""
    unknown = sums * (1.0 + relative) >= _SINGLE.overflow
    if unknown.any():
        size = np.abs(reference)
        must = size - relative * sums >= _SINGLE.overflow
        must &= (sums - size) / 2 * (1.0 + relative) < _SINGLE.overflow
        unknown &= ~must
    return unknown


def _reference_and_sums(product: Product) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """X Y and an upper bound of S = |X| |Y| over the finite entries, in float64, by row blocks.

    For float16 inputs S comes from float32 BLAS, at half the cost: what it gives is at least
    (1 - gamma_n) S in any order.
    """
    shape = (product.x.shape[0], product.y.shape[1])
    reference, sums = np.zeros(shape), np.zeros(shape)
    narrow = product.halves and product.terms <= _SINGLE_UP_TO
    width: np.dtype[Any] = np.dtype(np.float32 if narrow else np.float64)
    inflate = 1.0 / (1.0 - gamma(product.terms)) if narrow else 1.0
    y = cleaned(product.y)
    y_size = np.abs(y).astype(width, copy=False)
    for rows in product.row_blocks():
        x = cleaned(product.x[rows])
        np.matmul(x, y, out=reference[rows])
        part: Array = np.matmul(np.abs(x).astype(width, copy=False), y_size)
        np.multiply(part, np.float64(inflate), out=sums[rows], dtype=np.float64)
    return reference, sums


def _unit(product: Product, sums: NDArray[np.float64]) -> float:
    """Power of two that every product is a multiple of, or 0.0 where no sum is exact by it."""
    unit = 0.0
    # A look at a few entries spares most profiles the pass over all of them.
    for x, y in ((product.x[:1, :256], product.y[:256, :1]), (product.x, product.y)):
        unit = unit_of(x) * unit_of(y)
        if unit < _SINGLE.smallest or np.min(sums, initial=np.inf) >= EXACT_UNITS * unit:
            return 0.0
    return unit


def _absolute_error(case: Case, product: Product, error: NDArray[np.float64]) -> bool:
    """Add to `error` what underflow and flushing may lose; tells whether anything was added."""
    flush = case.variant.flush_to_zero
    lost = False
    if product.terms and not products_normal(product):
        error += product.terms * (2.0**-125 if flush else 2.0**-150)
        lost = True
    if not flush:
        return lost
    x_limit, y_limit = (
        FORMATS[operand.dtype.name].smallest_normal for operand in (product.x, product.y)
    )
    y = np.abs(cleaned(product.y))
    y_tiny, y_rest = np.where(y < y_limit, y, 0.0), np.where(y < y_limit, 0.0, y)
    for rows in product.row_blocks():
        x = np.abs(cleaned(product.x[rows]))
        x_tiny = np.where(x < x_limit, x, 0.0)
        if y_tiny.any() or x_tiny.any():
            error[rows] += (x @ y_tiny + x_tiny @ y_rest) * (1.0 + 2.0**-40)
            lost = True
    return lost


def _mutants(
    product: Product, reference: NDArray[np.float64]
) -> dict[str, Callable[[], Callable[[slice | NDArray[np.int64]], NDArray[np.float64]]]]:
    """Last and heaviest term dropped; none for a sum of one term, whose drop is all zeros."""
    if product.terms < 2:
        return {}
    return {
        LAST_DROPPED: lambda: _without(product, reference, product.terms - 1),
        HEAVIEST_DROPPED: lambda: _without(product, reference, _heaviest(product)),
    }


def _without(
    product: Product, reference: NDArray[np.float64], term: int
) -> Callable[[slice | NDArray[np.int64]], NDArray[np.float64]]:
    """Leave term `term` out of the reference, at the flat positions that are asked for.

    Elements that are not finite stay as they are.
    """
    x, y = cleaned(product.x[:, term]), cleaned(product.y[term])
    flat = reference.reshape(-1)

    def part(index: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        positions = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        row, column = np.divmod(positions, y.size)
        return np.asarray(flat[index] - x[row] * y[column])

    return part


def _heaviest(product: Product) -> int:
    """Find the t with the largest ||X[:, t]|| ||Y[t, :]||."""
    weights = np.zeros((2, product.terms))
    for index, operand in enumerate((product.x, product.y.T)):
        for start in range(0, operand.shape[0], 256):
            block = cleaned(operand[start : start + 256])
            weights[index] += np.einsum("it,it->t", block, block)
    return int(np.argmax(weights[0] * weights[1]))


ORACLES = {
    f"gemm-bw.{name}": BuiltIn(
        operands,
        functools.partial(expect, operands),
        functools.partial(replay_sequential, operands),
    )
    for name, operands in (("grad-a", grad_a), ("grad-b", grad_b))
}
