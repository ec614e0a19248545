"""`advise OP`: what a spec cannot tell, and the lines that would mend it."""

from __future__ import annotations

from typing import Annotated

import typer


def advise(
    op: Annotated[str, typer.Argument(metavar="OP", help="A spec file's path, or a built-in op.")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Add the lines to the spec's file.")
    ] = False,
) -> int:
    """List faults that a spec would miss, and what to add.

    Builds and runs no kernel.

    Example: tokitai advise spec.yaml
    """
    from tokitai_cli.adequacy import advice
    from tokitai_cli.core.model.wording import plural
    from tokitai_cli.run.specs import load_op

    loaded = load_op(op)
    found = []
    for one in advice.advise(loaded):
        found.append(one)
        typer.echo(one.text)
        for line in one.lines:
            typer.echo(f"  {line}")
        if one.needless:
            typer.echo(f"  may go: {one.needless}")
    mendable = [one for one in found if one.edits]
    left = len(found) - len(mendable)
    without = f", {left} without a line to add" if left else ""
    if not apply:
        more = "; --apply adds the lines" if mendable else ""
        typer.echo(f"{loaded.spec.op}: {plural(len(found), 'gap')}{without}{more}")
        return 6 if mendable else 0
    done, refused = advice.apply(loaded, found)
    for text in refused:
        typer.echo(text)
    typer.echo(f"{loaded.path.name}: {done} of {plural(len(found), 'gap')} closed{without}")
    return 6 if refused else 0
