"""What is shown, apart from how: lines and tables of untrusted text with the name of a style."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

# Styles by what they mean; the terminal decides on colours.
GOOD, BAD, DOUBTFUL, STRONG, FAINT, NORMAL = "good", "bad", "doubtful", "strong", "faint", ""


class Line(msgspec.Struct, frozen=True):
    """One line; `label` is set apart in front of the text, `indent` counts spaces.

    On a terminal it is wrapped between words, unless it is `verbatim`: a command, code, a log.
    """

    text: str
    style: str = NORMAL
    label: str = ""
    indent: int = 0
    verbatim: bool = False


class Column(msgspec.Struct, frozen=True):
    """A column's heading; `right` for numbers, `wide` for text that may be folded between words."""

    heading: str
    right: bool = False
    wide: bool = False
    #: Where a terminal is too narrow the columns of the largest go first; those of 0 stay.
    spare: int = 0


class Table(msgspec.Struct, frozen=True):
    """Rows of cells. `styles` gives one style per row."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str] = ()


Block = Line | Table
