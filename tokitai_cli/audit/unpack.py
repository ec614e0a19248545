"""`unpack FILE DIR`: spec, kernel, headers and oracle out of evidence, never over anything."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tokitai_cli.audit.opened import opened
from tokitai_cli.core import storage
from tokitai_cli.core.errors import EvidenceError, Location, UsageError
from tokitai_cli.core.model.audit_answer import Answer, Grid, Remark
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.wording import plural

# Folders above the spec's that paths may lead to, parts of a path, and bytes of a part.
_MOST_ABOVE, _MOST_PARTS, _MOST_NAME = 8, 32, 200
# Files and folders that are made; a run's kernels and headers are some hundreds.
_MOST_FILES = 10_000


def unpack(file: str, folder: str) -> Answer:
    """Write the texts. Raises UsageError where the folder is not empty, EvidenceError for bad paths."""
    path, target = Path(file), Path(folder)
    found = opened(path)
    texts = list(_texts(found))
    above = max((_above(name) for name, _, _ in texts), default=0)
    if above > _MOST_ABOVE:
        raise EvidenceError("has paths that lead far above its spec", where=Location(path))
    placed: dict[PurePosixPath, tuple[str, bytes]] = {}
    remarks = []
    for name, digest, text in texts:
        data = text.encode()
        if storage.sha256(data) != digest:
            remarks.append(Remark(f"{name} is skipped: its text has another digest", fault=True))
            continue
        place = _place(name, above, path)
        if placed.setdefault(place, (digest, data))[0] != digest:
            raise EvidenceError(f"has two files with the path {place}", where=Location(path))
    if len(placed) > _MOST_FILES or len({up for one in placed for up in one.parents}) > _MOST_FILES:
        message = f"has more than {_MOST_FILES} files or folders to write"
        raise EvidenceError(message, where=Location(path))
    remarks += [Remark(text, fault=True) for text in _missing(found)]
    _write(target, {place: data for place, (_, data) in placed.items()})
    rows = [(str(target / place), digest) for place, (digest, _) in placed.items()]
    for place in (place for place, (digest, _) in placed.items() if digest in found.specs):
        remarks.append(
            Remark(f"next: {shlex.join(['tokitai', 'reproduce', file, str(target / place)])}")
        )
    text = f"{plural(len(rows), 'file')} written to {target}"
    fine = not any(one.fault for one in remarks)
    return Answer(text, fine, remarks, [Grid(("file", "sha256"), rows)])


def _texts(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    """Path, sha256 and text of each."""
    for digest, one in [*evidence.specs.items(), *evidence.sources.items()]:
        if one.text is not None:
            yield one.path, digest, one.text
    for build in evidence.builds.values():
        for path, text in build.header_texts.items():
            yield path, build.headers.get(path, ""), text


def _missing(evidence: Evidence) -> list[str]:
    return [
        f"{one.path} (sha256 {digest}) is not in the evidence: no text, or too large"
        for digest, one in [*evidence.specs.items(), *evidence.sources.items()]
        if one.text is None
    ]


def _above(name: str) -> int:
    """How many folders above the spec's a relative path leads."""
    if _outside(name):
        return 0
    depth = least = 0
    for part in PurePosixPath(name).parts:
        depth += -1 if part == ".." else 1
        least = min(least, depth)
    return -least


def _outside(name: str) -> bool:
    return name.startswith(("/", "~", "{"))


def _place(name: str, above: int, file: Path) -> PurePosixPath:
    """Where a file goes: the spec `above` folders deep, so that `..` stays inside; others apart."""
    parts = list(PurePosixPath(name).parts)
    kept: list[str] = ["elsewhere"] if _outside(name) else ["spec"] * above
    for part in parts:
        if part == "/":
            continue
        if part == "..":
            if not kept:
                raise EvidenceError(f"names the file {name!r}", where=Location(file))
            kept.pop()
            continue
        if not part.isprintable() or len(part.encode()) > _MOST_NAME:
            raise EvidenceError(f"names the file {name!r}", where=Location(file))
        kept.append(part)
    if not kept or len(kept) > _MOST_PARTS or parts[-1:] == [".."]:
        raise EvidenceError(
            f"names the file {name!r}, which is not a file name", where=Location(file)
        )
    return PurePosixPath(*kept)


def _write(target: Path, files: dict[PurePosixPath, bytes]) -> None:
    """Write all files into a new or empty folder. Raises UsageError for any other."""
    folded = [str(place).casefold() for place in files]
    if len(set(folded)) < len(folded):
        raise UsageError("two file names differ only in upper and lower case")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file", hint="name a folder that is not there yet")
    try:
        target.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or any(target.iterdir()):
            hint = "name a folder that is not there yet"
            raise UsageError(f"{target}: there is something in it already", hint=hint)
        for place, data in files.items():
            path = target / place
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(path, flags, 0o644), "wb") as file:
                file.write(data)
    except OSError as error:
        raise UsageError(f"{error.filename or target}: {error.strerror or error}") from error
