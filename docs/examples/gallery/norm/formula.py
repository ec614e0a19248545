"""What the draft of rms_norm.cu leaves to fill in."""

import numpy as np


def rms_norm(params, inputs, scalars):
    """Divide each row by the root of its mean square, and multiply by the weights."""
    x = inputs["x"]
    mean = (x * x).mean(axis=-1, keepdims=True)
    return {"y": x * inputs["weight"] / np.sqrt(mean + scalars["eps"])}
