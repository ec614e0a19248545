"""Files of the index: names that any spec can have, and reading the index back."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tokitai_cli import evidence, report
from tokitai_cli.core import storage
from tokitai_cli.core.errors import EvidenceError, Location, StorageError
from tokitai_cli.core.model.batch_record import INDEX_SCHEMA, BatchIndex, IndexCase

INDEX = report.INDEX_FILES["json"]
CASES = "cases.jsonl"
EVIDENCE = "evidence"

_UNSAFE = re.compile(r"[^\w.+=-]+")
# File systems take 255; what is added is .ARCH.part-N.cases.jsonl and the name of a temporary file.
_MOST_BYTES = 120
_DIGITS = 8


class FileNames:
    """Gives plain file names for the evidence of specs, which differ also where case does not count."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str, suffix: str = "") -> str:
        """Name for a spec's `name` with `suffix`: a slash and all that is unusual become dashes.

        Where two come out alike, or one is too long, the name's digest makes the difference.
        """
        safe = _UNSAFE.sub("-", name).strip("-.") or "spec"
        digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGITS]
        if len(safe.encode()) > _MOST_BYTES:
            safe = f"{safe.encode()[:_MOST_BYTES].decode(errors='ignore')}-{digest}"
        found = f"{safe}{_UNSAFE.sub('-', suffix)}"
        if found.casefold() in self._taken:
            found = f"{safe}-{digest}{_UNSAFE.sub('-', suffix)}"
        self._taken.add(found.casefold())
        return found


class _Head(msgspec.Struct, frozen=True):
    """What tells kinds of files apart."""

    schema: str = ""


def is_index(path: Path) -> bool:
    """Whether the file is the index of a batch, of whatever version; one that cannot be read is none."""
    try:
        head = msgspec.json.decode(storage.read_plain(path), type=_Head)
    except (OSError, ValueError, RecursionError):
        return False
    return head.schema.startswith(INDEX_SCHEMA.rstrip("0123456789"))


def read_index(path: Path) -> BatchIndex:
    """Read an index as strictly as evidence is read.

    Raises EvidenceError: not there, not JSON, of another kind or schema version, or not of the form
    that the schema says.
    """
    return evidence.read_record(path, BatchIndex, INDEX_SCHEMA, "index of a batch")


def read_cases(index: BatchIndex, path: Path) -> Iterator[IndexCase]:
    """Cases of the `index` that was read from `path`, one by one. Raises EvidenceError."""
    name = index.cases_file
    if name != CASES:
        raise EvidenceError(
            f"names {name!r}, which is not {CASES}", where=Location(path, key="cases_file")
        )
    beside = path.with_name(CASES)
    decoder = msgspec.json.Decoder(IndexCase)
    count = 0
    try:
        with storage.open_plain(beside) as lines:
            for line in lines:
                count += 1
                yield decoder.decode(line)
    except OSError as error:
        raise EvidenceError(
            f"cannot be read: {error.strerror or error}",
            where=Location(beside),
            hint="keep it next to the index",
        ) from error
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"is damaged: {error}", where=Location(beside, count)) from error
    if count != sum(index.counts.values()):
        raise EvidenceError(
            f"has {count} cases, and {path.name} describes {sum(index.counts.values())}",
            where=Location(beside),
            hint="get both files from their source again",
        )


def render_index_file(
    path: Path, kind: str, report_options: report.ReportOptions = report.PLAIN
) -> bytes:
    """An index file in another of report.INDEX_FORMATS. Raises EvidenceError and UsageError."""
    index = read_index(path)
    return b"".join(report.render_index(index, kind, read_cases(index, path), report_options))


def evidence_files(path: Path) -> set[str]:
    """Evidence that the index at `path` names; none where there is no index that can be read."""
    with contextlib.suppress(EvidenceError):
        return {name for spec in read_index(path).specs for name in spec.evidence}
    return set()


def clear_index(folder: Path) -> None:
    """Remove the index of an earlier run, and the evidence that it names: they would be taken for that
    of a batch that is killed now. The results that they were made from stay.
    """
    remove_stale(folder, evidence_files(folder / INDEX))
    try:
        for name in (*report.INDEX_FILES.values(), CASES):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot be removed: {error.strerror or error}",
            where=Location(folder),
            hint="it is of an earlier run: remove it, or give another folder with --out",
        ) from error


def remove_stale(folder: Path, names: Iterable[str]) -> None:
    """Remove evidence files of an earlier index: paths of plain files in the folder for evidence."""
    for name in names:
        place, _, plain = name.partition("/")
        if place == EVIDENCE and plain and plain == Path(plain).name:
            with contextlib.suppress(OSError):
                (folder / EVIDENCE / plain).unlink()
