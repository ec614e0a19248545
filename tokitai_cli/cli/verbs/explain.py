"""`explain WORD`."""

from __future__ import annotations

from typing import Annotated

import typer

from tokitai_cli.cli.verbs.json_option import Json, print_json


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
        print_json(grid)
    else:
        terminal.show_answer(Answer(word, fine=True, grids=[grid]))
