"""Writing that a kill or a power cut cannot undo or leave half done.

A file is written beside its place, synced, and renamed; only then is its folder synced. Every failure
of the file system is a StorageError that says what to do about it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from tokitai_cli.errors import Location, StorageError

_SUFFIX = ".tmp"
# So many files are written before the first of them is synced: one commit of the file system serves all.
_TOGETHER = 64
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
# EFBIG is a limit on the size of files (ulimit -f), which fills up like a disk.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def storage_error(
    error: OSError, path: Path, *, done: Literal["written", "read"] = "written"
) -> StorageError:
    """What a failure of the file system at `path` means to a user; it could not be written or read."""
    reason = error.strerror or str(error)
    if error.errno == errno.EEXIST:
        reason = "it is no folder"
    if done == "read":
        mend = "give a folder that can be read"
    elif error.errno in _FULL:
        mend = "free space there and run again with --resume; what is finished is kept"
    elif error.errno == errno.EISDIR:
        mend = "a folder is in the way: remove it, and run again with --resume"
    elif error.errno == errno.EIO:
        mend = "copy the folder to another disk and go on there with --out and --resume"
    else:
        mend = "give a folder that can be written with --out"
    return StorageError(f"cannot be {done}: {reason}", where=Location(path), mend=mend)


def make_folders(*folders: Path) -> None:
    """Make `folders` and their parents, durably. Raises StorageError."""
    at = folders[0]
    try:
        for at in folders:
            missing = [folder for folder in (at, *at.parents) if not folder.exists()]
            at.mkdir(parents=True, exist_ok=True)
            for folder in missing:
                _sync(folder.parent)
    except OSError as error:
        raise storage_error(error, at) from error


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write `files`, so that all are on disk under their names when this returns.

    Each is at any time either what it was or whole, and none is changed if one cannot be written.
    Nobody else may write in their folders meanwhile. Raises StorageError.
    """
    at = Path()
    temporaries: list[Path] = []
    try:
        for start in range(0, len(files), _TOGETHER):
            with contextlib.ExitStack() as opened:
                written: dict[Path, int] = {}
                for at, data in itertools.islice(files.items(), start, start + _TOGETHER):
                    temporaries.append(at.with_name(f".{at.name}{_SUFFIX}"))
                    written[at] = os.open(temporaries[-1], _FLAGS, 0o666)
                    opened.callback(os.close, written[at])
                    write_at(written[at], data, 0)
                for path, descriptor in written.items():
                    at = path
                    os.fsync(descriptor)
        for at, temporary in zip(files, temporaries, strict=True):
            temporary.replace(at)
        for at in {path.parent: None for path in files}:
            _sync(at)
    except BaseException as error:
        for temporary in temporaries:
            with contextlib.suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError):
            raise storage_error(error, at) from error
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed `write_files` left in `folder`. Raises StorageError."""
    try:
        for path in folder.iterdir():
            if path.name.startswith(".") and path.name.endswith(_SUFFIX):
                path.unlink()
    except OSError as error:
        raise storage_error(error, folder) from error


def sync_folders(*folders: Path) -> None:
    """Put the names in `folders` on disk. Raises StorageError."""
    for folder in folders:
        try:
            _sync(folder)
        except OSError as error:
            raise storage_error(error, folder) from error


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of `data` at `offset`, which a single call to the system need not do. Raises OSError."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view = view[written:]
        offset += written


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
