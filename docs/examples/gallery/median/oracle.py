"""The oracle of spec.yaml, written by hand."""

import numpy as np


def median(params, inputs, scalars):
    """The median in float64; a selection has no error."""
    x = inputs["x"].astype(np.float64)
    padded = np.pad(x, 1, mode="edge")
    windows = np.stack([padded[:-2], padded[1:-1], padded[2:]])
    return {
        "y": {
            "reference": np.median(windows, axis=0),
            "error": np.zeros(x.shape),
            "wrong": {"mean": windows.mean(axis=0), "largest": windows.max(axis=0)},
        }
    }
