"""`explain WORD`."""

from __future__ import annotations

from typing import Annotated

import typer

from tokitai_cli.cli.verbs.doctor import Json


def explain(
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="A word of a report or message, or an exit code.")
    ],
    json: Json = False,
) -> None:
    """Explain a word of a report, or an exit code.

    Verdicts, findings, faults and patterns of outputs, wrong outputs, claims, metrics.

    Example: tokitai explain vacuous
    """
    from tokitai_cli.cli import terminal
    from tokitai_cli.core.model.audit_answer import Answer
    from tokitai_cli.core.model.words import explained

    grid = explained(word)
    if json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(grid), indent=1).decode())
    else:
        terminal.show_answer(Answer(word, fine=True, grids=[grid]))
