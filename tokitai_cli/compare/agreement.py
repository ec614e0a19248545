"""How far the outputs of two devices lie apart on one case."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.compare.target import CHUNK
from tokitai_cli.compare.values import bits_of, integer_distance


class Apart(msgspec.Struct, frozen=True):
    """Elements compared, those whose bits differ, and the largest distance between two of them.

    largest: for floating point the representable values from one to the other (infinite where one
    alone is NaN), for integers and bool their difference.
    """

    elements: int
    differing: int
    largest: float


def apart(left: NDArray[Any], right: NDArray[Any]) -> Apart:
    """Compare two arrays of one dtype and shape; a NaN equals any other NaN."""
    differing, largest = 0, 0.0
    first, second = left.reshape(-1), right.reshape(-1)
    for start in range(0, first.size, CHUNK):
        one, other = first[start : start + CHUNK], second[start : start + CHUNK]
        unlike = bits_of(one) != bits_of(other)
        if one.dtype.kind not in "iub":
            unlike &= ~(np.isnan(one) & np.isnan(other))
        found = int(np.count_nonzero(unlike))
        if found:
            differing += found
            largest = max(largest, float(_distance(one[unlike], other[unlike]).max()))
    return Apart(first.size, differing, largest)


def _distance(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    if left.dtype.kind == "b":
        return integer_distance(left.view(np.uint8), right.view(np.uint8))
    if left.dtype.kind in "iu":
        return integer_distance(left, right)
    steps = integer_distance(_ordered(left), _ordered(right))
    steps[np.isnan(left) | np.isnan(right)] = np.inf
    return steps


def _ordered(values: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers whose order and distances are those of the floating-point values; both zeros are 0.

    IEEE 754 (3.4): without the sign, the bits of larger values are larger integers.
    """
    bits = bits_of(values)
    sign = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    magnitude = (bits & ~sign).astype(np.int64)
    ordered: NDArray[np.int64] = np.where(bits & sign, -magnitude, magnitude)
    return ordered
