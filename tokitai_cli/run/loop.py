"""A run: plan, build, run, compare, evidence, files. `verify` and `sanitize` differ in their passes."""

from __future__ import annotations

import functools
import html
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli import devices, evidence
from tokitai_cli.core import process, side_by_side
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import Device, Probe
from tokitai_cli.core.model.events import (
    CaseFinished,
    CaseStarted,
    Listener,
    Note,
    RunPlanned,
    silent,
)
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.model.wording import counts_text, error_line
from tokitai_cli.evidence import Outcome, queries
from tokitai_cli.run import child
from tokitai_cli.run.agreement import agreement
from tokitai_cli.run.case_outcome import CaseOutcome, merged
from tokitai_cli.run.case_run import RunContext, stopped
from tokitai_cli.run.device_passes import CaseGroup, DevicePass, DevicePasses, PlainPass
from tokitai_cli.run.device_session import device_record
from tokitai_cli.run.evidence_builder import EvidenceBuilder, choose
from tokitai_cli.run.older import arrays_folder
from tokitai_cli.run.prepare import Preparation
from tokitai_cli.run.run_files import choose_folder, write_files
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.run.session import Session
from tokitai_cli.spec import plan

if TYPE_CHECKING:
    from tokitai_cli.run.watching import WatchBeside


class RunOutcome(msgspec.Struct, frozen=True):
    """Evidence of a run, the files that hold it, and what ended it before its end, if anything did."""

    evidence: Evidence
    files: tuple[Path, ...]
    ended_by: BaseException | None = None

    def __repr__(self) -> str:
        found = self.evidence
        place = f"; {self.files[0]}" if self.files else ""
        return f"<{found.name}: {found.verdict} ({counts_text(found.counts)}){place}>"

    def _repr_html_(self) -> str:
        """The verdict and a row for each case, for notebooks."""
        rows = [(one.key, one.reads, queries.headline(one)) for one in self.evidence.cases]
        told = "".join(
            f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>"
            for row in rows
        )
        head = "<tr><th>case</th><th>verdict</th><th></th></tr>"
        return f"<p>{html.escape(repr(self))}</p><table>{head}{told}</table>"


class Run:
    """A run from its plan to its files. Raises UsageError and SpecError where it cannot begin."""

    def __init__(
        self,
        options: RunOptions,
        chosen: Sequence[tuple[Device, Probe]],
        listener: Listener,
        cases: Sequence[Case] = (),
    ) -> None:
        self._planned = (
            plan.Plan(tuple(cases), ()) if cases else plan.plan(options.loaded, options.selection)
        )
        if options.device == "auto":  # what repeats the run names the device that it ran on
            options = msgspec.structs.replace(options, device=chosen[0][0].name)
        self._options = options
        self._listener = listener
        self._recorder = EvidenceBuilder(options, rerun=options.rerun)
        for device, probe in chosen:
            self._recorder.device(device_record(device, probe))
        self._recorder.chosen = choose(self._planned.cases)
        self._folder, note = choose_folder(options.out)
        if note:
            self._recorder.notes.append(note)
            listener(Note(note))
        for note in options.loaded.notes:
            self._recorder.notes.append(note)
            listener(Note(note))
        for device, probe in chosen:
            if any(fact.name == devices.CHOSEN_BY for fact in probe.facts):
                auto = f"--device auto chose {device.name}; `tokitai doctor` lists the devices"
                listener(Note(auto))
        names = tuple(device.name for device, probe in chosen if probe.available)
        listener(RunPlanned(len(self._planned.cases), names, len(self._planned.left_out)))
        self._total = 0
        self._arrays = functools.cache(lambda: arrays_folder(self._folder, options.name))
        self.cases = self._planned.cases

    @property
    def subject(self) -> RunContext:
        """What the cases run with."""
        options, chosen = self._options, self._recorder.chosen
        return RunContext(
            options,
            sources={digest: source.path for digest, source in chosen.sources.items()},
            oracles=chosen.oracles,
            arrays=self._arrays if options.save_arrays or options.save_all_arrays else None,
            all_arrays=options.save_all_arrays,
            with_outputs=options.device == "all",
        )

    def record(self, note: str) -> None:
        """Keep what a reader of the evidence should know, and who runs it knows."""
        self._recorder.notes.append(note)

    def over(
        self,
        places: Sequence[DevicePasses],
        lots: Sequence[Sequence[Case]],
        beside: WatchBeside | None = None,
    ) -> RunOutcome:
        """Run every lot at every place and write the evidence, whatever ends it.

        beside: what is watched meanwhile. Raises the error of a run that ended before it had a case.
        """
        self._total = sum(map(len, lots)) * len(places)

        def work() -> None:
            # What several devices are judged by is computed once.
            later = len(places) == 1 and not self._options.save_all_arrays
            for cases in lots:
                lot = [Preparation(case, self._options.settings, later=later) for case in cases]
                self._lot(lot, places)

        return self._finished(work, [one for place in places for one in place.passes], beside)

    def only_build(self, passes: Sequence[PlainPass]) -> RunOutcome:
        """Build for every case in every pass, and run none."""

        def work() -> Outcome:
            keys = set()
            for built in (built for one in passes for built in one.only_build(self.cases)):
                if built.error is not None:
                    return Outcome(Verdict.BUILD_FAILED, Stage.BUILD, str(built.error))
                keys.add(built.key)
            return Outcome(Verdict.BUILT, Stage.BUILD, f"{len(keys)} built, nothing ran")

        return self._finished(work, passes)

    def _lot(self, lot: CaseGroup, places: Sequence[DevicePasses]) -> None:
        met = {place.device: self._met(lot, place) for place in places}
        for at, one in enumerate(lot):
            given = {device: outcomes[at].outputs for device, outcomes in met.items()}
            self._recorder.agreements.add(
                agreement(one.case, given), deterministic=one.case.variant.deterministic
            )

    def _met(self, lot: CaseGroup, place: DevicePasses) -> list[CaseOutcome]:
        """Outcomes of the cases on one device, in all passes."""
        position = len(self._recorder.cases) + 1
        name = lot[0].case.id + (" and others" if len(lot) > 1 else "")

        def outcomes_of(one: DevicePass) -> list[CaseOutcome]:
            self._listener(CaseStarted(name, one.name, position, self._total))
            return one.outcomes(lot)

        jobs = [functools.partial(outcomes_of, one) for one in place.passes]
        try:
            several = side_by_side.all_of(jobs, self._workers(lot))
        except KeyboardInterrupt:
            for prepared in lot:
                self._recorder.case(stopped(self.subject, prepared.case, place.device))
            raise
        for one in place.passes:
            self._recorder.device(one.record)
        outcomes = [functools.reduce(merged, found) for found in zip(*several, strict=True)]
        for at, outcome in enumerate(outcomes, start=position):
            self._recorder.case(outcome)
            self._listener(CaseFinished(outcome.record, at, self._total))
        return outcomes

    def _workers(self, lot: CaseGroup) -> int:
        """How many passes over the cases may go on beside each other: each has a child of its own."""
        repeat = self._options.settings.repeat
        needed = max(plan.memory_bytes(one.case, repeat) for one in lot)
        available = child.available_bytes()
        fitting = 1 if available is None else available // max(needed, 1)
        return int(min(len(os.sched_getaffinity(0)), fitting))

    def _finished(
        self,
        work: Callable[[], Outcome | None],
        passes: Sequence[DevicePass],
        beside: WatchBeside | None = None,
    ) -> RunOutcome:
        recorder, ended_by = self._recorder, None
        recorder.tool = evidence.begin_tool_record()  # git answers while the cases run
        try:
            outcome = work()
            if beside is not None:
                recorder.watched = beside.result()
        except (KeyboardInterrupt, Exception) as error:
            process.terminate_all()
            if not (recorder.cases or isinstance(error, KeyboardInterrupt)):
                raise
            ended_by = error
            outcome = self._cut_short(error)
        builds = {built.key: built for one in passes for built in one.builds}
        builds |= {built.key: built for built in recorder.watched.builds}
        found = recorder.finish(list(builds.values()), self._planned.left_out, outcome)
        files, notes = write_files(found, self._folder, self._options)
        for note in notes:
            self._listener(Note(note))
        return RunOutcome(found, files, ended_by)

    def _cut_short(self, error: BaseException) -> Outcome:
        """How a run ended that did not come to its end."""
        done = sum(case.verdict is not Verdict.INTERRUPTED for case in self._recorder.cases)
        reason = f"the run was stopped after {done} of {self._total} cases"
        if isinstance(error, KeyboardInterrupt):
            return Outcome(Verdict.INTERRUPTED, Stage.RUN, reason)
        fault = not isinstance(error, TokitaiError | OSError)
        verdict = Verdict.INTERNAL_ERROR if fault else Verdict.INTERRUPTED
        return Outcome(verdict, Stage.RUN, f"{reason}: {error_line(error)}")


def verify(
    options: RunOptions, listener: Listener = silent, cases: Sequence[Case] = ()
) -> RunOutcome:
    """Verify what `options` select, or these cases of its spec, and write the evidence.

    Raises UsageError and SpecError for a selection that cannot be run at all; whatever happens to a
    case ends as its verdict, and an interrupt as the run's.
    """
    if options.settings.sanitize:
        from tokitai_cli.run.sanitizing import sanitize  # which runs what is here

        return sanitize(options, listener)
    chosen = devices.choose(options.device, options.settings)
    run = Run(options, chosen, listener, cases)
    if options.device == "all":
        chosen = [pair for pair in chosen if pair[1].available] or chosen
    with Session(options.settings, listener) as session:
        passes = [PlainPass(session, run.subject, device, probe) for device, probe in chosen]
        if options.build_only:
            return run.only_build(passes)
        places = [DevicePasses(one.name, (one,)) for one in passes]
        lots = [(case,) for case in run.cases]
        if options.watch == "off" or not any(probe.available for _, probe in chosen):
            return run.over(places, lots)
        from tokitai_cli.run.watching import WatchBeside  # which runs what is here

        with WatchBeside(options, run.cases, chosen) as beside:
            return run.over(places, lots, beside)
