"""Records of cases, from the draft to the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tokitai_cli.core.errors import (
    BuildError,
    ChildCrashedError,
    ChildTimeoutError,
    InadmissibleError,
    NotRunError,
    OracleError,
    TokitaiError,
    UntranslatedError,
)
from tokitai_cli.core.model.case import BufferArg, Case, LaunchPlan, Role, ScalarValue, StructArg
from tokitai_cli.core.model.device import Probe
from tokitai_cli.core.model.evidence import CaseRecord, LaunchRecord
from tokitai_cli.core.model.judged import ExaminationRecord
from tokitai_cli.core.model.spec import KnownBug
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.judge import Judgement
from tokitai_cli.run.commands import rerun_case
from tokitai_cli.run.run_options import RunOptions

# Listed of a case, at the start and at the end.
_MOST_LAUNCHES = 32
_VERDICTS: dict[type[TokitaiError], Verdict] = {
    UntranslatedError: Verdict.NOT_RUN,  # a BuildError, so it comes first
    BuildError: Verdict.BUILD_FAILED,
    ChildCrashedError: Verdict.CRASHED,
    ChildTimeoutError: Verdict.TIMED_OUT,
    InadmissibleError: Verdict.INADMISSIBLE,
    NotRunError: Verdict.NOT_RUN,
    OracleError: Verdict.INCONCLUSIVE,
}
_KNOWN_FAILURES = {
    Verdict.REFUTED,
    Verdict.CRASHED,
    Verdict.TIMED_OUT,
    Verdict.BUILD_FAILED,
    Verdict.INCONCLUSIVE,
}


def new_record(case: Case, device: str, options: RunOptions) -> CaseRecord:
    """Record of a case that has not come to an end, which is a fault of the tool until it has."""
    return CaseRecord(
        id=case.id,
        op=case.loaded.spec.op,
        variant=case.variant_name,
        shape=dict(case.shape),
        profile=case.profile,
        seed=case.seed,
        workspaces={plan.name: plan.elements for plan in case.buffers_of(Role.WORKSPACE)},
        device=device,
        spec=case.loaded.digest,
        build="",
        verdict=Verdict.INTERNAL_ERROR,
        stage=Stage.PLAN,
        reason="the case did not finish",
        inputs=[],
        launches=launch_records(case.launches),
        outputs=[],
        properties=[],
        mutants=[],
        repeats=None,
        findings=[],
        replay_fraction=None,
        known_bug="",
        rerun=rerun_case(case, device, options),
        debug="",
        saved_arrays=[],
        deterministic=case.variant.deterministic,
        drawn_as=case.drawn_as,
    )


def judged(draft: CaseRecord, judgement: Judgement) -> CaseRecord:
    """The record with what the checks said of its outputs."""
    return msgspec.structs.replace(
        draft,
        verdict=judgement.verdict,
        stage=judgement.stage,
        reason=judgement.reason,
        outputs=judgement.outputs,
        properties=judgement.properties,
        mutants=judgement.mutants,
        changes=judgement.changes,
        repeats=judgement.repeats,
        findings=judgement.findings,
        replay_fraction=judgement.replay_fraction,
        guesses=judgement.guesses,
        examined=[
            ExaminationRecord(
                kind="guards",
                tool="guard bands",
                scope="a page before and after every output, in-out and workspace buffer",
            ),
            ExaminationRecord(
                kind="inputs",
                tool="byte comparison",
                scope="every input with its guard pages, after the last repetition",
            ),
        ],
    )


def failed(draft: CaseRecord, stage: Stage, error: TokitaiError) -> CaseRecord:
    """The record with the error's verdict; a spec that does not fit its oracle, say, has none."""
    for kind, verdict in _VERDICTS.items():
        if isinstance(error, kind):
            return ended(draft, verdict, stage, str(error))
    return ended(draft, Verdict.NOT_RUN, Stage.SPEC, str(error))


def ended(draft: CaseRecord, verdict: Verdict, stage: Stage, reason: str) -> CaseRecord:
    """The record with the verdict that its case ended in."""
    return msgspec.structs.replace(draft, verdict=verdict, stage=stage, reason=reason)


def in_light_of_bugs(record: CaseRecord, case: Case, probe: Probe) -> CaseRecord:
    """The record with its verdict seen in the light of the spec's known bugs."""
    for bug in case.loaded.spec.known_bugs:
        if not _applies(bug, case, probe):
            continue
        if record.verdict in _KNOWN_FAILURES:
            verdict, what = Verdict.EXPECTED_FAILURE, f"known bug, {record.verdict}"
        elif record.verdict is Verdict.VERIFIED:
            verdict, what = Verdict.UNEXPECTED_PASS, "passed, but is listed as a known bug"
        else:
            return record
        return msgspec.structs.replace(
            record,
            verdict=verdict,
            known_bug=bug.reason,
            reason=f"{what}: {record.reason or bug.reason}",
        )
    return record


def _applies(bug: KnownBug, case: Case, probe: Probe) -> bool:
    """Whether every field that the bug names has this case's value."""
    pairs: list[tuple[Any, Any]] = [
        (bug.variant, case.variant_name),
        (bug.device, probe.device),
        (bug.arch, probe.arch),
        (bug.profile, case.profile),
    ]
    return all(not want or want == have for want, have in pairs) and all(
        case.shape.get(name) == value for name, value in bug.shape.items()
    )


def launch_records(plans: Sequence[LaunchPlan]) -> list[LaunchRecord]:
    """The launches, of a long loop the first and the last."""
    if len(plans) <= 2 * _MOST_LAUNCHES:
        return [_launch(plan) for plan in plans]
    left_out = len(plans) - 2 * _MOST_LAUNCHES
    last = _launch(plans[_MOST_LAUNCHES - 1], left_out)
    return [
        *map(_launch, plans[: _MOST_LAUNCHES - 1]),
        last,
        *map(_launch, plans[-_MOST_LAUNCHES:]),
    ]


def _launch(launch: LaunchPlan, left_out: int = 0) -> LaunchRecord:
    return LaunchRecord(
        left_out=left_out,
        kernel=launch.kernel,
        grid=list(launch.grid),
        block=list(launch.block),
        shared_bytes=launch.shared_bytes,
        args=[_argument(arg) for arg in launch.args],
    )


def _argument(arg: BufferArg | ScalarValue | StructArg) -> str:
    if isinstance(arg, BufferArg):
        return arg.buffer
    if isinstance(arg, ScalarValue):
        return f"{arg.name}={arg.shown}"
    fields = (f"{at}={_argument(value).rpartition('=')[2]}" for at, value in arg.fields)
    return f"{arg.name}={{{', '.join(fields)}}}"
