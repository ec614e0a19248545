"""`sanitize`: every case under each tool of the device's sanitizer, and what the tools found.

The cases of a variant first run in one watched child, since a clean kernel is the rule. Where a tool
found something there, or the child did not come to its end, each of them runs again in a child of its
own, so that a finding belongs to its case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tokitai_cli import devices, process
from tokitai_cli.errors import InadmissibleError, UsageError
from tokitai_cli.model.case import Case
from tokitai_cli.model.device import SANITIZED, Device, Fact, Probe, Sanitizer
from tokitai_cli.model.events import Listener, silent
from tokitai_cli.model.evidence import DeviceRecord
from tokitai_cli.model.judged import ExaminationRecord, FindingRecord
from tokitai_cli.model.settings import Settings
from tokitai_cli.model.verdict import Stage, Verdict
from tokitai_cli.pipeline.case import CaseOutcome, Subject
from tokitai_cli.pipeline.device_session import Built, device_record
from tokitai_cli.pipeline.options import RunOptions
from tokitai_cli.pipeline.run import Lot, Pass, Place, PlainPass, Run, RunOutcome
from tokitai_cli.pipeline.session import Session

# A watched child writes its report when it ends, after the runtime has shut down.
_END_SECONDS = 60.0
# Of a tool's report; equal faults of many threads say the same.
_MOST_LOG = 32 << 10


def sanitize(options: RunOptions, listener: Listener = silent) -> RunOutcome:
    """Run what `options` select under every tool of the device's sanitizer and write the evidence.

    A finding refutes its case. Raises UsageError and SpecError, as `verify` does, and where the device
    has no sanitizer.
    """
    if options.device == "all":
        raise UsageError("sanitize runs on one device", mend=f"name it: --device {SANITIZED[0]}")
    if options.build_only:
        raise UsageError("sanitize --build-only: only what runs can be watched")
    ((device, probe),) = devices.choose(options.device, options.settings)
    if not device.traits.sanitizer:
        mend = f"use --device {' or '.join(SANITIZED)}"
        raise UsageError(f"there is no sanitizer for the device {device.name}", mend=mend)
    sanitizers: tuple[Sanitizer, ...] = ()
    if probe.available:
        try:
            sanitizers = device.sanitizers()
        except InadmissibleError as error:
            missing, mend = error.message, error.mend
            probe = msgspec.structs.replace(probe, available=False, missing=missing, mend=mend)
    facts = tuple(Fact(one.tool, one.version, one.program) for one in sanitizers)
    probe = msgspec.structs.replace(probe, facts=(*probe.facts, *facts))
    run = Run(options, [(device, probe)], listener)
    lots: dict[str, list[Case]] = {}
    for case in run.cases:
        lots.setdefault(case.variant_name, []).append(case)
    with Session(options.settings, listener) as session:
        passes: tuple[Pass, ...] = tuple(
            WatchedPass(run.subject, device, probe, one, options.settings, listener)
            for one in sanitizers
        )
        passes = passes or (PlainPass(session, run.subject, device, probe),)
        return run.over([Place(device.name, passes)], list(lots.values()))


class WatchedPass:
    """Cases under one tool: together in one child, and one by one where it has something to say."""

    def __init__(
        self,
        subject: Subject,
        device: Device,
        probe: Probe,
        sanitizer: Sanitizer,
        settings: Settings,
        listener: Listener,
    ) -> None:
        self.name = sanitizer.tool
        self._subject = subject
        self._device = device
        self._probe = probe
        self._sanitizer = sanitizer
        self._settings = settings
        self._listener = listener
        self._builds: dict[str, Built] = {}
        self.record: DeviceRecord = device_record(device, probe)

    @property
    def builds(self) -> Iterable[Built]:
        """Everything that was built so far."""
        return self._builds.values()

    def outcomes(self, lot: Lot) -> list[CaseOutcome]:
        """Outcome of each case under the tool."""
        together, quiet = self._in_one_child(lot)
        if quiet or len(lot) == 1:
            return together
        return [self._in_one_child([one])[0][0] for one in lot]

    def _in_one_child(self, lot: Lot) -> tuple[list[CaseOutcome], bool]:
        """Outcomes of cases that share a child, and whether the tool found nothing in any."""
        with process.temporary_folder(prefix="watch-") as folder:
            watched = self._sanitizer.under(self._device, folder)
            with Session(self._settings, self._listener, end_timeout=_END_SECONDS) as session:
                plain = PlainPass(session, self._subject, watched, self._probe)
                outcomes = plain.outcomes(lot)
            self.record = plain.record
            self._builds |= {built.key: built for built in plain.builds}
            if any(outcome.record.stage is Stage.BUILD for outcome in outcomes):
                return outcomes, True
            logs = [path.read_text("utf-8", "replace") for path in sorted(folder.glob("*.log"))]
        report = _read(self._sanitizer, logs)
        passed = all(outcome.record.verdict is Verdict.VERIFIED for outcome in outcomes)
        judged = [_judged(outcome, self._sanitizer, report) for outcome in outcomes]
        return judged, passed and not report.findings and not report.fault


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


def _judged(outcome: CaseOutcome, sanitizer: Sanitizer, report: _Report) -> CaseOutcome:
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
        looked = ExaminationRecord(kind=sanitizer.kind, tool=sanitizer.tool, scope=sanitizer.scope)
        record = msgspec.structs.replace(record, examined=[*record.examined, looked])
    log = "\n".join(text for text in (outcome.log, report.words) if text)
    return msgspec.structs.replace(outcome, record=record, log=log)
