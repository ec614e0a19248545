"""One SQLite file that holds a batch: every finished case is committed before it is counted.

    FOLDER/batch.sqlite3   run: a row for each start, with how it ended
                           result: a row for each case, its newest; `run` is the start that counted it
                           record: builds, devices, specs and sources that results refer to, by key
    FOLDER/lock            whoever writes holds it

A transaction is on disk when it ends. Its journal is a file beside it that is cut off at each commit,
which also serves on network file systems.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from tokitai_cli.batch.store.disk import (
    FILE,
    check_place,
    foreign,
    locked,
    make_folder,
    no_batch,
    storage_errors,
)
from tokitai_cli.core.errors import Location, StorageError
from tokitai_cli.core.model.batch_record import (
    BatchEnded,
    Begun,
    BuildInfo,
    CaseResult,
    Done,
    Reply,
)
from tokitai_cli.core.model.evidence import DeviceRecord
from tokitai_cli.core.storage import sha256
from tokitai_cli.evidence import encoding

_APPLICATION = 0x746F6B69
_VERSION = 1
# So long a commit waits for somebody who reads, and who reads for a commit.
_WAIT_SECONDS = 600.0
_READ_SECONDS = 30.0

_COLUMNS = Done.__struct_fields__
# These change when a result is kept, and its seal does not.
_LOOSE = frozenset({"number", "kept"})
_NAMES = ", ".join(f'"{name}"' for name in _COLUMNS)
_SEALED = f"SELECT {_NAMES}, seal, CAST(data AS BLOB) FROM result"
_TABLES = (
    "CREATE TABLE run (number INTEGER PRIMARY KEY, begun TEXT NOT NULL, ended TEXT)",
    "CREATE TABLE record (kind, key, data NOT NULL, sha256 NOT NULL, PRIMARY KEY (kind, key))",
    f"CREATE TABLE result (run NOT NULL, {_NAMES}, seal NOT NULL, data NOT NULL, PRIMARY KEY (id))",
    "CREATE INDEX result_by_number ON result (run, number)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)

_T = TypeVar("_T", bound=msgspec.Struct)


class Store:
    """Context manager over the batch in the folder `path`; made by `open` or `read`.

    All methods raise StorageError where the disk does not do its part. Methods that write return
    when what they wrote would survive a power cut; if they raise, all or nothing of it is there, and
    all that was written before is. damaged: results that `newest` left out.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.damaged = 0
        self._file = path / FILE
        self._writable = writable
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            if writable:
                make_folder(path)
                stack.enter_context(locked(path / "lock"))
            check_place(self._file, writable=writable)
            with self._told():
                address = f"{self._file.absolute().as_uri()}?mode={'rwc' if writable else 'rw'}"
                wait = _WAIT_SECONDS if writable else _READ_SECONDS
                self._database = sqlite3.connect(
                    address, uri=True, isolation_level=None, timeout=wait
                )
                stack.callback(self._database.close)
                self._prepare()
            self._open = stack.pop_all()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Make or take over the folder for one batch, which alone may write there until it is closed.

        Raises StorageError where it cannot be written, is in use, or holds something else.
        """
        return cls(path, writable=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the batch as it is now; it may be another's. Raises StorageError where there is none."""
        return cls(path, writable=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written inside is on disk at the end, or nothing of it."""
        if not self._writable:
            raise ValueError("the batch is open for reading only")
        if self._database.in_transaction:
            yield
            return
        with self._told():
            try:
                self._database.execute("BEGIN IMMEDIATE")
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def begin(self, begun: Begun, specs: Mapping[str, bytes], sources: Mapping[str, bytes]) -> None:
        """Start or go on, with specs by digest and sources by sha256."""
        with self.writing():
            for kind, texts in (("spec", specs), ("source", sources)):
                for key, data in texts.items():
                    self._put(kind, key, data)
            row = (encoding.line(begun).decode(),)
            self._database.execute("INSERT INTO run (begun) VALUES (?)", row)

    def commit(self, items: Iterable[tuple[Done, Reply]]) -> None:
        """Keep finished cases, with the builds and devices that their replies bring along.

        Raises ValueError for a reply without a result.
        """
        with self.writing():
            for done, reply in items:
                if not reply.result:
                    raise ValueError(f"the reply to {done.id} has no result")
                for key, build in reply.builds.items():
                    self._put("build", key, build)
                for digest, device in reply.devices.items():
                    self._put("device", digest, device)
                self._add(done, reply.result)

    def keep(self, dones: Sequence[Done]) -> None:
        """Take results of an earlier start over into this one, under their number in it."""
        run = self._run
        with self.writing():
            self._database.executemany(
                "UPDATE result SET run = ?, number = ?, kept = 1 WHERE id = ?",
                [(run, done.number, encoding.utf8(done.id)) for done in dones],
            )

    def copy(self, others: Sequence[Store], names: Sequence[str]) -> None:
        """Take over the cases of the last start of `others`, spec by spec, with all records."""
        number = 0
        with self.writing():
            for other in others:
                for kind, key, data, _ in other._rows("SELECT * FROM record"):
                    self._put(kind, key, data)
            for name in names:
                for other in others:
                    query = f"{_SEALED} WHERE run = ? AND name = ? ORDER BY number"
                    for row in other._rows(query, other._run, encoding.utf8(name)):
                        done = msgspec.structs.replace(other._checked(row), number=number)
                        self._add(done, row[-1])
                        number += 1

    def end(self, ended: BatchEnded) -> None:
        """Note that the batch came to an end."""
        with self.writing():
            row = (encoding.line(ended).decode(), self._run)
            self._database.execute("UPDATE run SET ended = ? WHERE number = ?", row)

    def begun(self) -> Begun:
        """The last start of a batch; raises StorageError where none has begun."""
        for (text,) in self._rows("SELECT begun FROM run WHERE number = ?", self._run):
            return self._decoded("the last start", text, Begun)
        raise no_batch(self.path, "no batch was started in it")

    def ended(self) -> BatchEnded | None:
        """How the last batch ended; None where it was killed, or still runs."""
        for (text,) in self._rows("SELECT ended FROM run WHERE number = ?", self._run):
            return None if text is None else self._decoded("the last end", text, BatchEnded)
        return None

    def newest(self) -> Iterator[Done]:
        """The newest result of each case, of whatever start, where all that it names is intact."""
        intact: dict[tuple[str, str], bool] = {("build", ""): True, ("device", ""): True}
        for row in self._rows(_SEALED):
            try:
                done = self._checked(row)
            except StorageError:
                self.damaged += 1
                continue
            named = (("build", done.build), ("device", done.device_record))
            for kind, key in named:
                if (kind, key) not in intact:
                    intact[kind, key] = self._holds(kind, key)
            if all(intact[one] for one in named):
                yield done
            else:
                self.damaged += 1

    def done(self) -> Iterator[Done]:
        """Cases since the last start, by number. `result` tells whether one is intact."""
        query = f"SELECT {_NAMES} FROM result WHERE run = ? ORDER BY number"
        return map(self._done, self._rows(query, self._run))

    def result(self, number: int) -> tuple[Done, CaseResult]:
        """The case with that number in the last start. Raises StorageError where it is damaged."""
        for row in self._rows(f"{_SEALED} WHERE run = ? AND number = ?", self._run, number):
            done = self._checked(row)
            return done, self._decoded(f"the result of {done.id}", row[-1], CaseResult)
        raise self._damaged(f"case {number}", "it is not there")

    def build(self, key: str) -> BuildInfo:
        """A build by its key."""
        return self._decoded(f"build {key}", self._record("build", key), BuildInfo)

    def device(self, digest: str) -> DeviceRecord:
        """A device by the digest of its record."""
        return self._decoded(f"device {digest}", self._record("device", digest), DeviceRecord)

    def spec(self, digest: str) -> bytes:
        """The text of a spec by its sha256."""
        return self._record("spec", digest)

    def source(self, digest: str) -> bytes:
        """The text of a kernel's source by its sha256."""
        return self._record("source", digest)

    @property
    def _run(self) -> int:
        """Number of the last start; they count from 1."""
        return self._number("SELECT ifnull(max(number), 0) FROM run")

    def _prepare(self) -> None:
        """Settle how the file is used, make its tables where it is new, and refuse another's."""
        if not self._number("PRAGMA schema_version"):
            if not self._writable:
                raise no_batch(self.path, f"its {FILE} is empty")
            with self.writing():
                for statement in _TABLES:
                    self._database.execute(statement)
        if self._number("PRAGMA application_id") != _APPLICATION:
            raise foreign(self._file)
        version = self._number("PRAGMA user_version")
        if version != _VERSION:
            age = "newer" if version > _VERSION else "older"
            raise StorageError(
                f"has the {age} version {version} of the form; this version reads {_VERSION}",
                where=Location(self._file),
                hint="install the version of tokitai that wrote it, or give another folder with --out",
            )
        pragmas = ("PRAGMA journal_mode = TRUNCATE", "PRAGMA synchronous = FULL")
        # Whoever only reads sees one state of it.
        for statement in pragmas if self._writable else ("BEGIN",):
            self._database.execute(statement)

    def _rows(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with self._told():
            yield from self._database.execute(query, values)

    def _number(self, query: str) -> int:
        ((found,),) = self._rows(query)
        return int(found)

    def _add(self, done: Done, data: bytes) -> None:
        """Write a result, in place of an earlier one of the same case."""
        row = (self._run, *_values(done), _seal(done, data), data)
        marks = ", ".join("?" * len(row))
        self._database.execute(f"INSERT OR REPLACE INTO result VALUES ({marks})", row)

    def _put(self, kind: str, key: str, record: bytes | msgspec.Struct) -> None:
        """Write a record that is not there yet, or damaged: the first one of a build tells most."""
        if not self._holds(kind, key):
            data = record if isinstance(record, bytes) else encoding.line(record)
            row = (kind, key, data, sha256(data))
            self._database.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", row)

    def _holds(self, kind: str, key: str) -> bool:
        try:
            self._record(kind, key)
        except StorageError:
            return False
        return True

    def _record(self, kind: str, key: str) -> bytes:
        query = "SELECT CAST(data AS BLOB), sha256 FROM record WHERE kind = ? AND key = ?"
        for data, digest in self._rows(query, kind, key):
            by_content = kind in {"spec", "source"}
            if sha256(data) != digest or (by_content and digest != key):
                raise self._damaged(f"{kind} {key}", "its content has another digest")
            return bytes(data)
        raise self._damaged(f"{kind} {key}", "it is not there")

    def _checked(self, row: Sequence[Any]) -> Done:
        """The case in a row that ends with seal and data. Raises StorageError where it is another."""
        *row, seal, data = row
        done = self._done(row)
        if _seal(done, data) != seal:
            raise self._damaged(f"the result of {done.id}", "its content has another digest")
        return done

    def _done(self, row: Sequence[Any]) -> Done:
        tree = dict(zip(_COLUMNS, row, strict=True))
        try:
            tree["shape"] = msgspec.json.decode(tree["shape"])
            return msgspec.convert(tree, Done, strict=False)
        except (ValueError, TypeError) as error:
            raise self._damaged(f"the result of {tree['id']}", str(error)) from error

    def _decoded(self, what: str, data: bytes | str, kind: type[_T]) -> _T:
        try:
            return msgspec.json.decode(data, type=kind)
        except (ValueError, RecursionError) as error:
            raise self._damaged(what, str(error)) from error

    def _damaged(self, what: str, how: str) -> StorageError:
        return StorageError(
            f"{what} is damaged: {how}",
            where=Location(self._file),
            hint="run that batch again with --resume, which repeats the damaged cases",
        )

    def _told(self) -> contextlib.AbstractContextManager[None]:
        return storage_errors(self._file, "written" if self._writable else "read")


def _values(done: Done) -> list[Any]:
    """Values of the columns. Bytes of a path that are no text become escapes, as in JSON."""
    tree = msgspec.structs.asdict(done)
    tree["shape"] = msgspec.json.encode(done.shape).decode()
    return [encoding.utf8(str(one)) if isinstance(one, str) else one for one in tree.values()]


def _seal(done: Done, data: bytes) -> str:
    """Digest of a result and of what its row says of it."""
    pairs = zip(_COLUMNS, _values(done), strict=True)
    row = [value for name, value in pairs if name not in _LOOSE]
    return sha256(msgspec.json.encode(row) + data)
