"""`report FILE.json...`, or `report DIR` of a batch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokitai_cli.cli import typer_options
from tokitai_cli.core.errors import UsageError
from tokitai_cli.report import (
    EVIDENCE_FORMATS,
    INDEX_FORMATS,
    JOINED_FORMATS,
    check_format,
    file_name,
)

if TYPE_CHECKING:
    from tokitai_cli.core.model.evidence import Evidence


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb."""
    help = "Evidence files of one kernel, or a batch's index.json or folder."
    return typer_options.with_options(
        _report, "report", typer_options.argument("files", list[str], "FILE...", help)
    )


def _report(files: list[str], **given: Any) -> None:
    """Render the report of evidence in other formats.

    Several files of one kernel and spec become one report. Runs no kernel.

    Example: tokitai report reports/gemm-bw.json --format html
    """
    from tokitai_cli import batch
    from tokitai_cli.audit.door import sound
    from tokitai_cli.report import render
    from tokitai_cli.run.run_files import write_reports
    from tokitai_cli.run.run_options import checked, report_options_of

    given = checked("report", given)
    kinds = ("json",) if given["json"] else given["format"]
    report_options, path = report_options_of(given), Path(files[0])
    several = len(files) > 1
    of_batch = not several and (path.is_dir() or batch.is_index(path))
    of = JOINED_FORMATS if several else INDEX_FORMATS if of_batch else EVIDENCE_FORMATS
    for kind in kinds:
        check_format(kind, of=of)
    if of_batch:
        of_index = batch.render_folder if path.is_dir() else batch.render_index_file
        made = {kind: of_index(path, kind, report_options) for kind in kinds}
        stem = "index"
    else:
        found = _joined(files) if several else sound(path)
        made = {kind: render(found, kind, report_options) for kind in kinds}
        stem = found.name if several else path.stem
    if given["out"] is None and len(made) == 1:
        sys.stdout.buffer.writelines(made.values())
    else:
        write_reports(given["out"], {file_name(stem, kind): made[kind] for kind in kinds})


def _joined(files: Sequence[str]) -> Evidence:
    """Several runs as one. Raises UsageError where they are not of one kernel and spec."""
    from tokitai_cli import batch, evidence
    from tokitai_cli.audit.door import sound

    for file in files:
        if Path(file).is_dir() or batch.is_index(Path(file)):
            hint = "name the batch alone, or evidence files of one kernel"
            raise UsageError(f"{file}: a batch among several files", hint=hint)
    return evidence.joined(evidence.runs_of([(file, sound(file)) for file in files]))
