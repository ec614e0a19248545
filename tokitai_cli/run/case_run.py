"""One case on one device, from build to verdict."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from tokitai_cli import build, judge
from tokitai_cli.core import parallel
from tokitai_cli.core.deferred import NotByRowsError
from tokitai_cli.core.errors import BuildError, ChildError, SpecError, TokitaiError, lack_of
from tokitai_cli.core.model.case import Case, RunResult
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.expectation import StatedProperty
from tokitai_cli.core.model.judged import RepeatRecord
from tokitai_cli.core.model.settings import MIN_REPEAT
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.model.wording import error_line
from tokitai_cli.judge import Judgement
from tokitai_cli.oracles import references
from tokitai_cli.run import child, guessed, random_masks
from tokitai_cli.run.case_outcome import CaseOutcome, Outputs
from tokitai_cli.run.case_record import ended, failed, in_light_of_bugs, judged, new_record
from tokitai_cli.run.copies import copied, copies
from tokitai_cli.run.device_session import DeviceSession, approximate, lasting
from tokitai_cli.run.prepare import Clock, Preparation, Prepared, Refusal
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.run.saved_arrays import save_arrays
from tokitai_cli.spec import plan


class RunContext(msgspec.Struct, frozen=True):
    """What the cases of one spec run with."""

    options: RunOptions
    #: Path in the spec by sha256, of what the run began with.
    sources: Mapping[str, str]
    #: Name -> identity.
    oracles: Mapping[str, str]
    #: Makes the folder where those of failing cases are kept, None where they are not.
    arrays: Callable[[], Path] | None = None
    #: Of the others too.
    all_arrays: bool = False
    #: The outputs of the first repetition are asked for.
    with_outputs: bool = False


def run_case(
    subject: RunContext, case: Case, device: DeviceSession, prepared: Preparation
) -> CaseOutcome:
    """Verdict of the case on the device. `prepared` is asked only when it is needed.

    Whatever goes wrong in one case is that case's verdict, and others can run.
    """
    outcome = _one_case(subject, case, device, prepared)
    alone = msgspec.structs.replace(subject, arrays=None, with_outputs=False)

    def another(other: Case) -> CaseRecord:
        preparation = Preparation(other, subject.options.settings)
        return _one_case(alone, other, device, preparation).record

    record = guessed.at_guessed_sizes(outcome.record, case, another)
    return msgspec.structs.replace(outcome, record=record)


def _one_case(
    subject: RunContext, case: Case, device: DeviceSession, prepared: Preparation
) -> CaseOutcome:
    """As `run_case`, by this case alone."""
    case = plan.at_warp_size(case, device.warp_size)
    attempt = _Attempt(subject, case, device, prepared)
    try:
        with parallel.sharing(device.settings.threads):
            outcome = attempt.outcome()
        # Looked at afterwards too: an oracle is read by the process that runs it.
        _check_unchanged(subject, case, attempt.source_sha256)
        return outcome
    except TokitaiError as error:
        record = failed(attempt.draft, attempt.clock.stage, error)
    except MemoryError as error:
        needed = child.size_text(plan.memory_bytes(case, MIN_REPEAT))
        reason = f"the case needs about {needed} ({str(error) or 'an allocation failed'})"
        reason = f"this machine ran out of memory: {reason}"
        record = ended(attempt.draft, Verdict.NOT_RUN, attempt.clock.stage, reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other cases still count
        verdict, reason = _ended_by(error, [case.id, device.name])
        record = ended(attempt.draft, verdict, attempt.clock.stage, reason)
    device.replace()
    return CaseOutcome(record, seconds=attempt.clock.seconds)


def stopped(subject: RunContext, case: Case, device: str) -> CaseOutcome:
    """Outcome of a case that was being tried when the run was stopped."""
    reason = "the run was stopped during this case"
    record = new_record(case, device, subject.options)
    return CaseOutcome(ended(record, Verdict.INTERRUPTED, Stage.RUN, reason))


def outputs_of(case: Case, device: DeviceSession, prepared: Preparation) -> Outputs | None:
    """What the device gives for the case in its first repetition; None where it does not come to it."""
    if not device.probe.available:
        return None
    case = plan.at_warp_size(case, device.warp_size)
    ready, artifact = prepared(Clock()), device.built(case).artifact
    if isinstance(ready, Refusal) or artifact is None:
        return None
    try:
        return copied(device.serve(case, ready, artifact).outputs[0])
    except TokitaiError:
        device.replace()
        return None


def watched_case(subject: RunContext, prepared: Preparation, device: DeviceSession) -> CaseOutcome:
    """Outcome of the case under a tool that alone judges it: verified where it came to its end."""
    case, clock = prepared.case, Clock()
    record = new_record(case, device.name, subject.options)
    try:
        built = clock.timed(Stage.BUILD, lambda: device.built(case))
        record = msgspec.structs.replace(record, build=built.key)
        if built.artifact is None:
            error = built.error or BuildError("nothing was built")
            return CaseOutcome(failed(record, Stage.BUILD, error), seconds=clock.seconds)
        ready, artifact = prepared.without_oracle(clock), built.artifact
        if isinstance(ready, Refusal):
            return CaseOutcome(failed(record, ready.stage, ready.error), seconds=clock.seconds)
        result = clock.timed(Stage.RUN, lambda: device.serve(case, ready, artifact))
    except TokitaiError as error:
        device.replace()
        record = failed(record, clock.stage, error)
        if isinstance(error, ChildError):
            record = guessed.crashed(record, case, error)
        return CaseOutcome(record, seconds=clock.seconds)
    record = ended(record, Verdict.VERIFIED, Stage.RUN, "")
    repeats = RepeatRecord(
        repetitions=len(result.outputs),
        sentinels=[],
        schedules=list(result.schedules),
        differing_outputs=[],
        bitwise_equal=None,
    )
    record = msgspec.structs.replace(record, repeats=repeats)
    return CaseOutcome(record, log=result.log, seconds=clock.seconds)


class _Attempt:
    """A case on its way; `draft` is its record so far, and `clock` knows the stage."""

    def __init__(
        self, subject: RunContext, case: Case, device: DeviceSession, prepared: Preparation
    ) -> None:
        self._subject = subject
        self._case = case
        self._device = device
        self._prepared = prepared
        self.clock = Clock()
        self.draft = new_record(case, device.name, subject.options)
        self.source_sha256 = ""

    def outcome(self) -> CaseOutcome:
        """Outcome with the record in the light of the spec's known bugs."""
        case, device, clock = self._case, self._device, self.clock
        if not device.probe.available:
            probe = device.probe
            missing = f"{probe.missing} ({probe.hint})" if probe.hint else probe.missing
            return CaseOutcome(ended(self.draft, Verdict.INADMISSIBLE, Stage.PROBE, missing))
        built = clock.timed(Stage.BUILD, lambda: device.built(case))
        self.draft = msgspec.structs.replace(self.draft, build=built.key)
        self.source_sha256 = built.record.source_sha256
        if built.artifact is None:
            error = built.error or BuildError("nothing was built")
            return self._known(failed(self.draft, Stage.BUILD, error))
        with contextlib.suppress(ChildError):  # told when it is to serve
            device.start(built.artifact)  # its device comes up while the case is prepared
        ready = self._prepared(clock)
        self.draft = msgspec.structs.replace(self.draft, inputs=ready.records)
        if isinstance(ready, Refusal):
            return self._known(failed(self.draft, ready.stage, ready.error))
        return self._served(ready, built.artifact)

    def _served(self, ready: Prepared, artifact: build.Artifact) -> CaseOutcome:
        device, clock = self._device, self.clock
        try:
            result, judgement, ready = self._tried(ready, artifact)
        except TokitaiError as error:
            device.replace()
            record = failed(self.draft, clock.stage, error)
            if isinstance(error, ChildError):
                record = self._kept(guessed.crashed(record, self._case, error), ready, None)
            return self._known(record, oracle_log=ready.log)
        if judgement.verdict is Verdict.REFUTED and self._case.loaded.guesses:
            result = msgspec.structs.replace(result, outputs=tuple(map(copied, result.outputs)))
            serve = functools.partial(device.serve, self._case, ready, artifact)
            judgement = guessed.weighed(self._case, judgement, result.outputs, serve)
        record = judged(self.draft, judgement)
        outputs = copied(result.outputs[0]) if self._subject.with_outputs else None
        log, times = result.log, result.times_ns
        if judgement.verdict is not Verdict.VERIFIED or self._subject.all_arrays:
            record = self._kept(record, ready, result)
        if judgement.verdict is not Verdict.VERIFIED:
            device.replace()
        if judgement.verdict is Verdict.REFUTED:
            again = clock.timed(Stage.RUN, lambda: self._again(ready, artifact))
            record = msgspec.structs.replace(record, reproduced=again)
        return self._known(record, times_ns=times, log=log, outputs=outputs, oracle_log=ready.log)

    def _known(self, record: CaseRecord, **more: Any) -> CaseOutcome:
        record = in_light_of_bugs(record, self._case, self._device.probe)
        size = plan.array_bytes(self._case, self._device.settings.repeat)
        return CaseOutcome(record, seconds=self.clock.seconds, arrays_bytes=size, **more)

    def _tried(
        self, ready: Prepared, artifact: build.Artifact, clock: Clock | None = None
    ) -> tuple[RunResult, Judgement, Prepared]:
        """Result of the case's own run, the judgement of all its runs, and what the oracle said.

        Properties that compare two runs are tried where everything else holds. Raises as
        `DeviceSession.serve` and `compare.judge` do; the clock's stage then says where.
        """
        case, clock = self._case, clock or self.clock
        serve = functools.partial(self._device.serve, case, artifact=artifact)
        result = clock.timed(Stage.RUN, lambda: serve(ready))
        state = lasting(artifact.record, case)
        near = approximate(artifact.record)
        other = random_masks.with_other_seed(case)
        others: dict[str, RunResult] = {}
        if ready.later and ready.of_two_runs and not (state or near or other):
            result = msgspec.structs.replace(result, outputs=copies(result.outputs))
            others = self._others(ready, serve, clock)
        judgement, ready = self._judged(case, ready, result, clock, others)
        waiting = ready.of_two_runs
        if not (waiting or state or near or other) or judgement.verdict is not Verdict.VERIFIED:
            return result, judgement, ready
        # What a child gave back is gone with its next case.
        kept = result.outputs if others else copies(result.outputs)
        if state:
            judgement = self._on_other_inputs(artifact, result, judgement, state, clock)
            if judgement.verdict is not Verdict.VERIFIED:
                return msgspec.structs.replace(result, outputs=kept), judgement, ready
        if other is not None:
            judgement = self._with_other_seed(other, (ready, artifact), judgement, kept[0], clock)
        for number in range(1, len(judge.APPROXIMATIONS) + 1) if near else ():
            nearby = functools.partial(serve, ready, approximation=number)
            another = clock.timed(Stage.RUN, nearby)
            judging = functools.partial(judge.judge_approximation, case, judgement, number)
            judging = functools.partial(judging, ready.expectations, kept[0], another)
            judgement = clock.timed(Stage.COMPARE, judging)
        for stated in waiting:
            try:
                another = others.get(stated.name) or self._other(ready, serve, stated, clock)
            except ChildError as error:
                _raise_in(stated, error)
            judging = functools.partial(judge.judge_another, case, judgement, stated)
            judgement = clock.timed(Stage.COMPARE, functools.partial(judging, kept, another))
        return msgspec.structs.replace(result, outputs=kept), judgement, ready

    def _others(
        self, ready: Prepared, serve: Callable[[Prepared], RunResult], clock: Clock
    ) -> dict[str, RunResult]:
        """The other runs of properties by name, before the first is judged: as many as end well."""
        found: dict[str, RunResult] = {}
        for stated in ready.of_two_runs:
            try:
                another = self._other(ready, serve, stated, clock)
            except ChildError:  # which is told where the property is judged
                self._device.replace()
                break
            found[stated.name] = msgspec.structs.replace(another, outputs=copies(another.outputs))
        self._device.forget()
        return found

    def _other(
        self,
        ready: Prepared,
        serve: Callable[[Prepared], RunResult],
        stated: StatedProperty,
        clock: Clock,
    ) -> RunResult:
        return clock.timed(Stage.RUN, functools.partial(serve, ready.with_change(stated)))

    def _judged(
        self,
        case: Case,
        ready: Prepared,
        result: RunResult,
        clock: Clock,
        others: Mapping[str, RunResult] | None = None,
    ) -> tuple[Judgement, Prepared]:
        """The judgement, and what it is by; where repetitions drew masks of their own, the worst one.

        What is computed while it is judged is whole where it does not verify the case: arrays are saved.
        """
        if ready.later:
            with contextlib.suppress(NotByRowsError):
                found, by = self._judged_by(case, ready, result, clock, others)
                if found.verdict is Verdict.VERIFIED:
                    return found, by
            whole = self._prepared.whole(clock)
            if isinstance(whole, Refusal):
                raise whole.error
            ready = whole
        return self._judged_by(case, ready, result, clock, None)

    def _judged_by(
        self,
        case: Case,
        ready: Prepared,
        result: RunResult,
        clock: Clock,
        others: Mapping[str, RunResult] | None,
    ) -> tuple[Judgement, Prepared]:
        timeout = self._device.settings.timeout
        parts = clock.timed(
            Stage.ORACLE, lambda: random_masks.by_masks(case, ready, result, timeout)
        )
        found = [
            clock.timed(
                Stage.COMPARE,
                functools.partial(
                    judge.judge, case, one.expectations, one.replays, some, one.properties, others
                ),
            )
            for one, some in parts
        ]
        at = next((at for at, one in enumerate(found) if one.verdict is not Verdict.VERIFIED), 0)
        if len(parts) > 1:
            repeats = random_masks.all_repeats(case, result, found[at].repeats)
            found[at] = msgspec.structs.replace(found[at], repeats=repeats)
        return found[at], parts[at][0]

    def _with_other_seed(
        self,
        other: Case,
        given: tuple[Prepared, build.Artifact],
        so_far: Judgement,
        first: Outputs,
        clock: Clock,
    ) -> Judgement:
        """Judge a run with the next seed of the kernel's mask."""
        ready, artifact = given
        result = clock.timed(Stage.RUN, lambda: self._device.serve(other, ready, artifact))
        judgement, _ = self._judged(other, ready, result, clock)
        judging = functools.partial(judge.judge_other_seed, other, so_far, first)
        return clock.timed(Stage.COMPARE, lambda: judging(result.outputs[0], judgement))

    def _on_other_inputs(
        self,
        artifact: build.Artifact,
        first: RunResult,
        so_far: Judgement,
        state: Sequence[str],
        clock: Clock,
    ) -> Judgement:
        """Judge one more repetition: what was kept of the first inputs is no answer to others."""
        other = msgspec.structs.replace(self._case, seed=self._case.seed ^ 1)
        ready = Preparation(other, self._device.settings)(clock)
        if isinstance(ready, Refusal):
            raise ready.error
        serve = functools.partial(self._device.serve_once_more, other, ready, artifact, first.kept)
        result = clock.timed(Stage.RUN, serve)
        judged, _ = self._judged(
            other, msgspec.structs.replace(ready, properties=()), result, clock
        )
        return judge.judge_other_inputs(so_far, judged, state)

    def _again(self, ready: Prepared, artifact: build.Artifact) -> bool:
        """Whether a fresh child refutes the case too; a child that now fails is another failure."""
        try:
            _, judgement, _ = self._tried(ready.for_verdict(), artifact, Clock())
        except TokitaiError:
            return False
        finally:
            self._device.replace()
        return judgement.verdict is Verdict.REFUTED

    def _kept(self, record: CaseRecord, ready: Prepared, result: RunResult | None) -> CaseRecord:
        """Keep the arrays of a case, where that was asked for."""
        if self._subject.arrays is None:
            return record
        try:
            saved, debug = save_arrays(
                self._subject.arrays(), self._case, self._device, ready, result
            )
        except OSError as error:  # the verdict stands without them
            reason = f"{record.reason}; its arrays are not saved: {error.strerror or error}"
            return msgspec.structs.replace(record, reason=reason)
        return msgspec.structs.replace(record, saved_arrays=saved, debug=debug)


def _check_unchanged(subject: RunContext, case: Case, source: str) -> None:
    """Raise SpecError where oracle or `source` (sha256 of what was built) are not those that the run
    began with.

    Its results would be kept as those of another text.
    """
    variant = case.variant
    if any(map(references.is_user, subject.oracles)):
        found = references.identities(case.loaded.spec, variant, case.loaded.folder)
        for name, identity in found.items():
            if subject.oracles.get(name, identity) != identity:
                raise _changed(subject, name)
    expected = [digest for digest, path in subject.sources.items() if path == variant.source]
    if expected and source and source not in expected:
        raise _changed(subject, variant.source)


def _changed(subject: RunContext, what: str) -> SpecError:
    name = subject.options.called or subject.options.loaded.path.name
    return SpecError(f"{name}: {what} was changed while it was verified", hint="run it again")


def _ended_by(error: Exception, what: Sequence[str]) -> tuple[Verdict, str]:
    """Verdict and reason of a case that ended with what no stage expects."""
    if lack := lack_of(error):
        return Verdict.NOT_RUN, f"nothing can run here: {lack}"
    from tokitai_cli.run.faults import save_fault

    path = save_fault(error, what) or "could not be written"
    return Verdict.INTERNAL_ERROR, f"a fault of tokitai, {error_line(error)}; log: {path}"


def _raise_in(stated: StatedProperty, error: ChildError) -> NoReturn:
    """The child's failure again, with which of the runs it was."""
    said = f"in the run for {stated.name}, with {stated.change}: {error.message}"
    again = copy.copy(error)
    again.message, again.args = said, (said,)
    raise again from error
