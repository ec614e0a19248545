"""`report FILE.json`, or `report DIR` of a batch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokitai_cli.cli import typer_options
from tokitai_cli.report import EVIDENCE_FORMATS, INDEX_FORMATS, check_format, file_name


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb."""
    help = "An evidence file, a batch's index.json or its folder."
    return typer_options.with_options(
        _report, "report", typer_options.argument("file", str, "FILE", help)
    )


def _report(file: str, **given: Any) -> None:
    """Render the report of evidence in other formats.

    Reads evidence or a batch's folder; runs no kernel.

    Example: tokitai report reports/gemm-bw.json --format html
    """
    from tokitai_cli import batch, report
    from tokitai_cli.audit.door import sound
    from tokitai_cli.run.run_files import write_reports
    from tokitai_cli.run.run_options import checked, report_options_of

    given = checked("report", given)
    kinds, report_options, path = given["format"], report_options_of(given), Path(file)
    folder = path.is_dir()
    of_batch = folder or batch.is_index(path)
    for kind in kinds:
        check_format(kind, of=INDEX_FORMATS if of_batch else EVIDENCE_FORMATS)
    if of_batch:
        of_index = batch.render_folder if folder else batch.render_index_file
        made = {kind: of_index(path, kind, report_options) for kind in kinds}
    else:
        found = sound(path)
        made = {kind: report.render(found, kind, report_options) for kind in kinds}
    if given["out"] is None and len(made) == 1:
        sys.stdout.buffer.writelines(made.values())
    else:
        stem = "index" if of_batch else path.stem
        write_reports(given["out"], {file_name(stem, kind): made[kind] for kind in kinds})
