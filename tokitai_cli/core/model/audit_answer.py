"""What is found in evidence of others: remarks, tables, and whether all is well."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Remark(msgspec.Struct, frozen=True):
    """A sentence."""

    text: str
    #: It speaks against the file; others say what was not looked at, or differs.
    fault: bool = False


class Grid(msgspec.Struct, frozen=True):
    """A table of words; a head that begins with > is that of a column of numbers."""

    heads: tuple[str, ...]
    rows: Sequence[Sequence[str]]


class Answer(msgspec.Struct, frozen=True):
    """What a verb found."""

    #: In one line.
    text: str
    #: Exit code `code`, else 1.
    fine: bool
    remarks: list[Remark] = []
    grids: list[Grid] = []
    #: Exit code where all is well; another than 0 says that it is well of less than was meant.
    code: int = 0

    @property
    def exit_code(self) -> int:
        """`code` where all is well, 1 where it is not."""
        return self.code if self.fine else 1
