"""A whole product of matrices of whole numbers, checked by random vectors (Freivalds).

For C and A B of whole numbers and a vector x whose elements are drawn from 0 to 2^b - 1, a row of
C - A B that is not zero gives 0 with x in at most one of 2^b cases: where the row is not zero one
element of x alone does, whatever the others are. Sums of magnitudes stay below 2^53: float64 is exact.
R. Freivalds, Probabilistic machines can use less running time, IFIP 1977.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.judged import ProofRecord
from tokitai_cli.core.numerics import round_to
from tokitai_cli.judge.checks.numbers import shown, shown_index

# A wrong element is missed with a probability of at most 2 to the power of minus this.
MISSED_BITS = 40
_EXACT_BITS = 53
_CHUNK = 1 << 22  # elements that are float64 at a time and thread
_ROWS = 8  # wrong rows that are looked at element by element

Floats = NDArray[np.float64]


class Factors(msgspec.Struct, frozen=True):
    """Both matrices, the largest magnitude of each."""

    left: NDArray[Any]
    right: NDArray[Any]
    sizes: tuple[float, float]
    #: Whether they hold whole numbers alone.
    whole: bool
    #: Up to where the kernel's accumulator holds every whole number.
    counted: float

    @property
    def terms(self) -> int:
        """Terms of each element."""
        return int(self.left.shape[1])

    @property
    def reach(self) -> float:
        """What the sum of magnitudes of an element is at most."""
        return self.terms * self.sizes[0] * self.sizes[1]

    @property
    def counts(self) -> bool:
        """Whether a right kernel adds without rounding, whatever its order."""
        return self.whole and self.reach <= self.counted

    @property
    def bits(self) -> int:
        """Bits of a vector's elements with which nothing is rounded; below 1 there are none."""
        return _EXACT_BITS - 1 - math.ceil(math.log2(max(self.reach * self.right.shape[1], 1.0)))


def factors(left: NDArray[Any], right: NDArray[Any], counted: float) -> Factors:
    """The matrices with what is to be known of them, in one pass over each."""
    told = [list(_over(one, _looked_at)) for one in (left, right)]
    sizes = [max((size for size, _ in parts), default=0.0) for parts in told]
    whole = all(is_whole for parts in told for _, is_whole in parts)
    return Factors(left, right, (sizes[0], sizes[1]), whole, counted)


def _looked_at(part: Floats, _: slice) -> tuple[float, bool]:
    size = float(np.abs(part).max(initial=0.0))
    return size, math.isfinite(size) and bool((np.rint(part) == part).all())


def _over(matrix: NDArray[Any], work: Callable[[Floats, slice], Any]) -> Iterator[Any]:
    """What `work` makes of each run of rows of the matrix, or of columns where these lie together."""
    turned = matrix.flags.f_contiguous and not matrix.flags.c_contiguous
    stored = matrix.T if turned else matrix
    step = max(1, _CHUNK // max(stored.shape[1], 1))
    runs = [slice(at, at + step) for at in range(0, stored.shape[0], step)]

    def one(run: slice) -> Any:
        part = stored[run].astype(np.float64)
        return work(part.T if turned else part, run)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(one, runs)


def _times(matrix: NDArray[Any], vectors: Floats) -> Floats:
    """Product with a few vectors; exact, so that the order of the parts is nothing."""
    turned = matrix.flags.f_contiguous and not matrix.flags.c_contiguous
    if turned:
        total = np.zeros((matrix.shape[0], vectors.shape[1]))
        for part in _over(matrix, lambda part, run: part @ vectors[run]):
            total += part
        return total
    parts = list(_over(matrix, lambda part, _: part @ vectors))
    return np.concatenate(parts) if parts else np.zeros((0, vectors.shape[1]))


class Proof(msgspec.Struct, frozen=True):
    """What the vectors say of an output."""

    #: None where nothing can be proved of these inputs.
    record: ProofRecord | None = None
    #: A wrong element, in words; open: why wrong rows show no wrong element.
    failure: str = ""
    undecided: str = ""


def proved(given: Factors, output: NDArray[Any], dtype: str) -> Proof:
    """Whether every element of `output`, in the dtype, is the product's; of whole numbers alone."""
    if not given.counts or given.bits < 1:
        return Proof()
    bits = min(given.bits, 30)
    count = -(-MISSED_BITS // bits)
    # From the system, so that no output can have been made for them.
    source = np.random.default_rng()
    vectors = source.integers(0, 1 << bits, (given.right.shape[1], count)).astype(np.float64)
    right = _times(given.left, _times(given.right, vectors))

    def compared(part: Floats, run: slice) -> NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            odd = ~(np.abs(part) <= given.reach) | (np.rint(part) != part)
            if odd.any():
                part = np.where(odd, 0.0, part)
            return np.asarray(odd.any(axis=1) | (part @ vectors != right[run]).any(axis=1))

    wrong = np.flatnonzero(np.concatenate([*_over(output, compared), np.zeros(0, bool)]))
    record = ProofRecord(
        elements=int(output.size), vectors=count, bits=bits, missed=2.0 ** -(count * bits),
        wrong_rows=int(wrong.size),
    )  # fmt: skip
    if not wrong.size:
        return Proof(record)
    failure, not_covered = _told(given, output, dtype, wrong)
    return Proof(record, failure, not_covered)


def _told(
    given: Factors, output: NDArray[Any], dtype: str, wrong: NDArray[np.int64]
) -> tuple[str, str]:
    """Words for a wrong element, by the exact product of the first wrong rows; or why there is none."""
    rows = wrong[:_ROWS]
    some = given.left[rows].astype(np.float64)
    turned = given.right.flags.f_contiguous and not given.right.flags.c_contiguous
    if turned:
        want = np.concatenate(list(_over(given.right, lambda part, _: some @ part)), axis=1)
    else:
        parts = _over(given.right, lambda part, run: some[:, run] @ part)
        want = np.zeros((rows.size, given.right.shape[1]))
        for part in parts:
            want += part
    rounded = round_to(want, dtype).astype(np.float64)
    got = output[rows].astype(np.float64)
    off = got != rounded
    if not off.any():
        top = float(np.abs(want).max())
        form = FORMATS[dtype]
        return (
            "",
            f"a result reaches {top:g}; above {form.countable:g} {form.name} counts no further",
        )
    row, column = (int(places[0]) for places in np.nonzero(off))
    place = shown_index([int(rows[row]), column])
    failure = (
        f"{place} is {shown(got[row, column])}, and the sum of integers is "
        f"{shown(want[row, column])}; {wrong.size} of {output.shape[0]} rows are wrong"
    )
    return failure, ""
