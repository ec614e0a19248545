"""Which lines of a source a compiler takes on one branch of the preprocessor and not on another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokitai_cli.core import resources
from tokitai_cli.core.linked_folders import LinkedFolders

_MARKER = r'# (?P<line>\d+) "(?P<file>.*)"(?P<flags>.*)'
_DROPPED = {"-MD", "-c"}


def preprocessor(command: Sequence[str], source: str, output: str) -> tuple[str, ...]:
    """Compile command made to preprocess `source` into `output`."""
    kept: list[str] = []
    words = iter(command)
    for word in words:
        if word in {"-MF", "-o"}:
            next(words, "")
        elif word not in _DROPPED and not word.startswith("-Wa,"):
            kept.append(source if word.endswith("harness.cpp") else word)
    return (*kept, "-E", "-o", output)


def lines_of(text: str, links: LinkedFolders) -> set[tuple[str, int]]:
    """(file, line) of everything that preprocessed text has from the user's own files.

    links: of the folder in which it was made.
    """
    found: set[tuple[str, int]] = set()
    shipped = str(resources.kernels_dir())
    file, number, ours = "", 0, False
    for line in text.splitlines():
        marker = re.match(_MARKER, line) if line.startswith("# ") else None
        if marker is not None:
            file, number = links.text(marker["file"]), int(marker["line"])
            ours = file.startswith("/") and " 3" not in marker["flags"]
            ours = ours and not file.startswith(shipped)
        else:
            if ours and line.strip():
                found.add((file, number))
            number += 1
    return found


def line_ranges(lines: Iterable[tuple[str, int]]) -> str:
    """Text such as k.hip:7, 9-12."""
    files: dict[str, list[list[int]]] = {}
    for file, line in sorted(lines):
        runs = files.setdefault(file, [])
        if runs and runs[-1][1] == line - 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    texts = []
    for file, runs in files.items():
        numbers = (f"{first}-{last}" if last > first else str(first) for first, last in runs)
        texts.append(f"{Path(file).name}:{', '.join(numbers)}")
    return "; ".join(texts)
