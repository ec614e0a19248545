import numpy as np


def sums(params, inputs, scalars):
    return {"y": inputs["x"].astype(np.float64).sum(axis=1)}
