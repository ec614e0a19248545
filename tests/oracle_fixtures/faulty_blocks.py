"""Oracles of faulty_blocks.hip."""

import numpy as np

UNIT = 2.0**-24


def any_order(x, axis):
    """Sums of float32 terms in any order: at most gamma_n sum |x|."""
    gamma = x.shape[axis] * UNIT / (1 - x.shape[axis] * UNIT)
    return {"y": {"reference": x.sum(axis=axis), "error": gamma * np.abs(x).sum(axis=axis)}}


def row_sums(params, inputs, scalars):
    return any_order(inputs["x"].astype(np.float64), 1)


def column_sums(params, inputs, scalars):
    return any_order(inputs["x"].astype(np.float64), 0)


def scaled_rows(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    product = x * x[:, :1]
    return {"y": {"reference": product, "error": UNIT * np.abs(product)}}


def bins(params, inputs, scalars):
    return {"counts": np.bincount(inputs["x"], minlength=16).astype(np.int32)}


def least(params, inputs, scalars):
    return {"y": inputs["x"].min(keepdims=True)}


def row_max(params, inputs, scalars):
    largest = inputs["x"].astype(np.float64).max(axis=1)
    return {"y": {"reference": largest, "error": np.zeros(largest.shape)}}


def differences(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    found = np.append(x[1:], 0.0) - x
    return {"y": {"reference": found, "error": UNIT * np.abs(found)}}


def copy(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    return {"y": {"reference": x, "error": np.zeros(x.shape)}}
