"""Rotary position embedding: pairs of numbers turned by the angle of their token's position."""

import numpy as np


def _turned(first, second, params, inputs):
    cosines = inputs["cosines"][inputs["positions"]][:, None, :]
    sines = inputs["sines"][inputs["positions"]][:, None, :]
    return first * cosines - second * sines, second * cosines + first * sines


def split(params, inputs, scalars):
    """Pair p is (p, p + dim/2)."""
    x, half = inputs["x"], params["dim"] // 2
    turned = _turned(x[..., :half], x[..., half:], params, inputs)
    return {"x": np.concatenate(turned, axis=-1)}


def interleaved(params, inputs, scalars):
    """Pair p is (2p, 2p + 1)."""
    x = inputs["x"]
    turned = _turned(x[..., ::2], x[..., 1::2], params, inputs)
    return {"x": np.stack(turned, axis=-1).reshape(x.shape)}
