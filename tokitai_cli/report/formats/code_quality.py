"""GitLab's code quality report: a finding for each cause, which merge requests show beside the code.

Source: GitLab Docs, "Code Quality", code quality report format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import plural, visible
from tokitai_cli.report import causes
from tokitai_cli.report.outcomes import kind_of

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex, IndexCase
    from tokitai_cli.core.model.evidence import Evidence
    from tokitai_cli.report.causes import Cause
    from tokitai_cli.report.format import ReportOptions

# What a kernel did is graver than what did not come to a result.
_SEVERITIES = {"failure": "critical", "error": "major", "skipped": "info"}


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """Findings of a run, in files by their paths from where it was called."""
    del report_options
    called = evidence.contract.path if evidence.contract is not None else ""
    yield _report(causes.of_run(evidence, called))


def index(
    index: BatchIndex, cases: Iterable[IndexCase], report_options: ReportOptions
) -> Iterator[bytes]:
    """Findings of a batch."""
    del cases, report_options
    yield _report(causes.of_batch(index))


def _report(found: Iterable[Cause]) -> bytes:
    return (
        msgspec.json.format(msgspec.json.encode([_finding(one) for one in found]), indent=1) + b"\n"
    )


def _finding(cause: Cause) -> dict[str, object]:
    more = f" (and {plural(cause.count - 1, 'more case')})" if cause.count > 1 else ""
    words = f"{cause.case or 'spec'} is {cause.verdict}: {cause.words}{more}"
    place = cause.place
    file, line = ("", 0) if place is None else (place.file, place.line)
    # The same cause has it in the next run too, whatever its line and its numbers are then.
    same = hashlib.sha256("\0".join((file, cause.case, cause.verdict)).encode()).hexdigest()
    return {
        "description": visible(words),
        "check_name": f"tokitai/{cause.verdict}",
        "fingerprint": same,
        "severity": "minor"
        if cause.verdict is Verdict.VACUOUS
        else _SEVERITIES[kind_of(cause.verdict)],
        "location": {"path": visible(file) or ".", "lines": {"begin": max(line, 1)}},
    }
