"""Repetitions: whether every one gave the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.compare.compared import Mask
from tokitai_cli.compare.target import CHUNK
from tokitai_cli.compare.values import (
    bits_of,
    elements_text,
    hex_bits,
    index_of,
    shown_index,
)
from tokitai_cli.model.case import BufferPlan


class Difference(msgspec.Struct, frozen=True):
    """An output whose bits differ between repetitions: the first one that differs from 0."""

    output: str
    message: str


def difference(
    buffer: BufferPlan,
    arrays: Sequence[NDArray[Any]],
    differing: Sequence[int],
    skip: Mask | None,
) -> Difference | None:
    """Compare repetitions `differing` with repetition 0, as bytes; a NaN equals any other NaN.

    `skip` leaves out elements that no repetition wrote.
    """
    for number in differing:
        count, first = 0, -1
        for start in range(0, arrays[0].size, CHUNK):
            where = slice(start, start + CHUNK)
            left, right = arrays[0][where], arrays[number][where]
            unlike = bits_of(left) != bits_of(right)
            unlike &= ~(np.isnan(left) & np.isnan(right))
            if skip is not None:
                unlike &= ~skip[where]
            found = int(np.count_nonzero(unlike))
            if found and first < 0:
                first = start + int(np.argmax(unlike))
            count += found
        if count:
            place = shown_index(index_of(first, buffer.shape))
            message = (
                f"{buffer.name} has other bits in repetition {number} than in repetition 0: "
                f"{elements_text(count, buffer.elements)}, first {place}: "
                f"{hex_bits(arrays[0][first])} and {hex_bits(arrays[number][first])}"
            )
            return Difference(buffer.name, message)
    return None
