"""`report FILE.json`, or `report DIR` of a batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tokitai_cli.report import EVIDENCE_FORMATS, INDEX_FORMATS


def report_file(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Evidence, a batch's index.json or its folder.")
    ],
    format: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(EVIDENCE_FORMATS)}; of an index, {', '.join(INDEX_FORMATS)}.",
        ),
    ] = "md",
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="File to write, not stdout.")
    ] = None,
) -> None:
    """Render a report again, from JSON or a batch's folder alone."""
    from tokitai_cli import batch
    from tokitai_cli.pipeline.files import render_file, write_report

    path = Path(file)
    if path.is_dir():
        data = batch.render_folder(path, format)
    elif batch.is_index(path):
        data = batch.render_index_file(path, format)
    else:
        data = render_file(file, format)
    if out is None:
        sys.stdout.buffer.write(data)
    else:
        write_report(out, data)
