"""`cache`."""

from __future__ import annotations

from typing import Annotated

import typer

from tokitai_cli.cli.verbs.json_option import Json


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete every entry.")] = False,
    json: Json = False,
) -> None:
    """Show or clear the build cache.

    Example: tokitai cache --clear
    """
    from tokitai_cli.cli import terminal
    from tokitai_cli.run import inventory

    if clear and json:
        typer.echo(inventory.cleared_json())
    elif clear:
        terminal.show_cleared(inventory.clear_cache())
    elif json:
        typer.echo(inventory.cache_json())
    else:
        terminal.show_cache(inventory.cache_contents())
