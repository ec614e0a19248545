"""Variables of a program that kernels reach by name: `__device__` and `__constant__` ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.source.launches import arguments_at, constants_of, enumerators_of
from tokitai_cli.cpp.source.macro_text import WORD, Macro, split, words_in
from tokitai_cli.cpp.source.signatures import Kernel, Parameter, parameter_of
from tokitai_cli.cpp.source.types import known_types
from tokitai_cli.cpp.whole import Program, remembered

_STORED = re.compile(r"\b(?:static|inline)\b")
_MARKS = {"__device__", "__constant__", "__managed__"}
_RETURNED = re.compile(r"\{\s*return\b([^;{}]+);\s*\}\s*")
_KNOWN = {"min", "max"}  # what they give is known better than by their text


class Variable(msgspec.Struct, frozen=True):
    """A variable without an initial value: its elements as a parameter's would be, and its extents."""

    element: Parameter
    #: None for one that no text decides.
    extents: tuple[int | None, ...]
    #: Its namespaces.
    space: tuple[str, ...]
    #: `__constant__`.
    constant: bool

    @property
    def qualified(self) -> str:
        """Its name with its namespaces."""
        return "::".join([*self.space, self.element.name])


def variables_of(program: Program) -> list[Variable]:
    """All of a program, those of a type that no text decides left out."""
    types = known_types(program, guess=True)
    names = constants_of(program) | enumerators_of(program)
    macros = returned(program) | program.macros
    found = []
    for path, pieces in program.pieces.items():
        for piece in pieces:
            text = _STORED.sub(" ", program.texts[path].parsed[piece.begin : piece.end])
            if piece.kind != "variable" or not piece.marks & _MARKS or "extern" in text.split():
                continue
            for whole, name, extents in _declared(text):
                element = parameter_of(whole, name, types)
                if element.dtypes and element.kind in {"scalar", "struct"}:
                    told = tuple(constant(one, names, macros) for one in extents)
                    is_constant = "__constant__" in piece.marks
                    found.append(Variable(element, told, piece.space, is_constant))
    return found


def _declared(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Each variable of a declaration without an initial value: type and name, name, extents."""
    names = r"((?:[^=(){};\[\]]|\[[^;\[\]]*\])+)"
    match = re.fullmatch(rf"\s*((?:[\w:]+\s+)*[\w:]+)\s+{names};\s*", text, re.S)
    for one in split(match[2]) if match else ():
        declared = re.fullmatch(r"\s*(\w+)\s*((?:\[[^\[\]]+\]\s*)*)", one)
        if match and declared:
            extents = re.findall(r"\[([^\[\]]+)\]", declared[2])
            yield f"{match[1]} {declared[1]}", declared[1], extents


def reached_text(program: Program, kernel: Kernel, heads: bool = False) -> str:
    """The kernel's body, those of the functions that it reaches by name, and its shared arrays.

    heads: whether functions have what stands in front of their bodies too.
    """
    return "\n".join(_closure(kernel.body, _bodies(program, heads)))


@remembered
def _bodies(program: Program, heads: bool) -> dict[str, list[str]]:
    """Functions and shared arrays by name, as `reached_text` has them."""
    bodies: dict[str, list[str]] = {}
    for path, pieces in program.pieces.items():
        for piece in pieces:
            mentions = piece.kind in {"variable", "class"} and "__shared__" in piece.words
            is_shared = mentions and (piece.kind == "class" or "__shared__" in piece.marks)
            if is_shared or (piece.kind == "function" and not piece.kernel):
                begin = piece.begin if is_shared or heads else piece.body
                for name in piece.names:
                    bodies.setdefault(name, []).append(program.texts[path].plain[begin : piece.end])
    return bodies


@remembered
def returned(program: Program) -> dict[str, Macro]:
    """Functions that do nothing but return an expression, as the macros that would stand for it."""
    found: dict[str, list[Macro]] = {}
    for path, pieces in program.pieces.items():
        plain = program.texts[path].plain
        for piece in pieces:
            told = _RETURNED.fullmatch(plain[piece.body : piece.end])
            if piece.kind != "function" or told is None or len(piece.names) != 1:
                continue
            (name,) = piece.names
            opened = re.search(rf"\b{re.escape(name)}\s*\(", plain[piece.begin : piece.body])
            if opened is None or name in _KNOWN:
                continue
            listed = arguments_at(plain[: piece.body], piece.begin + opened.end() - 1)
            names = [re.findall(r"[A-Za-z_]\w*", one.partition("=")[0])[-1:] for one in listed]
            words = tuple(one for last in names for one in last)
            text = WORD.sub(lambda m: f"({m[0]})" if m[0] in words else m[0], told[1])  # noqa: B023
            text = " ".join(text.split())
            found.setdefault(name, []).append(
                Macro(frozenset(words_in(text)), True, (text,), words)
            )
    return {name: same[0] for name, same in found.items() if same.count(same[0]) == len(same)}


def _closure(body: str, bodies: Mapping[str, list[str]]) -> Iterator[str]:
    known: set[str] = set()
    waiting = [body]
    while waiting:
        text = waiting.pop()
        yield text
        new = {name for name in WORD.findall(text) if name in bodies} - known
        known |= new
        waiting += [one for name in sorted(new) for one in bodies[name]]
