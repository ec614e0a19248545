"""Judging one output of one case: every repetition, every check, and what became of the mutants."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import BufferPlan, Case, Role, RunResult
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.model.judged import (
    BoundRecord,
    ChangesRecord,
    CheckRecord,
    MutantRecord,
    OutputRecord,
    PatternRecord,
    StructureRecord,
)
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.numerics import bits_of, digests
from tokitai_cli.judge.checks.compared import Mask
from tokitai_cli.judge.checks.output_checks import CheckTally, ResolvedCheck, checks_for
from tokitai_cli.judge.checks.reference_tally import BoundTally, Summary
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.judge.element_walk import Gathered, Given, walk
from tokitai_cli.judge.expected import reference_target, refined_error, replay_target
from tokitai_cli.judge.explanation import explanation
from tokitai_cli.judge.failures import (
    STEP_FORM,
    STEP_NUMBERS,
    STEP_STRUCTURE,
    STEP_UNWRITTEN,
    Failure,
)
from tokitai_cli.judge.findings import check_reason, place_words
from tokitai_cli.judge.mutants.formula_changes import try_changes
from tokitai_cli.judge.mutants.freedom import mutants_of_freedom
from tokitai_cli.judge.mutants.trial import try_mutants
from tokitai_cli.judge.mutants.zeroed_inputs import with_zeroed
from tokitai_cli.judge.order import FreeOrder, words
from tokitai_cli.judge.pattern import pattern_of
from tokitai_cli.judge.random_masks import judged_masks
from tokitai_cli.judge.repetition import Repetition
from tokitai_cli.judge.roundings import (
    NEAREST_EVEN,
    is_to_nearest,
    lean_tally,
    leaning_words,
    try_roundings,
)
from tokitai_cli.judge.structure import (
    Difference,
    can_tell_unwritten,
    difference,
    form_failures,
    never_written,
    never_written_failure,
)


class OutputJudgement(msgspec.Struct, frozen=True):
    """One output. `open` says why it could not be judged though nothing failed, "" where it was."""

    record: OutputRecord
    mutants: list[MutantRecord]
    failures: list[Failure]
    undecided: str = ""
    difference: Difference | None = None
    replayed: int | None = None
    changes: ChangesRecord | None = None


def judge_output(
    case: Case,
    buffer: BufferPlan,
    expected: tuple[Expectation | None, Replay | None],
    results: tuple[RunResult, RunResult],
    order: FreeOrder | None = None,
) -> OutputJudgement:
    """Take the steps of the comparison that belong to one output, and record what it was.

    results: in the reference's order, where `order` is free, and as they came.
    """
    (expectation, replay), (result, came) = expected, results
    if expectation is not None and expectation.block is not None:
        from tokitai_cli.judge.block import judge_block  # which judges a part by what is here

        judged = judge_block(case, buffer, expectation, expectation.block, result)
    else:
        judged = judged_by_checks(case, buffer, expectation, replay, result, order)
    sha256 = digests([one[buffer.name] for one in came.outputs if buffer.name in one])
    record = msgspec.structs.replace(judged.record, sha256=sha256)
    return msgspec.structs.replace(judged, record=record)


def judged_by_checks(
    case: Case,
    buffer: BufferPlan,
    expectation: Expectation | None,
    replay: Replay | None,
    result: RunResult,
    order: FreeOrder | None = None,
) -> OutputJudgement:
    """The steps that belong to one output; its record lacks the digests."""
    structure = form_failures(buffer, result)
    if structure:
        failures = [Failure(STEP_FORM, structure[0].message, "form", buffer.name)]
        return OutputJudgement(form_record(buffer, structure), [], failures)
    if buffer.elements == 0:
        text = "" if case.expect_empty else f"{buffer.name} has no elements: nothing was compared"
        return OutputJudgement(form_record(buffer, [], passed=case.expect_empty), [], [], text)
    if expectation is None:
        text = f"there is no reference of {buffer.name}"
        return OutputJudgement(form_record(buffer, []), [], [], text)
    reference = reference_target(buffer, expectation, flush_to_zero=case.variant.flush_to_zero)
    if order is not None:
        arranged = functools.partial(order.arranged, buffer.name)
        reference = msgspec.structs.replace(reference, arranged=arranged)
    replayed = None if replay is None else replay_target(buffer, replay)
    checks = checks_for(case, buffer.name, reference, replayed)
    excused = _excused(buffer, expectation)
    refined = [refined_error(buffer, reference, outputs) for outputs in result.outputs]
    derives = expectation.own or bool(case.variant.by_formula)
    own = BoundTally(reference) if derives and _judges_by_bound(checks) else None
    gathered = Gathered(Summary(), own, lean_tally(case, reference))
    judged = _judge_values(
        buffer, excused, result, (reference, replayed), (checks, refined), gathered
    )
    if buffer.kept is not None:
        return _of_chance(judged, buffer, result)
    given = (excused, refined[0])
    further = mutants_of_freedom(reference, order)
    mutants = try_mutants(
        reference, replayed, gathered.summary, expectation, checks, given, further
    )
    nearest = is_to_nearest(case, buffer.name)
    leans = None if gathered.lean is None else gathered.lean.record()
    failures = _explained(judged.failures, reference, expectation, result)
    if order is not None and failures:
        said = words(order, buffer.name, _flat(buffer, result.outputs[0][buffer.name]))
        first = msgspec.structs.replace(failures[0], text=failures[0].text + said)
        failures = [first, *failures[1:]]
    if leans is not None and nearest:
        said = f"{buffer.name}: {leaning_words(leans)}, and the spec says {NEAREST_EVEN}"
        failures = [*failures, Failure(STEP_NUMBERS, said, array=buffer.name)]
    record = msgspec.structs.replace(
        judged.record,
        passed=not failures,
        unjudged=_unjudged(reference, gathered.summary),
        lean=leans,
        finite=gathered.finite,
        independent=None if expectation.independent is None else [*expectation.independent],
    )
    if expectation.own and order is None:  # a sample of elements has no order
        mutants = with_zeroed(mutants, reference, expectation, checks, given)
    if derives:
        record = msgspec.structs.replace(
            record,
            own_bound=_own_bound(gathered.own, derived=not expectation.own),
            may_be_nan=_count(expectation.may_be_nan),
            choices=_choices(expectation),
        )
    return msgspec.structs.replace(
        judged,
        record=record,
        failures=failures,
        mutants=[*mutants, *try_roundings(reference, checks, given, nearest=nearest)],
        changes=try_changes(reference, expectation, checks, given),
        undecided=_open(case, record, checks),
        replayed=None if replayed is None else replayed.size,
    )


def _of_chance(judged: OutputJudgement, buffer: BufferPlan, result: RunResult) -> OutputJudgement:
    """The judgement of a mask that the kernel drew, every element of which may be 0 or 1."""
    found, failures, mutants = judged_masks(buffer, result)
    failures = [*judged.failures, *failures]
    record = msgspec.structs.replace(judged.record, passed=not failures, mask=found)
    return msgspec.structs.replace(judged, record=record, failures=failures, mutants=mutants)


def _unjudged(reference: Target, summary: Summary) -> int:
    """Elements whose value the reference does not tell; infinities alone are no numbers that agree."""
    return summary.unjudged if summary.finite else reference.size


def _explained(
    failures: list[Failure], reference: Target, expectation: Expectation, result: RunResult
) -> list[Failure]:
    """Add to a failed bound what another form of the formula makes of it, where nothing else failed."""
    if not failures or any(one.step != STEP_NUMBERS for one in failures):
        return failures
    words = explanation(reference, expectation, result.outputs)
    first = failures[0]
    return [msgspec.structs.replace(first, text=f"{first.text}{words}"), *failures[1:]]


def _excused(buffer: BufferPlan, expectation: Expectation) -> Mask | None:
    """Return elements that may hold anything if unwritten: an in-out keeps what was drawn."""
    mask = expectation.may_be_unwritten
    if mask is None or buffer.role is Role.INOUT or buffer.init == "zero":
        return None
    return np.broadcast_to(mask, buffer.shape).reshape(-1)


def _count(mask: NDArray[np.bool_] | None) -> int:
    return 0 if mask is None else int(np.count_nonzero(mask))


def _choices(expectation: Expectation) -> int:
    """Elements of which the oracle allows another value than its reference."""
    if expectation.allowed is None:
        return 0
    return _count((expectation.allowed != expectation.reference).any(axis=0))


def _judges_by_bound(checks: Sequence[ResolvedCheck]) -> bool:
    return any(check.judges and METRICS[check.metric].against_bound for check in checks)


def _own_bound(tally: BoundTally | None, *, derived: bool) -> BoundRecord | None:
    """Size of the bound, where a check judges by it."""
    record = None if tally is None else tally.record()
    return None if record is None else msgspec.structs.replace(record, derived=derived)


def _open(case: Case, record: OutputRecord, checks: Sequence[ResolvedCheck]) -> str:
    """Why the output could not be judged though nothing failed, or ""."""
    for check in checks:
        if check.missing:
            return f"{record.name}: the check {check.metric} cannot be made: {check.missing}"
    if not any(check.judges for check in checks):
        return f"{record.name}: no check judges it on the profile {case.profile}"
    if 2 * record.unwritten > record.elements:
        return (
            f"{record.name}: {record.unwritten} of {record.elements} elements stayed unwritten, as the "
            "oracle lets them: less than half of it was judged"
        )
    return ""


def _flat(buffer: BufferPlan, array: NDArray[Any]) -> NDArray[Any]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8) if buffer.dtype == "bool" else flat


def _judge_values(
    buffer: BufferPlan,
    excused: Mask | None,
    result: RunResult,
    targets: tuple[Target, Target | None],
    standards: tuple[Sequence[ResolvedCheck], Sequence[NDArray[np.float64] | None]],
    gathered: Gathered,
) -> OutputJudgement:
    """Judge every repetition; `standards` are the checks, and each repetition's refined errors."""
    checks, refined = standards
    arrays = [_flat(buffer, outputs[buffer.name]) for outputs in result.outputs]
    bits = [bits_of(array) for array in arrays]
    # Equal bytes need no second look: they get the same answer, and an element that kept its fill
    # would differ from its complement.
    differing = [
        number
        for number in range(1, len(bits))
        if not np.array_equal(bits[number], bits[0]) or not _equal(refined[number], refined[0])
    ]
    unwritten = never_written(buffer, bits, result.fills) if differing else None
    repetitions = [
        Repetition(number, buffer, targets[0], checks, refined[number])
        for number in (0, *differing)
    ]
    walk(repetitions, Given(arrays, unwritten, excused), targets, gathered)
    changed = difference(buffer, arrays, differing, unwritten)
    chosen = next((one for one in repetitions if not one.passed), repetitions[0])

    left = 0
    if unwritten is not None and excused is not None:
        left = int(np.count_nonzero(unwritten & excused))
        unwritten &= ~excused
    failures, structure, pattern = _failures(buffer, chosen, unwritten, arrays)
    record = OutputRecord(
        name=buffer.name,
        dtype=buffer.dtype,
        shape=list(buffer.shape),
        elements=buffer.elements,
        passed=not failures,
        structure=structure,
        checks=_check_records(chosen, checks, can_tell_unwritten(buffer, result.fills)),
        metrics=chosen.metrics.record(),
        pattern=pattern,
        unwritten=left,
    )
    return OutputJudgement(record, [], failures, difference=changed)


def _equal(left: NDArray[np.float64] | None, right: NDArray[np.float64] | None) -> bool:
    return left is right or (left is not None and right is not None and np.array_equal(left, right))


def _failures(
    buffer: BufferPlan, chosen: Repetition, unwritten: Mask | None, arrays: Sequence[NDArray[Any]]
) -> tuple[list[Failure], list[StructureRecord], PatternRecord | None]:
    """Put together what is wrong; `arrays` are the values of each repetition."""
    failures: list[Failure] = []
    structure: list[StructureRecord] = []
    if unwritten is not None and unwritten.any():
        value = float(arrays[0][int(np.argmax(unwritten))])
        structure.append(never_written_failure(buffer, unwritten, value))
        chosen.mark(slice(None), unwritten)
    pattern = None
    if chosen.failing is not None:
        got = None if structure else arrays[chosen.number]  # what was not written is a fill
        pattern = pattern_of(chosen.failing, buffer.shape, got)
    for one in structure:
        text = f"{buffer.name}: {one.message}{place_words(pattern)}"
        failures.append(Failure(STEP_UNWRITTEN, text, "unwritten", buffer.name))
    for one in chosen.structure.records():
        structure.append(one)
        text = f"{buffer.name}: {one.message}{place_words(pattern)}{chosen.shown}"
        failures.append(Failure(STEP_STRUCTURE, text, array=buffer.name))
    for tally in chosen.failed_checks:
        record = tally.record()
        text = check_reason(buffer.name, record, tally.bias.means)
        text += place_words(pattern) + chosen.shown
        failures.append(Failure(STEP_NUMBERS, text, array=buffer.name, metric=record.metric))
    return failures, structure, pattern


def form_record(
    buffer: BufferPlan, structure: list[StructureRecord], *, passed: bool = False
) -> OutputRecord:
    """Return the record of an output of which no value could be compared."""
    return OutputRecord(
        name=buffer.name,
        dtype=buffer.dtype,
        shape=list(buffer.shape),
        elements=buffer.elements,
        passed=passed,
        structure=structure,
        checks=[],
        metrics=None,
        pattern=None,
    )


def _check_records(
    repetition: Repetition, checks: Sequence[ResolvedCheck], note: str
) -> list[CheckRecord]:
    """All checks in the order of the spec; the first carries what holds for the whole output."""
    tallies = iter(repetition.tallies)
    records: list[CheckRecord] = []
    for check in checks:
        tally = CheckTally(check, repetition.metrics.target) if check.missing else next(tallies)
        record = tally.record()
        notes = [record.note, "" if records else note]
        if repetition.number and not record.passed:
            notes.append(f"repetition {repetition.number}")
        text = "; ".join(part for part in notes if part)
        passed = record.passed and not check.missing
        records.append(msgspec.structs.replace(record, note=text, passed=passed))
    return records
