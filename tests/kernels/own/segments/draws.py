"""Segments of which every other one is empty."""

import numpy as np


def runs(params, shape, rng):
    steps = np.zeros(shape[0] - 1, dtype=np.int64)
    steps[::2] = params["n"] // steps[::2].size
    steps[-1] += params["n"] - steps.sum()
    return np.concatenate([[0], np.cumsum(steps)])
