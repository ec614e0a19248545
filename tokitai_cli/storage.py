"""Files that are written whole or not at all, and digests of what files hold."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

# Order of the encoder's keys is fixed, so equal data gives equal bytes.
_ENCODER = msgspec.json.Encoder(order="sorted")
_CHUNK = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write(path: Path, data: bytes | Iterable[bytes], *, durable: bool = True) -> None:
    """Write `path` so that it holds either what it held or all of `data`.

    Data may come in pieces, of which only one is held at a time. durable: it is on disk when this
    returns. The temporary file beside it has a name that nobody can foresee, and only a plain file
    is ever replaced: no link, device or pipe. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, _FLAGS, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def sha256(data: bytes | memoryview) -> str:
    """sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: str | Path) -> str:
    """sha256 of a file's bytes in hex; raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - hundreds of files in a warm run
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def data_sha256(data: Any) -> str:
    """sha256 of plain data (dicts, lists, texts, numbers, msgspec structs) in hex."""
    return sha256(encode(data))


def encode(data: Any) -> bytes:
    """JSON with sorted keys."""
    return _ENCODER.encode(data)
