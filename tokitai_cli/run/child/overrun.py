"""Which array a child's message says that a kernel went beyond."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokitai_cli.core.errors import DYNAMIC_SHARED

_BUFFER = re.compile(r"\bbuffer (\d+) \(counted from 0\)")
_PAST = re.compile(rf"(\d+) bytes? past the end of (?:array `([^`]+)`|({DYNAMIC_SHARED}))")


def named(message: str, names: Sequence[str]) -> str:
    """A child's message with the names of the arrays that it counts."""
    return _BUFFER.sub(
        lambda m: f"array `{names[int(m[1])]}`" if int(m[1]) < len(names) else m[0], message
    )


def past_end(message: str) -> tuple[str, int]:
    """The array (or DYNAMIC_SHARED) past whose end it says that a kernel went, and by how many bytes."""
    found = _PAST.search(message)
    return (found[2] or found[3], int(found[1])) if found else ("", 0)
