"""Judging one output of one case: every repetition, every check, and what became of the mutants."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import BufferPlan, Case, Role, RunResult
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.model.judged import BoundRecord, LeanRecord, MutantRecord, OutputRecord
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.numerics import digests
from tokitai_cli.judge.checks.compared import Mask
from tokitai_cli.judge.checks.output_checks import ResolvedCheck, checks_for
from tokitai_cli.judge.checks.reference_tally import BoundTally, Summary
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.judge.element_walk import Gathered
from tokitai_cli.judge.expected import reference_target, refined_error, replay_target
from tokitai_cli.judge.explanation import explanation
from tokitai_cli.judge.failures import STEP_FORM, STEP_NUMBERS, Failure
from tokitai_cli.judge.mutants.formula_changes import positions_of, try_changes
from tokitai_cli.judge.mutants.freedom import mutants_of_freedom
from tokitai_cli.judge.mutants.trial import try_mutants
from tokitai_cli.judge.mutants.values import roll_positions
from tokitai_cli.judge.mutants.zeroed_inputs import with_zeroed
from tokitai_cli.judge.order import FreeOrder, words
from tokitai_cli.judge.output_values import (
    OutputJudgement,
    Standards,
    flat,
    form_record,
    judge_values,
)
from tokitai_cli.judge.random_masks import judged_masks
from tokitai_cli.judge.roundings import (
    NEAREST_EVEN,
    OF_ROUNDING,
    is_to_nearest,
    lean_tally,
    leaning_words,
    try_roundings,
)
from tokitai_cli.judge.structure import form_failures


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
    if (early := _not_compared(case, buffer, result)) is not None:
        return early
    if expectation is None:
        text = f"there is no reference of {buffer.name}"
        return OutputJudgement(form_record(buffer, []), [], [], text)
    standards = _standards(case, buffer, (expectation, replay), result, order)
    gather = functools.partial(_gathered, case, expectation, standards)
    judged, gathered = judge_values(buffer, result, standards, gather)
    if buffer.kept is not None:
        return _of_chance(judged, buffer, result)
    leans = None if gathered.lean is None else gathered.lean.record()
    failures = judged.failures
    if not expectation.for_verdict:
        failures = _explained(failures, standards.reference, expectation, result)
    if order is not None and failures:
        said = words(order, buffer.name, flat(buffer, result.outputs[0][buffer.name]))
        first = msgspec.structs.replace(failures[0], text=failures[0].text + said)
        failures = [first, *failures[1:]]
    if leans is not None:
        failures = _with_lean(case, buffer, leans, failures)
    record = msgspec.structs.replace(
        judged.record,
        passed=not failures,
        unjudged=_unjudged(standards.reference, gathered.summary),
        lean=leans,
        finite=gathered.finite,
        independent=None if expectation.independent is None else [*expectation.independent],
    )
    if _derives(case, expectation):
        record = msgspec.structs.replace(
            record,
            own_bound=_own_bound(gathered.own, derived=not expectation.own),
            may_be_nan=_count(expectation.may_be_nan),
            choices=_choices(expectation),
        )
    judged = msgspec.structs.replace(
        judged,
        record=record,
        failures=failures,
        undecided=_open(case, record, standards.checks),
        replayed=None if standards.replayed is None else standards.replayed.size,
    )
    if expectation.for_verdict:
        return judged
    return msgspec.structs.replace(
        judged,
        mutants=_tried(case, buffer, expectation, standards, gathered.summary, order),
        changes=try_changes(standards.reference, expectation, standards.checks, standards.first),
    )


def _with_lean(
    case: Case, buffer: BufferPlan, leans: LeanRecord, failures: Sequence[Failure]
) -> list[Failure]:
    """Failures that say how errors lean, and that as one where the spec says how to round."""
    first = [
        msgspec.structs.replace(one, text=f"{one.text}; {leaning_words(leans)}")
        for one in failures[:1]
        if leans.mean <= OF_ROUNDING
    ]
    found = [*first, *failures[len(first) :]]
    if is_to_nearest(case, buffer.name):
        said = f"{buffer.name}: {leaning_words(leans)}, and the spec says {NEAREST_EVEN}"
        found.append(Failure(STEP_NUMBERS, said, array=buffer.name))
    return found


def _not_compared(case: Case, buffer: BufferPlan, result: RunResult) -> OutputJudgement | None:
    """The judgement of an output of which no value can be looked at; None for any other."""
    structure = form_failures(buffer, result)
    if structure:
        failures = [Failure(STEP_FORM, structure[0].message, "form", buffer.name)]
        return OutputJudgement(form_record(buffer, structure), [], failures)
    if buffer.elements == 0:
        text = "" if case.expect_empty else f"{buffer.name} has no elements: nothing was compared"
        return OutputJudgement(form_record(buffer, [], passed=case.expect_empty), [], [], text)
    return None


def _standards(
    case: Case,
    buffer: BufferPlan,
    expected: tuple[Expectation, Replay | None],
    result: RunResult,
    order: FreeOrder | None,
) -> Standards:
    expectation, replay = expected
    reference = reference_target(buffer, expectation, flush_to_zero=case.variant.flush_to_zero)
    if order is not None:
        arranged = functools.partial(order.arranged, buffer.name)
        reference = msgspec.structs.replace(reference, arranged=arranged)
    replayed = None if replay is None else replay_target(buffer, replay)
    again = functools.partial(checks_for, case, buffer.name, reference, replayed)
    checks = again()
    refined = [refined_error(buffer, reference, outputs) for outputs in result.outputs]
    _keep(reference, expectation)
    return Standards(reference, replayed, checks, _excused(buffer, expectation), refined, again)


def _keep(reference: Target, expectation: Expectation) -> None:
    """Say what of a large reference is read after it was judged."""
    if reference.by_windows is None:
        return
    positions = [roll_positions(reference)]
    if expectation.rows is not None:
        positions.append(positions_of(reference, expectation.rows))
    # With an index numpy sorts, which takes a tenth of its table of hashes.
    every, _ = np.unique(np.concatenate(positions), return_index=True)
    reference.by_windows.keep(every)


def _derives(case: Case, expectation: Expectation) -> bool:
    """Whether the oracle derives the bound itself."""
    return expectation.own or bool(case.variant.by_formula)


def _gathered(case: Case, expectation: Expectation, standards: Standards) -> Gathered:
    """What is to be gathered on the way over the values."""
    derived = _derives(case, expectation) and _judges_by_bound(standards.checks)
    own = BoundTally(standards.reference) if derived else None
    return Gathered(Summary(), own, lean_tally(case, standards.reference))


def _tried(
    case: Case,
    buffer: BufferPlan,
    expectation: Expectation,
    standards: Standards,
    summary: Summary,
    order: FreeOrder | None,
) -> list[MutantRecord]:
    """What becomes of wrong outputs that the checks are tried on."""
    reference, checks, given = standards.reference, standards.checks, standards.first
    further = mutants_of_freedom(reference, order)
    mutants = try_mutants(
        reference, standards.replayed, summary, expectation, checks, given, further
    )
    if expectation.own and order is None:  # a sample of elements has no order
        mutants = with_zeroed(mutants, reference, expectation, checks, given)
    nearest = is_to_nearest(case, buffer.name)
    return [*mutants, *try_roundings(reference, checks, given, nearest=nearest)]


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
            f"{record.name}: {record.unwritten} of {record.elements} elements stayed unwritten, "
            "as the oracle permits: less than half of the output was judged"
        )
    return ""
