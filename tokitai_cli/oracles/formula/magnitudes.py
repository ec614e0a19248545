"""Products of magnitudes |A| |B| in float32, with what they may be more than that.

float32 takes half the time and memory of float64. Every row of A and every column of B is divided by
a power of two that leaves it below 1, so that nothing overflows, and what is too small for float32 is
small beside the largest product of the row and the column (docs/bounds.md, "Magnitudes in float32").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.oracles.formula.kept import once
from tokitai_cli.oracles.formula.parts import BLOCK, Floats

# Terms up to which float32 says enough of a sum, and numbers that are divided by powers of two.
MOST_TERMS = 1 << 20
_RANGE = 500
# Blocks that a thread takes at once.
_TOGETHER = 16
_Index = tuple[int | slice, ...]


class Magnitudes(NamedTuple):
    """|A| |B| is at most (size more + lost) rows columns, element by element."""

    #: Float32 [..., r, c]: the product of the divided magnitudes as it was computed.
    size: NDArray[np.float32]
    #: Powers of two by which lines were divided: [..., r, 1] and [..., 1, c].
    rows: Floats
    columns: Floats
    more: float
    lost: float

    def at_most(self) -> float:
        """No element is larger than this."""
        line = self.size.max(axis=-1, keepdims=True, initial=0.0).astype(np.float64)
        line = (line * self.more + self.lost) * self.rows
        return float(line.max(initial=0.0)) * float(self.columns.max(initial=0.0))

    def scaled(self, factor: float, rest: float) -> Floats:
        """No less than |A| |B| `factor` + `rest`, but for 4 roundings of float64."""
        whole = np.empty(self.size.shape)
        slope, start = self.rows * (self.more * factor), self.rows * (self.lost * factor)
        *lead, height, width = self.size.shape
        slope, start = (np.broadcast_to(line, (*lead, height, 1)) for line in (slope, start))
        lines = (self.size, slope, start, whole)
        columns = np.broadcast_to(self.columns, (*lead, 1, width))

        def fill(at: _Index) -> None:
            size, one, other, into = (line[at] for line in lines)
            np.multiply(size, one, out=into, dtype=np.float64)
            into += other
            into *= columns[at[:-1]]
            into += rest

        _by_blocks(fill, self.size.shape)
        return whole


def magnitudes(a: Floats, b: Floats) -> Magnitudes | None:
    """|A| |B| of finite matrices; None where float32 says too little of it."""
    count = a.shape[-1]
    if count > MOST_TERMS:
        return None
    left, right = _divided(a, -1), _divided(b, -2)
    if left is None or right is None:
        return None
    size = once("sizes", (a, b), lambda: left.values @ right.values)
    # Each number and each sum is rounded to nearest, each product too or fused; below the normal numbers
    # all of them may be flushed.
    return Magnitudes(
        size, left.power, right.power, 1 + (count + 4) * 2.0**-23, 8 * count * 2.0**-126
    )


class _Divided(NamedTuple):
    """Magnitudes in float32, each line divided by a power of two that leaves it below 1."""

    values: NDArray[np.float32]
    power: Floats


def _divided(x: Floats, axis: int) -> _Divided | None:
    """The magnitudes along lines of `axis`, -1 or -2; None where they are beyond what is divided."""
    found: _Divided | None = once(f"divided {axis}", (x,), lambda: _make_divided(x, axis))
    return found


def _make_divided(x: Floats, axis: int) -> _Divided | None:
    if x.ndim == 2 and x.flags.f_contiguous and not x.flags.c_contiguous:
        turned = _make_divided(x.T, -3 - axis)
        return turned and _Divided(turned.values.T, turned.power.T)
    most = np.maximum(
        x.max(axis=axis, keepdims=True, initial=0.0), -x.min(axis=axis, keepdims=True, initial=0.0)
    )
    _, exponents = np.frexp(most)
    if exponents.size and int(exponents.max()) > _RANGE:
        return None
    exponents = np.maximum(exponents, -_RANGE)
    values = np.empty(x.shape, np.float32)
    over = np.broadcast_to(np.ldexp(1.0, -exponents), x.shape)

    def divide(at: _Index) -> None:
        np.abs(x[at] * over[at], out=values[at], casting="same_kind")

    _by_blocks(divide, x.shape)
    return _Divided(values, np.ldexp(1.0, exponents))


def _by_blocks(work: Callable[[_Index], None], shape: tuple[int, ...]) -> None:
    """Do something with blocks of the rows of [..., r, c], on threads where there are many."""

    def several(indices: tuple[_Index, ...]) -> None:
        for at in indices:
            work(at)

    step = max(BLOCK // max(shape[-1], 1), 1)
    every = ((*lead, slice(start, start + step)) for lead in np.ndindex(*shape[:-2])
             for start in range(0, shape[-2], step))  # fmt: skip
    for _ in parallel.in_order(several, _batches(every)):
        pass


def _batches(indices: Iterator[_Index]) -> Iterator[tuple[_Index, ...]]:
    while some := tuple(itertools.islice(indices, _TOGETHER)):
        yield some
