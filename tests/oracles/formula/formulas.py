"""Formulas of ordinary kernels in plain numpy, and inputs of many kinds to try them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Formula = Callable[[Any, Any], Any]
ROWS, COLUMNS = 6, 40


def softmax(x: Any, w: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x: Any, w: Any) -> Any:
    d = x - x.mean(axis=-1, keepdims=True)
    return d * (1.0 / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5)) * w + w


def rmsnorm(x: Any, w: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * w


def gelu(x: Any, w: Any) -> Any:
    return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def silu(x: Any, w: Any) -> Any:
    return x / (1.0 + np.exp(-x))


def attention(x: Any, w: Any) -> Any:
    return softmax((x @ x.T) / np.sqrt(16.0), w) @ x


def softmax_gradient(x: Any, w: Any) -> Any:
    s = softmax(x, w)
    return s * (w - (w * s).sum(axis=-1, keepdims=True))


def elu(x: Any, w: Any) -> Any:
    return np.where(x > 0, x, np.exp(np.minimum(x, 0.0)) - 1.0)


def leaky_relu(x: Any, w: Any) -> Any:
    return np.where(x > 0, x, 0.01 * x)


def relu(x: Any, w: Any) -> Any:
    return np.maximum(x, 0.0)


def l2norm(x: Any, w: Any) -> Any:
    return x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), 1e-12)


def product(x: Any, w: Any) -> Any:
    return x @ x.T


def log_softmax(x: Any, w: Any) -> Any:
    m = x.max(axis=-1, keepdims=True)
    return x - m - np.log(np.exp(x - m).sum(axis=-1, keepdims=True))


def variance(x: Any, w: Any) -> Any:
    return x.var(axis=-1)


FORMULAS: Mapping[str, Formula] = {
    formula.__name__: formula
    for formula in (
        softmax, layernorm, rmsnorm, gelu, silu, attention, softmax_gradient, elu, leaky_relu, relu,
        l2norm, product, log_softmax, variance,
    )
}  # fmt: skip


def kinds(rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Inputs [ROWS, COLUMNS] by name: float16 and float32, special values and extremes among them."""
    normal = rng.standard_normal((ROWS, COLUMNS))
    special = normal.copy()
    special[1, 3], special[2, 5], special[3, 6], special[4, 1:3] = (
        np.nan,
        np.inf,
        -np.inf,
        [np.inf, -np.inf],
    )
    masked = normal.copy()
    masked[::2, 10:], masked[1] = -np.inf, -np.inf
    single = {
        "normal": normal,
        "wide": 20 * normal,
        "mean-1000": 1000 + normal,
        "whole": rng.integers(-3, 4, normal.shape),
        "constant": np.full(normal.shape, 3.0),
        "zero": np.zeros(normal.shape),
        "large": normal * 2.0**120,
        "log-uniform": np.sign(normal) * 2.0 ** rng.uniform(-140, 120, normal.shape),
        "subnormal": normal * 2.0**-140,
        "special": special,
        "masked": masked,
    }
    half = {"half": normal, "half-subnormal": normal * 2.0**-20, "half-large": normal * 1e4}
    given: dict[str, NDArray[Any]] = {name: x.astype(np.float32) for name, x in single.items()}
    return given | {name: x.astype(np.float16) for name, x in half.items()}


_UNARY: Mapping[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("exp", "tanh", "abs", "square", "sqrt", "log", "log1p")},
    **{name: getattr(np, name) for name in ("sin", "cos", "expm1", "negative")},
    "sum": lambda x: x.sum(axis=-1, keepdims=True),
    "largest": lambda x: x.max(axis=-1, keepdims=True),
    "mean": lambda x: x.mean(axis=-1, keepdims=True),
    "below largest": lambda x: x - x.max(axis=-1, keepdims=True),
    "off mean": lambda x: x - x.mean(axis=-1, keepdims=True),
    "relu": lambda x: np.maximum(x, 0.0),
    "tenth": lambda x: x * 0.1,
    "bell": lambda x: 1.0 / (1.0 + x * x),
    "cube": lambda x: x**3,
}  # fmt: skip
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    **{
        name: getattr(np, name)
        for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
    },
    "larger": lambda x, y: np.where(x > y, x, y),
}


class Tree(NamedTuple):
    """A formula and its text."""

    text: str
    formula: Formula


def random_tree(rng: np.random.Generator, depth: int) -> Tree:
    """A random expression over x and w, of at most `depth` levels."""
    if depth == 0:
        return Tree("x", lambda x, w: x) if rng.random() < 0.7 else Tree("w", lambda x, w: w)
    if rng.random() < 0.55:
        name, unary = list(_UNARY.items())[rng.integers(len(_UNARY))]
        inner = random_tree(rng, depth - 1)
        return Tree(f"{name}({inner.text})", lambda x, w: unary(inner.formula(x, w)))
    name, binary = list(_BINARY.items())[rng.integers(len(_BINARY))]
    left, right = random_tree(rng, depth - 1), random_tree(rng, depth - 1)
    text = f"{name}({left.text}, {right.text})"
    return Tree(text, lambda x, w: binary(left.formula(x, w), right.formula(x, w)))
