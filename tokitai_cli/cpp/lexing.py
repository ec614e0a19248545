"""Lines of a source as tokens, as coarse as macros allow: names, brackets, commas, and all between them.

pcpp's own lexer makes a token of every operator, and of `1.5f` four; a pattern compiled once, and one
token for a line without macros, are many times as fast. Directives are read by pcpp's, which its
conditions are written for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_TOKEN = re.compile(
    r"""
    (?P<CPP_STRING>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<CPP_COMMENT2>//(?:\\\r?\n|[^\n])*)
    |(?P<CPP_COMMENT1>/\*.*?\*/)
    |(?P<CPP_LINECONT>\\[ \t\r]*\n)
    |(?P<newline>\n)
    |(?P<CPP_ID>[A-Za-z_$][\w$]*)
    |(?P<CPP_CHAR>'(?:\\.|[^'\\\n])+')
    |(?P<CPP_WS>[ \t\r\f\v]+)
    |(?P<number>\.?\d(?:[eEpP][-+]|'\w|[\w.])*)
    |(?P<mark>\#\#|[(),\#])
    |(?P<rest>[^\w\s"'/\\(),\#]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_TYPES = {"newline": "CPP_WS", "number": "CPP_INTEGER", "mark": "CPP_MARK", "rest": "CPP_OTHER"}
_BLANK = {"CPP_WS", "CPP_COMMENT1", "CPP_LINECONT"}
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_DYNAMIC = {"__LINE__", "__COUNTER__"}
WHOLE = "WHOLE"  # the type of a line in one token


def names_in(text: str) -> list[str]:
    """All names of a text without comments and literals."""
    return _NAME.findall(text)


def tokens(text: str) -> list[str]:
    """All tokens of a text, spaces between them too; operators that follow each other are one."""
    return [match[0] for match in _TOKEN.finditer(text)]


def put_in(text: str, names: Mapping[str, str]) -> str:
    """The text with what names stand for; those behind `::` are another's, and left alone."""
    found: list[str] = []
    before = ""
    for token in tokens(text):
        found.append(token if before.endswith("::") else names.get(token, token))
        before = token if not token.isspace() else before
    return "".join(found)


class Lexer:
    """Tokens of a text. token: what one is made of. directive: reads the text of a line with `#`."""

    def __init__(
        self,
        token: type[Any],
        directive: Callable[[str], list[Any]],
        macros: Mapping[str, object],
    ) -> None:
        self._token, self._directive, self._macros = token, directive, macros

    def lines(self, text: str, source: str) -> Iterator[list[Any]]:
        """Tokens of each logical line; one for a line on which no macro of that moment stands."""
        at, number = 0, 1
        while at < len(text):
            end = text.find("\n", at) + 1 or len(text)
            line = text[at:end]
            if self._is_plain(line):
                yield [self._made(WHOLE, line, number, source)]
                at, number = end, number + 1
                continue
            tokens, end = self._logical(text, at, number, source)
            yield tokens
            number += text.count("\n", at, end)
            at = end

    def refined(self, token: Any) -> list[Any]:
        """A line's one token in parts."""
        return self._logical(token.value, 0, token.lineno, token.source)[0]

    def _is_plain(self, line: str) -> bool:
        special = "/*" in line or 'R"' in line or line.rstrip()[-1:] == "\\"
        if special or line.lstrip()[:1] == "#":
            return False
        names = _NAME.findall(line)
        return self._macros.keys().isdisjoint(names) and _DYNAMIC.isdisjoint(names)

    def _made(self, kind: str, value: str, line: int, source: str) -> Any:
        new = self._token()
        new.type, new.value, new.lineno, new.lexpos, new.source = kind, value, line, 0, source
        return new

    def _logical(self, text: str, at: int, number: int, source: str) -> tuple[list[Any], int]:
        """The line that begins there, in parts, and where it ends."""
        line: list[Any] = []
        begin, first = at, number
        for match in _TOKEN.finditer(text, at):
            group = match.lastgroup or "rest"
            group = "CPP_STRING" if group == "delimiter" else group
            value = match[0]
            kept = "" if group == "CPP_LINECONT" else value
            line.append(self._made(_TYPES.get(group, group), kept, number, source))
            number += value.count("\n") if group not in {"CPP_ID", "rest"} else 0
            at = match.end()
            if group == "newline":
                break
        opening = next((one for one in line if one.type not in _BLANK), None)
        if opening is not None and opening.value[0] == "#":
            line = self._directive(text[begin:at].rstrip("\n").replace("\r", "") + "\n")
            for one in line:
                one.lineno, one.source = first, source
        return line, at
