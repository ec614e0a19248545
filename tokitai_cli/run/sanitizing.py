"""`sanitize`: every case under each tool of the device's sanitizer, and what the tools found.

The cases of a variant run in one watched child. A tool that tells what it found only at the child's end
has each of them run again in a child of its own where it found something, or the child did not come to
its end, so that a finding belongs to its case; one that tells it case by case need not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import build, devices
from tokitai_cli.core import process
from tokitai_cli.core.errors import InadmissibleError, UsageError
from tokitai_cli.core.linked_folders import BUILT, links_of
from tokitai_cli.core.model.batch_record import BuildInfo
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import SANITIZED, Device, Fact, Probe, Sanitizer
from tokitai_cli.core.model.events import Listener, one_at_a_time, silent
from tokitai_cli.core.model.evidence import CaseRecord, DeviceRecord
from tokitai_cli.core.model.judged import ExaminationRecord, FindingRecord, graver
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.judge import failure_of
from tokitai_cli.run import child, guessed
from tokitai_cli.run.case_outcome import CaseOutcome, merged
from tokitai_cli.run.case_record import ended, in_light_of_bugs, new_record
from tokitai_cli.run.case_run import RunContext, watched_case
from tokitai_cli.run.device_passes import CaseGroup, DevicePasses, PlainPass
from tokitai_cli.run.device_session import DeviceSession, device_record
from tokitai_cli.run.loop import Run, RunOutcome
from tokitai_cli.run.prepare import Preparation
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.run.session import Session

# A watched child writes its report when it ends, after the runtime has shut down.
_END_SECONDS = 60.0
# Of a tool's report; equal faults of many threads say the same.
_MOST_LOG = 32 << 10


def sanitize(options: RunOptions, listener: Listener = silent) -> RunOutcome:
    """Run what `options` select under every tool of the device's sanitizer and write the evidence.

    A finding refutes its case. Raises UsageError and SpecError, as `verify` does, and where the device
    has no sanitizer.
    """
    if options.device == "all" and not options.settings.sanitize:
        raise UsageError("sanitize runs on one device", hint=f"name it: --device {SANITIZED[0]}")
    if options.build_only:
        raise UsageError("sanitize --build-only: only kernels that run can be checked")
    chosen = devices.choose(options.device, options.settings)
    if len(chosen) == 1:
        check_sanitized(chosen[0][0].name)
    else:
        chosen = [pair for pair in chosen if pair[1].available] or chosen
    kits = [(device, tools(device, probe)) for device, probe in chosen]
    listener = one_at_a_time(listener)
    run = Run(options, [(device, kit.probe) for device, kit in kits], listener)
    lots: dict[str, list[Case]] = {}
    for case in run.cases:
        lots.setdefault(case.variant_name, []).append(case)
    with Session(options.settings, listener) as session:
        places = [
            DevicePasses(
                device.name,
                watches(kit, run.subject, device, options.settings, listener)
                or (PlainPass(session, run.subject, device, kit.probe),),
            )
            for device, kit in kits
        ]
        return run.over(places, list(lots.values()))


def check_sanitized(device: str) -> None:
    """Raise UsageError where nothing watches the device."""
    if device in devices.names() and device not in SANITIZED:
        hint = f"use --device {' or '.join(SANITIZED)}"
        raise UsageError(f"there is no sanitizer for the device {device}", hint=hint)


class Tools(msgspec.Struct, frozen=True):
    """Tools of a device that can run, its probe with them, and what is not tested for want of others."""

    probe: Probe
    usable: tuple[Sanitizer, ...]
    untested: tuple[str, ...]


def tools(device: Device, probe: Probe, *, case_by_case: bool = False) -> Tools:
    """The tools that watch `device`, as it was probed; it is not available where they are missing.

    case_by_case: without those that speak of all cases of a run together.
    """
    found: tuple[Sanitizer, ...] = ()
    if probe.available:
        try:
            found = device.sanitizers()
        except InadmissibleError as error:
            missing, hint = error.message, error.hint
            probe = msgspec.structs.replace(probe, available=False, missing=missing, hint=hint)
    found = tuple(one for one in found if not (case_by_case and one.unexecuted))
    usable = tuple(one for one in found if not one.missing)
    seen = {kind for one in usable for kind, _ in one.looks}
    untested = tuple(
        f"{kind} not tested ({scope}): {one.missing}"
        for one in found
        for kind, scope in one.looks
        if one.missing and kind not in seen
    )
    return with_tools(probe, usable, untested)


def with_tools(
    probe: Probe, usable: tuple[Sanitizer, ...], untested: tuple[str, ...] = ()
) -> Tools:
    """These tools, with what they are in the probe of their device."""
    facts = tuple(Fact(one.tool, one.version, one.program) for one in usable if one.program)
    return Tools(msgspec.structs.replace(probe, facts=(*probe.facts, *facts)), usable, untested)


def watches(
    tools: Tools, subject: RunContext, device: Device, settings: Settings, listener: Listener
) -> tuple[WatchedPass, ...]:
    """A pass over the cases for each tool."""
    return tuple(
        (WatchedPass if one.judges else LoggedPass)(subject, device, tools, one, settings, listener)
        for one in tools.usable
    )


def without_oracle(
    options: RunOptions, cases: Sequence[Case], listener: Listener = silent
) -> list[CaseRecord]:
    """The cases of one spec under every tool of the device that needs no right outputs.

    One that says verified came to its end without a finding that refutes it. Raises UsageError where
    nothing watches the device.
    """
    check_sanitized(options.device)
    ((device, probe),) = devices.choose(options.device, options.settings)
    kit = tools(device, probe, case_by_case=True)
    kit = msgspec.structs.replace(kit, usable=tuple(one for one in kit.usable if not one.judges))
    subject = RunContext(options, sources={}, oracles={})
    lot = [Preparation(case, options.settings) for case in cases]
    if not kit.usable:
        why = kit.probe.missing or "; ".join(kit.untested)
        drafts = [new_record(case, device.name, options) for case in cases]
        return [ended(one, Verdict.INADMISSIBLE, Stage.PROBE, why) for one in drafts]
    met = [one.outcomes(lot) for one in watches(kit, subject, device, options.settings, listener)]
    return [functools.reduce(merged, several).record for several in zip(*met, strict=True)]


class WatchedPass:
    """Cases under one tool: together in one child, and one by one where it has something to say."""

    def __init__(
        self,
        subject: RunContext,
        device: Device,
        found: Tools,
        sanitizer: Sanitizer,
        settings: Settings,
        listener: Listener,
    ) -> None:
        self.name = sanitizer.tool
        self._subject = subject
        self._device = device
        self._probe = found.probe
        self._untested = found.untested
        self._unexecuted: tuple[str, ...] = ()
        self._sanitizer = sanitizer
        repeat = 1 if sanitizer.once else max(settings.repeat, sanitizer.repeat)
        # As the verb's own default: a watched kernel takes ten to a hundred times longer.
        timeout = settings.timeout * (10 if settings.sanitize else 1)
        self._settings = msgspec.structs.replace(settings, repeat=repeat, timeout=timeout)
        self._listener = listener
        self._builds: dict[str, BuildInfo] = {}
        self._record = device_record(device, found.probe)

    @property
    def record(self) -> DeviceRecord:
        """The device, with what is not tested on it."""
        non_claims = [*self._record.non_claims, *self._untested, *self._unexecuted]
        return msgspec.structs.replace(self._record, non_claims=non_claims)

    @property
    def builds(self) -> Iterable[BuildInfo]:
        """Everything that was built so far."""
        return self._builds.values()

    def outcomes(self, lot: CaseGroup) -> list[CaseOutcome]:
        """Outcome of each case under the tool."""
        together, quiet = self._in_one_child(lot)
        if quiet or len(lot) == 1 or not self._sanitizer.program:
            return together
        return [self._in_one_child([one])[0][0] for one in lot]

    def _in_one_child(self, lot: CaseGroup) -> tuple[list[CaseOutcome], bool]:
        """Outcomes of cases that share a child, and whether the tool found nothing in any."""
        with process.temporary_folder(prefix="watch-") as folder:
            watched = self._sanitizer.under(self._device, folder)
            with Session(self._settings, self._listener, end_timeout=_END_SECONDS) as session:
                plain = PlainPass(session, self._subject, watched, self._probe)
                outcomes = plain.outcomes(lot)
            self._record = plain.record
            self._builds |= {built.key: built for built in plain.builds}
            if any(outcome.record.stage is Stage.BUILD for outcome in outcomes):
                return outcomes, True
            logs = [
                links_of(path.with_suffix(BUILT)).text(path.read_text("utf-8", "replace"))
                for path in sorted(folder.glob("*.log"))
            ]
        report = _read(self._sanitizer, logs)
        passed = all(outcome.record.verdict is Verdict.VERIFIED for outcome in outcomes)
        judged = [
            _judged(outcome, self._sanitizer, report, one.case, self._probe, self._settings)
            for outcome, one in zip(outcomes, lot, strict=True)
        ]
        return judged, passed and not report.findings and not report.fault


class LoggedPass(WatchedPass):
    """Cases under a tool that tells what it found when a case ends; their outputs are not compared."""

    def outcomes(self, lot: CaseGroup) -> list[CaseOutcome]:
        """Outcome of each case under the tool."""
        with process.temporary_folder(prefix="watch-") as folder:
            watched = self._sanitizer.under(self._device, folder)
            tail = _Tail(folder)
            with Session(self._settings, self._listener, end_timeout=_END_SECONDS) as session:
                device = session.device(watched, self._probe)
                outcomes = [self._weighed(one, device, tail) for one in lot]
            self._builds |= {built.key: built.info for built in device.builds}
            self._record = device.record
            if self._sanitizer.unexecuted is not None:
                self._unexecuted = self._sanitizer.unexecuted(folder)
        return outcomes

    def _weighed(self, prepared: Preparation, device: DeviceSession, tail: _Tail) -> CaseOutcome:
        outcome = self._outcome(prepared, device, tail)

        def another(other: Case) -> CaseRecord:
            return self._outcome(Preparation(other, self._settings), device, tail).record

        record = guessed.at_guessed_sizes(outcome.record, prepared.case, another)
        return msgspec.structs.replace(outcome, record=record)

    def _outcome(self, prepared: Preparation, device: DeviceSession, tail: _Tail) -> CaseOutcome:
        outcome = watched_case(self._subject, prepared, device)
        if outcome.record.stage in {Stage.PROBE, Stage.PLAN, Stage.INPUTS, Stage.ORACLE}:
            return outcome
        if outcome.record.verdict is Verdict.BUILD_FAILED:
            report = _Report((), f"{self.name} did not work: {outcome.record.reason}", "")
        elif self._sanitizer.unexecuted is not None:
            return outcome
        else:
            report = _read(self._sanitizer, tail.new())
            if not report.fault:  # its log has addresses, which the findings have as lines
                words = "\n".join(one.line for one in report.findings)
                report = msgspec.structs.replace(report, words=words)
        return _judged(outcome, self._sanitizer, report, prepared.case, self._probe, self._settings)


class _Tail:
    """What is new in the logs of a folder, each with its first line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def new(self) -> list[str]:
        """Texts of the logs that have grown since the last call."""
        texts = []
        for path in sorted(self._folder.glob("*.log")):
            data, known = path.read_bytes(), self._read.get(path, 0)
            if len(data) > known:
                head = data[: data.find(b"\n") + 1] if known else b""
                texts.append((head + data[known:]).decode("utf-8", "replace"))
                self._read[path] = len(data)
        return texts


class _Report(msgspec.Struct, frozen=True):
    """What a tool found, why it did not work, and its own words where either is so."""

    findings: tuple[FindingRecord, ...]
    fault: str
    words: str


def _read(sanitizer: Sanitizer, logs: Sequence[str]) -> _Report:
    found: dict[FindingRecord, None] = {}
    fault = ""
    for log in logs:
        try:
            found |= dict.fromkeys(sanitizer.read(log))
        except ValueError as error:
            fault = f"{sanitizer.tool} did not work: {error}"
    words = "\n".join(logs)[:_MOST_LOG] if found or fault else ""
    return _Report(tuple(found), fault, words)


def _judged(
    outcome: CaseOutcome,
    sanitizer: Sanitizer,
    report: _Report,
    case: Case,
    probe: Probe,
    settings: Settings,
) -> CaseOutcome:
    """The outcome with what the tool found, or that it looked and found nothing."""
    record, fault = outcome.record, report.fault
    amd = settings.arch.startswith("gfx")
    findings = [
        # What undoes a program on AMD's GPUs is an error where one of theirs is asked for.
        graver(_placed(one, case), strict=settings.strict or (amd and one.kind == "amd-mask"))
        for one in report.findings
    ]
    record = msgspec.structs.replace(record, findings=[*record.findings, *findings])
    if errors := [one for one in findings if one.severity == "error"]:
        reason = f"{errors[0].tool}: {errors[0].message}"
        if errors[0].location and errors[0].location not in reason:
            reason += f", in {errors[0].location}"
        failures = [failure_of(one) for one in errors]
        failures[0] = msgspec.structs.replace(failures[0], text=reason)
        told = guessed.in_light(ended(record, Verdict.REFUTED, Stage.RUN, reason), case, failures)
        record = in_light_of_bugs(told, case, probe)
        if record.verdict is not Verdict.EXPECTED_FAILURE:
            record = told
    elif fault and record.verdict in {Verdict.VERIFIED, Verdict.BUILD_FAILED}:
        record = ended(record, Verdict.INCONCLUSIVE, Stage.RUN, fault)
    if not fault and record.verdict is not Verdict.BUILD_FAILED:
        schedules = 0 if record.repeats is None else len(set(record.repeats.schedules))
        looked = [
            ExaminationRecord(kind=kind, tool=sanitizer.tool, scope=scope, schedules=schedules)
            for kind, scope in sanitizer.looks
        ]
        record = msgspec.structs.replace(record, examined=[*record.examined, *looked])
    log = "\n".join(text for text in (outcome.log, report.words) if text)
    return msgspec.structs.replace(outcome, record=record, log=log)


def _placed(finding: FindingRecord, case: Case) -> FindingRecord:
    """The finding with the array's name and element, and files as they lie beside source or spec."""
    buffers = [(one.name, one.nbytes // max(one.elements, 1)) for one in case.buffers]
    location = finding.location
    message = child.named(finding.message, [name for name, _ in buffers])
    source = build.source_path(case)
    for folder in (source.parent, case.loaded.folder.resolve(), case.loaded.folder):
        location = location.replace(f"{folder}/", "")
        message = message.replace(f"{folder}/", "")
    array = devices.element(finding.array, buffers)
    return msgspec.structs.replace(finding, array=array, location=location, message=message)
