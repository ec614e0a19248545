import numpy as np


def _doubled(inputs, judged):
    x = inputs["x"].astype(np.float64)
    free = np.arange(x.size) >= judged
    return {"y": {"reference": 2 * x, "error": np.zeros(x.shape), "may_be_unwritten": free}}


def few(params, inputs, scalars):
    return _doubled(inputs, 32)


def most(params, inputs, scalars):
    return _doubled(inputs, 900)


def all_of_it(params, inputs, scalars):
    return {"y": {"reference": 2 * inputs["x"].astype(np.float64), "error": np.zeros(params["n"])}}
