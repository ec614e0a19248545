"""What the kernels of a request need of a source with host code, in the folder of its build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tokitai_cli.build import branches
from tokitai_cli.build.ptx import translated
from tokitai_cli.core import flags
from tokitai_cli.core.linked_folders import links_of
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.core.model.models import Models
from tokitai_cli.cpp.lexing import names_in

if TYPE_CHECKING:
    from tokitai_cli.cpp.extraction import ExtractedProgram

_FILE = "taken.cpp"
_LINE = re.compile(r'^(#line \d+ ")([^"\n]*)', re.MULTILINE)


def write_extracted(
    request: HarnessRequest, recipe: Recipe, folders: Sequence[Path], folder: Path, models: Models
) -> ExtractedProgram:
    """Write it into `folder`; `folders` are those that an #include is looked for in.

    On the cpu device inline assembly in plain PTX becomes C++.
    """
    from tokitai_cli.cpp.extraction import extracted  # parsers that other builds do without
    from tokitai_cli.cpp.policy import CUDA, passes_of
    from tokitai_cli.cpp.programs import Programs

    wanted = {word for kernel in request.kernels for word in names_in(kernel.expr)}
    variables = [name for name, _ in request.symbols]
    variables += [name for kernel in request.kernels for name in kernel.references]
    wanted |= {name.rpartition("::")[2] for name in variables}
    cuda = request.source.suffix in CUDA
    passes = passes_of(
        recipe.device, recipe.arch, cuda, flags.definitions(recipe.command), recipe.branch
    )
    taken = extracted(request.source, folders, wanted, passes, models.of(Programs).read)
    if recipe.device == "cpu":
        taken = msgspec.structs.replace(taken, text=translated(taken.text))
    links = links_of(folder)
    text = _LINE.sub(lambda line: line[1] + links.word(line[2]), taken.text)
    (folder / _FILE).write_text(text, encoding="utf-8")
    return taken


def context_of(taken: ExtractedProgram) -> dict[str, Any]:
    """What the harness says of the source, by the text that stands for it."""
    from tokitai_cli.cpp.source.device_memory import memory_in

    return {"source": _FILE, **memory_in(taken.text)._asdict()}


def extraction_notes(taken: ExtractedProgram) -> Iterator[str]:
    """Notes of what was left out."""
    lines = {
        (str(path), line)
        for path, spans in taken.left_out.items()
        for first, last in spans
        for line in range(first, last + 1)
    }
    if lines:
        yield f"left out because no kernel needs them: lines {branches.line_ranges(lines)}"
    if taken.optional:
        names = ", ".join(taken.optional)
        yield f"headers that a build includes if they are installed, and leaves out if not: {names}"
