"""Evidence and indexes through the table of formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.report.format import ReportOptions
from tokitai_cli.report.formats import FORMATS

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex, IndexCase
    from tokitai_cli.core.model.evidence import Evidence

PLAIN = ReportOptions()
# Names that --format takes for evidence, and for the index of a batch.
EVIDENCE_FORMATS = tuple(name for name, one in FORMATS.items() if one.evidence is not None)
INDEX_FORMATS = tuple(name for name, one in FORMATS.items() if one.index is not None)
# Those that can be of several runs of one kernel.
JOINED_FORMATS = tuple(name for name, one in FORMATS.items() if one.joins)
INDEX_FILES = {name: FORMATS[name].index_file for name in INDEX_FORMATS}


def check_format(name: str, *, of: Iterable[str] = EVIDENCE_FORMATS) -> str:
    """`name`, where it is one `of` the formats. Raises UsageError for another one."""
    if of == JOINED_FORMATS and name in FORMATS and name not in of:
        hint = f"several runs in one: {', '.join(of)}"
        raise UsageError(f"--format {name}: takes one file only", hint=hint)
    if name not in of:
        raise UsageError(f"--format {name}: unknown report format", hint=near(name, of))
    _check_library(FORMATS[name].needs, f"--format {name}")
    return name


def check_report_options(report_options: ReportOptions) -> None:
    """Raise UsageError where no report can be made like that: no folder of templates, no matplotlib."""
    if report_options.templates is not None and not report_options.templates.is_dir():
        raise UsageError(f"--templates {report_options.templates}: no such folder")
    if report_options.plots:
        _check_library("matplotlib", "--plots")


def _check_library(name: str, option: str) -> None:
    import importlib.util

    if name and importlib.util.find_spec(name) is None:
        raise UsageError(f"{option}: {name} is not there", hint="pip install 'tokitai[plots]'")


def file_name(name: str, format: str) -> str:
    """Name of the file that holds the report `name` in one of EVIDENCE_FORMATS."""
    return f"{name}{FORMATS[format].suffix}"


def render(evidence: Evidence, format: str, report_options: ReportOptions = PLAIN) -> bytes:
    """Evidence in one of EVIDENCE_FORMATS, from its own fields alone.

    Raises UsageError for another format, and for a user's template that cannot be used.
    """
    made = FORMATS[check_format(format)].evidence
    assert made is not None
    return b"".join(made(evidence, report_options))


def statement(evidence: Evidence, name: str, sha256: str) -> bytes:
    """The in-toto statement about evidence in a file of that name and digest."""
    from tokitai_cli.report.formats import json_text

    return b"".join(json_text.statement(evidence, PLAIN, json_text.Digest(name, sha256)))


def render_index(
    index: BatchIndex,
    format: str,
    cases: Iterable[IndexCase] = (),
    report_options: ReportOptions = PLAIN,
) -> Iterator[bytes]:
    """Index of a batch in one of INDEX_FORMATS, piece by piece; JUnit needs its `cases`, spec by spec.

    Raises UsageError as `render` does.
    """
    made = FORMATS[check_format(format, of=INDEX_FORMATS)].index
    assert made is not None
    return iter(made(index, cases, report_options))
