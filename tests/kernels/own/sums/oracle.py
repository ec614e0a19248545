import numpy as np


def sums(params, inputs, scalars):
    return {"y": inputs["x"].astype(np.float64).sum(axis=1)}


def wide(params, inputs, scalars):
    y = inputs["x"].astype(np.float64).sum(axis=1)
    return {"y": {"reference": y, "error": 0.006 * np.abs(y)}}
