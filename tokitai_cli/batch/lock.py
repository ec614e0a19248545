"""Exclusive use of a batch's folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
from pathlib import Path

import msgspec

from tokitai_cli.batch.durable import storage_error, write_at
from tokitai_cli.errors import Location, StorageError
from tokitai_cli.evidence import timestamp
from tokitai_cli.model.text import visible

# What a lock that somebody holds answers; over NFS it is a record lock, which may say EACCES.
_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_MOST_BYTES = 4096


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock, for the message to others: process, its host, since when (ISO 8601)."""

    pid: int
    host: str
    since: str


class FolderLock:
    """A lock on the file `path`, held from construction to `release`.

    The kernel lets go of it however the process ends, and programs that the process starts do not
    inherit it. What the file says serves messages alone. Raises StorageError where another batch
    holds it, where the file cannot be written, or where the file system has no locks.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            self._take(path)
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Let go of the lock. The file stays: removing it would let two others hold one each."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        # By name, because closing frees it only once no forked child has it open either.
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)

    def _take(self, path: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                raise StorageError(
                    f"is in use by another batch{_told(self._descriptor)}",
                    where=Location(path.parent),
                    mend="wait for it to end, or give another folder with --out",
                ) from error
            raise StorageError(
                f"cannot be locked: {error.strerror or error}",
                where=Location(path.parent),
                mend="give a folder of a local disk with --out",
            ) from error
        holder = Holder(os.getpid(), socket.gethostname(), timestamp(os.environ))
        try:
            os.ftruncate(self._descriptor, 0)
            write_at(self._descriptor, msgspec.json.encode(holder), 0)
        except OSError as error:
            raise storage_error(error, path) from error


def _told(descriptor: int) -> str:
    """The holder in words; nothing where it has not said who it is."""
    try:
        holder = msgspec.json.decode(os.pread(descriptor, _MOST_BYTES, 0), type=Holder)
    except (OSError, msgspec.DecodeError):
        return ""
    return f": process {holder.pid} on {visible(holder.host)}, since {visible(holder.since)}"
