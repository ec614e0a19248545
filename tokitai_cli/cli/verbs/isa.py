"""`isa`: what is in a file of machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokitai_cli.cli.verbs.doctor import Json


def isa(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An .hsaco, an offload bundle, or a library with code for AMD GPUs.",
        ),
    ],
    arch: Annotated[
        str | None,
        typer.Option(metavar="GFX", help="The processor; without it the only one, or gfx1101."),
    ] = None,
    kernel: Annotated[
        str, typer.Option(metavar="NAME", help="List this kernel, by symbol or demangled name.")
    ] = "",
    json: Json = False,
) -> int:
    """Show the kernels of a file of AMD machine code: registers, memory, instructions, listing."""
    from tokitai_cli import console
    from tokitai_cli.gfx.inspection import inspect

    found = inspect(file, arch, kernel)
    if json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        console.show_machine_code(found)
    return 0
