"""Oracles of wrongs.hip."""

import numpy as np


def copy(params, inputs, scalars):
    """The same values; floats with no error at all."""
    x = inputs["x"]
    if x.dtype.kind in "iub":
        return {"y": x.copy()}
    exact = x.astype(np.float64)
    return {"y": {"reference": exact, "error": np.zeros(exact.shape)}}


def bins(params, inputs, scalars):
    """How often each number from 0 to 15 occurs."""
    return {"counts": np.bincount(inputs["x"], minlength=16).astype(np.int32)}


def total(params, inputs, scalars):
    """Sum in any order: at most gamma_n sum |x|, rounding to float32 included."""
    x = inputs["x"].astype(np.float64)
    unit = x.size * 2.0**-24
    error = np.array([unit / (1 - unit) * np.abs(x).sum()])
    return {"total": {"reference": np.array([x.sum()]), "error": error}}
