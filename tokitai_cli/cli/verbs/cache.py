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
    from tokitai_cli import console, pipeline

    if clear and json:
        typer.echo(pipeline.cleared_json())
    elif clear:
        console.show_cleared(pipeline.clear_cache())
    elif json:
        typer.echo(pipeline.cache_json())
    else:
        console.show_cache(pipeline.cache_contents())
