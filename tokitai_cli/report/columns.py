"""Tables without the columns that say nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

# Between the cells of a row until its table is made; text of the target has no such characters.
CELL, ROW = "\x1f", "\x1e"
# In front of a cell that holds a number.
NUMBER = "\x1d"
_NOTHING = {"-", "--", "0", "", "no"}


class Head(msgspec.Struct, frozen=True):
    """The head of a column."""

    name: str
    #: Whether it holds numbers.
    number: bool


def joined(cells: Sequence[str]) -> str:
    """A row, until its table is made."""
    return f"{CELL.join(cells)}{ROW}"


def table(heads: Sequence[str], content: str) -> tuple[list[Head], list[list[str]]]:
    """Heads and rows of a table, without columns of zeros or of nothing; the first one stays.

    A head begins with `>` where its column is one of numbers, and `+` before that keeps the column.
    """
    rows = [
        line.strip("\n").split(CELL) for line in content.split(ROW) if CELL in line or line.strip()
    ]
    kept = [
        at
        for at, head in enumerate(heads)
        if not at or head.startswith("+") or any(_says(row[at]) for row in rows if at < len(row))
    ]
    names = [heads[at].removeprefix("+") for at in kept]
    found = [Head(name.removeprefix(">"), name.startswith(">")) for name in names]
    return found, [[row[at] for at in kept if at < len(row)] for row in rows]


def _says(cell: str) -> bool:
    return cell.removeprefix(NUMBER).strip() not in _NOTHING
