"""One case on one device, from build to verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from tokitai_cli import plan, run
from tokitai_cli.compare import Judgement
from tokitai_cli.errors import (
    BuildError,
    ChildCrashedError,
    ChildError,
    ChildTimeoutError,
    InadmissibleError,
    NotRunError,
    OracleError,
    TokitaiError,
    lack_of,
)
from tokitai_cli.model.case import Case, LaunchPlan, RunResult
from tokitai_cli.model.evidence import CaseRecord, LaunchRecord
from tokitai_cli.model.judged import ExaminationRecord
from tokitai_cli.model.settings import MIN_REPEAT
from tokitai_cli.model.spec import KnownBug
from tokitai_cli.model.text import error_line
from tokitai_cli.model.verdict import Stage, Verdict
from tokitai_cli.pipeline.arrays import save_arrays
from tokitai_cli.pipeline.commands import rerun_case
from tokitai_cli.pipeline.lane import Lane
from tokitai_cli.pipeline.options import RunOptions
from tokitai_cli.pipeline.prepare import Clock, Prepared, Refusal
from tokitai_cli.pipeline.trial import tried

_VERDICTS: dict[type[TokitaiError], Verdict] = {
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


class CaseOutcome(msgspec.Struct, frozen=True):
    """Record of a case, and what of it differs from run to run.

    outputs: those of the first repetition, in a run on all devices.
    """

    record: CaseRecord
    times_ns: tuple[int, ...] = ()
    log: str = ""
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    outputs: Mapping[str, NDArray[Any]] | None = None
    oracle_log: str = ""


class CaseRunner(msgspec.Struct):
    """Runs cases with one set of options; `folder` is where arrays of failing cases are kept."""

    options: RunOptions
    folder: Path

    def run(
        self, case: Case, lane: Lane, prepared: Callable[[Clock], Prepared | Refusal]
    ) -> CaseOutcome:
        """Verdict of the case on the lane's device. `prepared` is asked only when it is needed.

        Whatever goes wrong in one case is that case's verdict; the run goes on.
        """
        clock = Clock()
        try:
            return self._run(case, lane, prepared, clock)
        except TokitaiError as error:
            lane.replace()
            ended = _failed(self._draft(case, lane), clock.stage, error)
            return CaseOutcome(ended, seconds=clock.seconds)
        except MemoryError as error:
            verdict, reason = (
                Verdict.NOT_RUN,
                f"this machine ran out of memory: {_size(case, error)}",
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the other cases still count
            verdict, reason = _ended_by(error, [case.id, lane.device.name])
        lane.replace()
        ended = _ended(self._draft(case, lane), verdict, clock.stage, reason)
        return CaseOutcome(ended, seconds=clock.seconds)

    def stopped(self, case: Case, lane: Lane) -> CaseOutcome:
        """Outcome of a case that was being tried when the run was stopped."""
        reason = "the run was stopped during this case"
        return CaseOutcome(_ended(self._draft(case, lane), Verdict.INTERRUPTED, Stage.RUN, reason))

    def _run(
        self,
        case: Case,
        lane: Lane,
        prepared: Callable[[Clock], Prepared | Refusal],
        clock: Clock,
    ) -> CaseOutcome:
        draft = self._draft(case, lane)
        if not lane.probe.available:
            return CaseOutcome(_ended(draft, Verdict.INADMISSIBLE, Stage.PROBE, _missing(lane)))
        built = clock.timed(Stage.BUILD, lambda: lane.built(case))
        draft = msgspec.structs.replace(draft, build=built.key)
        if built.artifact is None:
            reason = str(built.error)
            ended = _ended(draft, Verdict.BUILD_FAILED, Stage.BUILD, reason)
            return CaseOutcome(self._known(ended, case, lane), seconds=clock.seconds)
        with contextlib.suppress(ChildError):  # told when it is to serve
            lane.start(built.artifact)  # its device comes up while the case is prepared
        ready = prepared(clock)
        if isinstance(ready, Refusal):
            draft = msgspec.structs.replace(draft, inputs=ready.records)
            ended = _failed(draft, ready.stage, ready.error)
            return CaseOutcome(self._known(ended, case, lane), seconds=clock.seconds)
        draft = msgspec.structs.replace(draft, inputs=ready.records)
        outcome = self._served(case, lane, ready, draft, clock)
        record = self._known(outcome.record, case, lane)
        return msgspec.structs.replace(outcome, record=record, oracle_log=ready.log)

    def _served(
        self, case: Case, lane: Lane, ready: Prepared, draft: CaseRecord, clock: Clock
    ) -> CaseOutcome:
        artifact = lane.built(case).artifact
        assert artifact is not None
        try:
            result, judgement = tried(case, lane, ready, artifact, clock)
        except TokitaiError as error:
            lane.replace()
            ended = _failed(draft, clock.stage, error)
            if isinstance(error, ChildError):
                ended = self._kept(ended, case, lane, ready, None)
            return CaseOutcome(ended, seconds=clock.seconds)
        record = _judged(draft, judgement)
        outputs = self._compared(result)
        log, times = result.log, result.times_ns
        if judgement.verdict is not Verdict.VERIFIED:
            record = self._kept(record, case, lane, ready, result)
            lane.replace()
        if judgement.verdict is Verdict.REFUTED:
            again = clock.timed(Stage.RUN, lambda: _again(case, lane, ready))
            record = msgspec.structs.replace(record, reproduced=again)
        return CaseOutcome(record, times, log, seconds=clock.seconds, outputs=outputs)

    def _compared(self, result: RunResult) -> dict[str, NDArray[Any]] | None:
        """Copy the outputs, where those of other devices will be compared with them."""
        if self.options.device != "all":
            return None
        return {name: array.copy() for name, array in result.outputs[0].items()}

    def _kept(
        self, record: CaseRecord, case: Case, lane: Lane, ready: Prepared, result: RunResult | None
    ) -> CaseRecord:
        """Keep the arrays of a failing case, where that was asked for."""
        if not self.options.save_arrays:
            return record
        try:
            saved, debug = save_arrays(self.folder, case, lane, ready, result, self.options)
        except OSError as error:  # the verdict stands without them
            reason = f"{record.reason}; its arrays are not saved: {error.strerror or error}"
            return msgspec.structs.replace(record, reason=reason)
        return msgspec.structs.replace(record, saved_arrays=saved, debug=debug)

    def _draft(self, case: Case, lane: Lane) -> CaseRecord:
        return draft(case, lane.device.name, self.options)

    def _known(self, record: CaseRecord, case: Case, lane: Lane) -> CaseRecord:
        """The record with its verdict seen in the light of the spec's known bugs."""
        for bug in case.loaded.spec.known_bugs:
            if not _applies(bug, case, lane):
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


def draft(case: Case, device: str, options: RunOptions) -> CaseRecord:
    """Record of a case that has not come to an end, which is a fault of the tool until it has."""
    return CaseRecord(
        id=case.id,
        op=case.loaded.spec.op,
        variant=case.variant_name,
        shape=dict(case.shape),
        profile=case.profile,
        seed=case.seed,
        device=device,
        spec=case.loaded.digest,
        build="",
        verdict=Verdict.INTERNAL_ERROR,
        stage=Stage.PLAN,
        reason="the case did not come to an end",
        inputs=[],
        launches=[_launch(launch) for launch in case.launches],
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
    )


def _judged(draft: CaseRecord, judgement: Judgement) -> CaseRecord:
    return msgspec.structs.replace(
        draft,
        verdict=judgement.verdict,
        stage=judgement.stage,
        reason=judgement.reason,
        outputs=judgement.outputs,
        properties=judgement.properties,
        mutants=judgement.mutants,
        repeats=judgement.repeats,
        findings=judgement.findings,
        replay_fraction=judgement.replay_fraction,
        examined=[
            ExaminationRecord(
                kind="guards",
                tool="guard bands",
                scope="a page in front of and behind every output, in-out and workspace buffer",
            ),
            ExaminationRecord(
                kind="inputs",
                tool="byte comparison",
                scope="every input with its guard pages, after the last repetition",
            ),
        ],
    )


def _again(case: Case, lane: Lane, ready: Prepared) -> bool | None:
    """Whether a fresh child refutes the case too; a child that now fails is another failure."""
    artifact = lane.built(case).artifact
    assert artifact is not None
    try:
        _, judgement = tried(case, lane, ready, artifact, Clock())
    except TokitaiError:
        return False
    finally:
        lane.replace()
    return judgement.verdict is Verdict.REFUTED


def _failed(draft: CaseRecord, stage: Stage, error: TokitaiError) -> CaseRecord:
    """The record with the error's verdict; a spec that does not fit its oracle, say, has none."""
    for kind, verdict in _VERDICTS.items():
        if isinstance(error, kind):
            return _ended(draft, verdict, stage, str(error))
    return _ended(draft, Verdict.NOT_RUN, Stage.SPEC, str(error))


def _ended(draft: CaseRecord, verdict: Verdict, stage: Stage, reason: str) -> CaseRecord:
    return msgspec.structs.replace(draft, verdict=verdict, stage=stage, reason=reason)


def _ended_by(error: Exception, what: Sequence[str]) -> tuple[Verdict, str]:
    """Verdict and reason of a case that ended with what no stage expects."""
    if lack := lack_of(error):
        return Verdict.NOT_RUN, f"nothing can run here: {lack}"
    from tokitai_cli.pipeline.faults import save_fault

    path = save_fault(error, what) or "could not be written"
    return Verdict.INTERNAL_ERROR, f"a fault of tokitai, {error_line(error)}; log: {path}"


def _size(case: Case, error: MemoryError) -> str:
    needed = run.size_text(plan.memory_bytes(case, MIN_REPEAT))
    return f"the case needs about {needed} ({str(error) or 'an allocation failed'})"


def _missing(lane: Lane) -> str:
    probe = lane.probe
    return f"{probe.missing} ({probe.mend})" if probe.mend else probe.missing


def _applies(bug: KnownBug, case: Case, lane: Lane) -> bool:
    """Whether every field that the bug names has this case's value."""
    pairs: list[tuple[Any, Any]] = [
        (bug.variant, case.variant_name),
        (bug.device, lane.device.name),
        (bug.arch, lane.probe.arch),
        (bug.profile, case.profile),
    ]
    return all(not want or want == have for want, have in pairs) and all(
        case.shape.get(name) == value for name, value in bug.shape.items()
    )


def _launch(launch: LaunchPlan) -> LaunchRecord:
    return LaunchRecord(
        kernel=launch.kernel,
        grid=list(launch.grid),
        block=list(launch.block),
        shared_bytes=launch.shared_bytes,
        args=[
            getattr(arg, "buffer", None)
            or f"{getattr(arg, 'name', '')}={getattr(arg, 'shown', '')}"
            for arg in launch.args
        ],
    )
