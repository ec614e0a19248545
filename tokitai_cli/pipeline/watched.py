"""`sanitize`: every case under each tool of the device's sanitizer, and what the tools found.

The cases of a variant first run in one watched child, since a clean kernel is the rule. Where a tool
found something there, or the child did not come to its end, each of them runs again in a child of its
own, so that a finding belongs to its case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import devices, plan, process
from tokitai_cli.errors import InadmissibleError, UsageError
from tokitai_cli.model.case import Case
from tokitai_cli.model.device import (
    SANITIZED,
    Device,
    DeviceOptions,
    Fact,
    Probe,
    Recipe,
    Sanitizer,
    Traits,
)
from tokitai_cli.model.events import CaseFinished, CaseStarted, Listener, Note, RunPlanned
from tokitai_cli.model.evidence import CaseRecord
from tokitai_cli.model.judged import ExaminationRecord, FindingRecord
from tokitai_cli.model.verdict import Stage, Verdict
from tokitai_cli.pipeline.case import CaseOutcome, CaseRunner
from tokitai_cli.pipeline.composer import Preparation, RunOutcome, finish, silent
from tokitai_cli.pipeline.files import choose_folder
from tokitai_cli.pipeline.lane import Built, Lane
from tokitai_cli.pipeline.options import RunOptions
from tokitai_cli.pipeline.recorder import Recorder, choose

# A watched child writes its report when it ends, after the runtime has shut down.
_END_SECONDS = 60.0
# Of a tool's report; equal faults of many threads say the same.
_MOST_LOG = 32 << 10


class Watched:
    """A device whose children run under one tool, each with a log of its own in `folder`."""

    def __init__(self, device: Device, watch: Sanitizer, folder: Path) -> None:
        self.name: str = device.name
        self.traits: Traits = device.traits
        self.non_claims: tuple[str, ...] = device.non_claims
        self._device = device
        self._watch = watch
        self._folder = folder
        self._children = 0

    def probe(self, options: DeviceOptions) -> Probe:
        """Probe of the device itself."""
        return self._device.probe(options)

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe of the device itself: what is watched is what `verify` runs."""
        return self._device.recipe(options, defines, flags)

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child, behind the tool's."""
        self._children += 1
        log = str(self._folder / f"{self._children}.log")
        prefix = (word.replace("{log}", log) for word in self._watch.prefix)
        return (*prefix, *self._device.launch_command(artifact, options), *self._watch.options)

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the device's child."""
        return self._device.launch_environment(options)

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """The one that watches already."""
        return (self._watch,)

    def logs(self) -> list[str]:
        """What the tool wrote about each child so far."""
        paths = [self._folder / f"{number}.log" for number in range(1, self._children + 1)]
        return [
            path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            for path in paths
        ]


def sanitize(options: RunOptions, listener: Listener = silent) -> RunOutcome:
    """Run what `options` select under every tool of the device's sanitizer and write the evidence.

    A finding refutes its case. Raises UsageError and SpecError, as `verify` does, and where the device
    has no sanitizer.
    """
    if options.device == "all":
        raise UsageError("sanitize runs on one device", mend=f"name it: --device {SANITIZED[0]}")
    if options.build_only:
        raise UsageError("sanitize --build-only: only what runs can be watched")
    planned = plan.plan(options.loaded, options.selection)
    ((device, probe),) = devices.choose(options.device, options.settings)
    if not device.traits.sanitizer:
        mend = f"use --device {' or '.join(SANITIZED)}"
        raise UsageError(f"there is no sanitizer for the device {device.name}", mend=mend)
    watches: tuple[Sanitizer, ...] = ()
    if probe.available:
        try:
            watches = device.sanitizers()
        except InadmissibleError as error:
            missing, mend = error.message, error.mend
            probe = msgspec.structs.replace(probe, available=False, missing=missing, mend=mend)
    facts = tuple(Fact(watch.tool, watch.version, watch.prefix[0]) for watch in watches)
    probe = msgspec.structs.replace(probe, facts=(*probe.facts, *facts))
    recorder = Recorder(options)
    recorder.device(device, probe)
    recorder.chosen = choose(planned.cases)
    folder, note = choose_folder(options.out)
    if note:
        recorder.notes.append(note)
        listener(Note(note))
    names = (device.name,) if probe.available else ()
    listener(RunPlanned(len(planned.cases), names, len(planned.left_out)))
    run = _Run(options, recorder, listener, CaseRunner(options, folder / f"{options.name}.arrays"))
    return finish(
        lambda: run.everything(planned.cases, device, probe, watches),
        run,
        recorder,
        planned.left_out,
        folder,
    )


class _Run:
    """One run over its cases; `total` and `builds` are what `finish` asks for."""

    def __init__(
        self, options: RunOptions, recorder: Recorder, listener: Listener, runner: CaseRunner
    ) -> None:
        self.options = options
        self.listener = listener
        self.total = 0
        self.builds: list[Built] = []
        self._recorder = recorder
        self._runner = runner

    def everything(
        self,
        cases: Sequence[Case],
        device: Device,
        probe: Probe,
        watches: Sequence[Sanitizer],
    ) -> None:
        """Run every case under every tool, variant by variant."""
        self.total = len(cases)
        groups: dict[str, list[Case]] = {}
        for case in cases:
            groups.setdefault(case.variant_name, []).append(case)
        for group in groups.values():
            prepared = [(case, Preparation(case, self.options)) for case in group]
            if not watches:
                outcomes = self._outcomes(prepared, device, probe)
            else:
                outcomes = self._watched(prepared, device, probe, watches[0])
                for watch in watches[1:]:
                    more = self._watched(prepared, device, probe, watch)
                    outcomes = [_merged(*pair) for pair in zip(outcomes, more, strict=True)]
            for outcome in outcomes:
                self._recorder.case(outcome)
                done = len(self._recorder.cases)
                self.listener(CaseFinished(outcome.record, done, self.total))

    def _watched(
        self,
        prepared: list[tuple[Case, Preparation]],
        device: Device,
        probe: Probe,
        watch: Sanitizer,
    ) -> list[CaseOutcome]:
        """Outcomes under one tool."""
        position = len(self._recorder.cases) + 1
        self.listener(
            CaseStarted(f"{prepared[0][0].id} and others", watch.tool, position, self.total)
        )
        together, quiet = self._in_one_child(prepared, device, probe, watch)
        if quiet or len(prepared) == 1:
            return together
        return [self._in_one_child([one], device, probe, watch)[0][0] for one in prepared]

    def _in_one_child(
        self,
        prepared: list[tuple[Case, Preparation]],
        device: Device,
        probe: Probe,
        watch: Sanitizer,
    ) -> tuple[list[CaseOutcome], bool]:
        """Outcomes of cases that share a child, and whether the tool found nothing in any."""
        with process.temporary_folder(prefix="watch-") as folder:
            watched = Watched(device, watch, folder)
            outcomes = self._outcomes(prepared, watched, probe)
            if any(outcome.record.stage is Stage.BUILD for outcome in outcomes):
                return outcomes, True
            logs = watched.logs()
        report = _read(watch, logs)
        passed = all(outcome.record.verdict is Verdict.VERIFIED for outcome in outcomes)
        judged = [_judged(outcome, watch, report) for outcome in outcomes]
        return judged, passed and not report.findings and not report.fault

    def _outcomes(
        self, prepared: list[tuple[Case, Preparation]], device: Device, probe: Probe
    ) -> list[CaseOutcome]:
        lane = Lane(device, probe, self.options, self.listener, end_timeout=_END_SECONDS)
        with lane:
            outcomes = [self._runner.run(case, lane, preparation) for case, preparation in prepared]
        self._recorder.told(device.name, lane.told)
        known = {built.key for built in self.builds}
        self.builds += [built for built in lane.builds if built.key not in known]
        return outcomes


class _Report(msgspec.Struct, frozen=True):
    """What a tool found, why it did not work, and its own words where either is so."""

    findings: tuple[FindingRecord, ...]
    fault: str
    words: str


def _read(watch: Sanitizer, logs: Sequence[str]) -> _Report:
    found: dict[FindingRecord, None] = {}
    fault = ""
    for log in logs:
        try:
            found |= dict.fromkeys(watch.read(log))
        except ValueError as error:
            fault = f"{watch.tool} did not work: {error}"
    words = "\n".join(logs)[:_MOST_LOG] if found or fault else ""
    return _Report(tuple(found), fault, words)


def _judged(outcome: CaseOutcome, watch: Sanitizer, report: _Report) -> CaseOutcome:
    """The outcome with what the tool found, or that it looked and found nothing."""
    record, findings, fault = outcome.record, report.findings, report.fault
    if findings:
        reason = f"{findings[0].tool}: {findings[0].message}"
        if findings[0].location and findings[0].location not in reason:
            reason += f", in {findings[0].location}"
        record = msgspec.structs.replace(
            record,
            verdict=Verdict.REFUTED,
            stage=Stage.RUN,
            reason=reason,
            findings=[*record.findings, *findings],
        )
    elif fault and record.verdict is Verdict.VERIFIED:
        record = msgspec.structs.replace(
            record, verdict=Verdict.INCONCLUSIVE, stage=Stage.RUN, reason=fault
        )
    if not fault:
        looked = ExaminationRecord(kind=watch.kind, tool=watch.tool, scope=watch.scope)
        record = msgspec.structs.replace(record, examined=[*record.examined, looked])
    log = "\n".join(text for text in (outcome.log, report.words) if text)
    return msgspec.structs.replace(outcome, record=record, log=log)


def _merged(first: CaseOutcome, second: CaseOutcome) -> CaseOutcome:
    """One outcome of a case under two tools: the worse verdict, all findings and examinations."""
    one, other = first.record, second.record
    worse, better = (other, one) if other.verdict.rank < one.verdict.rank else (one, other)
    record: CaseRecord = msgspec.structs.replace(
        worse,
        findings=list(dict.fromkeys([*one.findings, *other.findings])),
        examined=list(dict.fromkeys([*one.examined, *other.examined])),
        inputs=worse.inputs or better.inputs,
        outputs=worse.outputs or better.outputs,
        mutants=worse.mutants or better.mutants,
        repeats=worse.repeats or better.repeats,
    )
    seconds = {
        stage: first.seconds.get(stage, 0.0) + second.seconds.get(stage, 0.0)
        for stage in {**first.seconds, **second.seconds}
    }
    log = "\n".join(text for text in (first.log, second.log) if text)
    return msgspec.structs.replace(first, record=record, log=log, seconds=seconds)
