"""Headers that a build really used, and whether they are still the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokitai_cli import sources
from tokitai_cli.storage import file_sha256


def read_depfile(text: str, folder: Path) -> list[Path]:
    r"""List the prerequisites of a Makefile rule, absolute and without doubles.

    Relative ones start at `folder`. Escapes are those that GCC writes: `\ ` for a blank, `\#`,
    `$$`, and a backslash before a line break.
    """
    joined = re.sub(r"\\\r?\n", " ", text)
    rule = next((line for line in joined.splitlines() if ":" in line), "")
    _, _, prerequisites = rule.partition(": ")
    words = re.findall(r"(?:\\.|[^\s\\])+", prerequisites)
    plain = (re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words)
    # Not resolved: a symbolic link that is turned to another file must be noticed.
    return list(dict.fromkeys(folder / word for word in plain))


def shadows(headers: Iterable[Path], folders: Sequence[Path]) -> list[str]:
    """Files that do not exist, and that would be included instead of one of `headers` if they did."""
    found: set[str] = set()
    for header in headers:
        # Every folder that the header lies under may be the one that it was found through.
        for position, folder in enumerate(folders):
            if header.is_relative_to(folder):
                name = header.relative_to(folder)
                places = (earlier / name for earlier in folders[:position])
                found.update(str(place) for place in places if not place.exists())
    return sorted(found)


def probed(files: Iterable[Path], folders: Sequence[Path]) -> tuple[set[str], set[str]]:
    """Files that `files` ask for by `__has_include`: those that are there, those that are not.

    No depfile names them where they are not included, yet they decide what is compiled.
    """
    present: set[str] = set()
    absent: set[str] = set()
    for file in files:
        for name in sources.probed(sources.read(file) or b""):
            for folder in (file.parent, *folders):
                place = folder / name
                (present if place.exists() else absent).add(str(place))
    return present, absent


def stamp(path: str) -> list[int]:
    """Size and time of last change (ns) of a file, empty where it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - hundreds of files in a warm run
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


class Digests:
    """sha256 of files, each read once in the life of this object."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Digest of a file, empty where it cannot be read."""
        if path not in self._known:
            try:
                self._known[path] = file_sha256(path)
            except OSError:
                self._known[path] = ""
        return self._known[path]
