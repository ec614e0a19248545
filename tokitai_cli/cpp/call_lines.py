"""Directives between the parentheses of a macro's call, which compilers carry out there.

pcpp knows a directive as a line of its own alone, and would end the call at it. Here the lines of such a
call become its text: a `#pragma` is a `_Pragma`, and of conditions the branch that holds is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tokitai_cli.cpp.lexing import WHOLE

_MOST_LINES = 2000  # of one call
_OPENING = frozenset({"if", "ifdef", "ifndef"})
_OTHERS = frozenset({"elif", "else", "endif"})

Line = list[Any]


class CallLines:
    """Lines of a source with such calls as text.

    opens: how many parentheses of a macro's call a line leaves open. parts: a line in parts. holds:
    whether a condition does, by its word and tokens. pragma: what stands for the text of a `#pragma`.
    """

    def __init__(
        self,
        opens: Callable[[Line], int],
        parts: Callable[[Line], Line],
        holds: Callable[[str, Line], bool],
        pragma: Callable[[Line, str], Line],
    ) -> None:
        self._opens, self._parts, self._holds, self._pragma = opens, parts, holds, pragma

    def of(self, lines: Iterable[Line]) -> Iterator[Line]:
        """All lines."""
        every = iter(lines)
        for line in every:
            depth = self._opens(line)
            if not depth:
                yield line
                continue
            held = self._call(line, depth, every)
            told = self._told(held) if any(map(directive, held)) else None
            yield from held if told is None else told

    def _call(self, first: Line, depth: int, every: Iterator[Line]) -> list[Line]:
        """The lines up to the one where the call closes."""
        held = [first]
        while depth > 0 and len(held) < _MOST_LINES and (line := next(every, None)) is not None:
            held.append(line)
            if not directive(line):
                depth += sum((one.value == "(") - (one.value == ")") for one in self._parts(line))
        return held

    def _told(self, held: list[Line]) -> list[Line] | None:
        """The lines as text; None where conditions lead out of them, or other directives stand there."""
        found: list[Line] = []
        #: Of each condition: whether its branch is taken, and whether one was.
        stack: list[tuple[bool, bool]] = []
        for line in held:
            word = directive(line)
            here = all(taken for taken, _ in stack)
            if not word:
                found += [line] if here else []
            elif word == "pragma":
                found += [self._pragma(line, _behind(line))] if here else []
            elif word in _OPENING:
                taken = here and self._holds(word, line)
                stack.append((taken, taken or not here))
            elif word in _OTHERS and stack:
                _, was = stack.pop()
                if word != "endif":
                    taken = not was and (word == "else" or self._holds(word, line))
                    stack.append((taken, was or taken))
            else:
                return None
        return found if not stack else None


def directive(line: Line) -> str:
    """The word of a directive; empty for another line."""
    if line[0].type == WHOLE:
        return ""
    words = [
        one.value for one in line if not one.value.isspace() and one.value[:2] not in {"/*", "//"}
    ]
    return str(words[1]) if len(words) > 1 and words[0] == "#" else ""


def _behind(line: Line) -> str:
    text = "".join(one.value for one in line)
    return str(text.partition("pragma")[2].strip())
