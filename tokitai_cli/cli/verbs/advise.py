"""`advise OP`: what a spec cannot tell, and the lines that would mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tokitai_cli.cli.verbs.json_option import Json, print_json

if TYPE_CHECKING:
    from tokitai_cli.adequacy.advice import Advice


def advise(
    op: Annotated[str, typer.Argument(metavar="OP", help="A spec file's path, or a built-in op.")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Add the lines to the spec's file.")
    ] = False,
    json: Json = False,
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
        if not json:
            _show(one)
    mendable = [one for one in found if one.edits]
    done, refused = advice.apply(loaded, found) if apply else (0, [])
    if json:
        gaps = [{"text": one.text, "lines": one.lines, "needless": one.needless} for one in found]
        print_json({"op": loaded.spec.op, "gaps": gaps, "closed": done, "refused": list(refused)})
    else:
        left = len(found) - len(mendable)
        without = f", {left} without a line to add" if left else ""
        for text in refused:
            typer.echo(text)
        if apply:
            closed = f"{done} of {plural(len(found), 'gap')} closed"
            typer.echo(f"{loaded.path.name}: {closed}{without}")
        else:
            more = "; --apply adds the lines" if mendable else ""
            typer.echo(f"{loaded.spec.op}: {plural(len(found), 'gap')}{without}{more}")
    return 6 if (refused if apply else mendable) else 0


def _show(one: Advice) -> None:
    typer.echo(one.text)
    for line in one.lines:
        typer.echo(f"  {line}")
    if one.needless:
        typer.echo(f"  may go: {one.needless}")
