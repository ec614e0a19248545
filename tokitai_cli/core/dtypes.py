"""Data types by the name that a spec gives them: one table for schema, plans, inputs and comparison.

A name is numpy's (or ml_dtypes'), and that of the harness's `DType`, where only bool has another.
Formulas for formats: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 2; IEEE
754-2019; Open Compute Project, OFP8 specification 1.0, for formats without infinity.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    import numpy as np

DTypeName = Literal[
    "float16", "bfloat16", "float32", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64",
    "bool",
]  # fmt: skip


class FloatFormat(msgspec.Struct, frozen=True):
    """A binary floating-point format with `precision` significand bits (the hidden one counted)."""

    name: str
    precision: int
    #: Exponent of the smallest normal number, 2^min_exponent.
    min_exponent: int
    #: Exponent of the largest binade.
    max_exponent: int
    #: How many of the largest binade's numbers, from its end, stand for something else (NaN).
    unused: int = 0
    #: What a number beyond the largest one rounds to.
    overflows: Literal["infinity", "nan", "largest"] = "infinity"
    #: NaN takes the bits of -0, which the format lacks.
    one_nan: bool = False

    @property
    def unit_roundoff(self) -> float:
        """u = 2^-precision, the largest relative error of one rounding to nearest."""
        return float(2.0**-self.precision)

    @property
    def smallest(self) -> float:
        """The smallest subnormal number: all finite ones are multiples of it."""
        return float(2.0 ** (self.min_exponent - self.precision + 1))

    @property
    def half_smallest(self) -> float:
        """H, half the smallest subnormal: the largest absolute error below the normal range."""
        return float(2.0 ** (self.min_exponent - self.precision))

    @property
    def smallest_normal(self) -> float:
        """2^min_exponent."""
        return float(2.0**self.min_exponent)

    @property
    def countable(self) -> float:
        """2^precision: up to it all integers are held, and a sum that is off by one shows."""
        return float(2.0**self.precision)

    @property
    def largest(self) -> float:
        """The largest finite number (65504 for float16)."""
        return self._largest_significand * float(2.0 ** (self.max_exponent - self.precision + 1))

    @property
    def _largest_significand(self) -> int:
        return int(2**self.precision - 1 - self.unused)

    @property
    def tie(self) -> tuple[int, int]:
        """(m, k): m 2^k lies half an ulp above the largest number; beyond it numbers overflow."""
        return 2 * self._largest_significand + 1, self.max_exponent - self.precision

    @property
    def overflow(self) -> float:
        """Least float64 magnitude that round-to-nearest-even cannot hold (65520 for float16).

        The tie goes to the even neighbour, the largest number where its significand is even.
        Infinite for float64, whose threshold no float64 reference can reach.
        """
        if self.max_exponent >= 1023:
            return float("inf")
        significand, exponent = self.tie
        threshold = float(significand) * float(2.0**exponent)
        if self._largest_significand % 2:
            return threshold
        return math.nextafter(threshold, math.inf)


class DType(msgspec.Struct, frozen=True):
    """One data type: its width, the values that it holds, and where numpy has it from."""

    nbytes: int
    kind: Literal["float", "signed", "unsigned", "bool"]
    #: The format of a floating-point type, else None.
    form: FloatFormat | None = None
    #: Numpy has it from ml_dtypes, and neither .npy files nor `astype` of float64 (which rounds
    #: twice) know it.
    extension: bool = False


def _float(nbytes: int, form: FloatFormat, *, extension: bool = False) -> DType:
    return DType(nbytes, "float", form, extension)


def _float8(name: str, precision: int, low: int, high: int, **more: Any) -> DType:
    return _float(1, FloatFormat(f"float8_{name}", precision, low, high, **more), extension=True)


DTYPES: dict[str, DType] = {
    "float16": _float(2, FloatFormat("float16", 11, -14, 15)),
    "bfloat16": _float(2, FloatFormat("bfloat16", 8, -126, 127), extension=True),
    "float32": _float(4, FloatFormat("float32", 24, -126, 127)),
    "float64": _float(8, FloatFormat("float64", 53, -1022, 1023)),
    # 8-bit formats of OFP8 and, with one NaN and no -0 (fnuz), of AMD's MI300.
    "float8_e4m3fn": _float8("e4m3fn", 4, -6, 8, unused=1, overflows="nan"),
    "float8_e4m3fnuz": _float8("e4m3fnuz", 4, -7, 7, overflows="nan", one_nan=True),
    "float8_e5m2": _float8("e5m2", 3, -14, 15),
    "float8_e5m2fnuz": _float8("e5m2fnuz", 3, -15, 15, overflows="nan", one_nan=True),
    **{f"int{8 * nbytes}": DType(nbytes, "signed") for nbytes in (1, 2, 4, 8)},
    **{f"uint{8 * nbytes}": DType(nbytes, "unsigned") for nbytes in (1, 2, 4, 8)},
    "bool": DType(1, "bool"),
}
FORMATS: dict[str, FloatFormat] = {
    name: dtype.form for name, dtype in DTYPES.items() if dtype.form is not None
}


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's dtype for a spec's dtype name."""
    import numpy as np  # what reads specs alone starts without it

    if DTYPES[name].extension:
        import ml_dtypes  # costs a tenth of a second, and few runs need it

        name = getattr(ml_dtypes, name)
    dtype: np.dtype[Any] = np.dtype(name)
    return dtype
