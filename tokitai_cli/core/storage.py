"""Files that are written whole or not at all, read without waiting, and digests of what they hold."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

# Order of the encoder's keys is fixed, so equal data gives equal bytes.
_ENCODER = msgspec.json.Encoder(order="sorted")
_CHUNK = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write(
    path: Path,
    data: bytes | Iterable[bytes],
    *,
    durable: bool = True,
    mode: int | None = None,
) -> None:
    """Write `path` so that it holds either what it held or all of `data`.

    Data may come in pieces, of which only one is held at a time. durable: it is on disk when this
    returns. mode: its permissions, those of a new file where it is None. The temporary file beside it
    has a name that nobody can foresee, and only a plain file is ever replaced: no link, device or pipe.
    Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, _FLAGS, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.writelines([data] if isinstance(data, bytes) else data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def open_plain(path: str | Path) -> BinaryIO:
    """Open a plain file to read bytes; a pipe or a device, which might give none or no end, is refused.

    Raises OSError, also for a path that cannot be one.
    """
    try:
        # A pipe would wait for a writer where it is opened otherwise.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        # Python makes an error of the kind that belongs to the number.
        raise OSError(
            errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "it is not a regular file"
        )
    return os.fdopen(descriptor, "rb")


def read_plain(path: str | Path, most: int | None = None) -> bytes:
    """Bytes of a plain file of at most `most`, else of what this machine can take apart.

    Raises OSError for anything else.
    """
    if most is None:  # what JSON becomes in Python takes several times its text
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        # No more is asked for than is there: what a read may give is reserved before it.
        data = b"" if size > most else file.read(size + 1)
        while size < len(data) <= most:  # it has grown since
            size = len(data)
            data += file.read(size + 1)
    if max(size, len(data)) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
    return data


def home() -> Path | None:
    """The user's home folder; None where there is none, or where it is the root."""
    try:
        found = Path.home()
    except RuntimeError:
        return None
    return found if found.name else None


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
