"""Which cases stand in which evidence file, and the evidence of each.

A group is what is judged for vacuity together: spec, variant, shape, device and its architecture. Whole
groups stand together, specs and architectures apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import evidence, spec
from tokitai_cli.batch.index.devices import DeviceBook, DevicePlace
from tokitai_cli.batch.index.end import End
from tokitai_cli.batch.store import Store
from tokitai_cli.core.errors import StorageError
from tokitai_cli.core.model.batch_record import BuildInfo, CaseResult, Done, SpecEntry
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.evidence import CaseRecord, Evidence, NonClaimRecord, SourceRecord
from tokitai_cli.core.model.verdict import worst
from tokitai_cli.run.case_outcome import CaseOutcome
from tokitai_cli.run.evidence_builder import Chosen, EvidenceBuilder, Past
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.spec.plan import Selection

# A file of so many cases is still opened by editors, and is all that a summary holds at a time.
MOST_CASES = 250


class Part(msgspec.Struct, frozen=True):
    """Cases of one evidence file, by number."""

    entry: SpecEntry
    #: Architecture where the spec's cases on one device have several, else empty. index counts the
    #: `of` parts of one spec and label from 1.
    label: str
    index: int
    of: int
    numbers: tuple[int, ...]

    @property
    def suffix(self) -> str:
        """What the file's name has beside the spec's."""
        label = f".{self.label}" if self.label else ""
        return label + (f".part-{self.index}" if self.of > 1 else "")


def parts(specs: Sequence[SpecEntry], dones: Iterable[Done], book: DeviceBook) -> list[Part]:
    """Parts of all specs, in the order of the specs; a spec without a finished case has none.

    Raises StorageError for a case of no spec here, and where a device's record cannot be read.
    """
    groups: dict[str, dict[tuple[str, DevicePlace], list[int]]] = {
        entry.name: {} for entry in specs
    }
    for done in dones:
        if done.name not in groups:
            raise StorageError(
                f"the batch holds the case {done.id}, but not its spec",
                hint="run the batch again without --resume",
            )
        key = (done.group, book.place(done.device_record))
        groups[done.name].setdefault(key, []).append(done.number)
    return [part for entry in specs for part in _parts_of(entry, groups[entry.name])]


def _parts_of(entry: SpecEntry, groups: dict[tuple[str, DevicePlace], list[int]]) -> list[Part]:
    places: dict[str, set[DevicePlace]] = {}
    for _, place in groups:
        places.setdefault(place.name, set()).add(place)
    lots: dict[str, list[list[int]]] = {}
    for (_, place), members in groups.items():
        label = place.label if len(places[place.name]) > 1 else ""
        lots.setdefault(label, []).append(members)
    return [part for label, lot in lots.items() for part in _cut(entry, label, lot)]


def _cut(entry: SpecEntry, label: str, lot: Sequence[Sequence[int]]) -> list[Part]:
    """Whole groups, so many that a part has at most MOST_CASES; a larger group is one by itself."""
    cut: list[list[int]] = [[]]
    for members in lot:
        if cut[-1] and len(cut[-1]) + len(members) > MOST_CASES:
            cut.append([])
        cut[-1] += members
    return [
        Part(entry, label, at, len(cut), tuple(sorted(numbers)))
        for at, numbers in enumerate(cut, start=1)
    ]


class PartWriter:
    """Makes the evidence of parts. A spec and its sources are read once for all parts in a row."""

    def __init__(self, store: Store, book: DeviceBook, end: End) -> None:
        self._store = store
        self._book = book
        self._end = end
        self._entry: SpecEntry | None = None
        self._loaded: LoadedSpec
        self._chosen: Chosen

    def evidence(
        self, part: Part, name: str, finished: int, seen: Callable[[Done, CaseResult], None]
    ) -> Evidence:
        """Evidence named `name`; `finished` are the cases of the whole spec, `seen` gets each of it.

        Raises StorageError and SpecError.
        """
        self._open(part.entry)
        begun, ended = self._end.begun, self._end.ended
        options = RunOptions(
            loaded=self._loaded,
            selection=Selection(),
            settings=begun.settings,
            name=name,
            called=part.entry.called,
        )
        recorder = EvidenceBuilder(options, rerun=begun.rerun)
        recorder.chosen = self._chosen
        builds: dict[str, BuildInfo] = {}
        devices: dict[str, None] = {}
        for number in part.numbers:
            done, result = self._store.result(number)
            seen(done, result)
            devices[done.device_record] = None
            record = result.record
            _check_place(done, record)
            times, told = tuple(result.times_ns), result.oracle_log
            recorder.case(CaseOutcome(record, times, result.log, result.seconds, oracle_log=told))
            recorder.agreements.add(result.agreement, deterministic=record.deterministic)
            if record.build and record.build not in builds:
                builds[record.build] = self._store.build(record.build)
        joined = self._book.joined(devices)
        recorder.devices = {place.name: record for place, record in joined.items()}
        if part.of > 1 or part.label:
            text = "what the other files of this spec's evidence hold, which index.json names"
            recorder.non_claims.append(NonClaimRecord(text=text, source="batch"))
        past = Past(
            started=begun.started,
            finished="" if ended is None else ended.finished,
            seconds=0.0 if ended is None else ended.seconds,
            tool=begun.tool,
            missing=self._end.missing,
        )
        unfinished = self._end.of_spec(part.entry, finished)
        outcome = self._end.outcome(unfinished, worst(case.verdict for case in recorder.cases))
        return recorder.finish(list(builds.values()), [], outcome, past)

    def _open(self, entry: SpecEntry) -> None:
        if entry is self._entry:
            return
        self._loaded = spec.recall(Path(entry.path), self._store.spec(entry.digest))
        self._chosen = Chosen(
            {digest: self._source(digest, path) for digest, path in entry.sources.items()},
            dict(entry.oracles),
        )
        self._entry = entry

    def _source(self, digest: str, path: str) -> SourceRecord:
        return evidence.source_record(path, self._store.source(digest))


def _check_place(done: Done, record: CaseRecord) -> None:
    """Raise StorageError where `record` is not that of the case that was done."""
    said = (record.spec, record.variant, record.shape, record.profile, record.seed, record.device)
    asked = (done.spec, done.variant, done.shape, done.profile, done.seed, done.device)
    if said != asked:
        raise StorageError(
            f"the result of {done.id} is that of {record.key}",
            hint="run the batch again without --resume",
        )
