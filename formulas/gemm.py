"""Products of matrices."""

import numpy as np


def fwd(params, inputs, scalars):
    """a b."""
    return {"c": inputs["a"] @ inputs["b"]}


def int8(params, inputs, scalars):
    """a b over whole numbers, times the scales of its row and column."""
    scale = inputs["scale_a"]
    # Numbers of the formula, where integers are indices; float32 holds their sums up to 2^24.
    a, b = (np.full_like(scale, inputs[name], shape=inputs[name].shape) for name in ("a", "b"))
    return {"c": (a @ b) * (scale[:, None] * inputs["scale_b"])}
