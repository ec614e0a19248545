"""Tokens, names and literals of a source as it is written, before its preprocessor has run.

Lines are tokens as coarse as macros allow: names, brackets, commas, and all between them. pcpp's own
lexer makes a token of every operator, and of `1.5f` four; a pattern compiled once, and one token for a
line without macros, are many times as fast. Directives are read by pcpp's, which its conditions are
written for.
"""

from __future__ import annotations

import os
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
# Raw strings, comments, string and character literals; numbers with digits apart, which are none.
_LITERAL = re.compile(
    r"(?P<number>\b\d[\w.]*(?:'[\w.]+)+)"
    r'|R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"'
    r'|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
_LETTER = re.compile(r"[^\n]")
_TYPES = {"newline": "CPP_WS", "number": "CPP_INTEGER", "mark": "CPP_MARK", "rest": "CPP_OTHER"}
_BLANK = {"CPP_WS", "CPP_COMMENT1", "CPP_LINECONT"}
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_DYNAMIC = {"__LINE__", "__COUNTER__"}
WHOLE = "WHOLE"  # the type of a line in one token

# Directives of raw files, whichever branch they stand in. They decide which files belong to the key of a
# build, so every run reads them of all files, the compiler's headers too, on which a preprocessor
# would spend seconds.
_INCLUDED = re.compile(
    rb'^[ \t]*#[ \t]*(?:include(?:_next)?|import|embed)[ \t]*"([^"\n]+)"', re.MULTILINE
)
_PROBED = re.compile(rb'__has_(?:include(?:_next)?|embed)\s*\(\s*(["<])([^">\n]+)[">]')

# What is, or may become, one of those words; those that ask for no file left out.
_PROBES = re.compile(
    rb"__has_(?!\w*(?:attribute|builtin|feature|extension|keyword|warning|constexpr_builtin)\b)"
)
# Within a macro with parameters, which may be the name.
_OF_MACRO = re.compile(rb"(?:#[ \t]*define[ \t]+|-D)\w+\([^\n]*__has_(?:include|embed)")
# Whether the compiler has such a word at all.
_KNOWN = re.compile(
    rb"(?:\bdefined\s*\(?\s*|#[ \t]*ifn?def[ \t]+)__has_(?:include(?:_next)?|embed)\b"
)
_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)

_ASSEMBLED = re.compile(rb'\.incbin\b|["\s]\.include\b')
_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*(?:include(?:_next)?|import)[ \t]*([\"<][^\">\n]+)[\">]", re.MULTILINE
)
_CALLED = re.compile(r"([A-Za-z_$][\w$]*)\s*\(")
_PLAIN = r"[A-Za-z_][A-Za-z0-9_]*"
#: A name, qualified or not, for a template the brackets around its arguments, and types behind it.
KERNEL_NAME = re.compile(
    rf"(?P<name>(?:::)?(?:{_PLAIN}::)*(?P<last>{_PLAIN})(?: *<(?P<arguments>.*)>)?)"
    r"(?: *\((?P<types>[^()]+)\))?"
)
# Names, numbers, and what stands between them in types and constant expressions.
_WORD = re.compile(rf" *(?:{_PLAIN}|[0-9][0-9A-Za-z'.]*|::|[-+*&~!|^%,<>()[\]])")


def blank(text: str, *, quotes: bool = False) -> str:
    """`text` with comments and literals turned to spaces; every character keeps its place.

    quotes: literals keep their quotes and lose only what is in them.
    """

    def spaces(match: re.Match[str]) -> str:
        whole = match.group()
        if match["number"]:
            return whole
        hollow = _LETTER.sub(" ", whole)
        return whole[0] + hollow[1:-1] + whole[-1] if quotes and whole[0] in "\"'" else hollow

    return _LITERAL.sub(spaces, text)


def without_comments(text: str) -> str:
    """The text with comments blanked; every letter keeps its place."""
    return _LITERAL.sub(lambda one: _LETTER.sub(" ", one[0]) if one["comment"] else one[0], text)


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


def called_names(text: str) -> list[str]:
    """Names that a parenthesis follows, in the order of the text."""
    return _CALLED.findall(text)


def included_names(text: str) -> Iterator[tuple[int, str]]:
    """Place and name of each #include, with its quotes or brackets."""
    for match in _INCLUDE.finditer(text):
        yield match.start(), match[1] + (">" if match[1][0] == "<" else '"')


def directive_in(line: str) -> tuple[str, str]:
    """Name and text of the preprocessor's directive that a line is; empty for another line."""
    front, mark, rest = line.partition("#")
    if not mark or front.strip():
        return "", ""
    name = _NAME.match(rest := rest.strip())
    return (name[0], rest[name.end() :].strip()) if name is not None else ("", rest)


def words_of(text: str) -> list[str] | None:
    """Words of template arguments or types; None where something else stands among them."""
    found, text = [], text.rstrip(" ")
    at = 0
    while at < len(text):
        word = _WORD.match(text, at)
        if word is None:
            return None
        at = word.end()
        found.append(word.group().lstrip(" "))
    return found


def quoted_names(data: bytes) -> list[str]:
    """Names of files that the text includes, embeds or asks for in quotes, in its order."""
    names = {match.start(): match[1] for match in _INCLUDED.finditer(data)}
    names |= {match.start(): match[2] for match in _PROBED.finditer(data) if match[1] == b'"'}
    return [os.fsdecode(names[place]) for place in sorted(names)]


def probed(data: bytes) -> set[str]:
    """Names of files that the text asks for by `__has_include` and its like, where it says them."""
    return {os.fsdecode(match[2]) for match in _PROBED.finditer(spliced(data))}


def probes_unseen(data: bytes) -> bool:
    """Whether the text may ask for files whose names it does not say: by macros, or by tokens joined."""
    text = _KNOWN.sub(b" ", spliced(data))
    of_macros = _OF_MACRO.search(text) is not None
    return of_macros or len(_PROBES.findall(text)) > len(_PROBED.findall(text))


def spliced(data: bytes) -> bytes:
    """Text as the preprocessor sees it: lines joined, and comments within them blank."""
    return _COMMENT.sub(b" ", _SPLICE.sub(b"", data))


def assembled_line(data: bytes) -> int:
    """Line on which an assembler is told to take in a file, 0 where none is."""
    match = _ASSEMBLED.search(data)
    return data.count(b"\n", 0, match.start()) + 1 if match else 0


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
