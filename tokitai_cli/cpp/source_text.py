"""What is read of C++ source text without a compiler: comments, includes, and names of kernels.

Files are read within limits: a source may name a pipe, a device or a file of any size, and headers
may include each other in a circle by many spellings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tokitai_cli.core import storage

MAX_BYTES = 16 << 20  # of one file
MAX_FILES = 4096
_MOST_UNITS = 200  # of a folder
# Of files that may hold kernels; the first two are compiled by themselves.
_UNITS = (".cu", ".hip", ".cpp", ".cc", ".cxx")
SUFFIXES = (*_UNITS, ".cuh", ".hpp", ".h", ".inl", ".hxx", ".hh", ".inc")

# Comments, string and character literals, and raw strings: blanked, line breaks kept.
_BLANKED = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"'
    r'|//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
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

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# A name, qualified or not, and for a template the brackets around its arguments.
_KERNEL = re.compile(
    rf"(?P<name>(?:::)?{_NAME}(?:::{_NAME})*(?: *<(?P<arguments>.*)>)?)(?: *\((?P<types>[^()]+)\))?"
)
# Names, numbers, and what stands between them in types and constant expressions.
_WORD = re.compile(rf" *(?:{_NAME}|[0-9][0-9A-Za-z'.]*|::|[-+*&~!|^%,<>()[\]])")
_CLOSING = {"<": ">", "(": ")", "[": "]"}


def blank(text: str, *, quotes: bool = False) -> str:
    """`text` with comments and literals turned to spaces; every character keeps its place.

    quotes: literals keep their quotes and lose only what is in them.
    """

    def spaces(match: re.Match[str]) -> str:
        whole = match.group()
        hollow = re.sub(r"[^\n]", " ", whole)
        return whole[0] + hollow[1:-1] + whole[-1] if quotes and whole[0] in "\"'" else hollow

    return _BLANKED.sub(spaces, text)


def units_in(folder: Path) -> list[Path]:
    """Sources that a compiler is given, of those that lie in a folder; of a very large one the first."""
    try:
        found = sorted(one for one in folder.iterdir() if one.suffix in _UNITS)
    except OSError:
        return []
    return found[:_MOST_UNITS]


def read(path: str | Path) -> bytes | None:
    """Bytes of a regular file of at most `MAX_BYTES`; None for anything else."""
    try:
        return storage.read_plain(path, MAX_BYTES)
    except OSError:
        return None


def text_of(path: str | Path) -> str | None:
    """Text of such a file; bytes that are no UTF-8 are replaced."""
    data = read(path)
    return None if data is None else data.decode("utf-8", "replace")


def quoted(data: bytes) -> list[str]:
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


def own_texts(source: Path, folders: Sequence[Path] = ()) -> Iterator[str]:
    """Text of `source`, and of the files that it includes in quotes from the including file's folder.

    Those of the include `folders` too. Each file once, by whatever names it goes; what is no readable
    file is left out.
    """
    waiting = [source]
    seen: set[tuple[int, int]] = set()
    while waiting and len(seen) < MAX_FILES:
        path = waiting.pop()
        try:
            status = path.stat()
        except (OSError, ValueError):
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        data = read(path)
        if data is not None:
            yield data.decode("utf-8", "replace")
            near = [path.parent, *folders]
            waiting += [folder / name for name in quoted(data) for folder in near]


def is_kernel_name(name: str) -> bool:
    """Whether `name` may be a kernel's: a name, or an instantiation such as `space::k<-1, float*>`.

    Behind either may stand the types of its parameters, as `k(float*, int)`. Brackets are balanced, and
    nothing in it can end the expression that it stands in. What the words mean is left to the compiler.
    """
    match = _KERNEL.fullmatch(name)
    return match is not None and all(map(_is_balanced, (match["arguments"], match["types"])))


def overload(name: str) -> tuple[str, str]:
    """A kernel's name and the types of its parameters, empty where they are not said."""
    match = _KERNEL.fullmatch(name)
    return (match["name"], match["types"]) if match and match["types"] else (name, "")


def _is_balanced(text: str | None) -> bool:
    arguments = (text or "").rstrip(" ")
    expected: list[str] = []  # the brackets that are to close, the innermost last
    position = 0
    while position < len(arguments):
        word = _WORD.match(arguments, position)
        if word is None:
            return False
        position = word.end()
        mark = word.group().lstrip(" ")
        if mark in "<>" and expected and expected[-1] != ">":
            continue  # within ( ) and [ ] they compare and shift
        if mark in _CLOSING:
            expected.append(_CLOSING[mark])
        elif mark in _CLOSING.values() and (not expected or expected.pop() != mark):
            return False
    return not expected
