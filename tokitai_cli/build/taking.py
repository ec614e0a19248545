"""What the kernels of a request need of a source with host code, in the folder of its build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.build import branches
from tokitai_cli.build.ptx import HEADER, translated
from tokitai_cli.core.model.harness import HarnessRequest

if TYPE_CHECKING:
    from tokitai_cli.cpp.source.extract import ExtractedProgram

_FOLDER = "taken"


def write_extracted(
    request: HarnessRequest, folders: Sequence[Path], folder: Path, *, translates: bool = False
) -> ExtractedProgram:
    """Write it into `folder`; `folders` are those that an #include is looked for in.

    translates: inline assembly in plain PTX to C++.
    """
    from tokitai_cli.cpp.source.extract import extracted as taken_of

    wanted = {word for kernel in request.kernels for word in re.findall(r"\w+", kernel.expr)}
    wanted |= {name.rpartition("::")[2] for name, _ in request.symbols}
    taken = taken_of(request.source, folders, wanted)
    if translates:
        texts = {name: translated(text) for name, text in taken.texts.items()}
        taken = msgspec.structs.replace(taken, texts=texts)
    for name, text in taken.texts.items():
        (folder / _FOLDER / name).parent.mkdir(exist_ok=True)
        (folder / _FOLDER / name).write_text(text, encoding="utf-8")
    return taken


def source_of(taken: ExtractedProgram) -> tuple[str, str]:
    """The file in the folder that stands for the source, and its text without the #line in front."""
    name, text = next(iter(taken.texts.items()))
    return f"{_FOLDER}/{name}", text.removeprefix(HEADER).partition("\n")[2]


def extraction_notes(taken: ExtractedProgram) -> Iterator[str]:
    """Notes of what was left out."""
    lines = {
        (str(path), line)
        for path, spans in taken.left_out.items()
        for first, last in spans
        for line in range(first, last + 1)
    }
    if lines:
        yield f"left out, as no kernel needs it: lines {branches.line_ranges(lines)}"
    if taken.optional:
        yield f"taken in only where they are there: {', '.join(taken.optional)}"
