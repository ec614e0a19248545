"""Evidence and indexes as the JSON that they are read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex, IndexCase
    from tokitai_cli.core.model.evidence import Evidence
    from tokitai_cli.report.format import ReportOptions


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """All of the evidence, its cases inside."""
    from tokitai_cli.evidence.encoding import to_json

    yield to_json(evidence).encode()


def index(
    index: BatchIndex, cases: Iterable[IndexCase], report_options: ReportOptions
) -> Iterator[bytes]:
    """The index without its cases, which have a file of their own."""
    from tokitai_cli.evidence.encoding import line

    yield msgspec.json.format(line(index), indent=1) + b"\n"
