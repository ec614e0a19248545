"""The checks of a spec, resolved for one output of one case, and their tallies over chunks."""

from __future__ import annotations

import heapq
import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.compare.compared import Compared
from tokitai_cli.compare.profiles import draws_are_random
from tokitai_cli.compare.target import Target
from tokitai_cli.compare.values import hex_bits, index_of, number, ratio, shown_short
from tokitai_cli.model.case import Case
from tokitai_cli.model.evidence import CheckRecord, ElementRecord
from tokitai_cli.model.spec import Check
from tokitai_cli.numerics import spacing

WORST_ELEMENTS = 8

# Metrics that see an error of a few ulp wherever it lies, unlike a flat absolute limit.
SHARP = frozenset({"bound", "ulp", "rel", "exact"})


class ResolvedCheck(msgspec.Struct, frozen=True):
    """A check as it is made on one output. `missing` says why it cannot be made at all."""

    metric: str
    against: Literal["reference", "replay"]
    limit: float
    judges: bool
    note: str
    missing: str = ""
    passes_zeros: bool = False


def resolve(case: Case, name: str, reference: Target, replay: Target | None) -> list[ResolvedCheck]:
    """Return the variant's checks that hold for output `name` on the case's profile."""
    return [
        _resolve(case, check, reference, replay)
        for check in case.variant.checks
        if check.output in ("", name) and (not check.profiles or case.profile in check.profiles)
    ]


def _resolve(case: Case, check: Check, reference: Target, replay: Target | None) -> ResolvedCheck:
    """Says whether the check judges here, and what a reader must know of it."""
    limit, notes, judges, zeros = float(check.limit), list[str](), True, ""
    missing = _missing(check, reference, replay)
    if check.against == "replay":
        if replay is not None and replay.rows is not None:
            notes.append(f"{replay.rows.size} of {reference.shape[0]} rows replayed")
    elif _no_better(reference) and not missing:
        notes.append(_NO_BETTER)
    if check.metric == "bound-prob":
        judges, note = _probable_judges(case, reference)
        notes += [note] if note else []
    if check.metric == "exact":
        limit = 0.0
        notes.append("bitwise: -0.0 and +0.0 differ, NaN by class")
    elif check.against == "reference" and not missing:
        warning = finer_than_ulp(check.metric, limit, reference)
        notes += [warning] if warning else []
    if check.metric == "abs" and not missing:
        zeros = passes_zeros(limit, reference)
        notes += [zeros] if zeros else []
    if missing:
        notes.append(missing)
    return ResolvedCheck(
        check.metric,
        check.against,
        limit,
        judges=judges and not missing,
        note="; ".join(notes),
        missing=missing,
        passes_zeros=bool(zeros),
    )


_NO_BETTER = "the reference is float64 as the output is, and its own error is not known"


def _no_better(reference: Target) -> bool:
    """Whether a float64 output has a reference that may be as far off as the output."""
    return reference.dtype == "float64" and reference.error is None and reference.low is None


def _missing(check: Check, reference: Target, replay: Target | None) -> str:
    """Why the check cannot be made at all, or ""."""
    if check.against == "replay":
        return _missing_replay(check, replay)
    if check.metric == "bound" and reference.error is None and reference.form is not None:
        return "the oracle gives no bound"
    if check.metric == "bound-chained" and reference.refine is None:
        return "the oracle gives no bound from the other outputs"
    if check.metric in ("ulp", "exact") and _no_better(reference):
        return f"{_NO_BETTER}: the oracle gives neither `error` nor `low`"
    return ""


def _missing_replay(check: Check, replay: Target | None) -> str:
    if replay is None:
        return "there is no replay of this output"
    if check.metric.startswith("bound"):
        return "a bound holds against the reference, not against a replay"
    return ""


def _probable_judges(case: Case, reference: Target) -> tuple[bool, str]:
    if not reference.has_probable:
        return False, "reported only: the oracle gives no probabilistic bound"
    if not draws_are_random(case):
        return False, f"reported only: the profile {case.profile} is not random"
    return True, ""


def finer_than_ulp(metric: str, limit: float, reference: Target) -> str:
    """Return a warning where one ulp of the output's dtype exceeds the limit, else ""."""
    form = reference.form
    if form is None:
        return ""
    if metric == "rel" and limit < 2 * form.unit_roundoff:
        return (
            f"the limit {shown_short(limit)} is finer than one {form.name} ulp "
            f"({shown_short(2 * form.unit_roundoff)} relative)"
        )
    if metric == "ulp" and limit < 1:
        return f"the limit {shown_short(limit)} is finer than one {form.name} ulp"
    if metric == "abs":
        largest = _largest_finite(reference)
        ulp = float(spacing(np.array(largest), form))
        if limit < ulp:
            return (
                f"the limit {shown_short(limit)} is finer than one {form.name} ulp "
                f"({shown_short(ulp)} at {shown_short(largest)})"
            )
    return ""


def passes_zeros(limit: float, reference: Target) -> str:
    """Return a warning where an output of zeros would be within the absolute limit, else ""."""
    largest = _largest_finite(reference)
    if reference.form is None or limit < largest or largest == 0:
        return ""
    return (
        f"the limit {shown_short(limit)} alone would pass an output of zeros: no finite value of "
        f"the reference is larger than {shown_short(largest)}"
    )


def _largest_finite(reference: Target) -> float:
    largest = 0.0
    form = reference.form
    ceiling = math.inf if form is None else form.overflow
    for chunk in reference.chunks():
        magnitude = chunk.magnitude
        top = float(magnitude.max())
        if not top < ceiling:
            top = float(np.max(magnitude, initial=0.0, where=magnitude < ceiling))
        largest = max(largest, top)
    return largest


def values_of(check: ResolvedCheck, compared: Compared) -> NDArray[np.float64]:
    """Return the metric at each element, 0 where the numbers cannot be compared."""
    if check.metric == "exact":
        return compared.differs.astype(np.float64)
    if check.metric == "abs":
        values = compared.error
    elif check.metric == "rel":
        values = compared.relative
    elif check.metric == "ulp":
        values = compared.ulps
    elif check.metric == "bound":
        values = compared.over_bound if compared.over_bound is not None else compared.error
    else:
        chained = check.metric == "bound-chained"
        unit = compared.bound_chained if chained else compared.chunk.bound_probable
        if unit is None:
            return np.zeros(compared.native.shape)
        values = ratio(compared.error, unit)
    if check.against == "replay" and compared.structure_fails is not None:
        # A replay is exact: a NaN or infinity that it lacks is no number within any limit.
        values = values.copy()
        values[compared.structure_fails] = np.inf
    return values


def unit_at(check: ResolvedCheck, compared: Compared, position: int) -> float:
    """Return what one unit of the metric is as an absolute error at a position of the chunk."""
    chunk = compared.chunk
    if check.metric == "rel":
        return float(chunk.magnitude[position])
    if check.metric == "ulp":
        return float(chunk.ulp[position])
    if check.metric == "bound" and chunk.bound is not None:
        bound = chunk.bound_at(compared.signed)
        return float((chunk.bound if bound is None else bound)[position])
    if check.metric == "bound-chained" and compared.bound_chained is not None:
        return float(compared.bound_chained[position])
    if check.metric == "bound-prob" and chunk.bound_probable is not None:
        return float(chunk.bound_probable[position])
    return 1.0


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


def _largest(values: NDArray[np.float64], places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the places of the largest values, the first ones of equals."""
    least = np.partition(values[places], -WORST_ELEMENTS)[-WORST_ELEMENTS]
    above = places[values[places] > least]
    equal = places[values[places] == least]
    return np.concatenate([above, equal[: WORST_ELEMENTS - above.size]])


class CheckTally:
    """One check over all chunks: largest value, how many exceed the limit, the worst elements."""

    def __init__(self, check: ResolvedCheck, target: Target) -> None:
        self.check = check
        self.target = target
        self.value = 0.0
        self.elements = self.exceeding = 0
        self.bias = BiasTally()
        self._worst: list[tuple[float, int, ElementRecord]] = []

    def add(self, compared: Compared) -> NDArray[np.bool_] | None:
        """Take in one chunk; return which elements exceed the limit, or None for none."""
        whole = self.check.metric == "exact" or self.check.against == "replay"
        self.elements += compared.taken if whole else compared.count
        if self.check.metric == "bias":
            self.bias.add(compared)
            return None
        values = values_of(self.check, compared)
        top = float(values.max(initial=0.0))
        self.value = max(self.value, top)
        if top > 0:
            self._keep_worst(values, compared)
        if not top > self.check.limit:
            return None
        exceeds = values > self.check.limit
        self.exceeding += int(np.count_nonzero(exceeds))
        return exceeds

    def _keep_worst(self, values: NDArray[np.float64], compared: Compared) -> None:
        full = len(self._worst) == WORST_ELEMENTS
        floor = self._worst[0][0] if full else 0.0
        places = np.flatnonzero(values > floor)
        if places.size > WORST_ELEMENTS:
            places = _largest(values, places)
        for place in map(int, places):
            value = float(values[place])
            flat = flat_index(compared, place)
            item = (value, -flat, element_record(self.check, self.target, compared, place))
            if len(self._worst) < WORST_ELEMENTS:
                heapq.heappush(self._worst, item)
            elif item[:2] > self._worst[0][:2]:
                heapq.heapreplace(self._worst, item)

    @property
    def passed(self) -> bool:
        """Whether nothing exceeds the limit."""
        if self.check.metric == "bias":
            return not self.bias.value > self.check.limit
        return self.exceeding == 0

    def record(self) -> CheckRecord:
        """Return the evidence of the check."""
        check = self.check
        if check.metric == "bias":
            value = self.bias.value
        else:
            value = float(self.exceeding) if check.metric == "exact" else self.value
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


def flat_index(compared: Compared, place: int) -> int:
    """Flat position in the output of a position in the chunk."""
    index = compared.chunk.index
    return index.start + place if isinstance(index, slice) else int(index[place])


def element_record(
    check: ResolvedCheck, target: Target, compared: Compared, place: int
) -> ElementRecord:
    """One element as evidence holds it; error and limit are absolute."""
    got, want = compared.got[place], compared.chunk.reference[place]
    if check.metric in ("exact", "ulp") and target.form is not None:
        want = compared.chunk.want_native[place]
    with np.errstate(all="ignore"):
        error = abs(float(got) - float(want))
    if target.form is None:
        error = float(compared.error[place])
    limit = 0.0 if check.limit == 0 else check.limit * unit_at(check, compared, place)
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
