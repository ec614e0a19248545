"""What a spec, or the file of its oracle, marks as a guess."""

from __future__ import annotations

import msgspec

# Marks of a draft, each in front of what it says: what is still to be written, and what is a guess.
GAP = "# fill in:"
GUESS = "# guess:"
# Words of a mark on a size that its default is no guess.
BESIDE_DEFAULT = "values other than"


class Guess(msgspec.Struct, frozen=True):
    """A line that is marked as a guess."""

    #: The file's name and the line, counted from 1.
    file: str
    line: int
    #: What of the spec the line says, empty in the file of an oracle.
    key: tuple[str | int, ...]
    #: Those behind the mark.
    words: str

    @property
    def place(self) -> str:
        """FILE:LINE."""
        return f"{self.file}:{self.line}"
