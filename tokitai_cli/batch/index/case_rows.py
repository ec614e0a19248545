"""Rows of the index: one for each case, in a scratch database that sums them up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import msgspec

from tokitai_cli import report
from tokitai_cli.core.model.batch_record import Cell, Done, Failure, IndexCase
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Stage, Verdict, worst
from tokitai_cli.core.model.wording import Placed, number, shape_text
from tokitai_cli.evidence import encoding, queries

LOG_LINES = 15
MOST_LINE = 400
# Failures that the index tells in detail; every case is a row of cases.jsonl and stands in evidence.
MOST_FAILURES = 1000
MOST_CELLS = 2000

# What tells cells of one variant and device apart, and what they may be joined over, in this order.
_BY = ("profile", "shape")
_JOINED = (_BY[:0], _BY[:1], _BY)
_TABLE = (
    "CREATE TABLE row (spec, number, verdict, rank, variant, shape, profile, device, arch, seconds, "
    "kept, line, failure)"
)
_ORDER = "ORDER BY spec, number"


class Rows:
    """Cases of a batch with their verdicts, in a file that is gone with it: there may be very many."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("BEGIN")
        self._database.execute(_TABLE)
        self._decoder = msgspec.json.Decoder(IndexCase)

    def add(self, spec: int, number: int, row: IndexCase, failure: Failure | None) -> None:
        """Add a case; `spec` and `number` are its place in the batch."""
        values = (
            spec,
            number,
            str(row.verdict),
            row.verdict.rank,
            row.variant,
            shape_text(row.shape),
            row.profile,
            row.device,
            row.arch,
            row.seconds,
            row.kept,
            encoding.line(row),
            None if failure is None else encoding.line(failure),
        )
        marks = ", ".join("?" * len(values))
        self._database.execute(f"INSERT INTO row VALUES ({marks})", values)

    def lines(self) -> Iterator[bytes]:
        """An IndexCase a line, in the order of the plan."""
        for (line,) in self._database.execute(f"SELECT line FROM row {_ORDER}"):
            yield line

    def cases(self) -> Iterator[IndexCase]:
        """All cases, in the order of the plan."""
        return map(self._decoder.decode, self.lines())

    def counts(self, spec: int | None = None) -> dict[str, int]:
        """Cases by verdict, worst verdict first, of one spec or of all."""
        query = (
            "SELECT verdict, count(*) FROM row WHERE :spec IS NULL OR spec = :spec "
            "GROUP BY verdict ORDER BY rank"
        )
        return dict(self._database.execute(query, {"spec": spec}))

    def kept(self) -> int:
        """Cases whose results were taken over from an earlier run."""
        ((count,),) = self._database.execute("SELECT count(*) FROM row WHERE kept")
        return int(count)

    def worst(self) -> IndexCase | None:
        """The first of the cases with the worst verdict."""
        query = "SELECT line FROM row ORDER BY rank, spec, number LIMIT 1"
        for (line,) in self._database.execute(query):
            return self._decoder.decode(line)
        return None

    def failures(self) -> list[Failure]:
        """The worst failures, by rank and in the order of the plan."""
        query = "SELECT failure FROM row WHERE failure NOT NULL ORDER BY rank, spec, number LIMIT ?"
        found = self._database.execute(query, (MOST_FAILURES,))
        return [msgspec.json.decode(line, type=Failure) for (line,) in found]

    def matrix(self) -> tuple[list[Cell], str]:
        """Worst verdict and count of the cells of spec x variant x shape x profile x device.

        More than MOST_CELLS are joined over the profiles (a cell's `profile` is empty then), and where
        that is not enough over the shapes too (its `shape` is empty), which the text says.
        """
        for over in _JOINED:
            key = ", ".join(["spec", "variant", "device", "arch", *_BY[len(over) :]])
            ((count,),) = self._database.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM row GROUP BY {key})"
            )
            if count <= MOST_CELLS:
                break
        found = self._database.execute(
            "SELECT line, min(number), group_concat(DISTINCT verdict), count(*), sum(seconds) "
            f"FROM row GROUP BY {key} ORDER BY spec, min(number)"
        )
        cells = [
            _cell(self._decoder.decode(line), over, worst(map(Verdict, names.split(","))), *sums)
            for line, _, names, *sums in found
        ]
        if not over:
            return cells, ""
        joined = " and ".join(f"{name}s" for name in over)
        return cells, (
            f"more than {MOST_CELLS} cells: the matrix combines {joined}, and shows the "
            "worst verdict of each cell"
        )


def row(evidence: Evidence, case: CaseRecord, done: Done, file: str) -> IndexCase:
    """Row of a case as the evidence in `file` holds it, a path from the index."""
    return IndexCase(
        id=done.id,
        spec=done.name,
        op=case.op,
        variant=case.variant,
        shape=case.shape,
        profile=case.profile,
        seed=case.seed,
        device=case.device,
        arch=evidence.devices[case.device].arch,
        verdict=case.reads,
        stage=case.stage,
        reason="" if case.reads is Verdict.VERIFIED else case.reason,
        seconds=done.seconds,
        evidence=file,
        rerun=case.rerun,
        kept=done.kept,
    )


def _cell(
    row: IndexCase, over: Sequence[str], verdict: Verdict, cases: int, seconds: float
) -> Cell:
    """Cell of which `row` is a case."""
    return Cell(
        spec=row.spec,
        op=row.op,
        variant=row.variant,
        shape={} if "shape" in over else row.shape,
        profile="" if "profile" in over else row.profile,
        device=row.device,
        arch=row.arch,
        verdict=verdict,
        cases=cases,
        seconds=seconds,
    )


def failure(evidence: Evidence, row: IndexCase, case: CaseRecord) -> Failure:
    """What a reader needs of a case that failed."""
    place = report.kernel_place(evidence, case) or Placed("")
    told = worst_element(case), log_tail(evidence, case)
    return Failure(case=row, element=told[0], log=told[1], kernel=place.file, line=place.line)


def worst_element(case: CaseRecord) -> str:
    """Worst element of the worst failed check in words, else what failed beside the numbers.

    Empty where nothing was compared.
    """
    found = queries.first_worst(case)
    if found is not None:
        output, check, one = found
        return (
            f"{output}{_at(one.index)}: got {number(one.got, 9)}, want {number(one.want, 9)}, "
            f"error {number(one.error)}, limit {number(one.limit)} "
            f"({check.metric} against the {check.against})"
        )
    for result in case.outputs:
        for fault in result.structure:
            got = number(fault.got, 9)
            return f"{result.name}{_at(fault.first)}: got {got}, want {fault.want}"
    for item in case.properties:
        if not item.passed:
            value, limit = number(item.value, 9), number(item.limit)
            return f"property {item.name} of {item.output}: {value}, limit {limit}; {item.detail}"
    for finding in case.findings:
        return finding.words
    return ""


def log_tail(evidence: Evidence, case: CaseRecord) -> str:
    """The compiler's first errors, else the last lines of what the kernel or the oracle printed."""
    if case.verdict is Verdict.BUILD_FAILED or case.stage is Stage.BUILD:
        build = evidence.builds.get(case.build)
        lines = build.failed if build is not None else []
        return _shortened(lines[:LOG_LINES])
    kernel = evidence.volatile.kernel_logs.get(case.key, "")
    oracle = evidence.volatile.oracle_logs.get(case.key, "")
    text = oracle or kernel if case.stage is Stage.ORACLE else kernel or oracle
    return _shortened(text.splitlines()[-LOG_LINES:])


def _shortened(lines: Sequence[str]) -> str:
    return "\n".join(
        line if len(line) <= MOST_LINE else f"{line[:MOST_LINE]} ... ({len(line)} characters)"
        for line in lines
    )


def _at(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"
