"""Sums a batch up, from its folder alone: evidence of each spec, and the index over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tokitai_cli import evidence, report
from tokitai_cli.batch.index import case_rows
from tokitai_cli.batch.index.devices import DeviceBook, DevicePlace
from tokitai_cli.batch.index.end import End
from tokitai_cli.batch.index.evidence_parts import Part, PartWriter, parts
from tokitai_cli.batch.index.index_files import (
    CASES,
    EVIDENCE,
    INDEX,
    FileNames,
    evidence_files,
    is_index,
    remove_stale,
    render_index_file,
)
from tokitai_cli.batch.store import Store, make_folder
from tokitai_cli.core.model.batch_record import BatchIndex, CaseResult, Done, SpecEntry, SpecSummary
from tokitai_cli.core.model.evidence import BuildRecord, DeviceRecord, Evidence
from tokitai_cli.core.model.verdict import Verdict, worst
from tokitai_cli.core.model.wording import plural
from tokitai_cli.evidence import queries
from tokitai_cli.run.agreement import Agreements

# What no case of a batch without --sanitize is checked for.
UNSANITIZED = (
    "races and memory accesses inside the kernels: not checked by a sanitizer; add --sanitize"
)
# Takes evidence and the place where it will stand, or raises an error.
Accept = Callable[[Evidence, Path], None]


def summarise(
    store: Store,
    *,
    formats: Sequence[str] = ("md",),
    report_options: report.ReportOptions = report.PLAIN,
    accept: Accept | None = None,
) -> BatchIndex:
    """Write the evidence of each spec and the index of the batch in `store`; returns the index.

    Groups are judged for vacuity here, so a verdict may be worse than that of the case by itself.
    Files: evidence/NAME.json and NAME.FORMAT, in several parts where there are many cases;
    cases.jsonl, index.json, index.md, junit.xml. Each is replaced as a whole, index.json last, and
    evidence that an earlier index named and this one does not is removed. Only the cases of one part
    are in memory at a time.

    Raises StorageError where the batch misses something or is damaged, SpecError where a spec in
    it cannot be read by this version, EvidenceError where nothing can be written; and what `accept`
    raises for evidence that is not to be written.
    """
    path = store.path
    earlier = evidence_files(path / INDEX)
    make_folder(path / EVIDENCE)
    summary = _Summary(store, path / EVIDENCE, formats, report_options, accept)
    index = summary.index()
    evidence.write_file(path / CASES, summary.rows.lines())
    told = evidence.index_without_folders(index)
    for kind, name in report.INDEX_FILES.items():
        pieces = report.render_index(told, kind, summary.rows.cases(), report_options)
        evidence.write_file(path / name, pieces)
    remove_stale(path, earlier - {name for one in index.specs for name in one.evidence})
    return index


def render_folder(
    path: Path, kind: str, report_options: report.ReportOptions = report.PLAIN
) -> bytes:
    """The index of the batch in a folder in one of report.INDEX_FORMATS.

    Where it was killed or still runs, that of the results as they stand: nothing is written then, and
    there is no evidence that it could name. Raises EvidenceError, StorageError and UsageError.
    """
    if is_index(path / INDEX):
        return render_index_file(path / INDEX, kind, report_options)
    report.check_format(kind, of=report.INDEX_FORMATS)
    with Store.read(path) as store:
        summary = _Summary(store, None, ())
        index = summary.index()
        return b"".join(report.render_index(index, kind, summary.rows.cases(), report_options))


class _Spec:
    """What is found of one spec; `finished` are its finished cases."""

    def __init__(self, entry: SpecEntry, place: int, finished: int) -> None:
        self.entry = entry
        self.place = place
        self.finished = finished
        self.verdicts: list[Verdict] = []
        self.files: list[str] = []


class _Summary:
    """One summary: part after part, then what all of them have in common.

    evidence: folder for the evidence of each, None where it is not kept.
    """

    def __init__(
        self,
        store: Store,
        evidence: Path | None,
        formats: Sequence[str],
        report_options: report.ReportOptions = report.PLAIN,
        accept: Accept | None = None,
    ) -> None:
        self._report_options = report_options
        self._accept = accept
        self.rows = case_rows.Rows()
        self._evidence = evidence
        self._formats = [kind for kind in formats if kind != "json"]
        self._begun = store.begun()
        self._book = DeviceBook(store)
        self._parts = parts(self._begun.specs, store.done(), self._book)
        finished: dict[str, int] = {}
        for part in self._parts:
            finished[part.entry.name] = finished.get(part.entry.name, 0) + len(part.numbers)
        self._end = End(self._begun, store.ended(), sum(finished.values()))
        self._specs = {
            entry.name: _Spec(entry, place, finished.get(entry.name, 0))
            for place, entry in enumerate(self._begun.specs)
        }
        self._writer = PartWriter(store, self._book, self._end)
        self._names = FileNames()
        self._agreements = Agreements()
        self._builds: dict[str, str] = {}
        self._hosts: set[str] = set()
        self._devices: dict[str, None] = {}
        for part in self._parts:
            self._add(part)

    def _add(self, part: Part) -> None:
        """Write the evidence of a part and take from it what the index needs."""
        mine = self._specs[part.entry.name]
        name = self._names.take(part.entry.name, part.suffix)
        dones: list[Done] = []

        def see(done: Done, result: CaseResult) -> None:
            dones.append(done)
            self._devices[done.device_record] = None
            if result.host:
                self._hosts.add(result.host)

        found = self._writer.evidence(part, name, mine.finished, see)
        files = [] if self._evidence is None else self._write(found, self._evidence)
        mine.files += files
        mine.verdicts.append(found.verdict)
        for done, case in zip(dones, queries.cases(found), strict=True):
            row = case_rows.row(found, case, done, files[-1] if files else "")
            fine = row.verdict in queries.FINE
            failure = None if fine else case_rows.failure(found, row, case)
            self.rows.add(mine.place, done.number, row, failure)
        for settled in (True, False):
            records = found.agreement if settled else found.volatile.agreement
            self._agreements.add(records, deterministic=settled)
        for key, build in found.builds.items():
            self._builds[key] = build_words(build)

    def _write(self, found: Evidence, folder: Path) -> list[str]:
        """Files of the evidence as paths from the index, JSON last."""
        if self._accept is not None:
            self._accept(found, folder / f"{found.name}.json")
        files = []
        for kind in self._formats:
            files.append(report.file_name(found.name, kind))
            evidence.write_file(
                folder / files[-1], report.render(found, kind, self._report_options)
            )
        files.append(f"{found.name}.json")
        evidence.write(found, folder / files[-1])
        return [f"{EVIDENCE}/{name}" for name in files]

    def index(self) -> BatchIndex:
        """The index of what was added."""
        begun, ended = self._begun, self._end.ended
        counts = self.rows.counts()
        verdict, reason = self._end.verdict(self.rows.worst(), counts)
        if begun.faults and verdict.rank > Verdict.NOT_RUN.rank:
            unread = f"{plural(len(begun.faults), 'spec')} could not be used: {begun.faults[0]}"
            verdict, reason = Verdict.NOT_RUN, f"{unread}; of the others {reason}"
        matrix, note = self.rows.matrix()
        notes = [] if ended is None else list(ended.notes)
        if counts and not begun.settings.sanitize:
            notes.append(UNSANITIZED)
        return BatchIndex(
            verdict=verdict,
            reason=reason,
            counts=counts,
            total=begun.total,
            not_started=self._end.not_started,
            kept=self.rows.kept(),
            left_out=begun.left_out,
            tool=begun.tool,
            settings=begun.settings,
            selection=begun.selection,
            rerun=begun.rerun,
            shard=begun.shard,
            shards=begun.shards,
            specs=[
                self._spec_summary(one) for one in self._specs.values() if not self._elsewhere(one)
            ],
            devices=self._joined_devices(),
            builds=self._builds,
            hosts=sorted(self._hosts),
            failures=self.rows.failures(),
            matrix=matrix,
            agreement=[
                one
                for settled in (True, False)
                for one in self._agreements.records(deterministic=settled)
            ],
            cases_file=CASES,
            notes=[*notes, *filter(None, [note])],
            faults=list(begun.faults),
            started=begun.started,
            finished="" if ended is None else ended.finished,
            seconds=0.0 if ended is None else ended.seconds,
        )

    def _elsewhere(self, one: _Spec) -> bool:
        """Whether all cases of the spec are those of other shards: nothing is missing here."""
        mine = bool(one.verdicts) or not one.entry.cases
        return bool(self._begun.shard) and self._end.whole and not mine

    def _spec_summary(self, one: _Spec) -> SpecSummary:
        verdicts = one.verdicts
        if not verdicts and self._end.of_spec(one.entry, 0):
            verdicts = [Verdict.INTERRUPTED]
        return SpecSummary(
            name=one.entry.name,
            op=one.entry.op,
            path=one.entry.path,
            digest=one.entry.digest,
            verdict=worst(verdicts),
            counts=self.rows.counts(one.place),
            evidence=one.files,
        )

    def _joined_devices(self) -> dict[str, DeviceRecord]:
        """Devices of all cases by name, with the architecture where one name has several."""
        records = self._book.joined(self._devices)
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


def _device_name(place: DevicePlace, *, alone: bool) -> str:
    return place.name if alone else f"{place.name}.{place.label}"
