"""The checks of a spec, resolved for one output of one case, and their tallies over chunks."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.judged import CheckRecord, ElementRecord
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.spec import Check
from tokitai_cli.core.numerics import ratio
from tokitai_cli.judge.checks.compared import Compared, flat_index
from tokitai_cli.judge.checks.metric import (
    MEASURES,
    NO_BETTER,
    Tolerances,
    largest_finite,
    no_better,
)
from tokitai_cli.judge.checks.numbers import hex_bits, index_of, number, shown_short
from tokitai_cli.judge.checks.tally import Bias, BiasTally, bias_of
from tokitai_cli.judge.checks.target import Target

WORST_ELEMENTS = 8


class ResolvedCheck(Tolerances, frozen=True):
    """A check as it is made on one output. `missing` says why it cannot be made at all."""

    metric: str
    against: Literal["reference", "replay"]
    limit: float
    judges: bool
    note: str
    missing: str = ""
    passes_zeros: bool = False

    @property
    def label(self) -> str:
        """The check in words: bound against the reference."""
        return f"{self.metric} against the {self.against}"

    @property
    def of_whole(self) -> bool:
        """Whether only the whole output has a value of the metric: its mean error."""
        return MEASURES[self.metric].whole


def checks_for(
    case: Case, name: str, reference: Target, replay: Target | None
) -> list[ResolvedCheck]:
    """Return the variant's checks that hold for output `name` on the case's profile."""
    return [
        _resolve(case, check, reference, replay)
        for check in case.variant.checks
        if check.output in ("", name) and (not check.profiles or case.profile in check.profiles)
    ]


def all_loose(checks: Iterable[ResolvedCheck], reference: Target) -> bool:
    """Whether limits that no analysis stands behind are all that judges an output."""
    judging = [check for check in checks if check.judges and not check.of_whole]
    return all(MEASURES[check.metric].loose(check.limit, reference.form) for check in judging)


def _resolve(case: Case, check: Check, reference: Target, replay: Target | None) -> ResolvedCheck:
    """Says whether the check judges here, and what a reader must know of it."""
    metric, measure = METRICS[check.metric], MEASURES[check.metric]
    limit = float(check.limit) if metric.limited else 0.0
    against_replay = check.against == "replay"
    missing = _missing_replay(replay) if against_replay else measure.missing(reference)
    reported = measure.reported(case, reference)
    zeros = "" if missing else passes_zeros(check, reference)
    notes = [_rows_replayed(reference, replay) if against_replay else ""]
    if not against_replay and no_better(reference) and not missing:
        notes.append(NO_BETTER)
    notes += [reported, measure.note, check.tolerances]
    if not against_replay and not missing and reference.form is not None:
        notes.append(measure.finer(limit, reference, reference.form))
    notes += [zeros, missing]
    return ResolvedCheck(
        check.metric,
        check.against,
        limit,
        judges=not missing and not reported,
        note="; ".join(filter(None, notes)),
        missing=missing,
        passes_zeros=bool(zeros),
        abs=check.abs or 0.0,
        rel=check.rel or 0.0,
    )


def _missing_replay(replay: Target | None) -> str:
    return "there is no replay of this output" if replay is None else ""


def _rows_replayed(reference: Target, replay: Target | None) -> str:
    if replay is None or replay.rows is None:
        return ""
    return f"{replay.rows.size} of {reference.shape[0]} rows replayed"


def passes_zeros(check: Check, reference: Target) -> str:
    """Return a warning where an output of zeros would be within the absolute limit, else ""."""
    limit = float(check.limit)
    if METRICS[check.metric].tolerances:
        rest = 1.0 - (check.rel or 0.0)
        limit = (check.abs or 0.0) / rest if rest > 0 else math.inf
    elif check.metric != "abs":
        return ""
    largest = largest_finite(reference)
    if reference.form is None or limit < largest or largest == 0:
        return ""
    return (
        f"the limit {shown_short(limit)} alone would pass an output of zeros: no finite value of "
        f"the reference is larger than {shown_short(largest)}"
    )


def values_of(check: ResolvedCheck, compared: Compared) -> NDArray[np.float64]:
    """Return the metric at each element, 0 where the numbers cannot be compared."""
    measure = MEASURES[check.metric]
    if check.metric in compared.over_further:
        values: NDArray[np.float64] | None = compared.over_further[check.metric]
    elif measure.values is not None:
        values = measure.values(compared)
    else:
        unit = measure.unit(compared, check)
        values = None if unit is None else ratio(compared.error, unit)
    if values is None:
        return np.zeros(compared.native.shape)
    if check.against == "replay" and compared.structure_fails is not None:
        # A replay is exact: a NaN or infinity that it lacks is no number within any limit.
        values = values.copy()
        values[compared.structure_fails] = np.inf
    return values


def _largest(values: NDArray[np.float64], places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the places of the largest values, the first ones of equals."""
    least = np.partition(values[places], -WORST_ELEMENTS)[-WORST_ELEMENTS]
    above = places[values[places] > least]
    equal = places[values[places] == least]
    return np.concatenate([above, equal[: WORST_ELEMENTS - above.size]])


class Checked(NamedTuple):
    """What one chunk is to a check."""

    elements: int
    top: float = 0.0
    #: Largest values with their flat positions in the output, and what evidence says of them.
    worst: Sequence[tuple[float, int, ElementRecord]] = ()
    #: Which elements exceed the limit; None for none.
    exceeds: NDArray[np.bool_] | None = None
    #: Of a check that has a value of the whole output alone.
    bias: Bias | None = None


class CheckTally:
    """One check over all chunks: largest value, how many exceed the limit, the worst elements."""

    def __init__(self, check: ResolvedCheck, target: Target) -> None:
        self.check = check
        self.target = target
        self.value = 0.0
        self.elements = self.exceeding = 0
        self.bias = BiasTally()
        #: The least of the worst values that are known, 0 where there are fewer than are told.
        self.floor = 0.0
        self._worst: list[tuple[float, int, ElementRecord]] = []

    def measured(self, compared: Compared) -> Checked:
        """What one chunk is to the check."""
        everywhere = MEASURES[self.check.metric].everywhere or self.check.against == "replay"
        elements = compared.taken if everywhere else compared.count
        if self.check.of_whole:
            return Checked(elements, bias=bias_of(compared))
        values = values_of(self.check, compared)
        top = float(values.max(initial=0.0))
        places = np.zeros(0, np.intp)
        if top > 0:
            # What is not above the worst of the chunks before, which come first, is none of them.
            places = np.flatnonzero(values > self.floor)
            if places.size > WORST_ELEMENTS:
                places = _largest(values, places)
        records = element_records(self.check, self.target, compared, places)
        worst = [
            (float(values[place]), flat_index(compared, int(place)), record)
            for place, record in zip(places, records, strict=True)
        ]
        exceeds = values > self.check.limit if top > self.check.limit else None
        return Checked(elements, top, worst, exceeds)

    def add(self, part: Checked) -> None:
        """Take in one chunk."""
        self.elements += part.elements
        if part.bias is not None:
            self.bias.add(part.bias)
            return
        self.value = max(self.value, part.top)
        if part.exceeds is not None:
            self.exceeding += int(np.count_nonzero(part.exceeds))
        for value, flat, record in part.worst:
            if len(self._worst) == WORST_ELEMENTS and (value, -flat) <= self._worst[0][:2]:
                continue
            item = (value, -flat, record)
            if len(self._worst) < WORST_ELEMENTS:
                heapq.heappush(self._worst, item)
            else:
                heapq.heapreplace(self._worst, item)
        if len(self._worst) == WORST_ELEMENTS:
            self.floor = self._worst[0][0]

    @property
    def passed(self) -> bool:
        """Whether nothing exceeds the limit."""
        if self.check.of_whole:
            return not self.bias.value > self.check.limit
        return self.exceeding == 0

    def record(self) -> CheckRecord:
        """Return the evidence of the check."""
        check = self.check
        value = self.bias.value if check.of_whole else self.value
        if not METRICS[check.metric].limited:
            value = float(self.exceeding)
        worst = sorted(self._worst, key=lambda item: (-item[0], -item[1]))
        return CheckRecord(
            metric=check.metric,
            against=check.against,
            limit=number(check.limit),
            value=number(value),
            passed=self.passed,
            judges=check.judges,
            elements=self.elements,
            exceeding=self.exceeding,
            fraction=self.exceeding / self.elements if self.elements else 0.0,
            worst=[item[2] for item in worst],
            note=check.note,
            passes_zeros=check.passes_zeros,
        )


def element_records(
    check: ResolvedCheck, target: Target, compared: Compared, places: NDArray[np.intp]
) -> list[ElementRecord]:
    """Elements of a chunk as evidence holds them; error and limit are absolute."""
    if not places.size:
        return []
    # What one unit of the metric is as an absolute error.
    unit = MEASURES[check.metric].unit(compared, check) if check.limit else None
    units = np.ones(places.size) if unit is None else unit[places]
    return [
        _record(check, target, compared, int(place), check.limit * float(one))
        for place, one in zip(places, units, strict=True)
    ]


def _record(
    check: ResolvedCheck, target: Target, compared: Compared, place: int, limit: float
) -> ElementRecord:
    got, want = compared.got[place], compared.chunk.reference[place]
    tie = compared.misrounded is not None and bool(compared.misrounded[place])
    if target.form is not None and (MEASURES[check.metric].rounded or tie):
        want = compared.chunk.want_native[place]
    with np.errstate(all="ignore"):
        error = abs(float(got) - float(want))
    if target.form is None:
        error = float(compared.error[place])
    exact_want = hex(int(want)) if target.form is None else float(want).hex()
    return ElementRecord(
        index=index_of(flat_index(compared, place), target.shape),
        got=number(got),
        want=number(want),
        error=number(error),
        limit=number(limit),
        got_bits=hex_bits(compared.native[place]),
        want_hex=exact_want,
    )
