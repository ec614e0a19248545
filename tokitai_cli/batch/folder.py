"""The folder of a batch: every finished case on disk before it is counted.

    FOLDER/journal.jsonl       one entry a line, only ever added to
    FOLDER/cases/NAME.json     CaseResult; NAME are the first 32 hex digits of the id's sha256
    FOLDER/builds/KEY.json     records, written once, with the sha256 of their own text
    FOLDER/devices/DIGEST.json
    FOLDER/specs/DIGEST.yaml   as the batch read them
    FOLDER/sources/SHA256
    FOLDER/lock                whoever writes holds it

A case's file is on disk before its line in the journal is, so that a line never promises too much.
The other way round, a file may be newer than its line: the batch was killed between the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from tokitai_cli.batch.durable import (
    make_folders,
    remove_leftovers,
    sync_folders,
    write_files,
)
from tokitai_cli.batch.journal import Journal
from tokitai_cli.batch.lock import FolderLock
from tokitai_cli.batch.records import (
    REPEAT,
    Stored,
    damaged,
    holds,
    read_by_content,
    read_bytes,
    read_sealed,
    readable,
    sealed,
    sha256_of,
)
from tokitai_cli.errors import Location, StorageError
from tokitai_cli.model.batch import Begun, BuildInfo, CaseResult, Done, Ended, Reply
from tokitai_cli.model.evidence import DeviceRecord
from tokitai_cli.model.text import visible

_PARTS = ("cases", "builds", "devices", "specs", "sources")
_NO_BATCH = "give the folder that --out of a batch named"
_NAME = re.compile(r"[0-9a-z-]{1,80}")


class Finished(msgspec.Struct, frozen=True):
    """A case with the reply that a worker gave, to be put on disk. `spec` is the spec's digest."""

    id: str
    number: int
    spec: str
    fingerprint: str
    reply: Reply


class BatchFolder:
    """Context manager over the folder at `path`; made by `open` or `read_only`.

    All methods raise StorageError where the disk does not do its part. Methods that write return
    when what they wrote would survive a power cut; if they raise, all that was written before is
    still there.
    """

    def __init__(self, path: Path, journal: Journal, lock: FolderLock | None) -> None:
        self.path = path
        self._journal = journal
        self._lock = lock
        self._recorded: set[Path] = set()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Make or take over the folder for one batch, which alone may write there until it is closed.

        Raises StorageError where it cannot be written, is in use, or holds another kind of journal.
        """
        parts = [path / part for part in _PARTS]
        make_folders(path, *parts)
        lock = FolderLock(path / "lock")
        try:
            journal = Journal(path / "journal.jsonl", writable=True)
            if not journal.empty:
                for part in parts:
                    remove_leftovers(part)
            # A batch that was killed may have renamed files and not lived to sync their folder.
            sync_folders(path, *parts)
        except BaseException:
            lock.release()
            raise
        return cls(path, journal, lock)

    @classmethod
    def read_only(cls, path: Path) -> Self:
        """Read a folder that may be another's. Raises StorageError where it holds no batch."""
        journal = Journal(path / "journal.jsonl", writable=False)
        if journal.empty:
            raise StorageError(
                "is not the folder of a batch: it holds no journal.jsonl, or an empty one",
                where=Location(path),
                mend=_NO_BATCH,
            )
        return cls(path, journal, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def ignored(self) -> int:
        """Lines of the journal that were torn or damaged when the folder was opened."""
        return self._journal.ignored

    def newest(self) -> dict[str, Done]:
        """The last line of each case id in the whole journal, where all that it names is intact.

        A file that is whole but not the one of the line belongs to a case whose batch was killed
        before its line was written. What it was run from stood in that line alone, so the case
        counts as unfinished.
        """
        last = {entry.id: entry for entry in self._journal.entries() if isinstance(entry, Done)}
        records: dict[Path, bool] = {}
        return {name: done for name, done in last.items() if self._intact(done, records)}

    def begin(self, begun: Begun, specs: Mapping[str, bytes], sources: Mapping[str, bytes]) -> None:
        """Start or go on: specs by digest and sources by sha256 are on disk before the line is."""
        files = {
            **{self._spec(digest): data for digest, data in specs.items()},
            **{self._source(sha256): data for sha256, data in sources.items()},
        }
        write_files(
            {path: data for path, data in files.items() if not holds(path, sha256_of(data))}
        )
        self._journal.append([begun])

    def commit(self, items: Sequence[Finished]) -> None:
        """Put finished cases on disk, with the builds and devices that their replies bring along.

        Several at once share the syncs of folders and journal. Raises ValueError for a reply
        without a result.
        """
        files: dict[Path, bytes] = {}
        dones: list[Done] = []
        for item in items:
            if not item.reply.result:
                raise ValueError(f"the reply to {item.id} has no result")
            files[self._case(item.id)] = item.reply.result
            dones.append(_done(item))
        records = self._new_records(items)
        write_files({**records, **files})
        self._recorded.update(records)
        self._journal.append(dones)

    def keep(self, dones: Sequence[Done]) -> None:
        """Take results of an earlier run over into this one."""
        self._journal.append([msgspec.structs.replace(done, kept=True) for done in dones])

    def end(self, ended: Ended) -> None:
        """Note that the batch came to an end."""
        self._journal.append([ended])

    def begun(self) -> Begun:
        """The last start of a batch; raises StorageError where none has begun."""
        for entry in self._journal.current():
            if isinstance(entry, Begun):
                return entry
        raise StorageError(
            "holds no batch that has begun",
            where=Location(self.path),
            mend=_NO_BATCH,
        )

    def done(self) -> list[Done]:
        """Cases since the last start, the newest line of each id, in the order they first finished."""
        found = {entry.id: entry for entry in self._journal.current() if isinstance(entry, Done)}
        return list(found.values())

    def ended(self) -> Ended | None:
        """How the last batch ended; None where it was killed, or still runs."""
        found = [entry for entry in self._journal.current() if isinstance(entry, Ended)]
        return found[-1] if found else None

    def result(self, done: Done) -> CaseResult:
        """Read a finished case. Raises StorageError where the file is not the one of its line."""
        path = self._case_text(done.id)
        data = read_bytes(path)
        if done.file != case_file(done.id) or sha256_of(data) != done.sha256:
            raise damaged(path, "it is not the file that the journal tells of")
        try:
            return msgspec.json.decode(data, type=CaseResult)
        except (ValueError, RecursionError) as error:
            raise damaged(path, str(error)) from error

    def build(self, key: str) -> BuildInfo:
        """Read a build by its key."""
        return read_sealed(self._build(key), BuildInfo)

    def device(self, digest: str) -> DeviceRecord:
        """Read a device by the digest of its record."""
        return read_sealed(self._device(digest), DeviceRecord)

    def spec(self, digest: str) -> bytes:
        """Read the text of a spec by its sha256."""
        return read_by_content(self._spec(digest), digest)

    def source(self, sha256: str) -> bytes:
        """Read the text of a kernel's source by its sha256."""
        return read_by_content(self._source(sha256), sha256)

    def _intact(self, done: Done, known: dict[Path, bool]) -> bool:
        """Whether a case's file and records are there; `known` remembers the records looked at."""
        try:
            if done.file != case_file(done.id):
                return False
            if not holds(self._case_text(done.id), done.sha256):
                return False
            records: dict[Path, type[Stored]] = {}
            if done.build:
                records[self._build(done.build)] = BuildInfo
            if done.device:
                records[self._device(done.device)] = DeviceRecord
        except StorageError:
            return False
        for path, kind in records.items():
            if path not in known:
                known[path] = readable(path, kind)
        return all(known[path] for path in records)

    def _new_records(self, items: Sequence[Finished]) -> dict[Path, bytes]:
        """Files of the builds and devices that come with `items` and are not on disk yet."""
        records: dict[Path, Stored] = {}
        for item in items:
            for key, build in item.reply.builds.items():
                records[self._build(key)] = build
            for digest, device in item.reply.devices.items():
                records[self._device(digest)] = device
        files: dict[Path, bytes] = {}
        for path, record in records.items():
            if path in self._recorded:
                continue
            if readable(path, type(record)):
                self._recorded.add(path)
            else:
                files[path] = sealed(record)
        return files

    def _case(self, name: str) -> Path:
        return self.path / "cases" / case_file(name)

    def _case_text(self, name: str) -> str:
        """`_case` as text: a Path keeps every name that it meets in a table of the interpreter."""
        return f"{self.path}/cases/{case_file(name)}"

    def _build(self, key: str) -> Path:
        return self._place("builds", key, ".json")

    def _device(self, digest: str) -> Path:
        return self._place("devices", digest, ".json")

    def _spec(self, digest: str) -> Path:
        return self._place("specs", digest, ".yaml")

    def _source(self, sha256: str) -> Path:
        return self._place("sources", sha256, "")

    def _place(self, part: str, name: str, suffix: str) -> Path:
        """Path of a file by the name that a journal or a worker gave it, which is not trusted."""
        if not _NAME.fullmatch(name):
            raise StorageError(
                f"{visible(name)!r} is no name of a file there",
                where=Location(self.path / part),
                mend=REPEAT,
            )
        return self.path / part / f"{name}{suffix}"


def case_file(name: str) -> str:
    """Name of the file of the case with the id `name`."""
    # Bytes of a path that are no text become the escapes that the journal writes for them, so that
    # an id has one file before and after it was read back.
    return f"{sha256_of(name.encode('utf-8', 'backslashreplace'))[:32]}.json"


def _done(item: Finished) -> Done:
    reply = item.reply
    return Done(
        id=item.id,
        number=item.number,
        spec=item.spec,
        fingerprint=item.fingerprint,
        file=case_file(item.id),
        sha256=sha256_of(reply.result),
        verdict=reply.verdict,
        seconds=reply.seconds,
        build=reply.build,
        device=reply.device,
        device_identity=reply.device_identity,
    )
