"""Device functions that another source of the program defines, which a GPU's linker would join."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.declarations import marks_of
from tokitai_cli.cpp.dialect import readable
from tokitai_cli.cpp.program_parts import DEVICE_WORDS, Part
from tokitai_cli.cpp.tree import child, declarator_of, name_of, parse, walk


def definers(parts: Sequence[Part], files: Collection[Path]) -> tuple[list[Path], set[Path]]:
    """Sources beside a program's files that define what it only declares for the device.

    And the folders that were looked through. parts: of all its units. files: that belong to it already,
    its own source first. A function that several sources of a folder define is left undefined: none
    tells which is meant.
    """
    defined = {name for one in parts if one.kind == "function" for name in one.names}
    wanted = {
        name
        for one in parts
        if one.kind == "prototype" and one.marks & DEVICE_WORDS and "__global__" not in one.marks
        for name in one.names - defined
    }
    beside = list(dict.fromkeys(path.parent for path in files)) if wanted else []
    found: set[Path] = set()
    for folder in beside:  # the source's own first
        here: dict[str, list[Path]] = {}
        for file in source_text.units_in(folder):
            data = source_text.read(file) if file not in files else None
            told = _defined(data) if data and b"__device__" in data else set[str]()
            for name in sorted(wanted & told):
                here.setdefault(name, []).append(file)
        found |= {one[0] for one in here.values() if len(one) == 1}
        wanted -= here.keys()
    return sorted(found), set(beside)


def _defined(data: bytes) -> set[str]:
    """Functions for the device that a source defines, by name."""
    root = parse(readable(data))
    return {
        name_of(declarator_of(child(one, "declarator")).name).last
        for one in walk(root)
        if one.type == "function_definition" and "__device__" in marks_of(one)
    }
