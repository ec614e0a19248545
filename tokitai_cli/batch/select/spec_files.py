"""The spec files of a batch: looked for under folders, read, and named."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import spec
from tokitai_cli.batch.store import holds_batch
from tokitai_cli.core.errors import Location, SpecError, UsageError
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.wording import visible
from tokitai_cli.run.commands import from_here
from tokitai_cli.run.run_options import check_text
from tokitai_cli.run.specs import load

_SUFFIXES = (".yaml", ".yml")


class Found(msgspec.Struct, frozen=True):
    """Specs in the order of the folders, what was passed over in words, and specs that are at fault."""

    specs: tuple[LoadedSpec, ...]
    skipped: tuple[str, ...]
    faults: tuple[SpecError, ...]


class _Files:
    """Spec files by their real paths, so that each counts once, with whether a person named it."""

    def __init__(self, out: Path) -> None:
        self._out = os.path.realpath(out)
        self._walked: set[str] = set()
        self.paths: dict[str, Path] = {}
        self.named: set[str] = set()
        self.skipped: list[str] = []
        self.faults: list[SpecError] = []

    def add(self, path: Path) -> None:
        """Add a file, or every YAML file under a folder. Raises UsageError where there is neither."""
        try:
            path.stat()
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            reason = "no such folder or file" if missing else getattr(error, "strerror", error)
            hint = "name folders with specs in them, or spec files"
            raise UsageError(f"{shown(path)}: {reason}", hint=hint) from None
        if not path.is_dir():
            real = os.path.realpath(path)
            self.paths.setdefault(real, path)
            self.named.add(real)
            return
        if os.path.realpath(path) == self._out:
            hint = "give a folder of its own with --out"
            raise UsageError(f"{shown(path)}: --out is the folder of the specs itself", hint=hint)
        if self._holds_results(path):
            hint = "name the folder of the specs; with --resume a batch continues with its results"
            raise UsageError(
                f"{shown(path)}: this folder contains the results of a batch", hint=hint
            )
        self._walk(path)

    def _walk(self, top: Path) -> None:
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            real = os.path.realpath(folder)
            if real in self._walked:
                continue
            self._walked.add(real)
            if self._holds_results(folder):
                if real != self._out:
                    self.skipped.append(f"{shown(folder)}: the results of a batch")
                continue
            try:
                inside = sorted(folder.iterdir())
            except OSError as error:
                self.faults.append(_unreadable(folder, error))
                continue
            folders = [path for path in inside if os.path.isdir(path)]  # noqa: PTH112 - never raises
            waiting += reversed([path for path in folders if not path.name.startswith(".")])
            for path in inside:
                if path.suffix.lower() in _SUFFIXES and path not in folders:
                    self._meet(path)

    def _meet(self, path: Path) -> None:
        if os.path.isfile(path):  # noqa: PTH113 - never raises
            self.paths.setdefault(os.path.realpath(path), path)
        else:
            self.skipped.append(f"{shown(path)}: no regular file")

    def _holds_results(self, folder: Path) -> bool:
        return os.path.realpath(folder) == self._out or holds_batch(folder)


def find(folders: Sequence[Path], out: Path) -> Found:
    """Read all *.yaml and *.yml files under `folders`, and those that are named themselves.

    Folders in the order given, a folder's files by name before its subfolders'; hidden folders
    and results of batches, such as those in `out`, are passed over, links to folders are followed.
    Under a folder a file that is no spec is skipped. Raises UsageError for a folder that is not there.
    """
    files = _Files(out)
    for folder in folders:
        files.add(folder)
    specs: dict[str, LoadedSpec] = {}
    for real, path in files.paths.items():
        try:
            if real not in files.named and not spec.is_spec(path):
                files.skipped.append(f"{shown(path)}: no spec")
                continue
            loaded = load(path)
            check_text(loaded.path)
            if twin := specs.get(loaded.digest):
                raise _same_text(loaded, twin)
        except SpecError as error:
            files.faults.append(error)
        else:
            loaded.models.forget()  # hundreds of sources
            specs[loaded.digest] = loaded
    return Found(tuple(specs.values()), tuple(files.skipped), tuple(files.faults))


def gathered(faults: Sequence[SpecError]) -> SpecError:
    """One error that tells of all `faults`; the only one itself."""
    if len(faults) == 1:
        return faults[0]
    told = "".join(f"\n  {fault}" for fault in faults)
    return SpecError(f"{len(faults)} errors in the specs; nothing was run:{told}")


def names(specs: Sequence[LoadedSpec]) -> tuple[str, ...]:
    """Name of each spec, unlike all others: its op, or its path where ops share a name.

    The path starts from the folder that all specs have in common, and has its suffix only where two
    would have one name without.
    """
    if not specs:
        return ()
    paths = [Path(os.path.realpath(loaded.path)) for loaded in specs]
    common = os.path.commonpath([path.parent for path in paths])
    whole = [path.relative_to(common) for path in paths]
    ops = Counter(loaded.spec.op for loaded in specs)
    given = [
        loaded.spec.op if ops[loaded.spec.op] == 1 else path.with_suffix("").as_posix()
        for loaded, path in zip(specs, whole, strict=True)
    ]
    counts = Counter(given)
    for index, loaded in enumerate(specs):
        if counts[given[index]] > 1 and ops[loaded.spec.op] > 1:
            given[index] = whole[index].as_posix()
    return tuple(_distinct(given))


def shown(path: Path) -> str:
    """`path` as a person reads it: from the working folder where it lies under it, on one line."""
    return visible(from_here(path))


def _distinct(given: Sequence[str]) -> Iterator[str]:
    """Add a number to a name that is taken: an op may be called as another's file."""
    taken = set(given)
    met: set[str] = set()
    for name in given:
        unlike, number = name, 2
        while unlike in met or (unlike != name and unlike in taken):
            unlike, number = f"{name}~{number}", number + 1
        met.add(unlike)
        yield unlike


def _same_text(loaded: LoadedSpec, twin: LoadedSpec) -> SpecError:
    """A spec is known by its digest; kernels beside two copies may differ, so none is left out."""
    return SpecError(
        f"the same text as {shown(twin.path)}: their results could not be distinguished",
        where=Location(loaded.path),
        hint="give one of them another title, or exclude its folder",
    )


def _unreadable(folder: Path, error: OSError) -> SpecError:
    reason = f"the folder cannot be read: {error.strerror or error}"
    return SpecError(reason, where=Location(folder), hint="change its mode, or name other folders")
