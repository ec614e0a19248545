"""SiLU and its gated form."""

import numpy as np


def _silu(x):
    return x / (1.0 + np.exp(-x))


def fwd(params, inputs, scalars):
    """x sigmoid(x)."""
    return {"y": _silu(inputs["x"])}


def gated(params, inputs, scalars):
    """silu of the first half of each row times its second half."""
    x, cols = inputs["x"], params["cols"]
    return {"y": _silu(x[:, :cols]) * x[:, cols:]}
