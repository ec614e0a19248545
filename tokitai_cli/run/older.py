"""Evidence that a run finds in the place of its own: what it does not replace keeps its results."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

from tokitai_cli import evidence, report
from tokitai_cli.core.errors import EvidenceError, Location
from tokitai_cli.core.model.evidence import CasesFileRecord, Evidence
from tokitai_cli.core.model.verdict import UNSETTLED, Verdict

# Reading more would cost a run more than it is worth; such a file is kept.
_MOST_BYTES = 256 << 20


class _Case(msgspec.Struct):
    id: str
    device: str
    verdict: Verdict


class _Older(msgspec.Struct):
    """What has to be known of evidence to say whether another run replaces it."""

    rerun: str
    verdict: Verdict
    cases: list[_Case]
    cases_file: CasesFileRecord | None = None


def keep_older(found: Evidence, path: Path) -> str:
    """Give the evidence at `path` another name, unless `found` is to replace it; returns a note.

    It is replaced where it is of the same spec, and where every case that it has a result of has one
    in `found` too. What is no evidence is kept. Raises EvidenceError where it cannot be renamed.
    """
    if not path.is_file():
        return ""
    older = _read(path)
    if older is not None and _replaces(found, older):
        return ""
    taken = (path.with_name(f"{path.stem}.older-{number}.json") for number in itertools.count(1))
    kept = next(place for place in taken if not place.exists())
    try:
        _move(path, kept)
    except OSError as error:
        message = f"cannot be kept under another name: {error.strerror or error}"
        raise EvidenceError(message, where=Location(path)) from error
    held = "no evidence that can be read" if older is None else _words(older)
    return f"{path} held {held}: kept as {kept.name}"


def _read(path: Path) -> _Older | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        older = msgspec.json.decode(path.read_bytes(), type=_Older)
        if older.cases_file is not None:
            lines = path.with_name(Path(older.cases_file.name).name).read_bytes()
            older.cases = msgspec.json.Decoder(_Case).decode_lines(lines)
    except (OSError, ValueError):
        return None
    return older


def _replaces(found: Evidence, older: _Older) -> bool:
    # `tokitai VERB SPEC` stand in front of every option.
    if found.rerun.partition(" -")[0] != older.rerun.partition(" -")[0]:
        return False
    return _finished(older) <= _finished(found)


def _finished(held: Evidence | _Older) -> set[tuple[str, str]]:
    """Cases that came to a verdict on their kernel."""
    return {(one.id, one.device) for one in held.cases if one.verdict not in UNSETTLED}


def _words(older: _Older) -> str:
    cases = f"{len(older.cases)} case{'' if len(older.cases) == 1 else 's'}"
    return f"another run ({cases}, {older.verdict})"


def _move(path: Path, kept: Path) -> None:
    """Rename evidence with the files beside it; the cases of a large one are named in it."""
    beside = path.with_name(f"{path.stem}.cases.jsonl")
    if beside.is_file():
        try:
            evidence.write(evidence.read(path), kept)
        except EvidenceError:
            beside.rename(kept.with_name(f"{kept.stem}.cases.jsonl"))
            path.rename(kept)
        else:
            path.unlink()
            beside.unlink()
    else:
        path.rename(kept)
    for kind in report.EVIDENCE_FORMATS:
        other = path.with_name(report.file_name(path.stem, kind))
        if other.is_file():
            other.rename(kept.with_name(report.file_name(kept.stem, kind)))
