"""Arrays as numbers, bits and text: what every part of the comparison needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FloatFormat
from tokitai_cli.numerics import array_sha256, spacing

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_F64_FRACTION_BITS = 52
_F64_EXPONENT_MASK = 0x7FF
_F64_EXPONENT_BIAS = 1023


def bits_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the elements' bytes as unsigned integers of the same width; a view if it can be."""
    return np.ascontiguousarray(array).view(_UNSIGNED[array.dtype.itemsize])


def digests(arrays: Sequence[NDArray[Any]]) -> list[str]:
    """sha256 of each array's bytes; equal arrays, which repetitions should be, are read once."""
    found: list[str] = []
    flat = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays]
    for array, data in zip(arrays, flat, strict=True):
        found.append(found[0] if found and np.array_equal(data, flat[0]) else array_sha256(array))
    return found


def ulp_at(values: NDArray[np.float64], form: FloatFormat) -> NDArray[np.float64]:
    """`numerics.spacing` for flat arrays, from the exponent field of the float64 itself.

    Equal to it for every format whose least spacing is a normal float64; an order of magnitude
    faster than frexp and ldexp. Non-finite values get NaN.
    """
    if form.min_exponent - form.precision + 1 <= -_F64_EXPONENT_BIAS:
        return spacing(values, form)
    exponent = np.ascontiguousarray(values).view(np.int64) >> _F64_FRACTION_BITS
    exponent &= _F64_EXPONENT_MASK
    special = exponent == _F64_EXPONENT_MASK
    np.maximum(exponent, form.min_exponent + _F64_EXPONENT_BIAS, out=exponent)
    exponent -= form.precision - 1
    exponent <<= _F64_FRACTION_BITS
    ulp = exponent.view(np.float64)
    if special.any():
        ulp[special] = np.nan
    return ulp


def integer_distance(got: NDArray[Any], want: NDArray[Any]) -> NDArray[np.float64]:
    """|got - want| of integers of one dtype, exact up to 2^53 and rounded up beyond.

    Subtraction modulo 2^64 in the order larger - smaller cannot overflow, and a distance that is
    rounded up exceeds a float64 limit exactly where the true one does.
    """
    wide = np.int64 if got.dtype.kind == "i" else np.uint64
    larger: NDArray[Any] = np.maximum(got, want).astype(wide)
    smaller = np.minimum(got, want).astype(larger.dtype)
    exact = larger.view(np.uint64) - smaller.view(np.uint64)
    rounded: NDArray[np.float64] = exact.astype(np.float64)
    if got.dtype.itemsize == 8:
        beyond = exact > np.uint64(2**53)
        with np.errstate(all="ignore"):
            below = beyond & (rounded < 2.0**64) & (rounded.astype(np.uint64) < exact)
        rounded[below] = np.nextafter(rounded[below], np.inf)
    return rounded


def ratio(error: NDArray[np.float64], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """error / unit, where 0/0 is 0 and an error over an unknown (NaN) unit is infinite."""
    with np.errstate(all="ignore"):
        quotient = np.asarray(error / unit)
    unknown = np.isnan(quotient)
    if unknown.any():
        quotient[unknown] = np.where(error[unknown] == 0, 0.0, np.inf)
    return quotient


def number(value: float) -> float | str:
    """Return a number as evidence holds it: NaN and infinities are text."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def index_of(flat: int, shape: tuple[int, ...]) -> list[int]:
    """Index of the element at row-major position `flat`."""
    return [int(part) for part in np.unravel_index(flat, shape)] if shape else []


def shown_index(index: list[int]) -> str:
    """[3, 7]"""
    return "[" + ", ".join(map(str, index)) + "]"


def shown(value: Any) -> str:
    """Write a number for a sentence: integers whole, floats with the digits of a float32."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else f"{value:.9g}"


def shown_short(value: float | str) -> str:
    """Write an error or a limit for a sentence, to three digits."""
    return value if isinstance(value, str) else f"{float(value):.3g}"


def hex_bits(element: Any) -> str:
    """Bytes of one element in hex, most significant first."""
    array = np.asarray(element).reshape(1)
    return f"0x{int(bits_of(array)[0]):0{2 * array.dtype.itemsize}x}"


def elements_text(count: int, total: int) -> str:
    """12 of 4096 elements"""
    return f"{count} of {total} element{'s' if total != 1 else ''}"
