"""The index of a batch as JUnit XML, case by case, for the test views of CI systems.

Elements and attributes are those of the Jenkins xUnit plugin's schema (junit-10.xsd): testsuites,
a testsuite for each spec, a testcase for each case. A CI shows "skipped" as green, so that only
expected failures and vacuous cases beside verified ones are skipped; where nothing was verified it is
an error.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.model.text import visible, visible_block
from tokitai_cli.model.verdict import Verdict

if TYPE_CHECKING:
    from tokitai_cli.model.batch import BatchIndex, Failure, IndexCase

_PASSED = frozenset({Verdict.VERIFIED, Verdict.BUILT})
_SKIPPED = frozenset({Verdict.EXPECTED_FAILURE, Verdict.VACUOUS})
_FAILED = frozenset({Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.UNEXPECTED_PASS})
_WHOLE = "the whole batch"


class _Tally(msgspec.Struct):
    """Tests of a suite by what JUnit calls them."""

    tests: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def add(self, kind: str, count: int) -> None:
        self.tests += count
        self.failures += count * (kind == "failure")
        self.errors += count * (kind == "error")
        self.skipped += count * (kind == "skipped")


def index(found: BatchIndex, cases: Iterable[IndexCase], cache: Path | None) -> Iterator[bytes]:
    """XML of the index, piece by piece; `cases` are all of its cases, spec by spec."""
    stream = io.StringIO()
    for _ in _Writer(stream, found).write(cases):
        yield stream.getvalue().encode()
        stream.seek(0)
        stream.truncate()
    yield stream.getvalue().encode()


def kind_of(verdict: Verdict) -> str:
    """Element that tells of a verdict: failure, error or skipped; empty for a pass."""
    if verdict in _PASSED:
        return ""
    if verdict in _SKIPPED:
        return "skipped"
    return "failure" if verdict in _FAILED else "error"


class _Writer:
    """Writes element by element, so that only one case is held at a time."""

    def __init__(self, stream: io.StringIO, index: BatchIndex) -> None:
        from xml.sax.saxutils import XMLGenerator  # loads half of urllib

        self._xml = XMLGenerator(stream, encoding="UTF-8", short_empty_elements=True)
        self._stream = stream
        self._index = index
        self._failures = {failure.case.id: failure for failure in index.failures}
        self._tallies = {one.name: _tally(one.counts) for one in index.specs}
        for cell in index.matrix:
            self._tallies.setdefault(cell.spec, _Tally()).seconds += cell.seconds
        # What no case tells: that there was none, or that some never ran.
        self._untold = not index.counts or index.not_started > 0

    def write(self, cases: Iterable[IndexCase]) -> Iterator[None]:
        """Write all of it; stops after each case, so that what was written can be taken away."""
        whole = _tally(self._index.counts)
        if self._untold:
            whole.add("error", 1)
        self._xml.startDocument()
        with self._element(
            "testsuites",
            name="tokitai batch",
            tests=str(whole.tests),
            failures=str(whole.failures),
            errors=str(whole.errors),
            time=_seconds(self._index.seconds),
        ):
            if self._untold:
                self._tell_end()
            for name, mine in itertools.groupby(cases, key=lambda case: case.spec):
                with self._suite(name, self._tallies.get(name, _Tally())):
                    for case in mine:
                        self._case(case)
                        yield
        self._stream.write("\n")

    def _suite(self, name: str, tally: _Tally) -> AbstractContextManager[None]:
        return self._element(
            "testsuite",
            name=name,
            tests=str(tally.tests),
            failures=str(tally.failures),
            errors=str(tally.errors),
            skipped=str(tally.skipped),
            time=_seconds(tally.seconds),
        )

    def _tell_end(self) -> None:
        index = self._index
        tally = _Tally()
        tally.add("error", 1)
        with (
            self._suite(_WHOLE, tally),
            self._element("testcase", classname="tokitai.batch", name=_WHOLE, time="0.000"),
        ):
            message = f"{index.not_started} of {index.total} cases were not run; {index.reason}"
            with self._element("error", message=message, type=str(index.verdict)):
                self._text(f"{index.rerun} --resume" if index.total else index.rerun)

    def _case(self, case: IndexCase) -> None:
        prefix = f"{case.spec}/{case.variant}/"
        name = case.id.removeprefix(prefix)
        place = f"{case.op}.{case.variant}"
        with self._element("testcase", classname=place, name=name, time=_seconds(case.seconds)):
            kind = kind_of(case.verdict)
            if kind:
                self._outcome(kind, case, self._failures.get(case.id))

    def _outcome(self, kind: str, case: IndexCase, failure: Failure | None) -> None:
        if kind == "skipped":
            with self._element(kind, message=f"{case.verdict}: {case.reason}"):
                return
        element = "" if failure is None else failure.element
        log = "" if failure is None else failure.log
        with self._element(kind, message=case.reason, type=str(case.verdict)):
            lines = [f"{case.verdict} at stage {case.stage}", case.reason, element]
            self._text("\n".join(line for line in lines if line))
        with self._element("system-out"):
            told = [log, f"run it again: {case.rerun}", f"evidence: {case.evidence}"]
            self._text("\n".join(line for line in told if line))

    @contextmanager
    def _element(self, tag: str, /, **attributes: str) -> Iterator[None]:
        given = {key: visible(value) for key, value in attributes.items()}
        self._xml.ignorableWhitespace("\n")
        self._xml.startElement(tag, given)  # type: ignore[arg-type]
        yield
        self._xml.endElement(tag)

    def _text(self, text: str) -> None:
        self._xml.characters(visible_block(text))


def _tally(counts: dict[str, int]) -> _Tally:
    tally = _Tally()
    for verdict in Verdict:
        tally.add(kind_of(verdict), counts.get(verdict, 0))
    return tally


def _seconds(value: float) -> str:
    return f"{value:.3f}"
