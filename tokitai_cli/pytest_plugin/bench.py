"""Runs the cases of pytest items in pytest's own process, and judges them in their groups."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tokitai_cli import devices, evidence
from tokitai_cli.batch.select.collected import BatchCase, Collected
from tokitai_cli.batch.work.serve import notes_into, subject_of
from tokitai_cli.core import process
from tokitai_cli.core.model.batch_record import BuildInfo
from tokitai_cli.core.model.evidence import CaseRecord, GroupRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence import encoding
from tokitai_cli.run.case_run import RunContext
from tokitai_cli.run.session import Session


class Served(msgspec.Struct, frozen=True):
    """A case that was run: its record, what was printed, and the build where it failed."""

    record: CaseRecord
    log: str = ""
    oracle_log: str = ""
    build: BuildInfo | None = None
    notes: tuple[str, ...] = ()


class _File(msgspec.Struct):
    """What is known of one spec file: its cases by group, and results by number."""

    subject: RunContext
    groups: dict[str, list[BatchCase]]
    served: dict[int, Served] = msgspec.field(default_factory=dict)
    judged: dict[str, list[GroupRecord]] = msgspec.field(default_factory=dict)


class Bench:
    """Results of cases, each run once, with the one child that serves them.

    Whether a case is vacuous depends on the others of its group (what differs in profile and seed):
    another one may reject the wrong output that it accepts, or accept one that it does not have. So
    the whole group is run for the first of them, and a verdict depends neither on what -k and --lf
    select nor on how xdist spreads the items.
    """

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}
        self._session: Session | None = None
        self._notes: list[str] = []

    def add(self, path: Path, collected: Collected) -> None:
        """Make the cases of a spec file known."""
        if not collected.cases:
            return
        setup = collected.setup
        ((place, one),) = zip(setup.specs, collected.specs, strict=True)
        groups: dict[str, list[BatchCase]] = {}
        for case in collected.cases:
            groups.setdefault(case.group, []).append(case)
        self._files[path] = _File(subject_of(setup, place, one.loaded), groups)

    def settled(self, path: Path, case: BatchCase) -> Served:
        """Result of the case with its verdict in its group, as in the evidence of a run."""
        file = self._files[path]
        own = self._served(file, case)
        if own.record.verdict is not Verdict.VERIFIED:
            return own  # nothing in its group changes that
        if case.group not in file.judged:
            group = [self._served(file, one).record for one in file.groups[case.group]]
            file.judged[case.group] = evidence.groups(group)
        (record,) = evidence.mark_vacuous([own.record], file.judged[case.group])
        return msgspec.structs.replace(own, record=record)

    def close(self) -> None:
        """End the child, and whatever else is still at work."""
        if self._session is not None:
            self._session.close()
            process.terminate_all()

    def _served(self, file: _File, case: BatchCase) -> Served:
        if case.number not in file.served:
            served = self._serve(file.subject, case)
            if served.record.verdict is Verdict.VERIFIED:
                served = msgspec.structs.replace(served, record=_slim(served.record), log="")
            file.served[case.number] = served
        return file.served[case.number]

    def _serve(self, subject: RunContext, case: BatchCase) -> Served:
        if self._session is None:  # all files have the same settings
            self._session = Session(subject.options.settings, notes_into(self._notes))
        device = self._session.device(devices.get(case.device))
        outcome = self._session.run(subject, case.case, device)
        failed = outcome.record.verdict is Verdict.BUILD_FAILED
        notes = tuple(self._notes)
        self._notes.clear()
        return Served(
            record=encoding.normal(outcome.record),
            log=outcome.log,
            oracle_log=outcome.oracle_log,
            build=device.built(case.case).info if failed else None,
            notes=notes,
        )


def _slim(record: CaseRecord) -> CaseRecord:
    """What judging the group needs of a verified case: there may be very many of them."""
    return msgspec.structs.replace(record, inputs=[], launches=[], outputs=[], properties=[])
