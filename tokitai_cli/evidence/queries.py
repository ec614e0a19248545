"""Questions that every output asks of finished evidence. Pure functions of the structs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.judged import CheckRecord, ElementRecord, Number, OutputRecord
from tokitai_cli.core.model.shapes import in_common
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import plural, shape_text

FAILING = (Verdict.REFUTED, Verdict.CRASHED, Verdict.TIMED_OUT)
# Source of the non-claims that say in numbers what the checks let pass.
NOT_COVERED = "checks"
# Source of those that name a guess of a draft.
GUESSED = "guess"
FINE = (Verdict.VERIFIED, Verdict.VACUOUS, Verdict.EXPECTED_FAILURE, Verdict.BUILT)


class Row(msgspec.Struct, frozen=True):
    """A case, or an output of it, in one line of a table."""

    case: CaseRecord
    output: OutputRecord | None
    check: CheckRecord | None


class Decision(msgspec.Struct, frozen=True):
    """What decided a row, or came nearest to its limit: in words, with value and limit if there are."""

    words: str
    value: Number | None = None
    limit: Number | None = None


class Tally(msgspec.Struct, frozen=True):
    """Cases of one variant, profile and device: cases and shapes counted, the worst
    verdict, and the row of the case that is nearest to its limit or exceeds it most.
    """

    variant: str
    profile: str
    device: str
    cases: int
    shapes: int
    verdict: Verdict
    worst: Row


class Smallest(msgspec.Struct, frozen=True):
    """The smallest of several shapes at which a variant fails on a device, and how many do."""

    case: CaseRecord
    failing: int
    shapes: int
    #: What those have in common and the others have not, in words; empty where nothing was found.
    common: str = ""

    @property
    def words(self) -> str:
        """How many shapes fail, and which."""
        only = f", those where {self.common}" if self.common else ""
        return f"{self.failing} of {self.shapes} shapes fail{only}"


def measured(evidence: Evidence, case: CaseRecord) -> CaseRecord:
    """`case` with what was measured on it put back from `volatile.measured`."""
    record = evidence.volatile.measured.get(case.key)
    if record is None:
        return case
    return msgspec.structs.replace(
        case,
        reason=record.reason,
        outputs=record.outputs,
        properties=record.properties,
        repeats=record.repeats,
        findings=record.findings,
        reproduced=record.reproduced,
    )


def counts(evidence: Evidence) -> list[tuple[Verdict, int]]:
    """Cases per verdict, worst first."""
    return [(one, evidence.counts[one]) for one in Verdict if one in evidence.counts]


def not_covered(evidence: Evidence) -> list[str]:
    """What the checks let pass, in numbers."""
    return [one.text for one in evidence.non_claims if one.source == NOT_COVERED]


def unconfirmed(evidence: Evidence) -> list[str]:
    """Guesses of spec and formula that nobody confirmed."""
    return [one.text for one in evidence.non_claims if one.source == GUESSED]


def cases(evidence: Evidence) -> list[CaseRecord]:
    """All cases with their measurements, in the order of the run."""
    return [measured(evidence, case) for case in evidence.cases]


def headline(case: CaseRecord) -> str:
    """A case with its reason, as the reason of a run."""
    return f"{case.id} on {case.device}: {case.reason}"


def decides(watched: CaseRecord) -> bool:
    """Whether what was found in a case that was watched beside the others counts in the run's verdict.

    One that could not be watched to its end says nothing of the kernel.
    """
    return watched.verdict is Verdict.REFUTED or bool(watched.guesses)


def unwatched(watched: CaseRecord) -> bool:
    """Whether a case that was to be watched beside the others was not, to its end."""
    return not (decides(watched) or watched.verdict in FINE)


def watch_words(evidence: Evidence) -> str:
    """Which memory and race checks ran, and their result; empty where none was to run."""
    ran = [case for case in evidence.watched if not unwatched(case)]
    if not evidence.watched:
        return ""
    variants = {case.variant for case in evidence.watched}
    whole = len({case.variant for case in ran})
    told = f"{whole} of {plural(len(variants), 'variant')}"
    if not ran:
        return f"{told}: {evidence.watched[0].reason}"
    tools = ", ".join(dict.fromkeys(look.tool for case in ran for look in case.examined))
    kinds = ", ".join(dict.fromkeys(look.kind for case in ran for look in case.examined))
    errors = sum(decides(case) for case in ran)
    mild = sum(not decides(case) and bool(case.findings) for case in ran)
    found = f"findings in {errors}" if errors else "no finding"
    found += f", warnings in {mild}" if mild else ""
    places = ", ".join(dict.fromkeys(case.device for case in ran))
    checked = f"{tools}: {kinds}" if tools else "stopped by its finding"
    return f"{told}, in {plural(len(ran), 'case')} on {places} ({checked}): {found}"


def watch_headline(watched: CaseRecord) -> str:
    """A case that was watched beside the others with its reason, as the reason of a run."""
    return f"{watched.id}, watched on {watched.device}: {watched.reason}"


def reason(evidence: Evidence) -> str:
    """Why the run has its verdict, with what was measured on the case that it names."""
    named = (case for case in evidence.cases if headline(case) == evidence.reason)
    return next((headline(measured(evidence, case)) for case in named), evidence.reason)


def decisive(evidence: Evidence) -> str:
    """Key of the case that the run's reason is of; empty where it is of none."""
    named = (case.key for case in evidence.cases if headline(case) == evidence.reason)
    return next(named, "")


def troubled(records: Iterable[CaseRecord]) -> list[CaseRecord]:
    """List the cases that a reader must look at, worst verdict first.

    Of one verdict, each variant on a device comes first with the case that shows its fault best; the
    others follow in the order of the run.
    """
    found = [case for case in records if case.verdict not in FINE]
    best: dict[tuple[Verdict, str, str], CaseRecord] = {}
    for case in found:
        place = (case.verdict, case.variant, case.device)
        if place not in best or _plainness(case) > _plainness(best[place]):
            best[place] = case
    leads = {id(case) for case in best.values()}
    return sorted(found, key=lambda case: (case.verdict.rank, id(case) not in leads))


def _plainness(case: CaseRecord) -> tuple[bool, float, float]:
    """Order of cases by how plainly they show a fault: wrong in kind everywhere (NaN, never written),
    then error over bound (or in ulp) by powers of ten, then the share of wrong elements.
    """
    kinds, errors, shares = [0.0], [0.0], [0.0]
    for output in case.outputs:
        if output.passed or not output.elements:
            continue
        kinds.append(sum(one.count for one in output.structure) / output.elements)
        failed = [check.exceeding or 0 for check in output.checks if check.judges]
        shares.append(min(max(failed, default=0) / output.elements + kinds[-1], 1.0))
        if output.metrics is not None:
            over, ulp = output.metrics.over_bound, output.metrics.max_ulp
            errors.append(magnitude(ulp if over is None else over))
    largest = max(errors)
    size = math.floor(math.log10(largest)) if 0 < largest < math.inf else largest
    return max(kinds) >= 1, size, max(shares)


def telling(records: Iterable[CaseRecord]) -> list[CaseRecord]:
    """`records` without those that ended as one before them did, in front of any output."""
    seen: set[tuple[Verdict, str]] = set()
    kept = []
    for case in records:
        end = (case.verdict, case.reason)
        if case.outputs or end not in seen:
            kept.append(case)
        seen.add(end)
    return kept


def smallest_failing(records: Iterable[CaseRecord]) -> list[Smallest]:
    """Of each variant and device that ran several shapes, the one with the least product of
    parameters at which it fails; none where it fails nowhere.
    """
    grouped: dict[tuple[str, str], list[CaseRecord]] = {}
    for case in records:
        grouped.setdefault((case.variant, case.device), []).append(case)
    found = []
    for mine in grouped.values():
        shapes = {shape_text(case.shape) for case in mine}
        failing = [case for case in mine if case.verdict in FAILING]
        if failing and len(shapes) > 1:
            smallest = min(failing, key=lambda case: math.prod(case.shape.values()))
            count = len({shape_text(case.shape) for case in failing})
            found.append(Smallest(smallest, count, len(shapes), _common(mine, failing)))
    return found


def _common(cases: Sequence[CaseRecord], failing: Sequence[CaseRecord]) -> str:
    """What the shapes at which it fails have in common and those at which it passes have not."""
    wrong = {shape_text(case.shape): case.shape for case in failing}
    right = {shape_text(case.shape): case.shape for case in cases if case.reads in FINE}
    right = {text: shape for text, shape in right.items() if text not in wrong}
    blocks = {extent for case in cases for launch in case.launches for extent in launch.block}
    return in_common([*wrong.values()], [*right.values()], blocks)


def magnitude(value: Number | None) -> float:
    """Size of a number for ordering: NaN counts as infinite, a missing value as least."""
    if value is None:
        return -1.0
    real = abs(float(value))
    return math.inf if math.isnan(real) else real


def severity(check: CheckRecord) -> tuple[bool, bool, float]:
    """Order of checks by how bad they are: failed ones first, then judging ones, then value/limit."""
    value, limit = magnitude(check.value), magnitude(check.limit)
    ratio = value / limit if 0 < limit < math.inf else value
    return (not check.passed and check.judges, check.judges, ratio)


def worst_check(case: CaseRecord) -> tuple[str, CheckRecord] | None:
    """Output and check that come nearest to their limit, or exceed it most; None without checks."""
    pairs = [(output.name, check) for output in case.outputs for check in output.checks]
    return max(pairs, key=lambda pair: severity(pair[1]), default=None)


def first_worst(case: CaseRecord) -> tuple[str, CheckRecord, ElementRecord] | None:
    """Find the worst element of the worst failed check: output, check and element."""
    found = ((output.name, worst_of(output)) for output in case.outputs)
    failed = [(name, *worst) for name, worst in found if worst is not None]
    return max(failed, key=lambda item: severity(item[1]), default=None)


def worst_of(output: OutputRecord) -> tuple[CheckRecord, ElementRecord] | None:
    """The worst failed check of an output and its worst element."""
    failed = [one for one in output.checks if not one.passed and one.judges and one.worst]
    worst = max(failed, key=severity, default=None)
    return None if worst is None else (worst, worst.worst[0])


def rows(case: CaseRecord) -> list[Row]:
    """One row per output with its worst check; one without output where none was judged."""
    if not case.outputs:
        return [Row(case, None, None)]
    return [
        Row(case, output, max(output.checks, key=severity, default=None)) for output in case.outputs
    ]


def decision(row: Row) -> Decision | None:
    """What decided the row's case; in a case that passed, the check that came nearest to its limit."""
    case, output, check = row.case, row.output, row.check
    if output is None:
        return None
    judged = None
    if check is not None:
        against = " against the replay" if check.against == "replay" else ""
        words = f"{check.metric} of {output.name}{against}"
        judged = Decision(words, check.value, check.limit)
    if case.verdict not in (*FAILING, Verdict.EXPECTED_FAILURE):
        return judged
    damage = [one for one in case.findings if one.kind != "nondeterministic"]
    if damage:
        return Decision(f"{damage[0].kind} at {damage[0].location or damage[0].kernel}")
    if output.structure:
        return Decision(f"{output.structure[0].kind} of {output.name}", output.structure[0].count)
    if check is not None and check.judges and not check.passed:
        return judged
    for one in case.properties:
        if not one.passed:
            return Decision(f"{one.name} of {one.output}", one.value, one.limit)
    return Decision(case.findings[0].kind) if case.findings else judged


def nearness(case: CaseRecord) -> tuple[bool, bool, float]:
    """Order of cases by how near their worst check is to its limit."""
    found = worst_check(case)
    return (False, False, -1.0) if found is None else severity(found[1])


def tallies(records: Iterable[CaseRecord]) -> list[Tally]:
    """Tally the cases by variant, profile and device, in the order of the run."""
    grouped: dict[tuple[str, str, str], list[CaseRecord]] = {}
    for case in records:
        grouped.setdefault((case.variant, case.profile, case.device), []).append(case)
    found = []
    for (variant, profile, device), mine in grouped.items():
        worst = min(mine, key=lambda case: (case.reads.rank, [-part for part in nearness(case)]))
        shapes = len({shape_text(case.shape) for case in mine})
        row = max(rows(worst), key=_row_severity)
        found.append(Tally(variant, profile, device, len(mine), shapes, worst.reads, row))
    return found


def _row_severity(row: Row) -> tuple[bool, bool, bool, float]:
    wrong_kind = row.output is not None and bool(row.output.structure)
    rest = (False, False, -1.0) if row.check is None else severity(row.check)
    return (wrong_kind, *rest)
