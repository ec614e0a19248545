"""`list` and `show OP`: what there is to verify."""

from __future__ import annotations

from typing import Annotated

import typer

from tokitai_cli.cli.verbs.json_option import Json, print_json


def list_ops(json: Json = False) -> None:
    """List the built-in ops, their variants and parameters.

    Example: tokitai list
    """
    from tokitai_cli.cli import terminal
    from tokitai_cli.run.inventory import builtin_specs, listing_json

    specs = builtin_specs()
    if json:
        typer.echo(listing_json(specs))
    else:
        terminal.show_ops(specs)


def show(
    op: Annotated[str, typer.Argument(metavar="OP", help="A built-in op, or a spec file's path.")],
    score: Annotated[
        bool,
        typer.Option(
            "--score",
            help="Count the changes of each formula that the checks reject; runs no kernel.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show what a spec requires of its kernels.

    Lists kernels, shapes, checks and input profiles.

    Example: tokitai show softmax
    """
    from tokitai_cli.cli import terminal
    from tokitai_cli.run.specs import load_op

    loaded = load_op(op)
    if score:
        from tokitai_cli.adequacy.advice import score as score_of
    if json:
        told = {"path": loaded.path.name, "sha256": loaded.digest, "spec": loaded.spec}
        print_json(told | {"scores": list(score_of(loaded))} if score else told)
        return
    terminal.show_spec(loaded)
    if score:
        terminal.show_scores(score_of(loaded))
