"""Threads of a block, as a kernel's text fixes them."""

from __future__ import annotations

import re
from collections.abc import Callable

WARP, LANES = "warp_size", 32  # of the language of sizes; what it is where a number is needed
_THREADS = 256


def block_of(text: str, value: Callable[[str], str]) -> list[str]:
    """Extents of the block; empty where the text, which has no blanks, does not fix them.

    value: the number that a name stands for, empty for one that stands for none.
    """
    found: list[str] = []
    for axis in "xyz":
        thread = rf"threadIdx\.{axis}"
        # A loop that steps over what a thread's own index is added to.
        stepped = [rf";{one}\+=(\w+)\)" for one in re.findall(rf"{thread}\+([a-z]\w*)", text)]
        for pattern in (
            rf"assert\(blockDim\.{axis}==(\w+)\)",
            *stepped,
            rf"blockIdx\.{axis}\*(\w+)\+{thread}\b",
            rf"{thread}\+blockIdx\.{axis}\*(\w+)\b",
            rf"={thread};[^;]*;\w+\+=(\w+)\)",
            rf"{thread}==(\w+)-1\b",
            rf"__shared__\w+(?:\w+\[\w+\],)*\w+\[(\w+)\](?:\[\w+\])?[;,].*\[{thread}\]=",
        ):
            told = [value(one) for one in re.findall(pattern, text)]
            if any(told):
                found.append(next(filter(None, told)))
                break
        else:
            break
    return found or _rows(text, value) or list(filter(None, [_primitive(text, value)]))


def _rows(text: str, value: Callable[[str], str]) -> list[str]:
    """A block whose threads the text counts in rows: `threadIdx.y * warpSize + threadIdx.x`."""
    row = re.search(r"threadIdx\.y(?:\*\(?(\w+)\)?|<<(\d))\)?\+threadIdx\.x", text)
    if row is None or "threadIdx.z" in text:  # layers of rows
        return []
    lanes = str(2 ** int(row[2])) if row[2] else value(row[1])
    wide = WARP if row[1] == "warpSize" else lanes
    return [wide, str(max(1, _THREADS // int(lanes or LANES)))] if wide else []


def _primitive(text: str, value: Callable[[str], str]) -> str:
    """Threads that a primitive of a whole block is made for; empty where there is none."""
    made = r"\b(?:Block|block_)(?:\w+)<(?:[\w:]|<\w*>)+,(\w+)"
    return next((told for one in re.findall(made, text) if (told := value(one))), "")
