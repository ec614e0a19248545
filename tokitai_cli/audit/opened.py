"""Opening files of strangers: bounded in size, and nothing outside of the folder that they lie in."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tokitai_cli import evidence
from tokitai_cli.core import storage
from tokitai_cli.core.errors import EvidenceError, Location
from tokitai_cli.core.model.evidence import Evidence

# Evidence of a thousand cases has some 10 MiB; what JSON becomes in memory is several times its text.
MOST_BYTES = 256 << 20
_MOST_PARTS = 32


def opened(file: str | Path) -> Evidence:
    """Evidence of a stranger. Raises EvidenceError, and DamagedError where its digest does not fit."""
    return evidence.read(Path(file), most=MOST_BYTES)


def inside(folder: Path, name: str, where: Path) -> Path:
    """Path of a file that evidence names relative to its folder; no link may lead to it.

    Raises EvidenceError where the name leads elsewhere.
    """
    parts = PurePosixPath(name).parts
    plain = parts and len(parts) <= _MOST_PARTS and name.isprintable()
    if not plain or name.startswith("/") or ".." in parts:
        raise EvidenceError(
            f"names the file {name!r}, which is not below it", where=Location(where)
        )
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise EvidenceError("is a link, which is not followed", where=Location(path))
    return path


def inside_bytes(folder: Path, name: str, where: Path) -> bytes:
    """Bytes of such a file. Raises EvidenceError."""
    path = inside(folder, name, where)
    try:
        return storage.read_plain(path, MOST_BYTES)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise EvidenceError(message, where=Location(path)) from error
