"""CSV (RFC 4180): a row for each output of each case, failures first."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core.model.wording import visible
from tokitai_cli.report.raw import Raw

if TYPE_CHECKING:
    from tokitai_cli.core.model.evidence import CaseRecord, Evidence
    from tokitai_cli.report.format import ReportOptions
    from tokitai_cli.report.templates import Target

# What makes a formula of a cell in spreadsheets (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@")


class _Times(msgspec.Struct, frozen=True):
    """Nanoseconds of a case's repetitions; None where none was timed."""

    count: int
    least: int | None
    median: float | None
    largest: int | None


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """Table of the run's cases."""
    import statistics

    from tokitai_cli.report.outline import context, rows
    from tokitai_cli.report.templates import generated

    def times(case: CaseRecord) -> _Times:
        spent = evidence.volatile.case_times_ns.get(case.key)
        if not spent:
            return _Times(0, None, None, None)
        return _Times(len(spent), min(spent), statistics.median(spent), max(spent))

    told = {**context(evidence), "rows": rows(evidence), "times": times}
    for piece in generated(_target(), "cases.csv.j2", report_options, told):
        yield piece.encode()


@functools.cache
def _target() -> Target:
    from tokitai_cli.report.templates import Target

    return Target(__file__, printed, row=_row)


def printed(value: object) -> str:
    """A cell: numbers as they are, text quoted where it has to be, empty for None.

    Text that a spreadsheet would compute begins with an apostrophe.
    """
    if isinstance(value, Raw):
        return value
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    text = visible(str(value))
    text = f"'{text}" if text.startswith(_FORMULA) else text
    quoted = any(letter in text for letter in ',"') or text != text.strip()
    return '"{}"'.format(text.replace('"', '""')) if quoted else text


def _row(*cells: object) -> Raw:
    return Raw(",".join(printed(cell) for cell in cells) + "\r")
