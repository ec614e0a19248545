"""The files of a run: where they can go, and what is written."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tokitai_cli import evidence, report
from tokitai_cli.core.errors import EvidenceError, UsageError
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.run.older import keep_older
from tokitai_cli.run.run_options import RunOptions


def choose_folder(out: Path) -> tuple[Path, str]:
    """`out` if files can be made there, else the user's state folder, else a temporary one.

    Returns the folder and a note, empty where it is `out`. Asked before anything runs:
    a long run must not end without a place for its evidence. Raises UsageError where `out` is a file.
    """
    check_no_file(out)
    fault = _unwritable(out)
    if not fault:
        return out, ""
    import platformdirs  # only where `out` cannot be used

    state = platformdirs.user_state_path("tokitai") / "reports"
    folder = Path(tempfile.mkdtemp(prefix="tokitai-reports-")) if _unwritable(state) else state
    return folder, f"--out {out} cannot be written ({fault}): the evidence goes to {folder}"


def check_no_file(out: Path) -> None:
    """Raise UsageError where `out`, or what it is to lie in, is there and no folder."""
    for place in (out, *out.parents):
        if place.exists():
            if not place.is_dir():
                raise UsageError(f"--out {out}: {place} is a file", hint="name a folder")
            return


def _unwritable(folder: Path) -> str:
    """Why no file can be made in `folder`, empty where one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def write_files(
    evidence: Evidence, folder: Path, options: RunOptions
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write NAME.json and one file per further format; returns their paths, JSON first, and notes.

    Older files that hold what this run does not are kept in another folder, and a note says so. Of runs
    into one folder each waits until the others have written, so that all are kept. What
    cannot be written to `folder` (the disk is full, a folder has the file's name) goes to a new
    temporary folder, and the note says so: evidence of a long run is not given up.
    """
    try:
        with _held(folder):
            note = keep_older(evidence, folder / f"{options.name}.json")
            return _write_all(evidence, folder, options), (note,) if note else ()
    except EvidenceError as error:
        elsewhere = Path(tempfile.mkdtemp(prefix="tokitai-reports-"))
        files = _write_all(evidence, elsewhere, options)
        return files, (f"{error.where} {error.message}: the evidence goes to {elsewhere}",)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep other runs from writing into the folder meanwhile, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_all(found: Evidence, folder: Path, options: RunOptions) -> tuple[Path, ...]:
    path = folder / report.file_name(options.name, "json")
    evidence.write(found, path)
    files = [path]
    report_options = msgspec.structs.replace(options.report_options, cache=_template_cache())
    for kind in options.formats:
        if kind != "json":
            other = folder / report.file_name(options.name, kind)
            text = report.render(found, kind, report_options)
            evidence.write_file(other, text, durable=False)  # it can be made again from the JSON
            files.append(other)
    return tuple(files)


def write_reports(out: str | None, files: Mapping[str, bytes]) -> None:
    """Write one rendered report to the file `out`, or several to the folder `out` under their names.

    That folder is made where it is not there. Raises UsageError where the one of a file is not, and for
    a folder in the place of a file.
    """
    if out is None:
        raise UsageError("several formats do not fit stdout", hint="name a folder with --out")
    path = Path(out)
    (first, *others) = files
    folder = path if others else path.parent
    check_no_file(folder)
    if not others and path.is_dir():
        raise UsageError(f"--out {out}: it is a folder", hint=f"name a file: {path / first}")
    if not others and not folder.is_dir():
        raise UsageError(f"--out {out}: the folder {folder} is not there")
    if others and (fault := _unwritable(folder)):
        raise UsageError(f"--out {out}: {fault}", hint="name another folder")
    for name, data in files.items():
        evidence.write_file(folder / name if others else path, data)


def _template_cache() -> Path | None:
    """Folder for compiled templates beside the build cache; None where it is not the user's own."""
    from tokitai_cli import build

    folder = build.cache.location().folder / "templates"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder if folder.stat().st_uid == os.getuid() else None
    except OSError:
        return None
