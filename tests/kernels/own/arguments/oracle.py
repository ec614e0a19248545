"""What the kernels of this folder must give."""

import numpy as np


def with_struct(params, inputs, scalars):
    y = inputs["x"].astype(np.float64) * scalars["alpha"] + scalars["beta"] * params["n"]
    y[: params["skipped"]] = 0
    return {"y": {"reference": y, "error": 2.0**-22 * (np.abs(y) + params["n"])}}


def mapped(params, inputs, scalars):
    y = -(inputs["x"].astype(np.float64) * scalars["alpha"])
    return {"y": {"reference": y, "error": 2.0**-24 * np.abs(y)}}


def added(params, inputs, scalars):
    terms = [inputs[name].astype(np.float64) for name in "abc"]
    error = 2.0**-22 * sum(map(np.abs, terms))
    return {
        "sum": {"reference": sum(terms), "error": error},
        "copy": {"reference": terms[1], "error": np.zeros(terms[1].shape)},
    }


def batched(params, inputs, scalars):
    y = 2 * inputs["x"].astype(np.float64)
    return {"y": {"reference": y, "error": np.zeros(y.shape)}}


def forgets(params, inputs, scalars):
    found = added(params, inputs, scalars)
    return {"y": found["sum"]}


def grouped(params, inputs, scalars):
    terms = inputs["x"].astype(np.float64) * inputs["factors"]
    last = inputs["x"].astype(np.float64) + scalars["bias"] + params["steps"] - 1
    exact = {"reference": last, "error": 2.0**-24 * np.abs(last)}
    sums = {"reference": params["steps"] * terms, "error": 2.0**-18 * np.abs(terms)}
    return {"sums": sums, "last": exact, "y": exact}


def added_up(params, inputs, scalars):
    x, factors = inputs["x"].astype(np.float64), (inputs["a"], inputs["b"])
    y = sum(one * x for one in factors) + scalars["bias"] + 1
    size = sum(np.abs(one * x) for one in factors) + 2
    return {"y": {"reference": y, "error": 2.0**-21 * size}}


def exchanged(params, inputs, scalars):
    x = np.sort(inputs["x"].astype(np.float64))
    return {"x": {"reference": x, "error": np.zeros(x.shape)}}


def spread(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    size = np.abs(x)
    for step in range(params["steps"]):
        for weight in (1 / (step + 2), 0.5):
            x = x + np.float32(weight) * np.roll(x, -1)
            size = size + weight * np.roll(size, -1)
    return {"x": {"reference": x, "error": 4 * params["steps"] * 2.0**-23 * size}}
