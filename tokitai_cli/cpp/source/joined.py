"""Device functions that another source of the program defines, which a GPU's linker would join."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.source.blanking import DEVICE_WORDS
from tokitai_cli.cpp.source.pieces import Declaration
from tokitai_cli.cpp.source_text import blank


def definers(
    pieces: Mapping[Path, list[Declaration]], known: Collection[Path]
) -> tuple[list[Path], set[Path]]:
    """Sources beside a program's files that define what it only declares for the device.

    And the folders that were looked through. pieces: the source's own first. known: files that belong to
    it already. A function that several sources of a folder define is left undefined: none tells which is
    meant.
    """
    every = [one for found in pieces.values() for one in found]
    defined = {name for one in every if one.kind == "function" for name in one.names}
    wanted = {
        name
        for one in every
        if one.kind == "prototype" and one.marks & DEVICE_WORDS and "__global__" not in one.marks
        for name in one.names - defined
    }
    beside = list(dict.fromkeys(path.parent for path in pieces)) if wanted else []
    found: set[Path] = set()
    for folder in beside:  # the source's own first
        here: dict[str, list[Path]] = {}
        for file in source_text.units_in(folder):
            data = source_text.read(file) if file not in known else None
            text = blank(data.decode("utf-8", "replace")) if data and b"__device__" in data else ""
            for name in (one for one in wanted if text and _defines(text, one)):
                here.setdefault(name, []).append(file)
        found |= {one[0] for one in here.values() if len(one) == 1}
        wanted -= here.keys()
    return sorted(found), set(beside)


def _defines(text: str, name: str) -> bool:
    head = rf"\b__device__\b[^;{{}}()]*\b{name}\s*\([^;{{}}]*\)\s*\{{"
    return bool(re.search(head, text))
