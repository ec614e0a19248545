"""Evidence and indexes through the table of formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tokitai_cli.errors import UsageError, near
from tokitai_cli.report.formats import FORMATS

if TYPE_CHECKING:
    from tokitai_cli.model.batch import BatchIndex, IndexCase
    from tokitai_cli.model.evidence import Evidence

# Names that --format takes for evidence, and for the index of a batch.
EVIDENCE_FORMATS = tuple(name for name, one in FORMATS.items() if one.evidence is not None)
INDEX_FORMATS = tuple(name for name, one in FORMATS.items() if one.index is not None)
INDEX_FILES = {name: FORMATS[name].index_file for name in INDEX_FORMATS}


def check_format(name: str, *, of: Iterable[str] = EVIDENCE_FORMATS) -> str:
    """`name`, where it is one `of` the formats. Raises UsageError for another one."""
    if name not in of:
        raise UsageError(f"--format {name}: unknown report format", mend=near(name, of))
    return name


def file_name(name: str, format: str) -> str:
    """Name of the file that holds the report `name` in one of EVIDENCE_FORMATS."""
    return f"{name}{FORMATS[format].suffix}"


def render(evidence: Evidence, format: str, *, cache: Path | None = None) -> bytes:
    """Evidence in one of EVIDENCE_FORMATS, from its own fields alone.

    cache: a folder of the user's own for compiled templates, or None.
    Raises UsageError for another format.
    """
    made = FORMATS[check_format(format)].evidence
    assert made is not None
    return b"".join(made(evidence, cache))


def render_index(
    index: BatchIndex, format: str, cases: Iterable[IndexCase] = (), *, cache: Path | None = None
) -> Iterator[bytes]:
    """Index of a batch in one of INDEX_FORMATS, piece by piece; JUnit needs its `cases`, spec by spec.

    cache: as for `render`. Raises UsageError for another format.
    """
    made = FORMATS[check_format(format, of=INDEX_FORMATS)].index
    assert made is not None
    return iter(made(index, cases, cache))
