"""`report FILE.json`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tokitai_cli.report import EVIDENCE_FORMATS, INDEX_FORMATS


def report_file(
    file: Annotated[
        str, typer.Argument(metavar="FILE.json", help="An evidence file, or a batch's index.json.")
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
    """Render a report again, from the JSON alone."""
    from tokitai_cli import batch, pipeline

    path = Path(file)
    if batch.is_index(path):
        data = batch.render_index_file(path, format)
    else:
        data = pipeline.render_file(file, format)
    if out is None:
        sys.stdout.buffer.write(data)
    else:
        pipeline.write_report(out, data)
