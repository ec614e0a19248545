"""Runs the cases of pytest items in pytest's own process, and judges them in their groups."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tokitai_cli import compare, process
from tokitai_cli.batch.select.cases import BatchCase, Collected
from tokitai_cli.batch.work.serve import CaseServer
from tokitai_cli.model.batch import BuildInfo, CaseResult
from tokitai_cli.model.evidence import CaseRecord
from tokitai_cli.model.verdict import Verdict


class Served(msgspec.Struct, frozen=True):
    """A case that was run: its record, what was printed, and the build where it failed."""

    record: CaseRecord
    log: str = ""
    oracle_log: str = ""
    build: BuildInfo | None = None
    notes: tuple[str, ...] = ()


class _File(msgspec.Struct):
    """What is known of one spec file: its cases by group, and results by number."""

    collected: Collected
    groups: dict[str, list[BatchCase]]
    served: dict[int, Served]


class Bench:
    """Results of cases, each run once, with the one child that serves them.

    Whether a case is vacuous depends on the others of its group (what differs in profile and seed):
    some other one may reject the wrong output that it accepts. They are run as far as they are
    needed, so that a verdict depends neither on what -k and --lf select nor on how xdist spreads the
    items.
    """

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}
        self._server: CaseServer | None = None
        self._serving: Path | None = None

    def add(self, path: Path, collected: Collected) -> None:
        """Make the cases of a spec file known."""
        groups: dict[str, list[BatchCase]] = {}
        for case in collected.cases:
            groups.setdefault(case.group, []).append(case)
        self._files[path] = _File(collected, groups, {})

    def settled(self, path: Path, case: BatchCase) -> Served:
        """Result of the case with its verdict in its group.

        Cases of the group that ran already are asked first, and no more than it takes: a case whose
        own checks reject every wrong output needs none. Where even the whole group rejects some
        wrong output nowhere, the case is inconclusive, as in the evidence of a run.
        """
        file = self._files[path]
        own = self._served(path, file, case)
        others = [one for one in file.groups[case.group] if one.number != case.number]
        others.sort(key=lambda one: one.number not in file.served)
        members = [own.record]
        while True:
            record = compare.settle(members, compare.groups(members))[0]
            if record.verdict is not Verdict.INCONCLUSIVE or own.record.verdict != Verdict.VERIFIED:
                break
            if not others:
                break
            members.append(self._served(path, file, others.pop(0)).record)
        return msgspec.structs.replace(own, record=record)

    def close(self) -> None:
        """End the child, and whatever else is still at work."""
        if self._server is not None:
            self._server.__exit__(None, None, None)
            self._server = None
            process.terminate_all()

    def _served(self, path: Path, file: _File, case: BatchCase) -> Served:
        if case.number not in file.served:
            served = self._serve(path, file, case)
            if served.record.verdict is Verdict.VERIFIED:
                served = msgspec.structs.replace(served, record=_slim(served.record), log="")
            file.served[case.number] = served
        return file.served[case.number]

    def _serve(self, path: Path, file: _File, case: BatchCase) -> Served:
        reply = self._server_of(path, file).serve(case.task())
        result = msgspec.json.decode(reply.result, type=CaseResult)
        failed = result.record.verdict is Verdict.BUILD_FAILED
        return Served(
            record=result.record,
            log=result.log,
            oracle_log=result.oracle_log,
            build=reply.builds.get(reply.build) if failed else None,
            notes=tuple(reply.notes),
        )

    def _server_of(self, path: Path, file: _File) -> CaseServer:
        """The server of the file's cases; the child of another file's is ended, since a GPU may be
        too small for two.
        """
        if self._server is None or self._serving != path:
            if self._server is not None:
                self._server.__exit__(None, None, None)
            self._server, self._serving = CaseServer(file.collected.setup), path
        return self._server


def _slim(record: CaseRecord) -> CaseRecord:
    """What judging the group needs of a verified case: there may be very many of them."""
    return msgspec.structs.replace(record, inputs=[], launches=[], outputs=[], properties=[])
