"""How many threads a block of a kernel may have by its `__launch_bounds__`, read from the source's text.

A GPU refuses a larger block; the host's compiler knows no such bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp import kernel_names
from tokitai_cli.cpp.lexing import blank

_BOUNDS = re.compile(r"\b__launch_bounds__\s*(?=\()")
_NAME = re.compile(r"[^;{}()]*?\b([A-Za-z_]\w*)\s*\(")
_HEADER = re.compile(r"\s*template\s*(?=<)")
_CONSTANT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<macro>\w+)[ \t]+(?P<body>[^\n]+)$"
    r"|\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned\s+)?\w+\s+(?P<name>\w+)\s*=\s*(?P<value>[^;{}]+);",
    re.MULTILINE,
)
_SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")
_DEPTH = 8  # of constants that follow from each other
_CLOSING = {"(": ")", "<": ">", "[": "]"}


def bound_of(expr: str, texts: Iterable[str], defines: Mapping[str, str]) -> int:
    """Most threads of a block of the kernel `expr`; 0 where nothing says so, or not in plain numbers.

    `texts` are the source's and its own headers', `defines` macros of the command line.
    """
    name, _ = kernel_names.overload(expr)
    base, _, given = name.partition("<")
    base = base.strip().rpartition("::")[2]
    arguments = list(_split(given.rstrip().removesuffix(">"))) if given else []
    plain = [blank(text) for text in texts]
    for text in plain:
        for match in _BOUNDS.finditer(text):
            inside, end = _bracketed(text, match.end())
            named = _NAME.match(text, end)
            if named is not None and named[1] == base:
                known = {
                    **_constants(plain),
                    **defines,
                    **_template(text, match.start(), arguments),
                }
                return _value(next(_split(inside), ""), known)
    return 0


def _constants(texts: Sequence[str]) -> dict[str, str]:
    """Macros and constants by name; what two of a name say is not known."""
    found: dict[str, str] = {}
    for text in texts:
        for match in _CONSTANT.finditer(text):
            name = match["macro"] or match["name"]
            value = (match["body"] or match["value"]).strip()
            found[name] = value if found.get(name, value) == value else ""
    return found


def _template(text: str, before: int, arguments: Sequence[str]) -> dict[str, str]:
    """Values of the template's parameters, whose header stands in front of the kernel."""
    start = max(text.rfind(mark, 0, before) for mark in ";}") + 1
    while (line := text.find("\n", start, before)) >= 0 and text[start:line].strip().startswith(
        "#"
    ):
        start = line + 1
    header = _HEADER.match(text, start)
    if header is None:
        return {}
    inside, _ = _bracketed(text, header.end())
    found = {}
    for index, part in enumerate(_split(inside)):
        declared, _, default = part.partition("=")
        words = re.findall(r"\w+", declared)
        value = arguments[index] if index < len(arguments) else default
        if words and value.strip():
            found[words[-1]] = value.strip()
    return found


def _value(text: str, known: Mapping[str, str], depth: int = 0) -> int:
    try:
        text = _SUFFIX.sub(r"\1", text.strip())
        names = expressions.names_in(text)
        if depth > _DEPTH or any(not known.get(name) for name in names):
            return 0
        values = {name: _value(known[name], known, depth + 1) for name in names}
        return max(0, expressions.evaluate(text, values)) if all(values.values()) else 0
    except SpecError:
        return 0


def _bracketed(text: str, start: int) -> tuple[str, int]:
    """What stands in the brackets that open at `start`, and where the text goes on."""
    closing = [_CLOSING[text[start]]]
    for at in range(start + 1, len(text)):
        if text[at] == closing[-1]:
            closing.pop()
            if not closing:
                return text[start + 1 : at], at + 1
        elif text[at] in _CLOSING and (text[at] != "<" or closing[-1] == ">"):
            closing.append(_CLOSING[text[at]])
    return "", len(text)


def _split(text: str) -> Iterator[str]:
    """Parts between commas that stand in no bracket."""
    depth, start = 0, 0
    for at, mark in enumerate(text):
        depth += (mark in "(<[") - (mark in ")>]")
        if mark == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
