"""`schema`."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    what: Annotated[str, typer.Argument(metavar="spec|evidence|index", help="Which schema.")],
    json: Annotated[
        bool, typer.Option("--json", help="The schema is JSON without it too.")
    ] = False,
) -> None:
    """Print the JSON Schema of a file format.

    For spec files, evidence and the index of a batch.

    Example: tokitai schema spec
    """
    from tokitai_cli.run.inventory import schema_text

    typer.echo(schema_text(what))
