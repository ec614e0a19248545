"""Formulas of float64 kernels: values in double-double, and how far a float64 kernel may be off them.

A `Double` carries high + low, good to about 2^-100 of the value, and `off`, the largest distance of a
permitted float64 result. Sums and products without error: D. E. Knuth, The Art of Computer Programming,
vol. 2, 4.2.2; T. J. Dekker, Numer. Math. 18, 1971. Operations: M. Joldes, J.-M. Muller, V. Popescu, ACM
Trans. Math. Softw. 44(2), 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.oracles.formula.array_protocol import MOVES, Moving
from tokitai_cli.oracles.formula.known import NoRuleError
from tokitai_cli.oracles.formula.parts import Floats
from tokitai_cli.oracles.formula.precision import current

U = FORMATS["float64"].unit_roundoff
STEP = 2.0**-1074
# Of one operation in double-double.
_OWN = 2.0**-100
_SPLIT = 2.0**27 + 1.0


class Pair(NamedTuple):
    """high + low, |low| at most half an ulp of high."""

    high: Floats
    low: Floats


def two_sum(a: Floats, b: Floats) -> Pair:
    """a + b as a float64 and what it lacks."""
    s = a + b
    back = s - a
    return Pair(s, (a - (s - back)) + (b - back))


def two_product(a: Floats, b: Floats) -> Pair:
    """a * b as a float64 and what it lacks."""
    p = a * b
    a_high, b_high = (_SPLIT * x - (_SPLIT * x - x) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return Pair(p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low)


def _added(a: Pair, b: Pair) -> Pair:
    s, t = two_sum(a.high, b.high), two_sum(a.low, b.low)
    first = two_sum(s.high, s.low + t.high)
    return two_sum(first.high, first.low + t.low)


def _multiplied(a: Pair, b: Pair) -> Pair:
    p = two_product(a.high, b.high)
    return two_sum(p.high, p.low + (a.high * b.low + a.low * b.high))


def _divided(a: Pair, b: Pair) -> Pair:
    first = a.high / b.high
    rest = _added(a, _negated(_multiplied(b, Pair(first, np.zeros_like(first)))))
    second = rest.high / b.high
    rest = _added(rest, _negated(_multiplied(b, Pair(second, np.zeros_like(second)))))
    quotient = two_sum(first, second)
    return two_sum(quotient.high, quotient.low + rest.high / b.high)


def _negated(a: Pair) -> Pair:
    return Pair(-a.high, -a.low)


def _root(a: Pair) -> Pair:
    first = np.sqrt(a.high)
    safe = np.where(first == 0, 1.0, first)
    rest = _added(a, _negated(two_product(first, first)))
    return two_sum(first, np.where(first == 0, 0.0, rest.high / (2 * safe)))


class Double(Moving):
    """An array of a formula whose kernel computes in float64."""

    def __init__(self, pair: Pair, off: Floats) -> None:
        finite = np.isfinite(pair.high)
        if not finite.all():
            pair = Pair(pair.high, np.where(finite, pair.low, 0.0))
            off = np.where(finite, off, 0.0)
        self.pair = pair
        self.off = off

    def plain(self) -> Floats:
        """The nearest float64."""
        return self.pair.high

    def moved(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Double:
        """Apply what moves elements and changes none."""
        return Double(Pair(*(function(part) for part in self.pair)), function(self.off))

    def loosened(self, roundings: float) -> Double:
        """The same with `roundings` further roundings of relative size u each."""
        more = roundings * U * (np.abs(self.pair.high) + self.off) * (1 + 2.0**-10)
        return Double(self.pair, self.off + more)

    def sum(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Double:
        """Sum in any order, or of as many additions as the spec's tree has."""
        with np.errstate(all="ignore"):
            return _summed(self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Double:
        """Sum over the number of elements."""
        total = self.sum(axis, keepdims)
        return _ruled(np.divide, total, self.size / max(total.size, 1))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Double:
        if method == "reduce" and ufunc is np.add:
            return double(inputs[0]).sum(kwargs.get("axis", 0), kwargs.get("keepdims", False))
        if method != "__call__" or kwargs:
            raise NoRuleError(f"numpy.{ufunc.__name__}.{method} has no rule for float64 outputs")
        return _ruled(ufunc, *inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        name = function.__name__
        if name in ("sum", "mean"):
            return getattr(double(args[0]), name)(*args[1:], **kwargs)
        if name in MOVES:
            return double(args[0]).moved(lambda array: function(array, *args[1:], **kwargs))
        raise NoRuleError(
            f"numpy.{name} has no rule for float64 outputs: + - * / sqrt, sum and matmul have"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        raise NoRuleError(
            "the formula converted an array of a float64 kernel to a plain numpy array, "
            "which discards its error"
        )


def double(x: Any) -> Double:
    """Values that a float64 kernel holds exactly."""
    if isinstance(x, Double):
        return x
    values = np.asarray(x, dtype=np.float64)
    return Double(Pair(values, np.zeros(values.shape)), np.zeros(values.shape))


def _ruled(ufunc: np.ufunc, *inputs: Any) -> Double:
    rule = _RULES.get(ufunc.__name__)
    if rule is None:
        known = ", ".join(_RULES)
        raise NoRuleError(
            f"numpy.{ufunc.__name__} has no rule for float64 outputs; there are: {known}"
        )
    with np.errstate(all="ignore"):
        return rule(*(double(x) for x in inputs))


def _rounded(pair: Pair, off: Floats, roundings: float = 1.0) -> Double:
    """The result with `off` before its rounding, and what double-double itself loses."""
    size = np.abs(pair.high) + off
    return Double(pair, off + roundings * U * size + _OWN * np.abs(pair.high) + STEP)


def _add(a: Double, b: Double) -> Double:
    pair = _added(a.pair, b.pair)
    exact = (a.off == 0) & (b.off == 0) & (pair.low == 0)
    result = _rounded(pair, a.off + b.off)
    return Double(pair, np.where(exact, 0.0, result.off))


def _negative(a: Double) -> Double:
    return Double(_negated(a.pair), a.off)


def _multiply(a: Double, b: Double) -> Double:
    pair = _multiplied(a.pair, b.pair)
    off = np.abs(a.pair.high) * b.off + np.abs(b.pair.high) * a.off + a.off * b.off
    result = _rounded(pair, off * (1 + 4 * U))
    exact = (off == 0) & (pair.low == 0) & (np.abs(pair.high) > 2.0**-900)
    return Double(pair, np.where(exact, 0.0, result.off))


def _divide(a: Double, b: Double) -> Double:
    pair = _divided(a.pair, b.pair)
    least = np.abs(b.pair.high) - b.off
    off = np.where(least > 0, (a.off + np.abs(pair.high) * b.off) / least, np.inf)
    off = np.where((a.off == 0) & (b.off == 0), 0.0, off)
    return _rounded(pair, off * (1 + 8 * U), 3.0)


def _sqrt(a: Double) -> Double:
    pair = _root(a.pair)
    least = np.maximum(a.pair.high - a.off, 0.0)
    off = np.where(a.off == 0, 0.0, a.off / (np.sqrt(least) + pair.high))
    off = np.where(np.isnan(off), np.inf, off)
    return _rounded(pair, off * (1 + 8 * U), 2.0)


def _summed(a: Double, axis: Any, keepdims: bool) -> Double:
    axes = (
        tuple(range(a.ndim))
        if axis is None
        else tuple(int(i) % a.ndim for i in np.atleast_1d(axis))
    )
    rest = [i for i in range(a.ndim) if i not in axes]
    shape = tuple(a.shape[i] for i in rest)
    count = math.prod(a.shape[i] for i in axes)
    terms = a.moved(lambda array: array.transpose(*rest, *axes).reshape(*shape, count))
    total = Pair(np.zeros(shape), np.zeros(shape))
    size = np.zeros(shape)
    for i in range(count):
        term = Pair(terms.pair.high[..., i], terms.pair.low[..., i])
        total = _added(total, term)
        size += np.abs(term.high) + terms.off[..., i]
    off = terms.off.sum(axis=-1) + _gamma(max(count - 1, 0)) * size + count * _OWN * size
    result = Double(total, off)
    return result.moved(lambda array: np.expand_dims(array, axes)) if keepdims else result


def _gamma(additions: int) -> float:
    rounds = current().rounds
    k = additions if rounds is None else min(additions, rounds)
    return k * U / (1 - k * U)


def _matmul(a: Double, b: Double) -> Double:
    if a.ndim < 2 or b.ndim < 2:
        raise NoRuleError("numpy.matmul of vectors has no rule for float64 outputs: give matrices")
    count = a.shape[-1]
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    total = Pair(np.zeros(shape), np.zeros(shape))
    for k in range(count):
        left = Pair(*(part[..., :, k, None] for part in a.pair))
        right = Pair(*(part[..., None, k, :] for part in b.pair))
        total = _added(total, _multiplied(left, right))
    far_a, far_b = np.abs(a.pair.high) + a.off, np.abs(b.pair.high) + b.off
    largest = far_a @ far_b
    spread = np.abs(a.pair.high) @ b.off + a.off @ far_b
    off = spread + _gamma(count) * (1 + 2.0**-20) * largest + count * (2.0**-99 * largest + STEP)
    return Double(total, off)


_RULES: dict[str, Callable[..., Double]] = {
    "add": _add,
    "subtract": lambda a, b: _add(a, _negative(b)),
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "square": lambda a: _multiply(a, a),
    "sqrt": _sqrt,
    "matmul": _matmul,
}
