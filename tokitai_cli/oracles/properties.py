"""Identities that the outputs of an op fulfil, each with a limit from the oracle's own bounds.

E = F(e, r) is the distance that a correct kernel may have from the reference r after its last rounding
(`numerics.rounded_bound`); sums over E bound what identities of sums may be off by, since
|sum got - sum r| <= sum |got - r|. Sums of outputs are taken in float64, whose own error, at most
n 2^-52 sum |terms| for n terms (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
section 4.2), is added to the limit.

row-sum: softmax's y adds up to 1. Its gradient adds up to P (1 - sum s) with P = sum g s, which is
    no 0, as s is a rounded softmax. |difference| <= sum E.
row-mean: the mean of layernorm's y is that of the reference's row, within sum E / c.
row-variance: with m the mean of the reference's row, the mean of (y - m)^2 is that of (r - m)^2 within
    sum (2 |r - m| E + E^2) / c, as a^2 - b^2 = (a - b)(2 b + a - b). Where the kernel stores its mean, E
    is the one that follows from it (`bound-chained`).
sum-conserved: all rows of an embedding's gradient together add up, column by column, to the sum of
    the rows of grad_output whose index names a row, within sum E.
shift-invariance: softmax of x + constant is that of x. Only rows whose every number stays exact in
    x's dtype are shifted; then x - max x has the same bits, so do reference and bound, and two correct
    results lie within 2 E of each other.
permutation-equivariance: columns permuted in the inputs are permuted in the output: within 2 E, not bit
    for bit, as the order of additions changes.
Places whose reference is not finite, or may overflow, are left out: the masks judge those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import BufferPlan, Case
from tokitai_cli.core.model.expectation import Deviations, Expectation, StatedProperty
from tokitai_cli.core.numerics import (
    MUST_BE_FINITE,
    bit_source,
    overflow_class,
    round_to,
    rounded_bound,
)
from tokitai_cli.core.rounding import widened

Array = NDArray[Any]
Floats = NDArray[np.float64]
Arrays = Mapping[str, Array]
Mask = NDArray[np.bool_]
_OWN = 2.0**-52
# float64 entries of a block: a few such arrays stay in a core's second-level cache.
_BLOCK = 1 << 15
# Constants to shift rows by: beyond exp's range in float32 first, then such as suit large negative rows.
_SHIFTS = (1000.0, -1000.0, 96.0, 24.0, -24.0, 1.0)


def as_matrix(array: Array) -> Array:
    """View of an array as [rows, columns], the columns being its last axis."""
    count = math.prod(array.shape[:-1])
    return array.reshape(count, array.shape[-1])


def blocks(rows: range, columns: int) -> Iterator[slice]:
    """Slices of the rows with a few thousand elements each; none where rows have no elements."""
    if columns == 0:
        return
    step = block_rows(columns)
    for start in range(rows.start, rows.stop, step):
        yield slice(start, min(start + step, rows.stop))


def block_rows(columns: int) -> int:
    """Rows of such a slice."""
    return max(1, _BLOCK // max(1, columns))


class Given(msgspec.Struct, frozen=True):
    """What a property is stated from: the case, its arrays, and the output with what it must be."""

    case: Case
    arrays: Arrays
    plan: BufferPlan
    expectation: Expectation

    def bound(self, part: slice, error: Floats | None = None) -> tuple[Floats, Floats, Mask]:
        """Reference, E and must-be-finite of rows `part` of the output; `error` goes before e."""
        form = FORMATS[self.plan.dtype]
        reference = as_matrix(self.expectation.reference)[part]
        own = self.expectation.error if error is None else error
        assert own is not None  # every oracle that states a property has a bound
        e = as_matrix(own)[part]
        finite = overflow_class(reference, e, form) == MUST_BE_FINITE
        if self.expectation.may_be_nan is not None:
            finite &= ~as_matrix(self.expectation.may_be_nan)[part]
        # What is left out must not poison sums.
        reference, e = np.where(finite, reference, 0.0), np.where(finite, e, 0.0)
        return reference, rounded_bound(e, reference, form), finite

    @property
    def rows(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        matrix = as_matrix(self.expectation.reference)
        return int(matrix.shape[0]), int(matrix.shape[1])

    def stated(
        self,
        name: str,
        places: str,
        deviations: Callable[[Arrays, Arrays, range], Iterable[Deviations]],
        changed: Callable[[], Arrays] | None = None,
        change: str = "",
    ) -> StatedProperty:
        """A property that is asked of blocks of rows."""
        rows, columns = self.rows
        step = block_rows(columns)
        return StatedProperty(name, self.plan.name, places, deviations, rows, step, changed, change)


# Inputs of a part of the rows -> what the sums of these rows must be, and their own error.
RowSums = Callable[[Given, slice], tuple[Floats, Floats]]
Builder = Callable[[Given], StatedProperty | None]


def unit_sums(given: Given, part: slice) -> tuple[Floats, Floats]:
    """1 for each row, without an error."""
    count = len(range(*part.indices(given.rows[0])))
    return np.ones(count), np.zeros(count)


def remainder(given: Given, part: slice) -> tuple[Floats, Floats]:
    """P (1 - sum s) of each row."""
    g, s = (as_matrix(given.arrays[name])[part].astype(np.float64) for name in ("g", "s"))
    products = g * s
    want = products.sum(axis=1) * (1.0 - s.sum(axis=1))
    size = np.abs(products).sum(axis=1) * (1.0 + np.abs(s).sum(axis=1))
    return want, 4 * g.shape[1] * _OWN * size


def row_sum(sums: RowSums) -> Builder:
    """Sum of each row against what `wanted` says of it."""

    def build(given: Given) -> StatedProperty:
        def deviations(outputs: Arrays, _others: Arrays, rows: range) -> Iterable[Deviations]:
            got, want, limit, judged = _empty_rows(rows)
            values = as_matrix(outputs[given.plan.name])
            for part in blocks(rows, given.rows[1]):
                at = slice(part.start - rows.start, part.stop - rows.start)
                _, bound, finite = given.bound(part)
                y = widened(values[part])
                got[at] = y.sum(axis=1)
                want[at], own = sums(given, part)
                size = np.abs(y).sum(axis=1)
                limit[at] = bound.sum(axis=1) + own + y.shape[1] * _OWN * _finite(size)
                judged[at] = finite.all(axis=1) & np.isfinite(want[at])
            return [Deviations(got, want, limit, judged, rows.start)]

        return given.stated("row-sum", "row", deviations)

    return build


def row_mean(given: Given) -> StatedProperty:
    """Mean of each row."""
    return _moments(given, variance=False)


def row_variance(given: Given) -> StatedProperty:
    """Mean square distance of each row from the mean of the reference's row."""
    return _moments(given, variance=True)


def _moments(given: Given, *, variance: bool) -> StatedProperty:

    def deviations(outputs: Arrays, _others: Arrays, rows: range) -> Iterable[Deviations]:
        got, want, limit, judged = _empty_rows(rows)
        refine = given.expectation.refine
        error = None if refine is None else refine(outputs)
        values = as_matrix(outputs[given.plan.name])
        for part in blocks(rows, given.rows[1]):
            at = slice(part.start - rows.start, part.stop - rows.start)
            reference, bound, finite = given.bound(part, error)
            y = widened(values[part])
            if variance:
                middle = reference.mean(axis=1, keepdims=True)
                reference, y = reference - middle, y - middle
                bound = bound * (2 * np.abs(reference) + bound)
                reference, y = np.square(reference), np.square(y)
            got[at], want[at] = y.mean(axis=1), reference.mean(axis=1)
            size = (np.abs(y) + np.abs(reference)).sum(axis=1)
            limit[at] = bound.mean(axis=1) + 4 * _OWN * _finite(size)
            judged[at] = finite.all(axis=1)
        return [Deviations(got, want, limit, judged, rows.start)]

    return given.stated("row-variance" if variance else "row-mean", "row", deviations)


class _ColumnSums:
    """What the columns of an output add up to, over blocks of rows in order."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._columns = given.rows[1]
        self._got, self._size, self._limit = np.zeros((3, self._columns))
        self._judged = np.ones(self._columns, dtype=bool)

    def add(self, values: Array, part: slice) -> None:
        """Take in some rows of the output, which is a matrix."""
        _, bound, finite = self._given.bound(part)
        y = widened(values[part])
        self._got += y.sum(axis=0)
        self._size += np.abs(y).sum(axis=0)
        self._limit += bound.sum(axis=0)
        self._judged &= finite.all(axis=0)

    def deviations(self) -> Deviations:
        """Against the sums of the rows of grad_output that name a row."""
        indices, grad = self._given.arrays["indices"], self._given.arrays["grad_output"]
        rows = self._given.rows[0]
        inside = (indices >= 0) & (indices < rows)
        want, sizes = np.zeros((2, self._columns))
        for part in blocks(range(grad.shape[0]), self._columns):
            terms = np.where(inside[part, None], grad[part].astype(np.float64), 0.0)
            want += terms.sum(axis=0)
            sizes += np.abs(terms).sum(axis=0)
        own = _OWN * (rows * _finite(self._size) + grad.shape[0] * _finite(sizes))
        judged = self._judged & np.isfinite(want)
        return Deviations(self._got, want, self._limit + own, judged)


def conserved(given: Given) -> StatedProperty:
    """Column sums of grad_weight against those of the rows of grad_output that name a row of it."""
    sums: dict[int, _ColumnSums] = {}  # by the repetition's outputs

    def deviations(outputs: Arrays, _others: Arrays, rows: range) -> Iterable[Deviations]:
        if not rows.start:
            sums[id(outputs)] = _ColumnSums(given)
        mine = sums[id(outputs)]
        for part in blocks(rows, given.rows[1]):
            mine.add(as_matrix(outputs[given.plan.name]), part)
        return [mine.deviations()] if rows.stop == given.rows[0] else []

    return given.stated("sum-conserved", "column", deviations)


def shifted_rows(given: Given) -> StatedProperty | None:
    """Softmax of rows with a constant added, one of several that keeps every number exact."""
    x = as_matrix(given.arrays["x"])
    shifted, moved = x.copy(), np.zeros(x.shape[0], dtype=bool)
    with np.errstate(all="ignore"):
        for start in range(len(_SHIFTS)):
            constants = np.array(_SHIFTS[start:] + _SHIFTS[:start])
            chosen = constants[np.arange(x.shape[0]) % constants.size][:, None]
            for part in blocks(range(x.shape[0]), x.shape[1]):
                if moved[part].all():
                    continue
                wide = x[part].astype(np.float64)
                there = wide + chosen[part]
                exact = (there - wide == chosen[part]) & (there - chosen[part] == wide)
                exact &= round_to(there, x.dtype.name).astype(np.float64) == there
                exact |= ~np.isfinite(wide)
                rows = exact.all(axis=1) & ~moved[part]
                shifted[part][rows] = there[rows].astype(x.dtype)
                moved[part] |= rows
    if not moved.any():
        return None

    def deviations(outputs: Arrays, others: Arrays, rows: range) -> Iterable[Deviations]:
        return _both(given, (outputs, others), rows, lambda part: moved[part, None], None)

    return given.stated(
        "shift-invariance",
        "element",
        deviations,
        lambda: {"x": shifted.reshape(given.arrays["x"].shape)},
        f"one of {', '.join(f'{constant:g}' for constant in _SHIFTS)} added to all of a row, "
        f"in {int(moved.sum())} of {x.shape[0]} rows",
    )


def permuted(*names: str) -> Builder:
    """Columns of the arrays `names` in another order, the same for all rows."""

    def build(given: Given) -> StatedProperty | None:
        columns = given.rows[1]
        if columns < 2 or not given.rows[0]:
            return None
        random = bit_source("permutation", given.case.id, columns).random_raw(columns)
        order = np.argsort(random, kind="stable")
        if np.array_equal(order, np.arange(columns)):
            order = order[::-1].copy()

        def deviations(outputs: Arrays, others: Arrays, rows: range) -> Iterable[Deviations]:
            return _both(given, (outputs, others), rows, lambda part: None, order)

        def changed() -> Arrays:
            # A tenth of what an index takes.
            return {name: np.take(given.arrays[name], order, axis=-1) for name in names}

        change = f"the columns of {', '.join(names)} permuted"
        return given.stated("permutation-equivariance", "element", deviations, changed, change)

    return build


def _both(
    given: Given,
    runs: tuple[Arrays, Arrays],
    rows: range,
    among: Callable[[slice], Mask | None],
    order: NDArray[np.intp] | None,
) -> Iterator[Deviations]:
    """Elements of two runs, the second one's columns being `order` of the first one's: within 2 E."""
    every = [as_matrix(run[given.plan.name]) for run in runs]

    def some(part: slice) -> Deviations:
        with np.errstate(all="ignore"):
            first, second = (widened(matrix[part]) for matrix in every)
            _, bound, finite = given.bound(part)
            if order is not None:
                first, bound = np.take(first, order, axis=1), np.take(bound, order, axis=1)
                finite = np.take(finite, order, axis=1)
            chosen = among(part)
            judged = finite if chosen is None else finite & chosen
            return Deviations(second, first, 2 * bound, judged, part.start)

    return parallel.in_order(some, blocks(rows, given.rows[1]))


def _empty_rows(rows: range) -> tuple[Floats, Floats, Floats, Mask]:
    got, want, limit = np.zeros((3, len(rows)))
    return got, want, limit, np.zeros(len(rows), dtype=bool)


def _finite(sizes: Floats) -> Floats:
    """Sizes of sums, 0 where the kernel's own NaN or infinity would make every limit pass."""
    return np.where(np.isfinite(sizes), sizes, 0.0)


# By oracle and name: the output that it is stated of, and what states it.
PROPERTIES: Mapping[str, Mapping[str, tuple[str, Builder]]] = {
    "softmax.fwd": {
        "row-sum": ("y", row_sum(unit_sums)),
        "shift-invariance": ("y", shifted_rows),
        "permutation-equivariance": ("y", permuted("x")),
    },
    "softmax.grad": {
        "row-sum": ("grad_x", row_sum(remainder)),
        "permutation-equivariance": ("grad_x", permuted("g", "s")),
    },
    "layernorm.fwd": {"row-mean": ("y", row_mean), "row-variance": ("y", row_variance)},
    "embedding.bwd": {"sum-conserved": ("grad_weight", conserved)},
}
