"""The matrix of a batch: worst verdict and count of the cases that share a cell."""

from __future__ import annotations

import msgspec

from tokitai_cli.model.batch import Cell, IndexCase
from tokitai_cli.model.text import shape_text
from tokitai_cli.model.verdict import worst

MOST_CELLS = 2000

# What a cell may be joined over, in this order, and in words.
_JOINED = ("", "profiles", "profiles and shapes")
Key = tuple[str, str, str, str, str, str]


class Matrix:
    """Cells of spec x variant x shape x profile x device and architecture.

    More than MOST_CELLS are joined over the profiles (a cell's `profile` is empty then), and where
    that is not enough over the shapes too (its `shape` is empty), so that neither the index nor
    the memory that it takes grows with the number of cases.
    """

    def __init__(self) -> None:
        self._cells: dict[Key, Cell] = {}
        self._level = 0

    @property
    def note(self) -> str:
        """What the cells are joined over, in words; empty where each is by itself."""
        if not self._level:
            return ""
        return (
            f"more than {MOST_CELLS} cells: the matrix is joined over {_JOINED[self._level]}, and "
            "shows the worst verdict of each"
        )

    def add(self, row: IndexCase) -> None:
        """Count a case."""
        self._put(
            Cell(
                spec=row.spec,
                op=row.op,
                variant=row.variant,
                shape=row.shape,
                profile=row.profile,
                device=row.device,
                arch=row.arch,
                verdict=row.verdict,
                cases=1,
                seconds=row.seconds,
            )
        )
        while len(self._cells) > MOST_CELLS and self._level < len(_JOINED) - 1:
            self._level += 1
            cells, self._cells = self._cells, {}
            for cell in cells.values():
                self._put(cell)

    def cells(self) -> list[Cell]:
        """All cells, in the order in which their first cases came."""
        return list(self._cells.values())

    def _put(self, cell: Cell) -> None:
        if self._level:
            shape = cell.shape if self._level == 1 else {}
            cell = msgspec.structs.replace(cell, profile="", shape=shape)
        key = (
            cell.spec,
            cell.variant,
            shape_text(cell.shape),
            cell.profile,
            cell.device,
            cell.arch,
        )
        known = self._cells.get(key)
        if known is not None:
            cell = msgspec.structs.replace(
                cell,
                verdict=worst((known.verdict, cell.verdict)),
                cases=known.cases + cell.cases,
                seconds=known.seconds + cell.seconds,
            )
        self._cells[key] = cell
