"""What is gathered of a reference alone: the size of its bound, and what wrong outputs are made from."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.judged import BoundRecord
from tokitai_cli.core.numerics import MUST_BE_FINITE, ratio
from tokitai_cli.judge.checks.numbers import number
from tokitai_cli.judge.checks.target import CHUNK, Chunk, Target

# For each unit of the bound, the largest of a chunk and a sample.
Sizes = tuple[tuple[float, NDArray[np.float64]], ...]


class BoundTally:
    """Size of the bound E over the elements that must be finite; see BoundRecord."""

    def __init__(self, target: Target) -> None:
        self.stride = max(1, target.size // CHUNK)
        self._largest = [0.0, 0.0]
        self._samples: list[list[NDArray[np.float64]]] = [[], []]

    def measured(self, chunk: Chunk) -> Sizes:
        """Of a chunk, in ulp and relative: the largest bound, and a sample."""
        if chunk.bound is None:
            return ()
        finite = np.isfinite(chunk.ulp)
        if chunk.classes is not None:
            finite &= chunk.classes == MUST_BE_FINITE
        form = chunk.target.form
        least = 1.0 if form is None else form.smallest_normal
        normal = finite & (chunk.magnitude >= least)
        found = []
        for unit, part in ((chunk.ulp, finite), (chunk.magnitude, normal)):
            sizes = ratio(chunk.bound, unit)
            sizes = sizes if part.all() else sizes[part]
            found.append((float(sizes.max(initial=0.0)), sizes[:: self.stride].copy()))
        return tuple(found)

    def add(self, sizes: Sizes) -> None:
        """Take in one chunk."""
        for place, (largest, sample) in enumerate(sizes):
            self._largest[place] = max(self._largest[place], largest)
            self._samples[place].append(sample)

    def record(self) -> BoundRecord | None:
        """Return the evidence; None where no element has a bound."""
        ulps, relative = (
            np.concatenate(parts) if parts else np.zeros(0) for parts in self._samples
        )
        if not ulps.size:
            return None
        middle = [_median(one) if one.size else 0.0 for one in (ulps, relative)]
        return BoundRecord(
            ulp_median=number(middle[0]),
            ulp_largest=number(self._largest[0]),
            relative_median=number(middle[1]),
            relative_largest=number(self._largest[1]),
        )


class Part(NamedTuple):
    """What one chunk is to the summary of a reference: see `Summary`."""

    finite: int
    unjudged: int
    total: float = 0.0
    squares: float = 0.0
    anchor: int = -1
    bound: float = math.inf
    ulp: float = 0.0


def part_of_summary(chunk: Chunk, skip: NDArray[np.bool_] | None) -> Part:
    """One chunk of the reference; `skip` leaves elements out."""
    bounded = chunk.bounded
    reference = np.asarray(chunk.reference, dtype=np.float64)
    bound = chunk.bound_or_ulps
    count, unjudged = int(reference.size), 0
    if chunk.classes is not None or skip is not None or bounded is not None:
        taken = np.ones(reference.shape, dtype=bool) if skip is None else ~skip
        finite = taken if bounded is None else taken & bounded
        if chunk.classes is not None:
            finite = finite & (chunk.classes == MUST_BE_FINITE)
        # An infinity of the reference itself is one value, and no other is right.
        unjudged = int(np.count_nonzero(taken & ~finite & ~np.isinf(reference)))
        count = int(np.count_nonzero(finite))
        if not count:
            return Part(0, unjudged)
        reference = np.where(finite, reference, 0.0)
        bound = np.where(finite, bound, np.inf)
    with np.errstate(over="ignore"):
        squares = float(np.square(reference).sum())
    place = int(np.argmin(bound))
    anchor = chunk.index.start + place if isinstance(chunk.index, slice) else -1
    return Part(
        count,
        unjudged,
        float(reference.sum()),
        squares,
        anchor,
        float(bound[place]),
        float(chunk.ulp[place]),
    )


class Summary(msgspec.Struct):
    """What the mutants need to know of the whole reference, over its must-be-finite elements."""

    finite: int = 0
    #: Elements whose value the reference does not tell.
    unjudged: int = 0
    total: float = 0.0
    squares: float = 0.0
    #: Flat position of the smallest bound, -1 where no element must be finite.
    anchor: int = -1
    anchor_bound: float = math.inf
    anchor_ulp: float = 0.0

    def add(self, part: Part) -> None:
        """Take in one chunk of the reference."""
        self.finite += part.finite
        self.unjudged += part.unjudged
        if not part.finite:
            return
        self.total += part.total
        self.squares += part.squares
        if self.anchor < 0 or part.bound < self.anchor_bound:
            self.anchor, self.anchor_bound, self.anchor_ulp = part.anchor, part.bound, part.ulp

    @property
    def mean(self) -> float:
        """Mean of the finite reference."""
        return self.total / max(self.finite, 1)

    @property
    def rms(self) -> float:
        """Root of its mean square."""
        return math.sqrt(self.squares / max(self.finite, 1))


def _median(values: NDArray[np.float64]) -> float:
    """The median; numpy's own loads its masked arrays, which takes longer than most runs compare."""
    low, high = (values.size - 1) // 2, values.size // 2
    ordered = np.partition(values, (low, high))
    return float((ordered[low] + ordered[high]) / 2)
