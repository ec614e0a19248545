"""The composer of a run: plan, build, run, compare, evidence, files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from tokitai_cli import devices, plan, process
from tokitai_cli.errors import TokitaiError
from tokitai_cli.evidence import Outcome
from tokitai_cli.model.case import Case
from tokitai_cli.model.device import Device, Probe
from tokitai_cli.model.events import (
    CaseFinished,
    CaseStarted,
    Event,
    Listener,
    Note,
    RunPlanned,
)
from tokitai_cli.model.evidence import Evidence, LeftOutRecord
from tokitai_cli.model.text import error_line
from tokitai_cli.model.verdict import Stage, Verdict
from tokitai_cli.pipeline.agreement import Outputs
from tokitai_cli.pipeline.case import CaseRunner
from tokitai_cli.pipeline.files import choose_folder, write_files
from tokitai_cli.pipeline.lane import Built, Lane
from tokitai_cli.pipeline.options import RunOptions
from tokitai_cli.pipeline.prepare import Clock, Prepared, Refusal, prepare
from tokitai_cli.pipeline.recorder import Recorder, choose


class RunOutcome(msgspec.Struct, frozen=True):
    """Evidence of a run, the files that hold it, and what ended it before its end, if anything did."""

    evidence: Evidence
    files: tuple[Path, ...]
    ended_by: BaseException | None = None


def silent(event: Event) -> None:
    """A listener that tells nobody."""


def verify(options: RunOptions, listener: Listener = silent) -> RunOutcome:
    """Verify what `options` select and write the evidence.

    Raises UsageError and SpecError for a selection that cannot be run at all; whatever happens to a
    case ends as its verdict, and an interrupt as the run's.
    """
    planned = plan.plan(options.loaded, options.selection)
    chosen = devices.choose(options.device, options.settings)
    recorder = Recorder(options)
    for device, probe in chosen:
        recorder.device(device, probe)
    recorder.chosen = choose(planned.cases)
    folder, note = choose_folder(options.out)
    if note:
        recorder.notes.append(note)
        listener(Note(note))
    _tell(planned, chosen, listener)
    run = _Run(options, recorder, listener, folder)
    return finish(
        lambda: run.everything(planned.cases, chosen), run, recorder, planned.left_out, folder
    )


class Running(Protocol):
    """What `finish` needs of a run: its options, what was built, and how many cases there are."""

    options: RunOptions
    listener: Listener
    total: int

    @property
    def builds(self) -> list[Built]:
        """Everything that the run built."""


def finish(
    work: Callable[[], Outcome | None],
    run: Running,
    recorder: Recorder,
    left_out: Sequence[LeftOutRecord],
    folder: Path,
) -> RunOutcome:
    """Do the `work` of a run and write its evidence into `folder`, whatever ends it.

    Raises the error of a run that ended before it had a case.
    """
    ended_by: BaseException | None = None
    try:
        outcome = work()
    except (KeyboardInterrupt, Exception) as error:
        process.terminate_all()
        stopped = isinstance(error, KeyboardInterrupt)
        if not (stopped or recorder.cases):
            raise
        ended_by = error
        done = sum(case.verdict is not Verdict.INTERRUPTED for case in recorder.cases)
        reason = f"the run was stopped after {done} of {run.total} cases"
        expected = stopped or isinstance(error, TokitaiError | OSError)
        verdict = Verdict.INTERRUPTED if expected else Verdict.INTERNAL_ERROR
        told = "" if stopped else f": {error_line(error)}"
        outcome = Outcome(verdict, Stage.RUN, reason + told)
    builds = [built.info for built in run.builds]
    evidence = recorder.finish(builds, left_out, outcome)
    files, notes = write_files(evidence, folder, run.options)
    for note in notes:
        run.listener(Note(note))
    return RunOutcome(evidence, files, ended_by)


def _tell(planned: plan.Plan, chosen: list[tuple[Device, Probe]], listener: Listener) -> None:
    """Say what will run where before anything does."""
    for device, probe in chosen:
        if any(fact.name == devices.CHOSEN_BY for fact in probe.facts):
            listener(Note(f"--device auto took {device.name}; `tokitai doctor` says what is there"))
    names = tuple(device.name for device, probe in chosen if probe.available)
    listener(RunPlanned(len(planned.cases), names, len(planned.left_out)))


class _Run:
    """One run over its cases and devices: a case is prepared once and meets every device."""

    def __init__(
        self, options: RunOptions, recorder: Recorder, listener: Listener, folder: Path
    ) -> None:
        self.options = options
        self.listener = listener
        self._recorder = recorder
        self._runner = CaseRunner(options, folder / f"{options.name}.arrays")
        self._lanes: list[Lane] = []
        self.total = 0

    @property
    def builds(self) -> list[Built]:
        """Everything that the run built."""
        return [built for lane in self._lanes for built in lane.builds]

    def everything(
        self, cases: tuple[Case, ...], chosen: list[tuple[Device, Probe]]
    ) -> Outcome | None:
        """Run every case on every device; with --device all, only on those that are there."""
        if self.options.device == "all":
            chosen = [pair for pair in chosen if pair[1].available] or chosen
        with contextlib.ExitStack() as stack:
            self._lanes = [
                stack.enter_context(Lane(device, probe, self.options, self.listener))
                for device, probe in chosen
            ]
            if self.options.build_only:
                return self._only_build(cases)
            self.total = len(cases) * len(self._lanes)
            for case in cases:
                preparation = Preparation(case, self.options)
                given = {
                    lane.device.name: self._one(case, lane, preparation) for lane in self._lanes
                }
                self._recorder.agreements.add(case, given)
        return None

    def _one(self, case: Case, lane: Lane, preparation: Preparation) -> Outputs | None:
        """Run a case on one device; returns its outputs where they are to be compared with others'."""
        position = len(self._recorder.cases) + 1
        self.listener(CaseStarted(case.id, lane.device.name, position, self.total))
        try:
            outcome = self._runner.run(case, lane, preparation)
        except KeyboardInterrupt:
            self._recorder.case(self._runner.stopped(case, lane))
            raise
        self._recorder.case(outcome)
        self._recorder.told(lane.device.name, lane.told)
        self.listener(CaseFinished(outcome.record, position, self.total))
        return outcome.outputs

    def _only_build(self, cases: tuple[Case, ...]) -> Outcome:
        keys = set()
        for case in cases:
            for lane in self._lanes:
                built = lane.built(case)
                if built.error is not None:
                    return Outcome(Verdict.BUILD_FAILED, Stage.BUILD, str(built.error))
                keys.add(built.key)
        return Outcome(Verdict.BUILT, Stage.BUILD, f"{len(keys)} built, nothing was run")


class Preparation:
    """Prepares a case when it is first asked for, and keeps the result for the other devices."""

    def __init__(self, case: Case, options: RunOptions) -> None:
        self._case = case
        self._options = options
        self._result: Prepared | Refusal | None = None

    def __call__(self, clock: Clock) -> Prepared | Refusal:
        """What the case needs; drawn and computed the first time."""
        if self._result is None:
            settings = self._options.settings
            self._result = prepare(self._case, settings.repeat, clock, settings.timeout)
        return self._result
