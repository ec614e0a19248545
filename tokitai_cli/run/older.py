"""Evidence that a run finds in the place of its own: what it does not replace keeps its results."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tokitai_cli import report
from tokitai_cli.core.errors import EvidenceError, Location
from tokitai_cli.core.model.evidence import CasesFileRecord, Evidence
from tokitai_cli.core.model.verdict import UNSETTLED, Verdict

# Folder of runs that others took the place of, each in a folder of its own.
OLDER = "older"

# Reading more would cost a run more than it is worth; such a file is kept.
_MOST_BYTES = 256 << 20


class _Array(msgspec.Struct):
    file: str


class _Case(msgspec.Struct):
    id: str
    device: str
    verdict: Verdict
    saved_arrays: list[_Array] = []


class _Older(msgspec.Struct):
    """What has to be known of evidence to say whether another run replaces it."""

    rerun: str
    verdict: Verdict
    cases: list[_Case]
    cases_file: CasesFileRecord | None = None


def keep_older(evidence: Evidence, path: Path) -> str:
    """Move the evidence at `path` away, unless `found` is to replace it; returns a note.

    It is replaced where it is of the same spec, and where every case that it has a result of has one
    in `found` too; its saved arrays go with it. Else it keeps its name, its reports and its arrays in
    a folder of its own below `older`, which no verb looks into by itself. What is no evidence is kept.
    Raises EvidenceError where it cannot be moved.
    """
    if not path.is_file():
        return ""
    older = _read(path)
    if older is not None and _replaces(evidence, older):
        for arrays in _arrays(older, path, evidence):
            shutil.rmtree(arrays, ignore_errors=True)
        return ""
    try:
        kept = _new_folder(path.parent / OLDER)
        _move(path, kept, [] if older is None else _arrays(older, path, evidence))
    except OSError as error:
        message = f"cannot be kept in another folder: {error.strerror or error}"
        raise EvidenceError(message, where=Location(path)) from error
    held = "no evidence that can be read" if older is None else _words(older)
    return f"{path} held {held}: kept as {OLDER}/{kept.name}/{path.name}"


def arrays_folder(folder: Path, name: str) -> Path:
    """A new folder for the arrays of the run `name`: those of an earlier one are not written over.

    Raises OSError where none can be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        made = folder / (f"{name}.arrays" if number == 1 else f"{name}.arrays-{number}")
        try:
            made.mkdir()
        except FileExistsError:
            continue
        return made
    raise AssertionError  # count has no end


def _new_folder(place: Path) -> Path:
    place.mkdir(exist_ok=True)
    for number in itertools.count(1):
        made = place / str(number)
        try:
            made.mkdir()
        except FileExistsError:
            continue
        return made
    raise AssertionError  # count has no end


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


def _replaces(evidence: Evidence, older: _Older) -> bool:
    # `tokitai VERB SPEC` stand in front of every option.
    if evidence.rerun.partition(" -")[0] != older.rerun.partition(" -")[0]:
        return False
    return _finished(older) <= _finished(evidence)


def _finished(held: Evidence | _Older) -> set[tuple[str, str]]:
    """Cases that came to a verdict on their kernel."""
    return {(one.id, one.device) for one in held.cases if one.verdict not in UNSETTLED}


def _words(older: _Older) -> str:
    cases = f"{len(older.cases)} case{'' if len(older.cases) == 1 else 's'}"
    return f"another run ({cases}, {older.verdict})"


def _arrays(older: _Older, path: Path, evidence: Evidence) -> list[Path]:
    """Folders beside `path` that hold arrays of the older run alone; none that a link leads to."""
    mine = {one.file.partition("/")[0] for case in evidence.cases for one in case.saved_arrays}
    names = {one.file.partition("/")[0] for case in older.cases for one in case.saved_arrays} - mine
    form = re.compile(rf"{re.escape(path.stem)}\.arrays(-\d+)?")
    places = [path.with_name(name) for name in sorted(names) if form.fullmatch(name)]
    return [place for place in places if place.is_dir() and not place.is_symlink()]


def _move(path: Path, kept: Path, arrays: Sequence[Path]) -> None:
    """Move evidence into a folder, with all that lies beside it and belongs to it, under their names."""
    beside = [path.with_name(f"{path.stem}.cases.jsonl"), path.with_name(f"{path.stem}.dsse.json")]
    beside += [
        path.with_name(report.file_name(path.stem, kind)) for kind in report.EVIDENCE_FORMATS
    ]
    for place in (*beside, *arrays):
        if place != path and place.exists():
            place.rename(kept / place.name)
    path.rename(kept / path.name)
