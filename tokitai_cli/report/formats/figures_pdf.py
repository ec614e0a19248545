r"""The pictures of a run as pages of a PDF, for LaTeX: `\includegraphics[page=2]{NAME.figures}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokitai_cli.core.model.evidence import Evidence
    from tokitai_cli.report.format import ReportOptions


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """One page for each picture."""
    from tokitai_cli.report import canvas, figures

    yield canvas.pdf(figures.figures_of(evidence))
