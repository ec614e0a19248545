"""Device functions that another source of the program defines, which a GPU's linker would join."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from tokitai_cli import sources
from tokitai_cli.kernel_source.pieces import Piece
from tokitai_cli.kernel_source.text import DEVICE_WORDS
from tokitai_cli.sources import blank

_SUFFIXES = {".cu", ".hip", ".cpp", ".cc", ".cxx"}
_MOST = 200  # sources that lie beside the program's files


def definers(pieces: Mapping[Path, list[Piece]], known: Collection[Path]) -> list[Path]:
    """Sources beside a program's files that define what it only declares for the device.

    known: files that belong to it already. One source for each function, the first by name.
    """
    every = [one for found in pieces.values() for one in found]
    defined = {name for one in every if one.kind == "function" for name in one.names}
    wanted = {
        name
        for one in every
        if one.kind == "prototype" and one.marks & DEVICE_WORDS and "__global__" not in one.marks
        for name in one.names - defined
    }
    found: list[Path] = []
    beside = {path.parent for path in pieces} if wanted else set()
    files = sorted(one for folder in beside for one in folder.iterdir() if one.suffix in _SUFFIXES)
    for file in files[:_MOST]:
        data = sources.read(file) if file not in known else None
        text = blank(data.decode("utf-8", "replace")) if data and b"__device__" in data else ""
        mine = {name for name in wanted if _defines(text, name)}
        if mine:
            found.append(file)
            wanted -= mine
    return found


def _defines(text: str, name: str) -> bool:
    head = rf"\b__device__\b[^;{{}}()]*\b{name}\s*\([^;{{}}]*\)\s*\{{"
    return bool(re.search(head, text))
