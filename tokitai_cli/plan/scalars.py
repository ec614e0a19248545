"""Scalar arguments to the bytes that a kernel gets."""

from __future__ import annotations

import math
import struct

from tokitai_cli.errors import SpecError

_CODES = {
    "float16": "<e", "float32": "<f", "float64": "<d",
    "int8": "<b", "int16": "<h", "int32": "<i", "int64": "<q",
    "uint8": "<B", "uint16": "<H", "uint32": "<I", "uint64": "<Q",
    "bool": "<?",
}  # fmt: skip


def pack(value: bool | int | float, dtype: str) -> tuple[bytes, str]:
    """Pack `value` as little-endian bytes of `dtype`, with the value that they stand for as text.

    Floats are rounded once, to nearest even. Raises SpecError (without a location) where the value
    does not fit: a fraction or a number out of range for an integer dtype, a finite number that
    would become infinite for a float dtype.
    """
    if "float" in dtype:
        return _pack_float(_to_float(value), dtype)
    if isinstance(value, float) and not value.is_integer():
        raise SpecError(f"{value} is no {dtype}", mend="write an integer")
    number = int(value)
    try:
        bits = struct.pack(_CODES[dtype], number)
    except struct.error:
        raise SpecError(f"{value} does not fit {dtype}", mend="use a wider dtype") from None
    return bits, str(bool(value)).lower() if dtype == "bool" else str(number)


def _to_float(value: bool | int | float) -> float:
    number = float(value)
    if isinstance(value, int) and int(number) != value:
        raise SpecError(f"{value} is not exact in a float", mend="use a smaller number")
    return number


def _pack_float(number: float, dtype: str) -> tuple[bytes, str]:
    try:
        if dtype == "bfloat16":
            bits = struct.pack("<f", _round_to_bfloat16(number))[2:]
            rounded = struct.unpack("<f", b"\0\0" + bits)[0]
        else:
            bits = struct.pack(_CODES[dtype], number)
            rounded = struct.unpack(_CODES[dtype], bits)[0]
    except OverflowError:
        mend = "use a wider dtype, or .inf where infinity is meant"
        raise SpecError(f"{number} does not fit {dtype}", mend=mend) from None
    return bits, repr(rounded)


def _round_to_bfloat16(number: float) -> float:
    """Round to 8 significand bits, to nearest even, with bfloat16's subnormal spacing 2^-133.

    Rounding through float32 would round twice; dividing by the power of two of the spacing is
    exact in float64, and Python's round() takes ties to even. Raises OverflowError.
    """
    if not math.isfinite(number) or number == 0:
        return number
    exponent = max(math.frexp(number)[1] - 8, -133)
    rounded = math.ldexp(round(math.ldexp(number, -exponent)), exponent)
    if abs(rounded) >= 2.0**128:
        raise OverflowError
    return math.copysign(rounded, number)
