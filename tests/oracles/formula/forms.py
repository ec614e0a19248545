"""Twenty formulas, each with three right kernels that compute it in other forms, and three wrong ones.

All are numpy functions of x [ROWS, COLUMNS] and w [COLUMNS]. A kernel is given float32 arrays and rounds
every step to float32; `fma` rounds once. What a right kernel loses is at most what its own form must.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula import erf

Single = NDArray[np.float32]
Function = Callable[[Any, Any], Any]
ROWS, COLUMNS = 24, 96
F = np.float32


class Forms(NamedTuple):
    """A formula, and kernels for it by name. lo, hi: of x, drawn uniformly where they are given."""

    formula: Function
    right: Mapping[str, Function]
    wrong: Mapping[str, Function]
    lo: float = math.nan
    hi: float = math.nan


def fma(a: Any, b: Any, c: Any) -> Single:
    """a * b + c, rounded once."""
    wide = np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)
    return wide.astype(F)


_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def erff(x: Single) -> Single:
    """The error function, rounded once."""
    return np.asarray(_erf(x.astype(np.float64))).astype(F)


def erfcf(x: Single) -> Single:
    """The complementary error function, rounded once."""
    return np.asarray(_erfc(x.astype(np.float64))).astype(F)


def half(x: Any) -> Single:
    """Kept in float16 on the way."""
    return np.asarray(x).astype(np.float16).astype(F)


def rows(x: Any) -> Single:
    """Sum of each row, one term after the other."""
    total = np.zeros(x.shape[:-1], F)
    for i in range(x.shape[-1]):
        total = total + x[..., i]
    return total[..., None]


def tree(x: Any) -> Single:
    """Sum of each row, in pairs."""
    while x.shape[-1] > 1:
        rest = x[..., x.shape[-1] - x.shape[-1] % 2 :]
        x = np.concatenate([x[..., 0:-1:2] + x[..., 1::2], rest], axis=-1)
    return np.asarray(x)


def _softplus(x: Any) -> Any:
    return np.maximum(x, F(0)) + np.log1p(np.exp(-np.abs(x)))


def _tanh_argument(x: Any) -> Any:
    return F(0.7978845608) * (x + F(0.044715) * x * x * x)


def _rms(x: Any, total: Function) -> Any:
    return np.sqrt(total(x * x, None) / F(COLUMNS) + F(1e-5))


def _adam(x: Any, w: Any) -> Any:
    """Momentum x and w * w + 0.01 for the mean square, after three steps."""
    first, second = 1 - 0.9**3, 1 - 0.999**3
    return w - 0.125 * (x / first) / (np.sqrt((w * w + 0.01) / second) + 1e-8)


def _adam_folded(x: Any, w: Any, step: float = 3, eps: float = 1e-8) -> Any:
    first, second = 1 - 0.9**step, 1 - 0.999**step
    size = F(0.125 * math.sqrt(second) / first)
    return w - size * x / (np.sqrt(w * w + F(0.01)) + F(eps * math.sqrt(second)))


def _adam_reciprocal(x: Any, w: Any) -> Any:
    first, second = F(1 - 0.9**3), F(1 - 0.999**3)
    return fma(-F(0.125) * (x / first), 1 / (np.sqrt((w * w + F(0.01)) / second) + F(1e-8)), w)


def _moments(x: Any, w: Any) -> Any:
    away = x - x.mean(axis=-1, keepdims=True)
    return away / np.sqrt((away * away).mean(axis=-1, keepdims=True) + 1e-5) * w


def _standardised(x: Any, w: Any, total: Any, count: float = COLUMNS) -> Any:
    away = x - total(x) / F(COLUMNS)
    return away * (1 / np.sqrt(total(away * away) / F(count) + F(1e-5))) * w


def _log_softmax(x: Any, w: Any) -> Any:
    away = x - x.max(axis=-1, keepdims=True)
    return away - np.log(np.exp(away).sum(axis=-1, keepdims=True))


FORMS: Mapping[str, Forms] = {
    "square minus one": Forms(
        lambda x, w: x**2 - 1,
        {
            "plain": lambda x, w: x * x - 1,
            "fused": lambda x, w: fma(x, x, -1),
            "factored": lambda x, w: (x - 1) * (x + 1),
        },
        {
            "plus one": lambda x, w: x * x + 1,
            "in float16": lambda x, w: half(x * x) - 1,
            "of the neighbour": lambda x, w: x * np.roll(x, 1, -1) - 1,
        },
    ),
    "three factors": Forms(
        lambda x, w: x * (w * 0.3),
        {
            "from the left": lambda x, w: x * w * F(0.3),
            "scaled first": lambda x, w: (x * F(0.3)) * w,
            "in one": lambda x, w: (x.astype(np.float64) * w * 0.3).astype(F),
        },
        {
            "factor in float16": lambda x, w: x * w * half(0.3),
            "one left out": lambda x, w: x * F(0.3),
            "off by eight roundings": lambda x, w: x * w * F(0.3) * (1 - F(2.0**-21)),
        },
    ),
    "smooth step": Forms(
        lambda x, w: x**2 * (3 - 2 * x),
        {
            "plain": lambda x, w: x * x * (3 - 2 * x),
            "fused": lambda x, w: x * x * fma(-2, x, 3),
            "from the right": lambda x, w: x * (x * (3 - 2 * x)),
        },
        {
            "other constant": lambda x, w: x * x * (F(3.0001) - 2 * x),
            "sign": lambda x, w: x * x * (3 + 2 * x),
            "cube left out": lambda x, w: 3 * x * x,
        },
        0,
        1,
    ),
    "lerp": Forms(
        lambda x, w: (1 - x) * w + x * 0.5,
        {
            "two products": lambda x, w: (1 - x) * w + x * F(0.5),
            "by the difference": lambda x, w: w + x * (F(0.5) - w),
            "fused": lambda x, w: fma(x, F(0.5), fma(-x, w, w)),
        },
        {
            "ends swapped": lambda x, w: x * w + (1 - x) * F(0.5),
            "weight in float16": lambda x, w: (1 - half(x)) * w + half(x) * F(0.5),
            "weights add to more": lambda x, w: (F(1.0001) - x) * w + x * F(0.5),
        },
        0,
        1,
    ),
    "gelu by tanh": Forms(
        lambda x, w: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
        {
            "tanh": lambda x, w: F(0.5) * x * (1 + np.tanh(_tanh_argument(x))),
            "exponential": lambda x, w: x / (1 + np.exp(-2 * _tanh_argument(x))),
            "reciprocal": lambda x, w: x * (1 / (1 + np.exp(-2 * _tanh_argument(x)))),
        },
        {
            "by erf": lambda x, w: F(0.5) * x * (1 + erff(x * F(math.sqrt(0.5)))),
            "other constant": lambda x, w: F(0.5) * x * (1 + np.tanh(F(1.0001) * _tanh_argument(x))),
            "sigmoid of 1.702 x": lambda x, w: x / (1 + np.exp(F(-1.702) * x)),
        },
    ),
    "gelu by erf": Forms(
        lambda x, w: 0.5 * x * (1 + erf(x * math.sqrt(0.5))),
        {
            "erf": lambda x, w: F(0.5) * x * (1 + erff(x * F(math.sqrt(0.5)))),
            "erfc": lambda x, w: F(0.5) * x * erfcf(-x * F(math.sqrt(0.5))),
            "halves": lambda x, w: x * (F(0.5) + F(0.5) * erff(x * F(math.sqrt(0.5)))),
        },
        {
            "by tanh": lambda x, w: F(0.5) * x * (1 + np.tanh(_tanh_argument(x))),
            "no half": lambda x, w: x * (1 + erff(x * F(math.sqrt(0.5)))),
            "erf in float16": lambda x, w: F(0.5) * x * (1 + half(erff(x * F(math.sqrt(0.5))))),
        },
    ),
    "sigmoid": Forms(
        lambda x, w: 1 / (1 + np.exp(-x)),
        {
            "plain": lambda x, w: 1 / (1 + np.exp(-x)),
            "of both signs": lambda x, w: np.where(
                x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))
            ),
            "by a power of two": lambda x, w: 1 / (1 + np.exp2(-x * F(1.4426950408889634))),
        },
        {
            "sign": lambda x, w: 1 / (1 + np.exp(x)),
            "power in float16": lambda x, w: 1 / (1 + half(np.exp(-x))),
            "hard": lambda x, w: np.clip(x / 6 + F(0.5), 0, 1),
        },
        -4,
        4,
    ),
    "softplus": Forms(
        lambda x, w: np.log1p(np.exp(x)),
        {
            "plain": lambda x, w: np.log1p(np.exp(x)),
            "safe": lambda x, w: _softplus(x),
            "the other sign": lambda x, w: x + np.log1p(np.exp(-x)),
        },
        {
            "relu": lambda x, w: np.maximum(x, F(0)),
            "log of two": lambda x, w: np.log2(1 + np.exp(x)),
            "no absolute value": lambda x, w: np.maximum(x, F(0)) + np.log1p(np.exp(-x)),
        },
        -1,
        8,
    ),
    "tanh": Forms(
        lambda x, w: np.tanh(x) * w,
        {
            "tanh": lambda x, w: np.tanh(x) * w,
            "by expm1": lambda x, w: np.expm1(2 * x) / (np.expm1(2 * x) + 2) * w,
            "by a quotient": lambda x, w: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1) * w,
        },
        {
            "cubic": lambda x, w: (x - x * x * x / 3) * w,
            "clipped": lambda x, w: np.clip(x, -1, 1) * w,
            "in float16": lambda x, w: half(np.tanh(x)) * w,
        },
        1,
        6,
    ),
    "log of sums": Forms(
        lambda x, w: np.log(np.exp(x).sum(axis=-1, keepdims=True)),
        {
            "plain": lambda x, w: np.log(rows(np.exp(x))),
            "below the largest": lambda x, w: x.max(-1, keepdims=True)
            + np.log(tree(np.exp(x - x.max(-1, keepdims=True)))),
            "by powers of two": lambda x, w: np.log2(tree(np.exp2(x * F(1.4426950408889634))))
            * F(0.6931471805599453),
        },
        {
            "last left out": lambda x, w: np.log(rows(np.exp(x[..., :-1]))),
            "mean": lambda x, w: np.log(rows(np.exp(x)) / F(COLUMNS)),
            "largest": lambda x, w: x.max(-1, keepdims=True),
        },
    ),
    "log of softmax": Forms(
        _log_softmax,
        {
            "as written": lambda x, w: (x - x.max(-1, keepdims=True))
            - np.log(rows(np.exp(x - x.max(-1, keepdims=True)))),
            "one subtraction": lambda x, w: x
            - (
                x.max(-1, keepdims=True) + np.log(tree(np.exp(x - x.max(-1, keepdims=True))))
            ),
            "by a tree": lambda x, w: (x - x.max(-1, keepdims=True))
            - np.log(tree(np.exp(x - x.max(-1, keepdims=True)))),
        },
        {
            "largest left out": lambda x, w: x - np.log(rows(np.exp(x - x.max(-1, keepdims=True)))),
            "last left out": lambda x, w: x - np.log(rows(np.exp(x[..., :-1]))),
            "log of two": lambda x, w: (x - x.max(-1, keepdims=True))
            - np.log2(rows(np.exp(x - x.max(-1, keepdims=True)))),
        },
    ),
    "weighted rms": Forms(
        lambda x, w: x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * w,
        {
            "weight after": lambda x, w: x / _rms(x, lambda y, _: rows(y)) * w,
            "weight before": lambda x, w: (x * w) / _rms(x, lambda y, _: tree(y)),
            "weight with the scale": lambda x, w: x * (w * (1 / _rms(x, lambda y, _: tree(y)))),
        },
        {
            "eps left out of the root": lambda x, w: x
            / (np.sqrt(rows(x * x) / F(COLUMNS)) + F(1e-3))
            * w,
            "last left out": lambda x, w: x / _rms(x[..., :-1], lambda y, _: rows(y)) * w,
            "weight twice": lambda x, w: x / _rms(x, lambda y, _: rows(y)) * w * w,
        },
    ),
    "moments": Forms(
        _moments,
        {
            "in order": lambda x, w: _standardised(x, w, rows),
            "by a tree": lambda x, w: _standardised(x, w, tree),
            "divided": lambda x, w: (x - tree(x) / F(COLUMNS))
            / np.sqrt(tree((x - tree(x) / F(COLUMNS)) ** 2) / F(COLUMNS) + F(1e-5))
            * w,
        },
        {
            "unbiased": lambda x, w: _standardised(x, w, rows, COLUMNS - 1),
            "not centred": lambda x, w: x / _rms(x, lambda y, _: rows(y)) * w,
            "mean in float16": lambda x, w: (x - half(rows(x) / F(COLUMNS)))
            / np.sqrt(rows((x - rows(x) / F(COLUMNS)) ** 2) / F(COLUMNS) + F(1e-5))
            * w,
        },
    ),
    "bias correction": Forms(
        _adam,
        {
            "as written": lambda x, w: w
            - F(0.125) * (x / F(1 - 0.9**3)) / (np.sqrt((w * w + F(0.01)) / F(1 - 0.999**3)) + F(1e-8)),
            "folded into the step": _adam_folded,
            "by a reciprocal": _adam_reciprocal,
        },
        {
            "one step late": lambda x, w: _adam_folded(x, w, 4),
            "large eps": lambda x, w: _adam_folded(x, w, 3, 1e-4),
            "ascent": lambda x, w: 2 * w - _adam_folded(x, w),
        },
    ),
    "cosine": Forms(
        lambda x, w: (x * w).sum(axis=-1, keepdims=True)
        / np.sqrt((x * x).sum(axis=-1, keepdims=True) * (w * w).sum()),
        {
            "one root": lambda x, w: rows(x * w) / np.sqrt(rows(x * x) * rows(w * w)),
            "two roots": lambda x, w: tree(x * w) / (np.sqrt(tree(x * x)) * np.sqrt(tree(w * w))),
            "scaled first": lambda x, w: tree((x / np.sqrt(tree(x * x))) * (w / np.sqrt(tree(w * w)))),
        },
        {
            "not scaled": lambda x, w: rows(x * w),
            "one norm": lambda x, w: rows(x * w) / rows(x * x),
            "last left out": lambda x, w: rows((x * w)[..., :-1]) / np.sqrt(rows(x * x) * rows(w * w)),
        },
    ),
    "polynomial": Forms(
        lambda x, w: 1 + x + x * x / 2 + x * x * x / 6,
        {
            "expanded": lambda x, w: 1 + x + x * x / 2 + x * x * x / 6,
            "nested": lambda x, w: 1 + x * (1 + x * (F(0.5) + x * F(1 / 6))),
            "nested, fused": lambda x, w: fma(x, fma(x, fma(x, F(1 / 6), F(0.5)), 1), 1),
        },
        {
            "last left out": lambda x, w: 1 + x + x * x / 2,
            "exponential": lambda x, w: np.exp(x),
            "sixth in float16": lambda x, w: 1 + x + x * x / 2 + x * x * x * half(1 / 6),
        },
        0,
        2,
    ),
    "distance": Forms(
        lambda x, w: np.sqrt(x * x + w * w),
        {
            "plain": lambda x, w: np.sqrt(x * x + w * w),
            "fused": lambda x, w: np.sqrt(fma(x, x, w * w)),
            "scaled": lambda x, w: np.abs(x) * np.sqrt(1 + (w / x) * (w / x)),
        },
        {
            "sum of sizes": lambda x, w: np.abs(x) + np.abs(w),
            "squared": lambda x, w: x * x + w * w,
            "squares in float16": lambda x, w: np.sqrt(half(x * x) + w * w),
        },
        0.5,
        4,
    ),
    "soft sign": Forms(
        lambda x, w: x / (1 + np.abs(x)),
        {
            "divided": lambda x, w: x / (1 + np.abs(x)),
            "by a reciprocal": lambda x, w: x * (1 / (1 + np.abs(x))),
            "from one": lambda x, w: np.copysign(1 - 1 / (1 + np.abs(x)), x),
        },
        {
            "one too large": lambda x, w: x / (F(1.01) + np.abs(x)),
            "square": lambda x, w: x / np.sqrt(1 + x * x),
            "reciprocal in float16": lambda x, w: x * half(1 / (1 + np.abs(x))),
        },
        1,
        9,
    ),
    "cross entropy with logits": Forms(
        lambda x, w: np.maximum(x, 0) - x * 0.25 + np.log1p(np.exp(-np.abs(x))),
        {
            "as written": lambda x, w: np.maximum(x, F(0)) - x * F(0.25) + np.log1p(np.exp(-np.abs(x))),
            "softplus less": lambda x, w: _softplus(x) - x * F(0.25),
            "both classes": lambda x, w: F(0.25) * _softplus(-x) + F(0.75) * _softplus(x),
        },
        {
            "no target": lambda x, w: _softplus(x),
            "sign": lambda x, w: _softplus(x) + x * F(0.25),
            "log of 1 + x": lambda x, w: np.maximum(x, F(0)) - x * F(0.25) + np.exp(-np.abs(x)),
        },
    ),
    "geometric mean": Forms(
        lambda x, w: np.exp(np.log(x).mean(axis=-1, keepdims=True)),
        {
            "in order": lambda x, w: np.exp(rows(np.log(x)) / F(COLUMNS)),
            "by powers of two": lambda x, w: np.exp2(tree(np.log2(x)) / F(COLUMNS)),
            "by a reciprocal": lambda x, w: np.exp(tree(np.log(x)) * F(1 / COLUMNS)),
        },
        {
            "arithmetic": lambda x, w: rows(x) / F(COLUMNS),
            "last left out": lambda x, w: np.exp(rows(np.log(x[..., :-1])) / F(COLUMNS)),
            "log of ten": lambda x, w: np.exp(rows(np.log10(x)) / F(COLUMNS)),
        },
        0.1,
        5,
    ),
}  # fmt: skip


def drawn(forms: Forms, seed: int) -> tuple[Single, Single]:
    """x and w of one case."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(COLUMNS).astype(F)
    if math.isnan(forms.lo):
        return rng.standard_normal((ROWS, COLUMNS)).astype(F), w
    return rng.uniform(forms.lo, forms.hi, (ROWS, COLUMNS)).astype(F), w
