"""The judgement of one case on one device: the steps in their order, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import pass_of
from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.fills import fills_of, name_of
from tokitai_cli.core.model.case import Case, Role, RunResult
from tokitai_cli.core.model.expectation import Expectation, Replay, StatedProperty
from tokitai_cli.core.model.judged import (
    ChangesRecord,
    FindingRecord,
    GuessRecord,
    MutantRecord,
    OutputRecord,
    PropertyRecord,
    RepeatRecord,
)
from tokitai_cli.core.model.settings import MIN_REPEAT
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.model.wording import plural
from tokitai_cli.core.numerics import round_to
from tokitai_cli.judge.failures import (
    STEP_FORM,
    STEP_PROPERTIES,
    STEP_REPEATS,
    Failure,
    failure_of,
    said_in,
)
from tokitai_cli.judge.findings import findings_of
from tokitai_cli.judge.order import FreeOrder, free_orders, in_reference_order
from tokitai_cli.judge.output import judge_output
from tokitai_cli.judge.output_values import OutputJudgement
from tokitai_cli.judge.property_limits import PropertyJudgement, PropertyTally, judge_property
from tokitai_cli.judge.structure import Difference, form_failures


class Judgement(msgspec.Struct, frozen=True):
    """What the comparison says of a case. A vacuous case still reads verified here: `settle`."""

    outputs: list[OutputRecord]
    mutants: list[MutantRecord]
    repeats: RepeatRecord
    findings: list[FindingRecord]
    verdict: Verdict
    stage: Stage
    #: One sentence, empty where the verdict is verified.
    reason: str
    #: Share of the elements of replayed outputs that the replay covers, None without a replay.
    replay_fraction: float | None
    properties: list[PropertyRecord] = []
    changes: list[ChangesRecord] = []
    #: All that refutes.
    failures: tuple[Failure, ...] = ()
    #: Of the spec, that all failures hang on.
    guesses: list[GuessRecord] = []
    #: What another run says of a property, by its name, where that was judged already.
    beforehand: Mapping[str, PropertyJudgement | None] = {}


def judge(
    case: Case,
    expectations: Mapping[str, Expectation],
    replays: Mapping[str, Replay],
    result: RunResult,
    properties: Sequence[StatedProperty] = (),
    others: Mapping[str, RunResult] | None = None,
) -> Judgement:
    """Compare every repetition of every output of `case` with what the oracle says.

    Of `properties` those of a single run are judged; `judge_another` is for the others. Where an
    expectation is computed while it is judged, `others` may have their runs, by the property's name:
    they are looked at on the way, for `judge_another` to tell. Raises NotByRowsError where an
    expectation cannot be computed so.

    Refuted where a step fails: dtype and shape, never-written elements, guards and inputs,
    non-finite structure, numbers, properties, and bits that differ between repetitions of a
    deterministic variant. Inconclusive where nothing fails but something could not be judged: an
    output without elements that the case does not expect, reference or judging check.

    Raises OracleError where a reference or replay does not fit its output.
    """
    with np.errstate(all="ignore"):
        orders = free_orders(case, expectations)
        ordered, moved = in_reference_order(orders, case, result)
    tallies = _tallies(expectations, ordered, properties, others or {})
    judged = _outputs(case, expectations, replays, (ordered, result), orders)
    findings = findings_of(case, result)
    failures = [failure for output in judged for failure in output.failures]
    failures += [failure_of(one) for one in findings if one.severity == "error"]
    differing = [output.difference for output in judged if output.difference is not None]
    for change in differing if case.variant.deterministic else ():
        text = f"{change.message}{_causes(result)}; the spec says deterministic"
        failures.append(Failure(STEP_REPEATS, text, "repeats", change.output))
        findings.append(_unstable(case, text))
    held = _properties(judged, ordered, properties, tallies)
    failures += [
        Failure(STEP_PROPERTIES, one.failure, array=one.record.output)
        for one in held
        if one.failure
    ]
    verdict, reason = _verdict(case, judged, failures, _unjudged(case, judged, expectations))
    return Judgement(
        outputs=[_with_policy(case, output.record) for output in judged],
        mutants=[mutant for output in judged for mutant in output.mutants],
        repeats=_repeats(result, differing, moved),
        findings=findings,
        verdict=verdict,
        stage=Stage.COMPARE,
        reason=reason,
        replay_fraction=_replay_fraction(judged),
        properties=[one.record for one in held],
        changes=[one.changes for one in judged if one.changes is not None],
        failures=tuple(failures),
        beforehand={name: tallies[name].judgement() for name in others or {} if name in tallies},
    )


def _tallies(
    expectations: Mapping[str, Expectation],
    result: RunResult,
    properties: Sequence[StatedProperty],
    others: Mapping[str, RunResult],
) -> dict[str, PropertyTally]:
    """Who judges properties of a large output while it is computed, by the property's name."""
    found: dict[str, PropertyTally] = {}
    for stated in properties:
        windows = pass_of(expectations[stated.output].reference)
        if windows is None or (stated.changed and stated.name not in others):
            continue
        other = others[stated.name].outputs if stated.changed else ()
        found[stated.name] = PropertyTally(stated, result.outputs, other)
        windows.show([*found.values()])  # there is one large output
    return found


def judge_right(
    case: Case, expectations: Mapping[str, Expectation], replays: Mapping[str, Replay]
) -> Judgement:
    """The judgement of a kernel that gives every reference, rounded once: no kernel has to run.

    What the checks make of wrong outputs is as in a run of the case. Of a large product it is the block.
    """
    shapes = {name: one.reference.shape for name, one in expectations.items() if one.block}
    buffers = (
        msgspec.structs.replace(one, shape=shapes.get(one.name, one.shape)) for one in case.buffers
    )
    case = msgspec.structs.replace(case, buffers=tuple(buffers))
    expectations = {
        name: msgspec.structs.replace(one, block=None) for name, one in expectations.items()
    }
    right = {}
    for buffer in case.buffers_of(Role.OUTPUT, Role.INOUT):
        if buffer.name in expectations:
            values = np.asarray(expectations[buffer.name].reference)
            with np.errstate(all="ignore"):
                right[buffer.name] = (
                    round_to(values, buffer.dtype)
                    if buffer.dtype in FORMATS
                    else values.astype(numpy_dtype(buffer.dtype))
                )
    fills = fills_of(MIN_REPEAT)
    result = RunResult(outputs=(right,) * len(fills), fills=fills, times_ns=(0,) * len(fills))
    return judge(case, expectations, replays, result)


def _outputs(
    case: Case,
    expectations: Mapping[str, Expectation],
    replays: Mapping[str, Replay],
    results: tuple[RunResult, RunResult],
    orders: Mapping[str, FreeOrder],
) -> list[OutputJudgement]:
    """Judge each output, in the reference's order; `results` are those in it and as they came."""
    buffers = case.buffers_of(Role.OUTPUT, Role.INOUT)
    found = {}
    # A kernel's NaN and infinities go through every formula here; none of them is our own fault.
    with np.errstate(all="ignore"):
        for buffer in sorted(buffers, key=lambda one: not _is_later(expectations.get(one.name))):
            found[buffer.name] = judge_output(
                case,
                buffer,
                (expectations.get(buffer.name), replays.get(buffer.name)),
                results,
                orders.get(buffer.name),
            )
    return [found[buffer.name] for buffer in buffers]


def _is_later(expectation: Expectation | None) -> bool:
    """Whether it is computed while its output is judged; those of others are there behind it."""
    return expectation is not None and pass_of(expectation.reference) is not None


def judge_another(
    case: Case,
    so_far: Judgement,
    stated: StatedProperty,
    repetitions: Sequence[Mapping[str, NDArray[Any]]],
    another: RunResult,
) -> Judgement:
    """Add to a judgement what another run, on the arrays that the property changes, says of it.

    `repetitions` are the outputs of the first run. Damage in the other run refutes as well.
    """
    failures, findings = [], findings_of(case, another)
    for buffer in case.buffers_of(Role.OUTPUT, Role.INOUT):
        failures += [
            Failure(STEP_FORM, one.message, "form", buffer.name)
            for one in form_failures(buffer, another)
        ]
    failures += [failure_of(finding) for finding in findings if finding.severity == "error"]
    records = so_far.properties
    if not failures:
        if stated.name in so_far.beforehand:
            held = so_far.beforehand[stated.name]
        else:
            held = judge_property(stated, repetitions, another.outputs)
        if held is not None:
            records = [*records, held.record]
            failed = Failure(STEP_PROPERTIES, held.failure, array=held.record.output)
            failures += [failed] if held.failure else []
    else:
        failures = [said_in(f"in the run with {stated.change}", one) for one in failures]
    refuted = bool(failures) and so_far.verdict is not Verdict.REFUTED
    return msgspec.structs.replace(
        so_far,
        properties=records,
        findings=[*so_far.findings, *findings],
        verdict=Verdict.REFUTED if refuted else so_far.verdict,
        reason=failures[0].text if refuted else so_far.reason,
        failures=(*so_far.failures, *failures),
    )


def _causes(result: RunResult) -> str:
    """What other bits mean: repetitions differ in what memory held before, and in their order."""
    ordered, filled = len(set(result.schedules)) > 1, len(set(result.fills)) > 1
    if ordered and filled:
        return (
            "; the repetitions started with different memory contents and ran in different "
            "orders of blocks and threads: the result depends on what was in memory before, or "
            "on the order (a race, or atomics)"
        )
    if filled:
        return (
            "; the repetitions started with different memory contents: the result depends on "
            "what was there before, or on an order that the device chose"
        )
    if ordered:
        return (
            "; the repetitions ran in different orders of blocks and threads, and the result "
            "depends on the order: a race, or atomics"
        )
    return ""


def judge_other_inputs(so_far: Judgement, repeated: Judgement, state: Sequence[str]) -> Judgement:
    """Add to a judgement that of one more repetition, which ran on other inputs in the same child.

    `state` names the variables of the source that outlived the repetitions before.
    """
    repeats = msgspec.structs.replace(so_far.repeats, other_inputs=1)
    if repeated.verdict is not Verdict.REFUTED:
        return msgspec.structs.replace(so_far, repeats=repeats)
    names = ", ".join(state)
    repeats = msgspec.structs.replace(repeats, other_inputs_fault=repeated.reason)
    said = f"in one more repetition, on other inputs ({names} outlive a launch)"
    return msgspec.structs.replace(
        so_far,
        repeats=repeats,
        findings=[*so_far.findings, *repeated.findings],
        verdict=Verdict.REFUTED,
        reason=f"{said}: {repeated.reason}",
        failures=(*so_far.failures, *(said_in(said, one) for one in repeated.failures)),
    )


def _repeats(
    result: RunResult, differing: Sequence[Difference], moved: Sequence[str]
) -> RepeatRecord:
    """moved: outputs whose elements came in other orders, which the spec lets free."""
    repetitions = (0, min(change.repetition for change in differing)) if differing else ()
    return RepeatRecord(
        repetitions=len(result.outputs),
        sentinels=[name_of(fill) for fill in result.fills],
        schedules=list(result.schedules),
        differing_outputs=list(dict.fromkeys([*(one.output for one in differing), *moved])),
        bitwise_equal=not differing and not moved,
        differing_schedules=[result.schedules[number] for number in repetitions]
        if result.schedules
        else [],
    )


def _properties(
    judged: Sequence[OutputJudgement],
    result: RunResult,
    properties: Sequence[StatedProperty],
    tallies: Mapping[str, PropertyTally],
) -> list[PropertyJudgement]:
    """Judge those of a single run, where every output could be compared at all."""
    if any(output.record.metrics is None for output in judged):
        return []
    found = [
        tallies[stated.name].judgement()
        if stated.name in tallies
        else judge_property(stated, result.outputs)
        for stated in properties
        if not stated.changed
    ]
    return [one for one in found if one is not None]


def _with_policy(case: Case, record: OutputRecord) -> OutputRecord:
    """Add what the spec says of NaN and infinities, where it says anything."""
    buffer = {**case.variant.outputs, **case.variant.inout}.get(record.name)
    if buffer is None or not buffer.non_finite:
        return record
    return msgspec.structs.replace(record, non_finite=buffer.non_finite)


def _verdict(
    case: Case,
    judged: Sequence[OutputJudgement],
    failures: Sequence[Failure],
    unjudged: str,
) -> tuple[Verdict, str]:
    if failures:
        # min keeps the first of equals: the order of the spec's outputs and checks.
        return Verdict.REFUTED, min(failures, key=lambda failure: failure.step).text
    if not judged:
        return Verdict.INCONCLUSIVE, "the case has no output: nothing was compared"
    for output in judged:
        if output.undecided:
            return Verdict.INCONCLUSIVE, output.undecided
    if unjudged:
        return Verdict.INCONCLUSIVE, unjudged
    if case.expect_empty and all(output.record.elements for output in judged):
        return Verdict.INCONCLUSIVE, "an empty output was expected, but every output has elements"
    return Verdict.VERIFIED, ""


def _unjudged(
    case: Case, judged: Sequence[OutputJudgement], expectations: Mapping[str, Expectation]
) -> str:
    """What of the kernel's writing nothing judges, where that is too much; empty where it is not.

    An oracle of the user's own knows the outputs alone, so that one which is passed as a workspace shows
    by its size, and by no kernel reading it.
    """
    names = [plan.name for plan in case.buffers_of(Role.WORKSPACE)]
    for name in names:
        if name in expectations:
            return (
                f"{name} is passed as a workspace, although the oracle returns it: it is not judged"
            )
    if not case.variant.own_oracle:
        return ""
    read = case.loaded.read_back.get(case.variant_name, ())
    unsaid = [
        name for name in names if name not in read and not case.variant.workspaces[name].scratch
    ]
    sizes = {plan.name: plan.elements for plan in case.buffers_of(Role.WORKSPACE)}
    most = sum(output.record.elements for output in judged)
    written = sum(sizes[name] for name in unsaid)
    if written <= most:
        return ""
    return (
        f"less than half of what the kernel may write is judged: {plural(written, 'element')} of "
        f"{', '.join(unsaid)} beside {most} of outputs (make it an output, or describe its "
        "content with `scratch:`)"
    )


def _replay_fraction(judged: Sequence[OutputJudgement]) -> float | None:
    replayed = [output for output in judged if output.replayed is not None]
    total = sum(output.record.elements for output in replayed)
    return sum(output.replayed or 0 for output in replayed) / total if total else None


def _unstable(case: Case, message: str) -> FindingRecord:
    return FindingRecord(
        tool="repeats",
        kind="nondeterministic",
        message=message,
        kernel=", ".join(dict.fromkeys(launch.kernel for launch in case.launches)),
        location="",
        threads="",
    )
