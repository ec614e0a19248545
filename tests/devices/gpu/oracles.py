"""Oracles of gpu_faults.hip."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

UNIT = 2.0**-24


def copy(params: dict[str, int], inputs: Arrays, scalars: Arrays) -> dict[str, Arrays]:
    """Exactly x."""
    return {"y": {"reference": inputs["x"].astype(np.float64), "error": np.zeros(params["n"])}}


def row_sums(params: dict[str, int], inputs: Arrays, scalars: Arrays) -> dict[str, Arrays]:
    """Sums in any order: gamma_(n-1) sum |x|, and one more rounding for each square."""
    x = inputs["x"].astype(np.float64)
    terms = x.shape[1]

    def summed(values: NDArray[np.float64], roundings: int) -> Arrays:
        gamma = roundings * UNIT / (1 - roundings * UNIT)
        return {"reference": values.sum(axis=1), "error": gamma * np.abs(values).sum(axis=1)}

    return {"sums": summed(x, terms - 1), "squares": summed(x * x, terms)}
