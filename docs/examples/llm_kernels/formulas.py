"""What the kernels compute, in plain numpy."""

import numpy as np

from tokitai_cli.formula import loosen

TILE = 16


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax(params, inputs, scalars):
    """Softmax of rows; the kernels' rows are padded to whole tiles."""
    return {"y": _softmax(inputs["x"][:, : params["cols"]])}


def rmsnorm(params, inputs, scalars):
    """x / sqrt(mean(x^2) + eps) * weight."""
    x = inputs["x"]
    return {
        "y": x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + scalars["eps"]) * inputs["weight"]
    }


def l2norm(params, inputs, scalars):
    """x over its Euclidean norm, which counts as eps at least."""
    x = inputs["x"]
    return {"y": x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), scalars["eps"])}


def layernorm(params, inputs, scalars):
    """(x - mean) / sqrt(var + eps) * weight + bias."""
    x = inputs["x"]
    d = x - x.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt((d * d).mean(axis=-1, keepdims=True) + scalars["eps"])
    return {"y": d * scale * inputs["weight"] + inputs["bias"]}


def gelu(params, inputs, scalars):
    """The tanh form."""
    x = inputs["x"]
    return {"y": 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))}


def _gate(x):
    return 1.0 / (1.0 + np.exp(-x))


def silu(params, inputs, scalars):
    """x times its sigmoid."""
    return {"y": inputs["x"] * _gate(inputs["x"])}


def sigmoid(params, inputs, scalars):
    """1 / (1 + exp(-x))."""
    return {"y": _gate(inputs["x"])}


def tanh(params, inputs, scalars):
    """The hyperbolic tangent."""
    return {"y": np.tanh(inputs["x"])}


def relu(params, inputs, scalars):
    """x where it is positive, else 0."""
    return {"y": np.maximum(inputs["x"], 0.0)}


def leaky_relu(params, inputs, scalars):
    """x where it is positive, else a hundredth of it."""
    x = inputs["x"]
    return {"y": np.where(x > 0, x, 0.01 * x)}


def elu(params, inputs, scalars):
    """x where it is positive, else exp(x) - 1."""
    x = inputs["x"]
    return {"y": np.where(x > 0, x, np.exp(x) - 1.0)}


def matmul(params, inputs, scalars):
    """a b."""
    return {"c": inputs["a"] @ inputs["b"]}


def _scores(params, inputs):
    d = np.full_like(inputs["q"], params["k"], shape=())  # an array, so that its root is rounded
    return (inputs["q"] @ inputs["keys"].T) * (1.0 / np.sqrt(d))


def attention(params, inputs, scalars):
    """softmax(q k^T / sqrt(d)) v."""
    return {"o": _softmax(_scores(params, inputs)) @ inputs["v"]}


def flash_attention(params, inputs, scalars):
    """The same; every tile of keys rescales what was summed before it."""
    s = _scores(params, inputs)
    e = loosen(np.exp(s - s.max(axis=-1, keepdims=True)), 6 * -(-params["n"] // TILE))
    return {"o": (e @ inputs["v"]) / e.sum(axis=-1, keepdims=True)}
