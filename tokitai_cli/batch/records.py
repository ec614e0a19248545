"""Files of a batch that are read by digest: nothing that comes out of them is damaged."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from tokitai_cli.errors import Location, StorageError
from tokitai_cli.model import encoding
from tokitai_cli.model.batch import BuildInfo
from tokitai_cli.model.evidence import DeviceRecord

REPEAT = "run that batch again with --resume, which repeats what is damaged"

Stored = BuildInfo | DeviceRecord
S = TypeVar("S", bound=Stored)


class Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record as its file holds it: its text, and the sha256 of exactly that.

    The key of a build is a digest of what went in, not of the record, and cannot serve for this.
    """

    record: msgspec.Raw
    sha256: str


def sha256_of(data: bytes) -> str:
    """sha256 of `data` in hex."""
    return hashlib.sha256(data).hexdigest()


def holds(path: Path | str, sha256: str) -> bool:
    """Whether the file is there, can be read and has that digest."""
    try:
        return sha256_of(_plain(path)) == sha256
    except OSError:
        return False


def read_bytes(path: Path | str) -> bytes:
    """Content of a file of the batch. Raises StorageError."""
    try:
        return _plain(path)
    except OSError as error:
        reason = error.strerror or error
        where = Location(Path(path))
        raise StorageError(f"cannot be read: {reason}", where=where, mend=REPEAT) from error


def _plain(path: Path | str) -> bytes:
    """Content of a plain file; raises OSError for anything else, which may have no end."""
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - see `_case_text`
        raise OSError(errno.EINVAL, "it is no plain file")
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def read_by_content(path: Path, sha256: str) -> bytes:
    """Content of a file that is named by its sha256. Raises StorageError where it is another."""
    data = read_bytes(path)
    if sha256_of(data) != sha256:
        raise damaged(path, "its content has another digest than its name")
    return data


def sealed(record: Stored) -> bytes:
    """File of a record: one line of JSON."""
    text = encoding.line(record).rstrip(b"\n")
    return msgspec.json.encode(Sealed(msgspec.Raw(text), sha256_of(text))) + b"\n"


def read_sealed(path: Path, kind: type[S]) -> S:
    """Record in a file. Raises StorageError where it is not as it was written."""
    data = read_bytes(path)
    try:
        seal = msgspec.json.decode(data, type=Sealed)
        if sha256_of(bytes(seal.record)) != seal.sha256:
            raise damaged(path, "its content does not have the digest that it states")
        return msgspec.json.decode(seal.record, type=kind)
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error)) from error


def readable(path: Path, kind: type[Stored]) -> bool:
    """Whether `read_sealed` gives the record."""
    try:
        read_sealed(path, kind)
    except StorageError:
        return False
    return True


def damaged(path: Path | str, how: str) -> StorageError:
    """Error of a file of the batch that is there, but not as it was written."""
    return StorageError(f"is damaged: {how}", where=Location(Path(path)), mend=REPEAT)
