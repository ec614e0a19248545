"""The journal of a batch: lines of JSON that are only ever added to.

A line counts once its line break is on disk. Whatever else stands in the file is ignored and
counted: the torn end of a batch that was killed, or a line that a disk has damaged.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.batch.durable import storage_error, write_at, write_files
from tokitai_cli.errors import Location, StorageError
from tokitai_cli.model import encoding
from tokitai_cli.model.batch import JOURNAL_SCHEMA, Begun, Done, Entry

_FAMILY = "tokitai/batch-journal/v"
_BEGUN = b'"kind":"begun"'
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


class _Head(msgspec.Struct):
    """The part of a line that says whether a later version wrote it."""

    kind: str = ""
    schema: str = ""


class Line(msgspec.Struct, frozen=True):
    """A line as it was read: bytes of the file from `start` to before `end`.

    A torn line has no bytes that count: its `end` is its `start`. entry: None where the line is
    ignored. begins: it is an ignored line in which a batch began.
    """

    start: int
    end: int
    entry: Entry | None
    begins: bool = False


class Journal:
    """The journal at `path`, which need not exist yet; writing is for whoever holds the folder's lock.

    ignored: lines that did not count when it was opened. Raises StorageError where the file is of a
    newer schema, is something else than a journal, or cannot be read or, if `writable`, written.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.ignored = 0
        self._writable = writable
        self._descriptor = -1
        # Where the next line goes; anything behind it was never acknowledged.
        self._end = 0
        self._open()

    @property
    def empty(self) -> bool:
        """Whether it holds nothing yet, or is not there."""
        return self._end == 0

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first. Raises StorageError."""
        for line in self._lines():
            if line.entry is not None:
                yield shared(line.entry)

    def current(self) -> Iterator[Entry]:
        """The last Begun and the entries after it; nothing where no batch has begun.

        Raises StorageError, also where a later Begun is damaged: what follows it would be taken for
        results of the batch before.
        """
        start = -1
        damaged = False
        for line in self._lines():
            if isinstance(line.entry, Begun):
                start, damaged = line.start, False
            damaged |= line.begins
        if damaged:
            raise StorageError(
                "is damaged: the line in which the last batch began cannot be read",
                where=Location(self.path),
                mend="run the batch again with --resume; what is finished is kept",
            )
        if start >= 0:
            for line in self._lines(start):
                if line.entry is not None:
                    yield shared(line.entry)

    def append(self, entries: Sequence[Entry]) -> None:
        """Add lines, which are on disk when this returns. Raises StorageError, with nothing added."""
        if not self._writable:
            raise ValueError("the journal is open for reading alone")
        if not entries:
            return
        data = b"".join(map(encoding.line, entries))
        if self._descriptor < 0:
            # The first line comes with the file, so that a journal is never without a whole line.
            write_files({self.path: data})
            self._attach()
        else:
            self._write(data)
        self._end += len(data)

    def close(self) -> None:
        """Close the file. It can still be read afterwards."""
        self._writable = False
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, data: bytes) -> None:
        try:
            if os.fstat(self._descriptor).st_size > self._end:
                os.ftruncate(self._descriptor, self._end)
            write_at(self._descriptor, data, self._end)
            os.fsync(self._descriptor)
        except BaseException as error:
            # If this fails too, the next call does it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            if isinstance(error, OSError):
                raise storage_error(error, self.path) from error
            raise

    def _open(self) -> None:
        ours = False
        for line in self._lines():
            ours |= line.entry is not None
            self.ignored += line.entry is None
            self._end = line.end
        if self.ignored and not ours:
            raise _foreign(self.path)
        if self._writable and ours:
            self._attach()

    def _attach(self) -> None:
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def _lines(self, start: int = 0) -> Iterator[Line]:
        try:
            if self.path.exists() and not self.path.is_file():
                raise _foreign(self.path)
            with self.path.open("rb") as file:
                file.seek(start)
                for text in file:
                    if not text.endswith(b"\n"):
                        yield Line(start, start, None)
                        return
                    end = start + len(text)
                    entry = self._entry(text)
                    yield Line(start, end, entry, entry is None and _BEGUN in text)
                    start = end
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, self.path, done="read") from error

    def _entry(self, text: bytes) -> Entry | None:
        try:
            return _decoder.decode(text)
        except (ValueError, RecursionError):
            self._refuse_newer(text)
            return None

    def _refuse_newer(self, text: bytes) -> None:
        try:
            schema = msgspec.json.decode(text, type=_Head).schema
        except (ValueError, RecursionError):
            return
        version = schema.removeprefix(_FAMILY)
        ours = int(JOURNAL_SCHEMA.removeprefix(_FAMILY))
        if version != schema and version.isdecimal() and int(version) > ours:
            raise StorageError(
                f"has the newer schema {schema}; this version reads {JOURNAL_SCHEMA}",
                where=Location(self.path),
                mend="install the version of tokitai that wrote it, or give another folder with --out",
            )


def _foreign(path: Path) -> StorageError:
    return StorageError(
        "is no journal of a batch",
        where=Location(path),
        mend="move it away, or give another folder with --out",
    )


def shared(entry: Entry) -> Entry:
    """`entry` with one copy of the digests that many cases have: there may be very many entries."""
    if not isinstance(entry, Done):
        return entry
    done: Done = msgspec.structs.replace(
        entry,
        spec=sys.intern(entry.spec),
        build=sys.intern(entry.build),
        device=sys.intern(entry.device),
        device_identity=sys.intern(entry.device_identity),
    )
    return done
