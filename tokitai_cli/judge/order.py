"""Outputs that are right up to an order: put into the reference's before they are judged.

Along an axis, whole slices may stand in each other's places, within the segments that another output
gives or the oracle numbers; outputs of a group keep together what belongs together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.errors import OracleError
from tokitai_cli.core.model.case import BufferPlan, Case, Role, RunResult
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.spec import Order
from tokitai_cli.core.numerics import bits_of
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.expected import reference_target
from tokitai_cli.judge.structure import form_failures, never_written

Flat = NDArray[Any]
Places = NDArray[np.int64]
# Units of a segment up to which pairs are looked for that the order of sizes does not show.
_MATCHED = 512


class FreeOrder(msgspec.Struct, frozen=True):
    """Outputs whose elements may change places together; `labels` are equal where they may."""

    #: The first gives the order; ties in it are broken by those after it.
    targets: tuple[Target, ...]
    #: One a unit, a slice behind the axis: those of one number are interchangeable.
    labels: Places

    def places(self, arrays: Mapping[str, Flat]) -> Places:
        """Of each unit of the reference, the unit of `arrays` that stands for it."""
        got = [self._columns(arrays[one.name]) for one in self.targets]
        want = [self._columns(one.round(one.reference)) for one in self.targets]
        places = np.full(self.labels.size, -1)
        if all(_is_exact(one) for one in self.targets):
            ours, theirs = _equal(self.labels, got, want)
            places[theirs] = ours
        taken = np.zeros(self.labels.size, dtype=bool)
        taken[places[places >= 0]] = True
        # By their sizes, in each segment: what is equal to nothing, or right within a bound.
        order, other = (_sorted(self.labels, columns) for columns in (got, want))
        places[other[places[other] < 0]] = order[~taken[order]]
        return self._mended(places, got)

    def moved(self, flat: Flat, places: Places) -> Flat:
        """The array with its units at these places."""
        return np.ascontiguousarray(self._columns(flat)[places]).reshape(-1)

    def arranged(self, name: str, flat: Flat) -> Flat:
        """An output in the reference's order, the others of its group being right."""
        arrays = {one.name: one.round(one.reference) for one in self.targets}
        return self.moved(flat, self.places({**arrays, name: flat}))

    def segments(self) -> Iterator[Places]:
        """Units of each set of interchangeable ones that has more than one."""
        order = np.argsort(self.labels, kind="stable")
        ends = np.flatnonzero(np.diff(self.labels[order])) + 1
        yield from (one for one in np.split(order, ends) if one.size > 1)

    def _columns(self, flat: Flat) -> Flat:
        return flat.reshape(self.labels.size, -1)

    def _mended(self, places: Places, got: Sequence[Flat]) -> Places:
        """Pairs that fit, where those by size do not and others may: bounds of neighbours overlap."""
        if all(_is_exact(one) for one in self.targets):
            return places
        intervals = [_intervals(one) for one in self.targets]
        if any(one is None for one in intervals):
            return places
        fits = self._fit(got, intervals, places, np.arange(places.size))
        for units in () if fits.all() else self.segments():
            if units.size > _MATCHED or fits[units].all():
                continue
            table = np.stack(
                [
                    self._fit(got, intervals, np.full(units.size, one), units)
                    for one in places[units]
                ]
            )
            places[units] = places[units][_matching(table)]
        return places

    def _fit(
        self, got: Sequence[Flat], intervals: Sequence[Any], mine: Places, units: Places
    ) -> NDArray[np.bool_]:
        """Whether units `mine` of the arrays are within the bounds of `units` of the reference."""
        found = np.ones(units.size, dtype=bool)
        for values, ends in zip(got, intervals, strict=True):
            some = values[mine].astype(np.float64)
            low, high = (self._columns(end)[units] for end in ends)
            inside = ((some >= low) & (some <= high)) | (np.isnan(some) & np.isnan(low))
            found &= inside.all(axis=1)
        return found


def free_orders(case: Case, expectations: Mapping[str, Expectation]) -> dict[str, FreeOrder]:
    """The order of each output that the spec lets free, by its name; of a group one for all."""
    plans = {plan.name: plan for plan in case.buffers_of(Role.OUTPUT, Role.INOUT)}
    said = {name: order_of(case, name) for name in plans}
    found: dict[str, FreeOrder] = {}
    for name, order in said.items():
        if order is None or order.beside or name not in expectations or not plans[name].elements:
            continue
        group = [name, *(one for one, other in said.items() if other and other.beside == name)]
        if any(one not in expectations or expectations[one].block for one in group):
            continue
        for one in group:
            if expectations[one].may_be_unwritten is not None:
                said_twice = f"{one} has a free order and elements that may be unwritten"
                raise OracleError(said_twice, hint="remove `order` or `may_be_unwritten`")
        targets = tuple(
            reference_target(
                plans[one], expectations[one], flush_to_zero=case.variant.flush_to_zero
            )
            for one in group
        )
        made = FreeOrder(targets, _labels(plans, order, name, expectations))
        found |= dict.fromkeys(group, made)
    return found


def order_of(case: Case, name: str) -> Order | None:
    """What the spec says of the order of an output; None where it is the reference's."""
    buffer = {**case.variant.outputs, **case.variant.inout}.get(name)
    given = None if buffer is None else buffer.order
    return Order() if given == "any" else given or None


def in_reference_order(
    orders: Mapping[str, FreeOrder], case: Case, result: RunResult
) -> tuple[RunResult, list[str]]:
    """The outputs in the reference's order, and which of them had other orders in other repetitions.

    Outputs of another form, or with elements that the kernel never wrote, stay as they are.
    """
    if not orders:
        return result, []
    plans = {plan.name: plan for plan in case.buffers_of(Role.OUTPUT, Role.INOUT)}
    outputs = [dict(one) for one in result.outputs]
    groups = {id(one): one for one in orders.values()}
    for order in groups.values():
        names = [one.name for one in order.targets]
        if any(_unfit(plans[name], result) for name in names):
            continue
        for one in outputs:
            flat = {name: _flat(plans[name], one[name]) for name in names}
            places = order.places(flat)
            one |= {
                name: order.moved(flat[name], places)
                .view(one[name].dtype)
                .reshape(plans[name].shape)
                for name in names
            }
    differ = [
        name
        for name in orders
        if any(not _alike(one.get(name), result.outputs[0].get(name)) for one in result.outputs)
    ]
    return msgspec.structs.replace(result, outputs=tuple(outputs)), differ


def words(order: FreeOrder, name: str, got: Flat) -> str:
    """Which values of whole numbers are missing, and what stands there; empty where not known."""
    target = next(one for one in order.targets if one.name == name)
    if target.form is not None:
        return "; its elements are shown in the reference order that fits best"
    wrong = np.flatnonzero(got != target.reference)
    shown = [", ".join(map(str, some[wrong[:4]])) for some in (target.reference, got)]
    more = ", ..." if wrong.size > 4 else ""
    return f"; in any order, {shown[0]}{more} should be there, and {shown[1]}{more} is in its place"


def _labels(
    plans: Mapping[str, BufferPlan],
    order: Order,
    name: str,
    expectations: Mapping[str, Expectation],
) -> Places:
    shape = plans[name].shape
    axis = order.axis % len(shape)
    extent, lead = shape[axis], int(np.prod(shape[:axis], dtype=np.int64))
    rows = np.arange(lead * extent, dtype=np.int64) // max(1, extent)
    given = expectations[name].segments
    if given is not None:
        own = np.asarray(given).reshape(lead * extent, -1)
        if (own != own[:, :1]).any():
            raise OracleError(f"the segments of {name} differ within a slice along axis {axis}")
        inner = own[:, 0].astype(np.int64)
    elif order.within:
        inner = np.tile(_segments(order.within, extent, expectations), lead)
    else:
        inner = np.zeros(lead * extent, np.int64)
    fixed = inner < 0
    # Numbers of their own for each row, and below all for what has no other place.
    labels = np.unique(
        np.stack([rows, np.where(fixed, -1, inner)], axis=1), axis=0, return_inverse=True
    )[1]
    return np.where(fixed, -1 - np.arange(labels.size), labels.reshape(-1))


def _segments(name: str, extent: int, expectations: Mapping[str, Expectation]) -> Places:
    """Number of the segment of each place, by the offsets that an output must be; -1 outside."""
    if name not in expectations:
        raise OracleError(f"there is no reference of {name}, whose values are the segments")
    ends = np.asarray(expectations[name].reference).astype(np.int64).reshape(-1)
    if ends.size == 0 or (np.diff(ends) < 0).any() or ends[0] < 0 or ends[-1] > extent:
        message = (
            f"the reference of {name} is not a list of offsets of segments of {extent} elements"
        )
        raise OracleError(message, hint="offsets must rise from 0 to the number of elements")
    at = np.searchsorted(ends, np.arange(extent), side="right") - 1
    return np.where(at < ends.size - 1, at, -1)


def _equal(labels: Places, got: Sequence[Flat], want: Sequence[Flat]) -> tuple[Places, Places]:
    """Units of `got` and of `want` that are equal and of one segment, each in one pair."""
    both = [np.concatenate(pair) for pair in zip(got, want, strict=True)]
    keys = [np.concatenate([labels, labels]), *_keys(both)]
    order = np.lexsort(keys[::-1])
    other = np.zeros(order.size, dtype=bool)
    for key in keys:
        other[1:] |= key[order][1:] != key[order][:-1]
    number = np.empty(order.size, np.int64)
    number[order] = np.cumsum(other)
    ours, theirs = (_counted(one) for one in np.split(number, 2))
    _, mine, its = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return mine, its


def _counted(numbers: Places) -> Places:
    """Numbers that differ: each with how many of the same stand before it."""
    order = np.argsort(numbers, kind="stable")
    ranked = numbers[order]
    counts = np.empty(numbers.size, np.int64)
    counts[order] = np.arange(numbers.size) - np.searchsorted(ranked, ranked)
    return numbers * (numbers.size + 1) + counts


def _sorted(labels: Places, columns: Sequence[Flat]) -> Places:
    return np.lexsort([*_keys(columns)[::-1], labels])


def _keys(columns: Sequence[Flat]) -> list[Flat]:
    """What units are sorted by, the first first; zeros of both signs differ."""
    keys: list[Flat] = []
    for values in columns:
        wide = values if values.dtype.kind in "iu" else values.astype(np.float64)
        for column in wide.T:
            keys.append(column)
            if column.dtype.kind == "f":
                keys.append(np.signbit(column))
    return keys


def _is_exact(target: Target) -> bool:
    """Whether one value alone is right at each place, so that sorting finds any order that fits."""
    return target.allowed is None and (
        (target.form is None and target.error is None)
        or (target.error is not None and not target.error.any())
    )


def _intervals(target: Target) -> tuple[Flat, Flat] | None:
    """Ends of what is right at each place, as float64; None where the oracle has no bound."""
    chunk = Chunk(target, slice(0, target.size))
    reference = chunk.reference.astype(np.float64)
    if target.allowed is not None:
        every = np.stack([one.astype(np.float64) for one in chunk.choices])
        return every.min(axis=0), every.max(axis=0)
    if target.form is None and target.error is None:
        return reference, reference
    with np.errstate(all="ignore"):
        below, above = (chunk.bound_at(np.full(target.size, sign)) for sign in (-1.0, 1.0))
        return None if below is None or above is None else (reference - below, reference + above)


def _matching(fits: NDArray[np.bool_]) -> Places:
    """For each column a row that fits it, by augmenting paths; rows that fit none fill what is left."""
    count = len(fits)
    row_of = np.full(count, -1)

    def augmented(row: int) -> bool:
        before, waiting = np.full(count, -1), [row]
        seen = np.zeros(count, dtype=bool)
        while waiting:
            at = waiting.pop()
            for column in np.flatnonzero(fits[at] & ~seen):
                seen[column], before[column] = True, at
                if row_of[column] < 0:
                    _flip(row_of, before, int(column), row)
                    return True
                waiting.append(int(row_of[column]))
        return False

    left = [row for row in range(count) if not augmented(row)]
    row_of[row_of < 0] = left
    return row_of


def _flip(row_of: Places, before: Places, column: int, first: int) -> None:
    """Give each column of the path the row that it was reached from."""
    while True:
        row = int(before[column])
        held = np.flatnonzero(row_of == row)
        row_of[column] = row
        if row == first and not held.size:
            return
        column = int(held[0])


def _unfit(plan: BufferPlan, result: RunResult) -> bool:
    if form_failures(plan, result):
        return True
    bits = [bits_of(_flat(plan, one[plan.name])) for one in result.outputs]
    return never_written(plan, bits, result.fills) is not None


def _flat(plan: BufferPlan, array: NDArray[Any]) -> Flat:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8) if plan.dtype == "bool" else flat


def _alike(left: NDArray[Any] | None, right: NDArray[Any] | None) -> bool:
    if left is None or right is None or left.shape != right.shape or left.dtype != right.dtype:
        return True  # another failure, which is told
    return bool(np.array_equal(bits_of(left), bits_of(right)))
