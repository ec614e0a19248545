"""`--json`: what every verb takes, and how it is printed."""

from __future__ import annotations

import enum
from pathlib import PurePath
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def print_json(value: Any) -> None:
    """Print structs and plain data as JSON; paths as text."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=_text), indent=1)
    typer.echo(text.decode())


def _text(value: Any) -> str:
    if isinstance(value, PurePath | enum.Enum):
        return str(value)
    raise NotImplementedError(type(value).__name__)
