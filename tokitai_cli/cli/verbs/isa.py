"""`isa`: the machine code of a file, or of what an op is compiled to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokitai_cli.cli.verbs.json_option import Json, print_json


def isa(
    what: Annotated[
        str,
        typer.Argument(
            metavar="OP|FILE",
            help="An op or a spec; or an .hsaco, an offload bundle, a library with AMD machine code.",
        ),
    ],
    arch: Annotated[
        str,
        typer.Option(
            metavar="GFX", help="The processor; default: gfx1101, or the first one in the file."
        ),
    ] = "",
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Show a listing of this kernel (symbol or demangled name)."
        ),
    ] = "",
    json: Json = False,
) -> int:
    """Show kernels of AMD machine code.

    Shows registers, memory, float mode, instructions and a listing.

    Example: tokitai isa kernel.hsaco
    """
    from tokitai_cli.cli import terminal
    from tokitai_cli.core.file_kind import is_machine_code
    from tokitai_cli.devices.amdgpu.inspection import inspect

    file = Path(what)
    if file.suffix in {".hsaco", ".so"} or is_machine_code(file):
        found = [inspect(file, arch, kernel)]
    else:
        from tokitai_cli.run.compiled_code import built
        from tokitai_cli.run.specs import load_op

        found = [inspect(path, arch, kernel) for path in built(load_op(what), arch)]
    if json:
        print_json(found)
    else:
        for one in found:
            terminal.show_machine_code(one)
    return 0
