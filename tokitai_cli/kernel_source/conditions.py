"""Branches of the preprocessor that a program's own macros decide, taken as a compiler takes them.

What hangs on a compiler's or an absent header's macros stays open, and all of its branches are kept.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.kernel_source.files import UserFile
from tokitai_cli.kernel_source.text import DEFINE, DIRECTIVE, WORD, erased
from tokitai_cli.sources import blank

# Every HIP compiler for AMD's platform has them, and none of them these.
_SET = dict.fromkeys(("TOKITAI", "__HIPCC__", "__HIP_PLATFORM_AMD__", "__HIP__"), "1")
_UNSET = re.compile(
    r"__CUDACC__|__CUDA_ARCH__|__NVCC__|__HIP_PLATFORM_NV\w+|__SYCL\w*|__APPLE__|_MSC_VER|_OPENMP|_WIN(?:32|64)"
)
_COMPILERS = re.compile(r"__\w*|_[A-Z]\w*|HIP_VERSION\w*|NDEBUG")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_DEFINES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
_MAX_LENGTH, _MAX_SHIFT, _MAX_DEPTH = 500, 64, 16
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.LShift: lambda a, b: a << min(b, _MAX_SHIFT), ast.RShift: lambda a, b: a >> min(b, _MAX_SHIFT),
}  # fmt: skip


class _OpenError(Exception):
    """The text does not say it."""


def decided(
    files: Mapping[Path, UserFile], source: Path, defines: Mapping[str, str]
) -> tuple[dict[Path, UserFile], list[tuple[Path, int, str]]]:
    """The files that `source` takes in, branches that are not taken blanked.

    And those branches: file, first line and text. defines: macros that the command line gives.
    """
    reader = _Reader(files, _SET | {name: value or "1" for name, value in defines.items()})
    reader.read(source)
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
        except (_OpenError, SyntaxError, ValueError, ZeroDivisionError, TypeError):
            return None

    def _is_defined(self, name: str) -> bool:
        if name in self._macros:
            if self._macros[name] is None:
                raise _OpenError
            return True
        foreign = _COMPILERS.fullmatch(name) and not _UNSET.fullmatch(name)
        if foreign and name not in self._own:
            raise _OpenError
        return False

    def _number(self, text: str, depth: int = 0) -> int:
        """Value of a condition; names without a value are 0, as for a compiler."""
        text = _DEFINED.sub(lambda m: str(int(self._is_defined(m[1] or m[2]))), text)
        text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
        for sign, word in (("&&", " and "), ("||", " or ")):
            text = text.replace(sign, word)
        text = re.sub(r"!(?!=)", " not ", text.replace("/", "//"))
        if len(text) > _MAX_LENGTH or depth > _MAX_DEPTH:
            raise _OpenError
        return int(self._value(ast.parse(text.strip(), mode="eval").body, depth))

    def _value(self, node: ast.expr, depth: int) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            if not self._is_defined(node.id):
                return int(node.id == "true")
            return self._number(self._macros[node.id] or "?", depth + 1)
        if isinstance(node, ast.BoolOp):
            is_and = isinstance(node.op, ast.And)
            parts = (bool(self._value(one, depth)) for one in node.values)
            return all(parts) if is_and else any(parts)
        if isinstance(node, ast.UnaryOp):
            return int(_OPERATORS[type(node.op)](self._value(node.operand, depth)))
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            sides = self._value(node.left, depth), self._value(node.right, depth)
            return int(_OPERATORS[type(node.op)](*sides))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = self._value(node.left, depth), self._value(node.comparators[0], depth)
            return int(_OPERATORS[type(node.ops[0])](*sides))
        raise _OpenError
