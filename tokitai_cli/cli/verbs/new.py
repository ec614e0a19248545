"""`new KERNEL`: a spec, a formula and a README for a kernel, to be filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokitai_cli.cli.verbs.find import Defines, Includes, macros
from tokitai_cli.cli.verbs.json_option import Json, print_json


def new(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A source with the kernel; an .hsaco or a folder of Triton's cache.",
        ),
    ],
    kernel: Annotated[
        str, typer.Option(metavar="NAME", help="The kernel to draft, if the source has several.")
    ] = "",
    like: Annotated[
        str,
        typer.Option(
            metavar="OP", help="Start from a built-in op, or op.variant: formula, profiles, suites."
        ),
    ] = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files.")] = Path(),
    include: Includes = None,
    define: Defines = None,
    json: Json = False,
) -> int:
    """Draft a spec for your own kernel.

    Writes spec.yaml, formula.py and README.md, and marks what is guessed and what is missing.

    Example: tokitai new kernel.hip
    """
    import os

    from tokitai_cli.core.model.wording import plural
    from tokitai_cli.drafts.writing import new as written
    from tokitai_cli.spec.reader.gaps import GAP, GUESS

    folders = [Path(os.path.abspath(one)) for one in include or ()]  # noqa: PTH100 - links stay
    draft, files, line = written(source, out, kernel, like, folders, macros(define))
    text = draft.spec + draft.formula
    guesses, gaps = text.count(GUESS), text.count(GAP)
    at = out / "spec.yaml" if out.parts else "./spec.yaml"
    following = f"tokitai verify {at} {draft.device}"
    if json:
        told = {"files": files, "readme": line, "guesses": guesses, "gaps": gaps, "next": following}
        print_json(told)
        return 0
    for file in files:
        typer.echo(f"wrote {file}")
    if line:
        typer.echo(f"for {out / 'README.md'}, which was there: {line}")
    typer.echo(f"{guesses} guess{'es' * (guesses != 1)} to check ({GUESS} ...)")
    typer.echo(f"{plural(gaps, 'gap')} to fill in ({GAP} ...)")
    typer.echo(f"next: {following}")
    return 0
