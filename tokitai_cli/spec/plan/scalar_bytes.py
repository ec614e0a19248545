"""Scalar arguments to the bytes that a kernel gets."""

from __future__ import annotations

import math

from tokitai_cli.core.dtypes import DTYPES, FloatFormat
from tokitai_cli.core.errors import SpecError


def pack(value: bool | int | float, dtype: str) -> tuple[bytes, str]:
    """Pack `value` as little-endian bytes of `dtype`, with the value that they stand for as text.

    Floats are rounded once, to nearest even. Raises SpecError (without a location) where the value
    does not fit: a fraction or a number out of range for an integer dtype, a finite number beyond
    a float dtype's largest, an infinity that it does not have.
    """
    known = DTYPES[dtype]
    if known.form is not None:
        return _pack_float(_to_float(value), known.form, known.nbytes)
    if isinstance(value, float) and not value.is_integer():
        raise SpecError(f"{value} is no {dtype}", hint="write an integer")
    if known.kind == "bool":
        return bytes([bool(value)]), str(bool(value)).lower()
    number = int(value)
    try:
        bits = number.to_bytes(known.nbytes, "little", signed=known.kind == "signed")
    except OverflowError:
        raise SpecError(f"{value} does not fit {dtype}", hint="use a wider dtype") from None
    return bits, str(number)


def _to_float(value: bool | int | float) -> float:
    number = float(value)
    if isinstance(value, int) and int(number) != value:
        raise SpecError(f"{value} is not exact in a float", hint="use a smaller number")
    return number


def _pack_float(number: float, form: FloatFormat, nbytes: int) -> tuple[bytes, str]:
    """Bits of the format: sign, exponent above a bias of 1 - min_exponent, fraction (IEEE 754, 3.4)."""
    fraction_bits = form.precision - 1
    specials = ((1 << (8 * nbytes - 1 - fraction_bits)) - 1) << fraction_bits
    rounded = number
    if form.one_nan and (math.isnan(number) or number == 0):
        bits = int(math.isnan(number)) << (8 * nbytes - 1)
        number = abs(number)
    elif math.isnan(number):
        bits = specials | ((1 << fraction_bits) - 1 if form.unused else 1 << (fraction_bits - 1))
    elif math.isinf(number) and form.overflows == "infinity":
        bits = specials
    else:
        count, exponent = _count(number, form)
        # The hidden bit, counted in `count` of normal numbers, is one step of the exponent.
        bits = count + ((exponent - form.min_exponent + fraction_bits) << fraction_bits)
        rounded = math.copysign(math.ldexp(count, exponent), number)
    sign = int(math.copysign(1.0, number) < 0) << (8 * nbytes - 1)
    return (sign | bits).to_bytes(nbytes, "little"), repr(rounded)


def _count(number: float, form: FloatFormat) -> tuple[int, int]:
    """Magnitude rounded to count * 2^exponent, ties to even; SpecError beyond the format's largest.

    Rounding through another format would round twice; dividing by the power of two of the spacing
    is exact in float64, and Python's round() takes ties to even.
    """
    size = abs(number)
    if math.isinf(size) or size >= form.overflow:
        hint = "use a wider dtype"
        if form.overflows == "infinity":
            hint += ", or .inf for infinity"
        raise SpecError(f"{number} does not fit {form.name}", hint=hint)
    binade = math.frexp(size)[1] - 1 if size else form.min_exponent
    exponent = max(binade, form.min_exponent) - form.precision + 1
    return round(math.ldexp(size, -exponent)), exponent
