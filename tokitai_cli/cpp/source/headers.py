"""Folders of headers that a program's makefile names, found again in its source tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from tokitai_cli.core import resources
from tokitai_cli.cpp.source.source_files import SYSTEM, user_files

_ROUNDS = 8  # headers that are found take in further ones


class Headers:
    """The headers of a tree, by their last name."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._named: dict[str, list[Path]] = {}
        for file in files:
            self._named.setdefault(file.name, []).append(file)

    def folders(self, source: Path, given: Sequence[Path]) -> list[Path]:
        """Folders below which the tree has what `source` includes and neither `given` nor we have.

        Of several the one that is nearest to the source.
        """
        found: list[Path] = []
        for _ in range(_ROUNDS):
            files = user_files(source, (*given, *found)).values()
            wanted = {name.strip('<>"') for one in files for name in one.foreign.values()}
            new = {self._folder(name, source) for name in wanted} - {None, *found}
            if not new:
                break
            found += sorted(one for one in new if one is not None)
        return found

    def _folder(self, name: str, source: Path) -> Path | None:
        parts = PurePosixPath(os.path.normpath(name)).parts
        ours = (resources.kernels_dir() / "host", *SYSTEM)
        if not parts or ".." in parts or any((folder / name).exists() for folder in ours):
            return None
        fitting = [
            file for file in self._named.get(parts[-1], ()) if file.parts[-len(parts) :] == parts
        ]
        if not fitting:
            return None
        near = max(fitting, key=lambda file: (_shared(file, source), -len(file.parts)))
        return near.parents[len(parts) - 1]


def _shared(one: Path, other: Path) -> int:
    """How many folders from the root on two files have in common."""
    return len(Path(os.path.commonpath((one, other))).parts)
