import numpy as np

U = 2.0**-24


def sums(x):
    x = x.astype(np.float64)
    n = x.shape[0]
    return {"reference": x.sum(0), "error": n * U / (1 - n * U) * np.abs(x).sum(0)}


def handed_back(params, inputs, scalars):
    """The tickets are zero again for the next launch."""
    return {"out": sums(inputs["x"]), "tickets": np.zeros_like(inputs["tickets"])}
