"""Branches of the preprocessor that a program's own macros decide, taken as a compiler takes them.

What hangs on a compiler's or an absent header's macros stays open, and all of its branches are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from tokitai_cli.cpp.source.blanking import DEFINE, DIRECTIVE, WORD, erased
from tokitai_cli.cpp.source.constants import OpenError, value
from tokitai_cli.cpp.source.source_files import UserFile
from tokitai_cli.cpp.source_text import blank

# Every HIP compiler for AMD's platform has them, and none of them these.
_SET = dict.fromkeys(("TOKITAI", "__HIPCC__", "__HIP_PLATFORM_AMD__", "__HIP__"), "1")
_UNSET = re.compile(
    r"__CUDACC__|__CUDA_ARCH__|__NVCC__|__HIP_PLATFORM_NV\w+|__SYCL\w*|__APPLE__|_MSC_VER|_OPENMP|_WIN(?:32|64)"
)
_COMPILERS = re.compile(r"__\w*|_[A-Z]\w*|HIP_VERSION\w*|NDEBUG")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_DEFINES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)


def decided(
    files: Mapping[Path, UserFile], roots: Iterable[Path], defines: Mapping[str, str]
) -> tuple[dict[Path, UserFile], list[tuple[Path, int, str]]]:
    """The files that `roots` take in one behind the other, branches that are not taken blanked.

    And those branches: file, first line and text. defines: macros that the command line gives.
    """
    reader = _Reader(files, _SET | {name: value or "1" for name, value in defines.items()})
    for root in roots:
        reader.read(root)
    return reader.found, reader.dark


class _Group(msgspec.Struct):
    """An #if with what was decided of it: branch is None where it is open."""

    branch: bool | None
    begin: int  # of the present branch
    taken: bool  # a branch of it is the one
    spans: list[tuple[int, int]]  # what goes, where nothing stays open
    lines: list[tuple[int, int]]
    open: bool = False


class _Reader:
    def __init__(self, files: Mapping[Path, UserFile], macros: dict[str, str]) -> None:
        self._files = files
        self._macros: dict[str, str | None] = {**macros}  # None: by an open branch
        self._own = {name for one in files.values() for name in _DEFINES.findall(one.text)}
        self.found: dict[Path, UserFile] = {}
        self.dark: list[tuple[Path, int, str]] = []

    def read(self, path: Path) -> None:
        """One file from its first line on, those that it takes in at their place."""
        if path in self.found or path not in self._files:
            return
        one = self._files[path]
        self.found[path] = one
        plain = blank(one.text, quotes=True)
        dark: list[tuple[int, int]] = []
        lines: list[tuple[int, int]] = []
        stack: list[_Group] = []
        for match in DIRECTIVE.finditer(plain):
            word, rest, place = match["word"], match["rest"], match.span()
            if word in {"if", "ifdef", "ifndef"}:
                outer = all(group.branch is not False for group in stack)
                holds = self._holds(word, rest) if outer else False
                stack.append(_Group(holds, place[1], holds is True, [], [place], holds is None))
            elif word in {"elif", "else", "elifdef", "elifndef", "endif"}:
                if stack:
                    self._next(stack[-1], word, rest, place)
                if stack and word == "endif":
                    group = stack.pop()
                    if all(outer.branch is not False for outer in stack):
                        dark += group.spans
                        lines += [] if group.open else group.lines
            elif all(group.branch is not False for group in stack):
                is_open = any(group.branch is None for group in stack)
                self._line(one, word, rest, match.start(), is_open=is_open)
        self._keep(one, dark, lines)

    def _next(self, group: _Group, word: str, rest: str, place: tuple[int, int]) -> None:
        """The next branch of a group, or its end."""
        if group.branch is False:
            group.spans.append((group.begin, place[0]))
        group.begin = place[1]
        group.lines.append(place)
        if word == "endif":
            return
        if group.taken:
            group.branch = False
            return
        holds = True if word == "else" else self._holds(word.removeprefix("el"), rest)
        if group.open and holds:
            holds = None
        group.branch = holds
        group.taken = holds is True
        group.open = group.open or holds is None

    def _line(self, one: UserFile, word: str, rest: str, at: int, *, is_open: bool) -> None:
        match = DEFINE.match(rest) if word == "define" else None
        if match is not None:
            called = match["parameters"] is not None
            body = re.sub(r"\\\r?\n", " ", match["body"]).strip()
            self._macros[match["name"]] = None if is_open else "?" if called else body
        elif word == "undef" and (name := WORD.search(rest)):
            if is_open:
                self._macros[name.group()] = None
            else:
                self._macros.pop(name.group(), None)
        elif at in one.includes:
            self.read(one.includes[at])

    def _keep(
        self, one: UserFile, dark: list[tuple[int, int]], lines: list[tuple[int, int]]
    ) -> None:
        if not dark and not lines:
            return
        self.dark += ((one.path, one.text.count("\n", 0, a) + 1, one.text[a:b]) for a, b in dark)

        def lit(at: int) -> bool:
            return not any(begin <= at < end for begin, end in dark)

        self.found[one.path] = msgspec.structs.replace(
            one,
            text=erased(one.text, [*dark, *lines]),
            includes={at: name for at, name in one.includes.items() if lit(at)},
            foreign={at: name for at, name in one.foreign.items() if lit(at)},
        )

    def _holds(self, word: str, rest: str) -> bool | None:
        """Whether a branch is taken; None where the text does not say it."""
        try:
            if word == "if":
                return bool(self._number(re.sub(r"\\\r?\n", " ", rest)))
            name = WORD.search(rest)
            if name is None:
                return None
            return self._is_defined(name.group()) == (word == "ifdef")
        except OpenError:
            return None

    def _is_defined(self, name: str) -> bool:
        if name in self._macros:
            if self._macros[name] is None:
                raise OpenError
            return True
        foreign = _COMPILERS.fullmatch(name) and not _UNSET.fullmatch(name)
        if foreign and name not in self._own:
            raise OpenError
        return False

    def _number(self, text: str) -> int:
        """Value of a condition."""
        text = _DEFINED.sub(lambda m: str(int(self._is_defined(m[1] or m[2]))), text)
        return value(text, self._named, {})

    def _named(self, name: str) -> str | None:
        """What a name stands for; one without a value is 0, as for a compiler."""
        if not self._is_defined(name):
            return "0"
        body = self._macros[name] or ""
        return _DEFINED.sub(lambda m: str(int(self._is_defined(m[1] or m[2]))), body)
