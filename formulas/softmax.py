"""Softmax of rows, and its vector-Jacobian product."""

import numpy as np


def fwd(params, inputs, scalars):
    """y = exp(x - max x) / sum of exp(x - max x) along each row of x."""
    x = inputs["x"]
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"y": e / e.sum(axis=-1, keepdims=True)}


def grad(params, inputs, scalars):
    """grad_x = s (g - sum of g s) along each row, s being a softmax and g the gradient of its result."""
    g, s = inputs["g"], inputs["s"]
    return {"grad_x": s * (g - (g * s).sum(axis=-1, keepdims=True))}
