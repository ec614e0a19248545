"""What outputs, workspaces and shared memory hold before a kernel writes them.

Each 4-byte word is one of four bytes, drawn: a sum, a minimum or a maximum that starts from what was
there shows under one of them. Each second fill is the complement of the one before, so that no value
that was written equals both.
"""

from __future__ import annotations

import functools
import zlib

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.numerics import bit_source

# A fill repeats after this many words: a prime, so that no row of an array begins as another does.
WORDS = 4093
NBYTES = 4 * WORDS
_BYTES = np.array([0x00, 0xFF, 0xA5, 0x5A], np.uint8)
_EXTREME = 2  # of those bytes, the first ones: unsigned numbers are nowhere smaller or larger


def fills_of(repetitions: int) -> tuple[int, ...]:
    """Number of each repetition's fill; a fill and its complement differ in the lowest bit."""
    return tuple(range(repetitions))


def name_of(fill: int) -> str:
    """A fill in words."""
    draw = f" ({fill // 2 + 1})" if fill > 1 else ""
    return ("their complement" if fill & 1 else "drawn words") + draw


@functools.cache
def pattern(fill: int) -> NDArray[np.uint8]:
    """Bytes of one period."""
    drawn = np.repeat(_BYTES[_drawn(fill // 2)], 4)
    return ~drawn if fill & 1 else drawn


@functools.cache
def start_of(buffer: str) -> int:
    """Byte of the pattern that the first byte of a buffer gets.

    Buffers begin at words of their own, of 0x00 or 0xff in the first two repetitions: a buffer may
    have a single element.
    """
    (extreme,) = np.nonzero(_drawn(0) < _EXTREME)
    return 4 * int(extreme[zlib.crc32(buffer.encode()) % extreme.size])


def held(buffer: str, fill: int, start: int, nbytes: int) -> NDArray[np.uint8]:
    """`nbytes` bytes of a buffer from byte `start` on, as the fill left them."""
    turned = np.roll(pattern(fill), -((start_of(buffer) + start) % NBYTES))
    return np.resize(turned, nbytes)


def _drawn(draw: int) -> NDArray[np.uint64]:
    return bit_source("fill", draw).random_raw(WORDS) & np.uint64(3)
