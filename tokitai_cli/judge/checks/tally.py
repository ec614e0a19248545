"""Error metrics of an output against the reference, gathered chunk by chunk."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.judged import BoundRecord, MetricsRecord
from tokitai_cli.core.numerics import MAY_BE_ANYTHING, MUST_BE_FINITE, ratio
from tokitai_cli.judge.checks.compared import Compared, flat_index
from tokitai_cli.judge.checks.heat import HeatTally
from tokitai_cli.judge.checks.numbers import number
from tokitai_cli.judge.checks.target import CHUNK, Chunk, Target

_BINS = 1025  # exponents 0 to 1023 of a float64, and one bin for what lies beyond
_LEAST = -20  # exponent of the least bin of error over bound


class BiasTally:
    """Mean error in ulp of the output's dtype at the reference, signed and outward.

    Outward counts an error in the direction of the reference's sign as positive: truncation
    cancels out in the first mean over data of both signs, and shows only in the second.
    """

    def __init__(self) -> None:
        self.signed = self.outward = 0.0
        self.count = 0

    def add(self, compared: Compared) -> None:
        """Take in one chunk."""
        errors = ratio(compared.signed, compared.chunk.ulp)
        self.signed += float(errors.sum())
        sign = np.sign(compared.chunk.want)
        if compared.comparable is not None:
            sign[~compared.comparable] = 0.0
        # Not a dot product: for a vector this short BLAS spends its time on waking threads.
        self.outward += float((errors * sign).sum())
        self.count += compared.count

    @property
    def means(self) -> tuple[float, float]:
        """(signed, outward)"""
        count = max(self.count, 1)
        return self.signed / count, self.outward / count

    @property
    def value(self) -> float:
        """The larger magnitude of the two."""
        return max(map(abs, self.means))


class RowTally:
    """The row (first axis) with the largest mean of a value; rows may span chunks.

    Rows arrive in order, so only the sum of the row that is still open is kept.
    """

    def __init__(self, target: Target) -> None:
        self.width = target.width
        self.rows = len(target.shape) >= 2
        self.best: int | None = None
        self._best_sum = 0.0
        self._open_row, self._open_sum = 0, 0.0

    def add(self, start: int, values: NDArray[np.float64]) -> None:
        """Take in the values of the flat positions from `start`."""
        if not self.rows:
            return
        first = start // self.width
        last = (start + values.size - 1) // self.width
        edges = np.arange(first, last + 1) * self.width - start
        sums = np.add.reduceat(values, np.maximum(edges, 0))
        if first == self._open_row:
            sums[0] += self._open_sum
        place = int(np.argmax(sums))
        if sums[place] > self._best_sum:
            self.best, self._best_sum = first + place, float(sums[place])
        self._open_row, self._open_sum = last, float(sums[-1])


class MetricsTally:
    """All of MetricsRecord over the chunks of one repetition."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.max_abs = self.max_rel = self.max_ulp = 0.0
        self.over_bound: float | None = None
        self.over_probable: float | None = None
        self.exact = self.undecided = 0
        self.bias = BiasTally()
        self.row = RowTally(target)
        self.heat = HeatTally(target)
        self._bins = np.zeros(_BINS, dtype=np.int64)
        self._over = np.zeros(_BINS - _LEAST, dtype=np.int64)

    def add(self, compared: Compared) -> None:
        """Take in one chunk."""
        chunk, ulps = compared.chunk, compared.ulps
        self.max_abs = max(self.max_abs, float(compared.error.max()))
        self.max_rel = max(self.max_rel, float(compared.relative.max()))
        self.max_ulp = max(self.max_ulp, float(ulps.max()))
        self.bias.add(compared)
        if chunk.classes is not None:
            self.undecided += int(np.count_nonzero(chunk.classes == MAY_BE_ANYTHING))
        if compared.over_bound is not None:
            self.over_bound = max(self.over_bound or 0.0, float(compared.over_bound.max()))
        if chunk.bound_probable is not None:
            top = float(ratio(compared.error, chunk.bound_probable).max())
            self.over_probable = max(self.over_probable or 0.0, top)
        inexact = ulps[ulps > 0]
        self.exact += compared.count - inexact.size
        if inexact.size:
            self._bins += np.bincount(_exponents(inexact, 0), minlength=_BINS)
        values = ulps if compared.over_bound is None else compared.over_bound
        if compared.over_bound is not None:
            beyond = _exponents(values[values > 0], _LEAST)
            self._over += np.bincount(beyond - _LEAST, minlength=_BINS - _LEAST)
        if inexact.size or values.any():
            self.row.add(flat_index(compared, 0), values)
            if isinstance(compared.chunk.index, slice):
                self.heat.add(flat_index(compared, 0), values)

    def record(self) -> MetricsRecord:
        """Return the evidence."""
        signed, outward = self.bias.means
        histogram = {"0": self.exact} if self.exact else {}
        histogram |= _histogram(self._bins, 0)
        return MetricsRecord(
            max_abs=number(self.max_abs),
            max_rel=number(self.max_rel),
            max_ulp=number(self.max_ulp),
            over_bound=None if self.over_bound is None else number(self.over_bound),
            over_bound_probable=(
                None if self.over_probable is None else number(self.over_probable)
            ),
            bias_ulp=number(signed),
            bias_outward_ulp=number(outward),
            exact_elements=self.exact,
            ulp_histogram=histogram,
            worst_row=self.row.best,
            undecided_elements=self.undecided,
            bound_histogram=_histogram(self._over, _LEAST),
            heat=self.heat.record("ulp" if self.over_bound is None else "bound"),
        )


def _exponents(values: NDArray[np.float64], least: int) -> NDArray[np.int64]:
    """Exponent e of the least power of two that holds each value, from `least` on.

    frexp: v = m 2^e with 0.5 <= m < 1, so 2^(e-1) is its own upper end where m = 0.5.
    """
    fraction, exponent = np.frexp(values)
    exponent -= fraction == 0.5
    exponent[np.isinf(values)] = _BINS - 1
    return np.clip(exponent, least, _BINS - 1)


def _histogram(bins: NDArray[np.int64], least: int) -> dict[str, int]:
    """Counts by the upper end of their bin."""
    found = {}
    for place in map(int, np.flatnonzero(bins)):
        exponent = place + least
        end = "inf" if exponent == _BINS - 1 else format(2.0**exponent, ".17g")
        found[end] = int(bins[place])
    return found


class BoundTally:
    """Size of the bound E over the elements that must be finite; see BoundRecord."""

    def __init__(self, target: Target) -> None:
        self._stride = max(1, target.size // CHUNK)
        self._largest = [0.0, 0.0]
        self._samples: list[list[NDArray[np.float64]]] = [[], []]

    def add(self, chunk: Chunk) -> None:
        """Take in one chunk."""
        if chunk.bound is None:
            return
        finite = np.isfinite(chunk.ulp)
        if chunk.classes is not None:
            finite &= chunk.classes == MUST_BE_FINITE
        form = chunk.target.form
        least = 1.0 if form is None else form.smallest_normal
        normal = finite & (chunk.magnitude >= least)
        for place, (unit, part) in enumerate(((chunk.ulp, finite), (chunk.magnitude, normal))):
            sizes = ratio(chunk.bound, unit)[part]
            self._largest[place] = max(self._largest[place], float(sizes.max(initial=0.0)))
            self._samples[place].append(sizes[:: self._stride])

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

    def add(self, chunk: Chunk, skip: NDArray[np.bool_] | None) -> None:
        """Take in one chunk of the reference; `skip` leaves elements out."""
        bounded = chunk.bounded
        reference = np.asarray(chunk.reference, dtype=np.float64)
        bound = chunk.bound_or_ulps
        if chunk.classes is None and skip is None and bounded is None:
            self.finite += reference.size
        else:
            taken = np.ones(reference.shape, dtype=bool) if skip is None else ~skip
            finite = taken if bounded is None else taken & bounded
            if chunk.classes is not None:
                finite = finite & (chunk.classes == MUST_BE_FINITE)
            # An infinity of the reference itself is one value, and no other is right.
            self.unjudged += int(np.count_nonzero(taken & ~finite & ~np.isinf(reference)))
            if not finite.any():
                return
            reference = np.where(finite, reference, 0.0)
            bound = np.where(finite, bound, np.inf)
            self.finite += int(np.count_nonzero(finite))
        self.total += float(reference.sum())
        with np.errstate(over="ignore"):
            self.squares += float(np.square(reference).sum())
        place = int(np.argmin(bound))
        if self.anchor < 0 or bound[place] < self.anchor_bound:
            self.anchor = chunk.index.start + place if isinstance(chunk.index, slice) else -1
            self.anchor_bound = float(bound[place])
            self.anchor_ulp = float(chunk.ulp[place])

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
