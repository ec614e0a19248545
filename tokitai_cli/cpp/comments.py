"""Shapes that comments say: `// (batch, seqlen, heads)` beside a parameter, or `// q: (B, T, NH)`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.source.signatures import Kernel
from tokitai_cli.cpp.tree import child, parse, parsed_arguments, text_of, walk

_LISTED = r"[(\[]\s*(\w[\w \t/*+()-]*(?:,[\w \t/*+()-]+)*?),?\s*[)\]]"
_FILL = {"and", "shape", "shapes", "of", "size", "both", "are", "is", "have", "has", "all", "each"}
_LAUNCH = r"\b{}(?:dim|size)?\s*[:=]\s*(?:\(((?:[^()\n]|\([^()\n]*\))*)\)|([\w \t*/+-]+))"
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMES = {"identifier", "field_identifier"}
_BLOCKS = {"compound_statement", "field_declaration_list", "enumerator_list"}


class _Comment(NamedTuple):
    """A comment; `beside` is the variable whose declaration it stands behind, on its line."""

    text: str
    begin: int
    beside: str


class _Commented(NamedTuple):
    """Comments of a file, and where blocks begin and end, in the order of the text."""

    comments: list[_Comment]
    blocks: list[tuple[int, int, int]]  # the line, begin and end


@functools.lru_cache(maxsize=4)  # asked for each kernel of a file
def _commented(text: str) -> _Commented:
    data = text.encode()
    comments, blocks = list[_Comment](), list[tuple[int, int, int]]()
    name, line, end = "", -1, 0
    for node in walk(parse(data)):
        if node.type == "comment":
            between = data[end : node.start_byte].strip()
            beside = name if line == node.start_point[0] and between in {b",", b";", b")"} else ""
            told = (node.text or b"").decode(errors="replace")
            comments.append(_Comment(told, node.start_byte, beside))
        elif node.type in _NAMES:
            name, line, end = text_of(node), node.end_point[0], node.end_byte
            array = node.parent
            if array is not None and array.type == "array_declarator":
                is_size = child(array, "size") == node
                name, end = ("" if is_size else name), array.end_byte
        elif node.type in _BLOCKS:
            blocks.append((node.start_point[0], node.start_byte, node.end_byte))
    return _Commented(comments, blocks)


def _around(text: str, kernel: Kernel) -> tuple[list[_Comment], int, int]:
    """Comments up to the kernel's body; where its line begins, and where what is before it ends."""
    told = _commented(text)
    begin = len("".join(f"{one}\n" for one in text.split("\n")[: kernel.line - 1]).encode())
    body = min((at for line, at, _ in told.blocks if line >= kernel.line - 1), default=begin)
    before = max((end for _, _, end in told.blocks if end <= begin), default=0)
    return [one for one in told.comments if one.begin < body], begin, before


def shapes_in(text: str, kernel: Kernel, arrays: Mapping[str, str]) -> dict[str, list[str]]:
    """Extents of arrays as comments have them, in words of the comments' own.

    text: of the kernel's file. arrays: names of them in the source, by those of the spec. A comment
    beside the declaration goes before one that names the array; of these the last before the kernel.
    """
    comments, begin, _ = _around(text, kernel)
    found = {}
    for name, own in arrays.items():
        beside = [one for one in comments if one.beside == own]
        beside.sort(key=lambda one: one.begin < begin)  # those of the kernel's own parameters first
        listed = (re.search(_LISTED, one.text) for one in beside)
        told = next(filter(None, listed), None)
        extents = _extents(told[1]) if told else []
        if not extents:
            every = {*arrays.values()} - {own}
            named = [told for one in comments for told in _named(one.text, own, every)]
            extents = named[-1] if named else []
        if extents:
            found[name] = extents
    return found


def launch_in(text: str, kernel: Kernel) -> tuple[list[str], list[str]]:
    """Grid and block as comments between the kernel and what is before it say them.

    Of `// grid: (ceil(n / 32), heads), block: 32` their extents; empty where no comment does.
    """
    comments, begin, before = _around(text, kernel)
    said = "\n".join(one.text for one in comments if before <= one.begin < begin)
    found = [re.search(_LAUNCH.format(key), said, re.I) for key in ("grid", "block")]
    grid, block = (_apart(one[1] or one[2]) if one else [] for one in found)
    return grid, block


def _apart(listed: str) -> list[str]:
    """Extents of a launch apart, as they are written; none of what is no list of expressions."""
    return [text_of(one) for one in parsed_arguments(listed)]


def _named(comment: str, own: str, others: set[str]) -> Iterator[list[str]]:
    """What stands in brackets behind the array's name, or behind a list of names that it is in."""
    between = r"(?![(\[])([^()\[\]\n;.]{0,40}?)"
    for told in re.finditer(rf"(?<![\w.]){own}\b{between}{_LISTED}", comment):
        words = {*_WORD.findall(told[1])} - _FILL
        called = re.search(r"(\w+)$", told[1])
        if called and called[1] not in others:
            continue  # a call: `y = rmsnorm(x + bias)`
        whose = not words & others or words <= others
        if whose and (extents := _extents(told[2])):
            yield extents


def _extents(listed: str) -> list[str]:
    """Extents apart; empty where one is no expression of words and numbers."""
    found = [one.strip() for one in listed.split(",")]
    plain = all(re.fullmatch(r"[\w()]+(?:\s*[-/*+]\s*[\w()]+)*", one) for one in found)
    return found if plain else []


def known(
    extents: Sequence[str], sizes: Mapping[str, str], constants: Mapping[str, str]
) -> list[str]:
    """The extents as expressions of the spec; empty text for one with a word that is none.

    sizes: the spec's sizes by how the source writes them. constants: numbers by name.
    """
    plain = {_bare(own): size for own, size in sizes.items()}
    numbers = {_bare(name).removeprefix("k"): value for name, value in constants.items() if value}
    found = []
    for one in extents:
        words = {word: sizes.get(word) or plain.get(_bare(word)) for word in _WORD.findall(one)}
        words |= {
            word: constants.get(word) or numbers.get(_bare(word).removeprefix("k"))
            for word, told in words.items() if not told
        }  # fmt: skip
        text = _WORD.sub(lambda m, words=words: words[m[0]] or "", one)  # type: ignore[misc]
        text = re.sub(r"(?<!/)/(?!/)", "//", text)
        try:
            fits = all(words.values()) and set(expressions.names_in(text)) <= {*sizes.values()}
        except SpecError:
            fits = False
        found.append(text if fits else "")
    return found


def _bare(word: str) -> str:
    return word.lower().replace("_", "")
