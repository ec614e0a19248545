"""The folder of a batch: whether it can be one, who holds it, and what its failures mean to a user."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tokitai_cli.core.errors import Location, StorageError
from tokitai_cli.core.model.wording import visible
from tokitai_cli.evidence import timestamp

FILE = "batch.sqlite3"
# What a folder of an older version holds.
_OLDER = "journal.jsonl"

# What could not be done to a file.
Verb = Literal["written", "read"]

# EFBIG is a limit on the size of files (ulimit -f), which fills up like a disk.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# More than one commit makes a file grow by.
_FAR = 1 << 20
_PAGE = 4096
_NO_LOCKS = ("cannot be locked", "give a folder of a local disk with --out")
# By SQLite's error, else by its kind: what is told, and the mend.
_WORDS = {
    sqlite3.SQLITE_NOTADB: (
        "is not a batch of tokitai",
        "move it away, or give another folder with --out",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        "give another folder with --out; `sqlite3 FILE .recover` shows what is intact",
    ),
    sqlite3.SQLITE_BUSY: (
        "is read by another program, which does not end",
        "end that program, and run again with --resume; finished cases are kept",
    ),
    sqlite3.SQLITE_READONLY_ROLLBACK: (
        "was killed while it wrote, and cannot be repaired because the folder is not writable",
        "copy the whole folder to a writable place",
    ),
    sqlite3.SQLITE_PROTOCOL: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_LOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_RDLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_UNLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK: _NO_LOCKS,
}


@contextlib.contextmanager
def storage_errors(path: Path, done: Verb) -> Iterator[None]:
    """Raise StorageError for what the file system or SQLite says of the file `path`."""
    try:
        yield
    except OSError as error:
        raise _storage_error(error, path, done) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
        message, hint = _WORDS.get(code) or _WORDS.get(code & 0xFF) or ("", "")
        if message:
            raise StorageError(message, where=Location(path), hint=hint) from error
        cause = _cause(path) or OSError(errno.EIO, str(error))
        if code == sqlite3.SQLITE_FULL:
            cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise _storage_error(cause, path, done) from error


def foreign(path: Path) -> StorageError:
    """Error of something that tokitai did not write, which is left alone."""
    message, hint = _WORDS[sqlite3.SQLITE_NOTADB]
    return StorageError(message, where=Location(path), hint=hint)


def holds_batch(folder: Path) -> bool:
    """Whether the results of a batch lie in the folder."""
    # Unlike those of Path these are false, and no error, where the folder cannot be looked into.
    return any(os.path.isfile(folder / name) for name in (FILE, _OLDER))  # noqa: PTH113


def check_place(file: Path, *, writable: bool) -> None:
    """Raise StorageError where another thing lies there, or nothing that could be read."""
    older = file.with_name(_OLDER)
    if file.exists() and not file.is_file():
        raise foreign(file)
    if older.exists() and not file.exists():
        raise StorageError(
            f"is of an older version of tokitai ({_OLDER}), which this one does not read",
            where=Location(file.parent),
            hint="run the batch again, with another folder for --out",
        )
    if not writable and not file.exists():
        raise no_batch(file.parent, f"it holds no {FILE}")


def no_batch(folder: Path, why: str) -> StorageError:
    """Error of a folder that is to be read as a batch."""
    return StorageError(
        f"is not the folder of a batch: {why}",
        where=Location(folder),
        hint="give the folder that --out of a batch named",
    )


def make_folder(folder: Path) -> None:
    """Make `folder` and its parents, durably. Raises StorageError."""
    with storage_errors(folder, "written"):
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for one in missing:
            _sync(one.parent)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock in the file `path`, which the kernel lets go of however the process ends.

    Raises StorageError where another batch holds it, or it cannot be had. Programs that the process
    starts do not inherit it. What the file says serves messages alone.
    """
    with storage_errors(path, "written"):
        database = sqlite3.connect(path, isolation_level=None, timeout=0)
        with contextlib.closing(database):
            try:
                database.execute("BEGIN IMMEDIATE")
                database.execute("CREATE TABLE IF NOT EXISTS holder (pid, host, since)")
                database.execute("DELETE FROM holder")
                holder = (os.getpid(), socket.gethostname(), timestamp(os.environ))
                database.execute("INSERT INTO holder VALUES (?, ?, ?)", holder)
                database.execute("COMMIT")
                # To the end, while others may read who it is.
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                _check_locks(path)
                raise StorageError(
                    f"is in use by another batch{_holder(database)}",
                    where=Location(path.parent),
                    hint="wait for it to end, or give another folder with --out",
                ) from error
            yield


def _check_locks(path: Path) -> None:
    """Raise StorageError where nothing there can be locked: SQLite takes that for a holder."""
    probe = path.with_name(f".{path.name}.tmp")
    try:
        with probe.open("wb") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        message, hint = _NO_LOCKS
        reason = f"{message}: {error.strerror}"
        raise StorageError(reason, where=Location(path.parent), hint=hint) from error
    finally:
        probe.unlink(missing_ok=True)


def _holder(database: sqlite3.Connection) -> str:
    """The holder in words; nothing where it has not said who it is."""
    with contextlib.suppress(sqlite3.Error, TypeError):
        pid, host, since = database.execute("SELECT pid, host, since FROM holder").fetchone()
        return f": process {pid} on {visible(host)}, since {visible(since)}"
    return ""


def _storage_error(error: OSError, path: Path, done: Verb) -> StorageError:
    reason = error.strerror or str(error)
    if error.errno == errno.EEXIST:
        reason = "it is not a folder"
    if done == "read":
        hint = "give a readable folder"
    elif error.errno in _FULL:
        hint = "free space there and run again with --resume; finished cases are kept"
    elif error.errno == errno.EISDIR:
        hint = "a folder is in the way: remove it, and run again with --resume"
    elif error.errno == errno.EIO:
        hint = "copy the folder to another disk and continue there with --out and --resume"
    else:
        hint = "give a writable folder with --out"
    return StorageError(f"cannot be {done}: {reason}", where=Location(path), hint=hint)


def _cause(path: Path) -> OSError | None:
    """What the system says of a write beside `path`, beyond its size; SQLite does not pass it on."""
    probe = path.with_name(f".{path.name}.tmp")
    try:
        size = path.stat().st_size if path.exists() else 0
        with probe.open("wb", buffering=0) as file:
            file.seek(size + _FAR)
            file.write(b"\0" * _PAGE)
            os.fsync(file.fileno())
    except OSError as error:
        return error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return OSError(errno.EISDIR, os.strerror(errno.EISDIR)) if path.is_dir() else None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems know no sync of a folder; their renames are synchronous.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)
