"""Sums a batch up, from its folder alone: evidence of each spec, and the index over all of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tokitai_cli import evidence, report
from tokitai_cli.batch import summary_rows
from tokitai_cli.batch.durable import make_folders
from tokitai_cli.batch.folder import BatchFolder
from tokitai_cli.batch.groups import Part, parts
from tokitai_cli.batch.summary_devices import DeviceBook, Place
from tokitai_cli.batch.summary_end import End
from tokitai_cli.batch.summary_files import (
    CASES,
    EVIDENCE,
    INDEX,
    FileNames,
    evidence_files,
    remove_stale,
)
from tokitai_cli.batch.summary_matrix import Matrix
from tokitai_cli.batch.summary_part import PartWriter
from tokitai_cli.model import encoding
from tokitai_cli.model.batch import (
    BatchIndex,
    CaseResult,
    Failure,
    IndexCase,
    SpecEntry,
    SpecSummary,
)
from tokitai_cli.model.evidence import BuildRecord, DeviceRecord, Evidence
from tokitai_cli.model.verdict import Verdict, worst
from tokitai_cli.model.view import FINE

# Failures that the index tells in detail; every case is a row of cases.jsonl and stands in evidence.
MOST_FAILURES = 1000


def summarise(folder: BatchFolder, *, formats: Sequence[str] = ("md",)) -> BatchIndex:
    """Write the evidence of each spec and the index of the batch in `folder`; returns the index.

    Groups are judged for vacuity here, so a verdict may be worse than that of the case by itself.
    Files: evidence/NAME.json and NAME.FORMAT, in several parts where there are many cases;
    cases.jsonl, index.json, index.md, junit.xml. Each is replaced as a whole, index.json last, and
    evidence that an earlier index named and this one does not is removed. Only the cases of one part
    are in memory at a time.

    Raises StorageError where the folder misses something or is damaged, SpecError where a spec in
    it cannot be read by this version, EvidenceError where nothing can be written.
    """
    return _Summary(folder, formats).write()


class _Spec:
    """What is counted of one spec. `place` is that in the batch, `finished` its finished cases."""

    def __init__(self, entry: SpecEntry, place: int, finished: int) -> None:
        self.entry = entry
        self.place = place
        self.finished = finished
        self.counts: dict[Verdict, int] = {}
        self.verdicts: list[Verdict] = []
        self.files: list[str] = []

    def summary(self, end: End, params: list[str]) -> SpecSummary:
        verdicts = self.verdicts
        if not verdicts and end.of_spec(self.entry, 0):
            verdicts = [Verdict.INTERRUPTED]
        return SpecSummary(
            name=self.entry.name,
            op=self.entry.op,
            path=self.entry.path,
            digest=self.entry.digest,
            verdict=worst(verdicts),
            counts=_in_order(self.counts),
            evidence=self.files,
            params=params,
        )


class _Failures:
    """The worst failures, by rank and in the order of the plan; memory for MOST_FAILURES of them."""

    def __init__(self) -> None:
        self._all: list[tuple[int, int, int, Failure]] = []

    def add(self, place: int, number: int, failure: Failure) -> None:
        self._all.append((failure.case.verdict.rank, place, number, failure))
        if len(self._all) >= 2 * MOST_FAILURES:
            self._all = self._sorted()

    def worst(self) -> list[Failure]:
        return [failure for *_, failure in self._sorted()]

    def _sorted(self) -> list[tuple[int, int, int, Failure]]:
        return sorted(self._all, key=lambda item: item[:3])[:MOST_FAILURES]


class _Summary:
    """One summary: part after part, then what all of them have in common."""

    def __init__(self, folder: BatchFolder, formats: Sequence[str]) -> None:
        self._folder = folder
        self._formats = [kind for kind in formats if kind != "json"]
        self._begun = folder.begun()
        self._book = DeviceBook(folder)
        dones = folder.done()
        self._end = End(self._begun, folder.ended(), len(dones))
        self._parts = parts(self._begun.specs, dones, self._book)
        self._specs = {
            entry.name: _Spec(entry, place, self._finished(entry))
            for place, entry in enumerate(self._begun.specs)
        }
        self._writer = PartWriter(folder, self._book, self._end)
        self._names = FileNames()
        self._matrix = Matrix()
        self._failures = _Failures()
        self._worst: IndexCase | None = None
        self._lines: list[tuple[int, int, bytes]] = []
        self._builds: dict[str, str] = {}
        self._hosts: set[str] = set()
        self._kept = 0

    def write(self) -> BatchIndex:
        path = self._folder.path
        earlier = evidence_files(path / INDEX)
        make_folders(path / EVIDENCE)
        for part in self._parts:
            self._add(part)
        index = self._index()
        self._lines.sort(key=lambda item: item[:2])
        rows = [line for *_, line in self._lines]
        evidence.write_file(path / CASES, rows)
        for kind, name in report.INDEX_FILES.items():
            cases = map(msgspec.json.Decoder(IndexCase).decode, rows)
            evidence.write_file(path / name, report.render_index(index, kind, cases))
        remove_stale(path, earlier - {name for one in index.specs for name in one.evidence})
        return index

    def _add(self, part: Part) -> None:
        """Write the evidence of a part and take from it what the index needs."""
        mine = self._specs[part.entry.name]
        name = self._names.take(part.entry.name, part.suffix)
        found = self._writer.evidence(part, name, mine.finished, self._see)
        mine.files += self._write(found)
        mine.verdicts.append(found.verdict)
        for done, row, case in summary_rows.rows(
            found, part.dones, part.entry.name, mine.files[-1]
        ):
            mine.counts[row.verdict] = mine.counts.get(row.verdict, 0) + 1
            self._matrix.add(row)
            self._kept += row.kept
            self._lines.append((mine.place, done.number, encoding.line(row)))
            if row.verdict not in FINE:
                failure = summary_rows.failure(found, row, case)
                self._failures.add(mine.place, done.number, failure)
            if self._worst is None or row.verdict.rank < self._worst.verdict.rank:
                self._worst = row
        for key, build in found.builds.items():
            self._builds[key] = build_words(build)

    def _write(self, found: Evidence) -> list[str]:
        """Files of the evidence as paths from the index, JSON last."""
        folder = self._folder.path / EVIDENCE
        files = []
        for kind in self._formats:
            name = report.file_name(found.name, kind)
            evidence.write_file(folder / name, report.render(found, kind))
            files.append(f"{EVIDENCE}/{name}")
        evidence.write(found, folder / f"{found.name}.json")
        return [*files, f"{EVIDENCE}/{found.name}.json"]

    def _see(self, result: CaseResult) -> None:
        if result.host:
            self._hosts.add(result.host)

    def _finished(self, entry: SpecEntry) -> int:
        return sum(len(part.dones) for part in self._parts if part.entry.name == entry.name)

    def _index(self) -> BatchIndex:
        begun, ended = self._begun, self._end.ended
        specs = [
            one.summary(self._end, self._writer.params(one.entry)) for one in self._specs.values()
        ]
        counts: dict[Verdict, int] = {}
        for one in self._specs.values():
            for verdict, count in one.counts.items():
                counts[verdict] = counts.get(verdict, 0) + count
        verdict, reason = self._end.verdict(self._worst, _in_order(counts))
        notes = [] if ended is None else list(ended.notes)
        return BatchIndex(
            verdict=verdict,
            reason=reason,
            counts=_in_order(counts),
            total=begun.total,
            not_started=self._end.not_started,
            kept=self._kept,
            left_out=begun.left_out,
            tool=begun.tool,
            settings=begun.settings,
            selection=begun.selection,
            rerun=begun.rerun,
            shard=begun.shard,
            shards=begun.shards,
            specs=specs,
            devices=self._devices(),
            builds=self._builds,
            hosts=sorted(self._hosts),
            failures=self._failures.worst(),
            matrix=self._matrix.cells(),
            cases_file=CASES,
            notes=[*notes, *filter(None, [self._matrix.note])],
            started=begun.started,
            finished="" if ended is None else ended.finished,
            seconds=0.0 if ended is None else ended.seconds,
        )

    def _devices(self) -> dict[str, DeviceRecord]:
        """Devices of all cases by name, with the architecture where one name has several."""
        digests = dict.fromkeys(done.device for part in self._parts for done in part.dones)
        records = self._book.joined(digests)
        several = [place.name for place in records]
        return {
            _device_name(place, alone=several.count(place.name) == 1): record
            for place, record in records.items()
        }


def build_words(build: BuildRecord) -> str:
    """A build in words: what was built for what, by which compiler, and what came of it."""
    arch = f" ({build.arch})" if build.arch else ""
    words = f"{build.source} for {build.device}{arch}"
    if build.compiler is not None:
        words += f" by {build.compiler.version.strip().partition(chr(10))[0]}"
    if build.failed or not build.artifact_sha256:
        return f"{words}: failed"
    return f"{words}: sha256 {build.artifact_sha256}"


def _device_name(place: Place, *, alone: bool) -> str:
    return place.name if alone else f"{place.name}.{place.label}"


def _in_order(counts: dict[Verdict, int]) -> dict[str, int]:
    """Counts, worst verdict first; those of which there are none left out."""
    return {str(verdict): counts[verdict] for verdict in Verdict if counts.get(verdict)}
