"""Evidence of one part of a batch: its cases from the folder, through the recorder of every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import evidence, spec
from tokitai_cli.batch.folder import BatchFolder
from tokitai_cli.batch.groups import Part
from tokitai_cli.batch.summary_devices import DeviceBook
from tokitai_cli.batch.summary_end import End
from tokitai_cli.errors import StorageError
from tokitai_cli.model.batch import BuildInfo, CaseResult, Done, SpecEntry
from tokitai_cli.model.case import LoadedSpec
from tokitai_cli.model.evidence import CaseRecord, Evidence, NonClaimRecord, SourceRecord
from tokitai_cli.model.verdict import worst
from tokitai_cli.pipeline.case import CaseOutcome
from tokitai_cli.pipeline.options import RunOptions
from tokitai_cli.pipeline.recorder import Chosen, Past, Recorder
from tokitai_cli.plan import Selection


class PartWriter:
    """Makes the evidence of parts. A spec and its sources are read once for all parts in a row."""

    def __init__(self, folder: BatchFolder, book: DeviceBook, end: End) -> None:
        self._folder = folder
        self._book = book
        self._end = end
        self._entry: SpecEntry | None = None
        self._loaded: LoadedSpec
        self._chosen: Chosen

    def evidence(
        self, part: Part, name: str, finished: int, seen: Callable[[CaseResult], None]
    ) -> Evidence:
        """Evidence named `name`; `finished` are the cases of the whole spec, `seen` gets each result.

        Raises StorageError and SpecError.
        """
        self._open(part.entry)
        begun, ended = self._end.begun, self._end.ended
        options = RunOptions(
            loaded=self._loaded, selection=Selection(), settings=begun.settings, name=name
        )
        recorder = Recorder(options, rerun=begun.rerun)
        recorder.chosen = self._chosen
        builds: dict[str, BuildInfo] = {}
        for done in part.dones:
            result = self._folder.result(done)
            seen(result)
            record = self._checked(done, result.record)
            recorder.case(
                CaseOutcome(
                    record,
                    tuple(result.times_ns),
                    result.log,
                    result.seconds,
                    oracle_log=result.oracle_log,
                )
            )
            if record.build and record.build not in builds:
                builds[record.build] = self._folder.build(record.build)
        joined = self._book.joined(done.device for done in part.dones)
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

    def params(self, entry: SpecEntry) -> list[str]:
        """Order in which shapes of a spec are shown."""
        self._open(entry)
        return list(self._loaded.spec.params)

    def _open(self, entry: SpecEntry) -> None:
        if entry is self._entry:
            return
        self._loaded = spec.recall(Path(entry.path), self._folder.spec(entry.digest))
        self._chosen = Chosen(
            {digest: self._source(digest, path) for digest, path in entry.sources.items()},
            dict(entry.oracles),
        )
        self._entry = entry

    def _source(self, digest: str, path: str) -> SourceRecord:
        return evidence.source_record(path, self._folder.source(digest))

    def _checked(self, done: Done, record: CaseRecord) -> CaseRecord:
        """`record` with its shape in the spec's order, which JSON does not keep."""
        if not done.id.endswith(record.key.removeprefix(record.op)) or record.spec != done.spec:
            raise StorageError(
                f"cases/{done.file} is the case {record.key}, and the journal says {done.id}",
                mend="run the batch again without --resume",
            )
        params: Sequence[str] = [*self._loaded.spec.params, *record.shape]
        shape = {name: record.shape[name] for name in params if name in record.shape}
        return msgspec.structs.replace(record, shape=shape)
