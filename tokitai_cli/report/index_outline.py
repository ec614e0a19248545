"""What the page of a batch's index shows: failures in detail, and the matrix as tables."""

from __future__ import annotations

from typing import Any

import msgspec

from tokitai_cli.core.model.batch_record import BatchIndex, Cell, Failure, SpecSummary
from tokitai_cli.core.model.verdict import Verdict, worst
from tokitai_cli.core.model.wording import counts_text, shape_text
from tokitai_cli.evidence.queries import FINE
from tokitai_cli.report.format import ReportOptions

MOST_DETAILED = 20
MOST_LISTED = 200
MOST_ROWS = 200
# Profiles side by side; more are joined into one column.
MOST_COLUMNS = 16


class MatrixRow(msgspec.Struct, frozen=True):
    """One variant, shape and device; cells in the order of the table's profiles, None where no case."""

    variant: str
    shape: str
    device: str
    cells: list[Cell | None]


class MatrixTable(msgspec.Struct, frozen=True):
    """The matrix of one spec."""

    spec: SpecSummary
    #: Heads of the columns; empty text where cells join them.
    profiles: list[str]
    rows: list[MatrixRow]
    more: int

    @property
    def heads(self) -> list[str]:
        """Heads of the columns in words."""
        return [profile or "all profiles" for profile in self.profiles]


class IndexOutline(msgspec.Struct, frozen=True):
    """All that the template walks over, beside the index. Of `unshown` failures only counts tell."""

    detailed: list[Failure]
    listed: list[Failure]
    unshown: int
    tables: list[MatrixTable]
    shapes_joined: bool


def index_context(index: BatchIndex, report_options: ReportOptions | None = None) -> dict[str, Any]:
    """What templates of an index may use; with pictures where the `look` asks for them."""
    shown: list[Any] = []
    if report_options is not None and report_options.plots:
        from tokitai_cli.report import canvas, figures

        shown = canvas.svgs(figures.figures_of_index(index))
    return {
        "headline": f"Batch: {index.verdict}",
        "index": index,
        "outline": outline_index(index),
        "counted": counts_text,
        "figures": shown,
    }


def outline_index(index: BatchIndex) -> IndexOutline:
    """Choose what the report shows."""
    detailed = _telling(index.failures)[:MOST_DETAILED]
    ids = {failure.case.id for failure in detailed}
    rest = [failure for failure in index.failures if failure.case.id not in ids]
    failed = sum(count for verdict, count in index.counts.items() if verdict not in FINE)
    keys = {(cell.spec, cell.variant, shape_text(cell.shape), cell.device) for cell in index.matrix}
    join = len(keys) > MOST_ROWS
    by_spec: dict[str, list[Cell]] = {}
    for cell in index.matrix:
        by_spec.setdefault(cell.spec, []).append(cell)
    room = MOST_ROWS
    tables = []
    for one in index.specs:
        if cells := by_spec.get(one.name):
            table = _table(one, cells, join=join, room=room)
            room -= len(table.rows)
            tables.append(table)
    return IndexOutline(
        detailed=detailed,
        listed=rest[:MOST_LISTED],
        unshown=failed - len(detailed) - len(rest[:MOST_LISTED]),
        tables=tables,
        shapes_joined=join,
    )


def _telling(failures: list[Failure]) -> list[Failure]:
    """`failures` without those that ended as one before them did, with nothing of their own to tell."""
    seen: set[tuple[Verdict, str, str]] = set()
    kept = []
    for failure in failures:
        end = (failure.case.verdict, failure.case.reason, failure.log)
        if failure.element or end not in seen:
            kept.append(failure)
        seen.add(end)
    return kept


def _table(spec: SpecSummary, cells: list[Cell], *, join: bool, room: int) -> MatrixTable:
    """Rows of one spec, those with the worst verdicts first where there is no room for all."""
    profiles = list(dict.fromkeys(cell.profile for cell in cells))
    wide = len(profiles) > MOST_COLUMNS
    archs: dict[str, set[str]] = {}
    for cell in cells:
        archs.setdefault(cell.device, set()).add(cell.arch)
    grid: dict[tuple[str, str, str], dict[str, list[Cell]]] = {}
    for cell in cells:
        device = f"{cell.device}, {cell.arch}" if len(archs[cell.device]) > 1 else cell.device
        shape = "" if join else shape_text(cell.shape)
        column = "" if wide else cell.profile
        row = grid.setdefault((cell.variant, shape, device), {})
        row.setdefault(column, []).append(cell)
    heads = [""] if wide else profiles
    rows = [
        MatrixRow(*key, cells=[_joined(row.get(head, [])) for head in heads])
        for key, row in grid.items()
    ]
    if len(rows) > room:
        rows.sort(key=lambda row: min(cell.verdict.rank for cell in row.cells if cell is not None))
    return MatrixTable(spec, heads, rows[:room], max(len(rows) - room, 0))


def _joined(cells: list[Cell]) -> Cell | None:
    if len(cells) < 2:
        return cells[0] if cells else None
    return msgspec.structs.replace(
        cells[0],
        verdict=worst(cell.verdict for cell in cells),
        cases=sum(cell.cases for cell in cells),
        seconds=sum(cell.seconds for cell in cells),
    )
