"""Python as reports show it: its lines, cut into pieces of one kind."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator
from typing import Literal

Kind = Literal["", "keyword", "text", "comment", "number"]


def pieces(code: str) -> list[list[tuple[Kind, str]]]:
    """Of each line its pieces in order; together they are the line. What is no Python is plain."""
    lines = code.splitlines()
    found: list[list[tuple[Kind, str]]] = [[] for _ in lines]
    ends = [0] * len(lines)
    try:
        for kind, start, end in _tokens(code):
            for row in range(start[0], end[0] + 1):
                line = lines[row]
                begin = start[1] if row == start[0] else 0
                stop = end[1] if row == end[0] else len(line)
                found[row] += [("", line[ends[row] : begin]), (kind, line[begin:stop])]
                ends[row] = stop
    except (tokenize.TokenError, SyntaxError, IndexError):
        return [[("", line)] for line in lines]
    for row, line in enumerate(lines):
        found[row].append(("", line[ends[row] :]))
    return [[(kind, text) for kind, text in row if text] for row in found]


def _tokens(code: str) -> Iterator[tuple[Kind, tuple[int, int], tuple[int, int]]]:
    """Kind, start and end (row from 0, column) of what is not plain."""
    for one in tokenize.generate_tokens(io.StringIO(code).readline):
        kind: Kind = ""
        if one.type == tokenize.NAME and keyword.iskeyword(one.string):
            kind = "keyword"
        elif one.type == tokenize.COMMENT:
            kind = "comment"
        elif one.type == tokenize.STRING:
            kind = "text"
        elif one.type == tokenize.NUMBER:
            kind = "number"
        if kind:
            yield kind, (one.start[0] - 1, one.start[1]), (one.end[0] - 1, one.end[1])
