"""`cache`."""

from __future__ import annotations

from typing import Annotated

import typer

from tokitai_cli.cli.verbs.doctor import Json


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete every entry.")] = False,
    json: Json = False,
) -> None:
    """Show the build cache, or clear it."""
    from tokitai_cli import console
    from tokitai_cli.pipeline import survey

    if clear and json:
        typer.echo(survey.cleared_json())
    elif clear:
        console.show_cleared(survey.clear_cache())
    elif json:
        typer.echo(survey.cache_json())
    else:
        console.show_cache(survey.cache_contents())
