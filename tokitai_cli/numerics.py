"""Floating-point formats by name: rounding, spacing, overflow, and the bound of a last rounding.

Ground floor for inputs, oracles and the comparison. Formulas: Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., ch. 2; IEEE 754-2019 for the formats.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format with `precision` significand bits (the hidden one counted).

    min_exponent: exponent of the smallest normal number, 2^min_exponent.
    max_exponent: exponent of the largest binade.
    """

    name: str
    precision: int
    min_exponent: int
    max_exponent: int

    @property
    def unit_roundoff(self) -> float:
        """u = 2^-precision, the largest relative error of one rounding to nearest."""
        return float(2.0**-self.precision)

    @property
    def half_smallest(self) -> float:
        """H, half the smallest subnormal: the largest absolute error below the normal range."""
        return float(2.0 ** (self.min_exponent - self.precision))

    @property
    def smallest_normal(self) -> float:
        """2^min_exponent."""
        return float(2.0**self.min_exponent)

    @property
    def overflow(self) -> float:
        """Least magnitude that round-to-nearest-even turns into infinity (65520 for float16).

        Infinite for float64, whose threshold no float64 reference can reach.
        """
        if self.max_exponent >= 1023:
            return float("inf")
        return float((2.0 - 2.0**-self.precision) * 2.0**self.max_exponent)


FORMATS: dict[str, FloatFormat] = {
    "float16": FloatFormat("float16", 11, -14, 15),
    "bfloat16": FloatFormat("bfloat16", 8, -126, 127),
    "float32": FloatFormat("float32", 24, -126, 127),
    "float64": FloatFormat("float64", 53, -1022, 1023),
}


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's dtype for a spec's dtype name; bfloat16 is ml_dtypes'."""
    if name == "bfloat16":
        import ml_dtypes  # costs a tenth of a second, and few runs need it

        dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return dtype
    return np.dtype(name)


def round_to(values: NDArray[np.float64], name: str) -> NDArray[Any]:
    """`values` rounded once, to nearest even, to the dtype `name`; overflow gives infinity."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(numpy_dtype(name))


def spacing(values: NDArray[np.float64], form: FloatFormat) -> NDArray[np.float64]:
    """One ulp of `form` at each value: 2^(max(floor(log2|x|), min_exponent) - precision + 1).

    Zero and subnormals have the spacing of the subnormals; NaN and infinities get NaN.
    """
    with np.errstate(all="ignore"):
        magnitude = np.abs(np.asarray(values, dtype=np.float64))
        exponent = np.frexp(magnitude)[1] - 1
        exponent = np.where(magnitude == 0, form.min_exponent, exponent)
        exponent = np.maximum(exponent, form.min_exponent)
        ulp = np.ldexp(1.0, exponent - form.precision + 1)
        return np.where(np.isfinite(magnitude), ulp, np.nan)


def rounded_bound(
    error: NDArray[np.float64],
    reference: NDArray[np.float64],
    form: FloatFormat,
    *,
    accumulator: str = "float32",
    flush_to_zero: bool = False,
) -> NDArray[np.float64]:
    """F(e, r) = e + max(u (|r| + e), H): an error `e` in front of one rounding to `form`.

    For an output in the accumulator's own format there is no further rounding and F = e. With
    `flush_to_zero`, H is the smallest normal number. Element-wise, float64.
    """
    if form.name == accumulator:
        return np.asarray(error, dtype=np.float64)
    half = form.smallest_normal if flush_to_zero else form.half_smallest
    with np.errstate(all="ignore"):
        rounding = form.unit_roundoff * (np.abs(reference) + error)
        return np.asarray(error + np.maximum(rounding, half), dtype=np.float64)
