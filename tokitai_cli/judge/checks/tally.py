"""Error metrics of an output against the reference, gathered chunk by chunk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.judged import MetricsRecord
from tokitai_cli.core.numerics import MAY_BE_ANYTHING, ratio
from tokitai_cli.judge.checks.compared import Compared, flat_index
from tokitai_cli.judge.checks.heat import HeatTally
from tokitai_cli.judge.checks.numbers import number
from tokitai_cli.judge.checks.target import Target

BINS = 1025  # exponents 0 to 1023 of a float64, and one bin for what lies beyond
LEAST_EXPONENT = -20  # exponent of the least bin of error over bound


class Bias(NamedTuple):
    """Sums of errors in ulp over one chunk, and the number of them."""

    signed: float
    outward: float
    elements: int


def bias_of(compared: Compared) -> Bias:
    """The errors of a chunk."""
    errors = ratio(compared.signed, compared.chunk.ulp)
    sign = np.sign(compared.chunk.want)
    if compared.comparable is not None:
        sign[~compared.comparable] = 0.0
    # Not a dot product: for a vector this short BLAS spends its time on waking threads.
    return Bias(float(errors.sum()), float((errors * sign).sum()), compared.count)


class BiasTally:
    """Mean error in ulp of the output's dtype at the reference, signed and outward.

    Outward counts an error in the direction of the reference's sign as positive: truncation
    cancels out in the first mean over data of both signs, and shows only in the second.
    """

    def __init__(self) -> None:
        self.signed = self.outward = 0.0
        self.count = 0

    def add(self, part: Bias) -> None:
        """Take in one chunk."""
        self.signed += part.signed
        self.outward += part.outward
        self.count += part.elements

    @property
    def means(self) -> tuple[float, float]:
        """(signed, outward)"""
        count = max(self.count, 1)
        return self.signed / count, self.outward / count

    @property
    def value(self) -> float:
        """The larger magnitude of the two."""
        return max(map(abs, self.means))


class Rows(NamedTuple):
    """Sums of a value over the rows of one chunk: of its first row, of the last, and the largest."""

    first: int
    last: int
    first_sum: float
    last_sum: float
    #: Row and sum of the largest behind the first.
    best: int
    best_sum: float


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

    def measured(self, start: int, values: NDArray[np.float64]) -> Rows | None:
        """The sums of the values at the flat positions from `start`; None where there are no rows."""
        if not self.rows:
            return None
        first = start // self.width
        last = (start + values.size - 1) // self.width
        edges = np.arange(first, last + 1) * self.width - start
        sums = np.add.reduceat(values, np.maximum(edges, 0))
        place = int(np.argmax(sums[1:])) + 1 if last > first else 0
        most = float(sums[place])
        return Rows(first, last, float(sums[0]), float(sums[-1]), first + place, most)

    def add(self, part: Rows | None) -> None:
        """Take in one chunk, which follows the one before."""
        if part is None:
            return
        opened = part.first_sum
        if part.first == self._open_row:
            opened += self._open_sum
        best, most = part.best, part.best_sum
        if best == part.first or opened >= most:
            best, most = part.first, opened
        if most > self._best_sum:
            self.best, self._best_sum = best, most
        self._open_row = part.last
        self._open_sum = opened if part.last == part.first else part.last_sum


class Metrics(NamedTuple):
    """What one chunk of a repetition is to the metrics."""

    max_abs: float
    max_rel: float
    max_ulp: float
    over_bound: float | None
    over_probable: float | None
    allowance: float | None
    exact: int
    undecided: int
    bias: Bias
    #: Numbers of elements by the bins of their errors, in ulp and over the bound.
    bins: NDArray[np.int64] | None
    over: NDArray[np.int64] | None
    rows: Rows | None
    cells: NDArray[np.float64] | None


def _count(classes: NDArray[np.uint8] | None, code: int) -> int:
    return 0 if classes is None else int(np.count_nonzero(classes == code))


class MetricsTally:
    """All of MetricsRecord over the chunks of one repetition."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.max_abs = self.max_rel = self.max_ulp = 0.0
        self.over_bound: float | None = None
        self.over_probable: float | None = None
        self.allowance: float | None = None
        self.exact = self.undecided = 0
        self.bias = BiasTally()
        self.row = RowTally(target)
        self.heat = HeatTally(target)
        self._bins = np.zeros(BINS, dtype=np.int64)
        self._over = np.zeros(BINS - LEAST_EXPONENT, dtype=np.int64)

    def measured(self, compared: Compared) -> Metrics:
        """What one chunk is to the record."""
        chunk, ulps = compared.chunk, compared.ulps
        over_bound, over_probable = compared.over_bound, None
        if chunk.bound_probable is not None:
            over_probable = float(ratio(compared.error, chunk.bound_probable).max())
        inexact = ulps[ulps > 0]
        bins = np.bincount(_exponents(inexact, 0), minlength=BINS) if inexact.size else None
        values, over = ulps, None
        if over_bound is not None:
            values = over_bound
            beyond = _exponents(values[values > 0], LEAST_EXPONENT)
            over = np.bincount(beyond - LEAST_EXPONENT, minlength=BINS - LEAST_EXPONENT)
        rows = cells = None
        if inexact.size or values.any():
            start = flat_index(compared, 0)
            rows = self.row.measured(start, values)
            cells = self.heat.measured(start, values) if isinstance(chunk.index, slice) else None
        return Metrics(
            max_abs=float(compared.error.max()),
            max_rel=float(compared.relative.max()),
            max_ulp=float(ulps.max()),
            over_bound=None if over_bound is None else float(over_bound.max()),
            over_probable=over_probable,
            allowance=None if compared.allowance is None else float(compared.allowance.max()),
            exact=compared.count - int(inexact.size),
            undecided=_count(chunk.classes, MAY_BE_ANYTHING),
            bias=bias_of(compared),
            bins=bins,
            over=over,
            rows=rows,
            cells=cells,
        )

    def add(self, part: Metrics) -> None:
        """Take in one chunk."""
        self.max_abs = max(self.max_abs, part.max_abs)
        self.max_rel = max(self.max_rel, part.max_rel)
        self.max_ulp = max(self.max_ulp, part.max_ulp)
        self.bias.add(part.bias)
        self.undecided += part.undecided
        if part.over_bound is not None:
            self.over_bound = max(self.over_bound or 0.0, part.over_bound)
        if part.over_probable is not None:
            self.over_probable = max(self.over_probable or 0.0, part.over_probable)
        if part.allowance is not None:
            self.allowance = max(self.allowance or 0.0, part.allowance)
        self.exact += part.exact
        if part.bins is not None:
            self._bins += part.bins
        if part.over is not None:
            self._over += part.over
        self.row.add(part.rows)
        if part.cells is not None:
            self.heat.add(part.cells)

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
            bound_histogram=_histogram(self._over, LEAST_EXPONENT),
            heat=self.heat.record("ulp" if self.over_bound is None else "bound"),
            allowance=None if self.allowance is None else number(self.allowance),
        )


def _exponents(values: NDArray[np.float64], least: int) -> NDArray[np.int64]:
    """Exponent e of the least power of two that holds each value above 0, from `least` on.

    The float64 below a value has the exponent e - 1: a power of two is its own upper end.
    """
    exponent = ((np.ascontiguousarray(values).view(np.int64) - 1) >> 52) - 1022
    return np.asarray(np.clip(exponent, least, BINS - 1))


def _histogram(bins: NDArray[np.int64], least: int) -> dict[str, int]:
    """Counts by the upper end of their bin."""
    found = {}
    for place in map(int, np.flatnonzero(bins)):
        exponent = place + least
        end = "inf" if exponent == BINS - 1 else format(2.0**exponent, ".17g")
        found[end] = int(bins[place])
    return found
