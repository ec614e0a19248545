"""Arrays as numbers, bits and text: what every part of the comparison needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tokitai_cli.core.numerics import bits_of


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
