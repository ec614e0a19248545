"""JUnit XML, case by case, for the test views of CI systems.

Elements and attributes are those of the Jenkins xUnit plugin's schema (junit-10.xsd): testsuites,
a testsuite for each spec, a testcase for each case. A CI shows "skipped" as green, so that only
expected failures and vacuous cases beside verified ones are skipped; where nothing was verified it is
an error.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import visible, visible_block
from tokitai_cli.report.outcomes import kind_of
from tokitai_cli.report.raw import MARKUP, Raw

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex, Failure, IndexCase
    from tokitai_cli.core.model.evidence import CaseRecord, Evidence
    from tokitai_cli.report.format import ReportOptions
    from tokitai_cli.report.templates import Target


class _Tally(msgspec.Struct):
    """Tests of a suite by what JUnit calls them."""

    tests: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def add(self, kind: str, count: int = 1) -> None:
        self.tests += count
        self.failures += count * (kind == "failure")
        self.errors += count * (kind == "error")
        self.skipped += count * (kind == "skipped")


class _Test(msgspec.Struct, frozen=True):
    """One testcase; kind as `kind_of` gives it."""

    place: str
    name: str
    kind: str
    verdict: str
    message: str
    text: str
    out: str
    seconds: float = 0.0


class _Suite(msgspec.Struct, frozen=True):
    name: str
    tally: _Tally
    tests: Iterable[_Test]


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """XML of a run: one suite, and a test for the run where none of its cases tells its end."""
    from tokitai_cli.evidence import queries

    tests = [_of_case(evidence, case) for case in queries.cases(evidence)]
    if evidence.verdict.exit_code and not any(one.kind in ("failure", "error") for one in tests):
        tests.append(_whole("the whole run", evidence.verdict, evidence.reason, evidence.rerun))
    tally = _Tally(seconds=evidence.volatile.seconds)
    for one in tests:
        tally.add(one.kind)
    yield from _written(report_options, "tokitai", tally, [_Suite(evidence.name, tally, tests)])


def index(
    index: BatchIndex, cases: Iterable[IndexCase], report_options: ReportOptions
) -> Iterator[bytes]:
    """XML of the index, piece by piece; `cases` are all of its cases, spec by spec."""
    tallies = {one.name: _tally(one.counts) for one in index.specs}
    for cell in index.matrix:
        tallies.setdefault(cell.spec, _Tally()).seconds += cell.seconds
    whole = _tally(index.counts)
    whole.seconds = index.seconds
    failures = {failure.case.id: failure for failure in index.failures}
    # What no case tells: that there was none, or that some never ran.
    undetected = (not index.counts and not index.faults) or index.not_started > 0
    if undetected:
        whole.add("error")
    whole.add("error", len(index.faults))

    def suites() -> Iterator[_Suite]:
        if undetected:
            message = f"{index.not_started} of {index.total} cases were not run; {index.reason}"
            rerun = f"{index.rerun} --resume" if index.total else index.rerun
            test = _whole("the whole batch", index.verdict, message, rerun)
            yield _Suite(test.name, _Tally(tests=1, errors=1), [test])
        if index.faults:
            tests = [_whole(fault, Verdict.NOT_RUN, fault, index.rerun) for fault in index.faults]
            count = len(tests)
            yield _Suite("specs that cannot be used", _Tally(tests=count, errors=count), tests)
        for name, mine in itertools.groupby(cases, key=lambda case: case.spec):
            rows = (_of_index(case, failures.get(case.id)) for case in mine)
            yield _Suite(name, tallies.get(name, _Tally()), rows)

    yield from _written(report_options, "tokitai batch", whole, suites())


def _written(
    report_options: ReportOptions, name: str, whole: _Tally, suites: Iterable[_Suite]
) -> Iterator[bytes]:
    from tokitai_cli.report.templates import generated

    told = {"name": name, "whole": whole, "seconds": whole.seconds, "suites": suites}
    for piece in generated(_target(), "junit.xml.j2", report_options, told):
        yield piece.encode()


@functools.cache
def _target() -> Target:
    from tokitai_cli.report.templates import Target

    return Target(__file__, printed, block=_block, seconds=_seconds)


def printed(value: object) -> str:
    """Text of an attribute: on one line, hidden characters made visible."""
    return value if isinstance(value, Raw) else visible(str(value)).translate(MARKUP)


def _block(text: str) -> Raw:
    return Raw(visible_block(text).translate(MARKUP))


def _seconds(value: float) -> Raw:
    return Raw(f"{value:.3f}")


def _whole(name: str, verdict: Verdict, message: str, rerun: str) -> _Test:
    kind = "failure" if kind_of(verdict) == "failure" else "error"
    return _Test("tokitai.batch", name, kind, str(verdict), message, rerun, "")


def _of_case(evidence: Evidence, case: CaseRecord) -> _Test:
    log = evidence.volatile.kernel_logs.get(case.key, "")
    return _Test(
        place=f"{case.op}.{case.variant}",
        name=case.key.removeprefix(f"{case.op}/{case.variant}/"),
        kind=kind_of(case.reads),
        verdict=str(case.reads),
        message=_message(case.reads, case.reason),
        text=_lines(f"{case.reads} at stage {case.stage}", case.reason),
        out=_lines(log, f"run it again: {case.rerun}", f"evidence: {evidence.name}.json"),
        seconds=sum(evidence.volatile.stage_seconds.get(case.key, {}).values()),
    )


def _of_index(case: IndexCase, failure: Failure | None) -> _Test:
    element, log = ("", "") if failure is None else (failure.element, failure.log)
    return _Test(
        place=f"{case.op}.{case.variant}",
        name=case.id.removeprefix(f"{case.spec}/{case.variant}/"),
        kind=kind_of(case.verdict),
        verdict=str(case.verdict),
        message=_message(case.verdict, case.reason),
        text=_lines(f"{case.verdict} at stage {case.stage}", case.reason, element),
        out=_lines(log, f"run it again: {case.rerun}", f"evidence: {case.evidence}"),
        seconds=case.seconds,
    )


def _message(verdict: Verdict, reason: str) -> str:
    return f"{verdict}: {reason}" if kind_of(verdict) == "skipped" else reason


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _tally(counts: dict[str, int]) -> _Tally:
    tally = _Tally()
    for verdict in Verdict:
        tally.add(kind_of(verdict), counts.get(verdict, 0))
    return tally
