"""Launches in host code: what it says of a kernel's grid, block, shared memory and arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from tokitai_cli.cpp.arithmetic import constant, constants_in
from tokitai_cli.cpp.declarations import enumerators
from tokitai_cli.cpp.source.followed import followed
from tokitai_cli.cpp.source.macro_text import Macro, configurations, split
from tokitai_cli.cpp.source.macros import spread
from tokitai_cli.cpp.whole import Program, remembered

_BEFORE = 20_000  # letters in front of a launch that are read for its names
_LAUNCH = re.compile(r"\bhipLaunchKernelGGL\s*\(")
_NAMED = re.compile(r"(?P<name>[A-Za-z_][\w:]*)\s*(?:<(?P<template>[^;{}]*)>)?\s*$")
_NUMBER = re.compile(r"\b(\d+)(?:[uUlL]+)\b")
_GIVEN = re.compile(  # a declaration that is no member of a class, or an assignment
    r"\b(?<!static constexpr )(?<!static const )"
    r"(?:dim3|int|unsigned|size_t|auto|long|uint32_t|int64_t|uint)\s+(?:int\s+)?"
    r"(?=(\w+\s*[=({,][^;]*);)|(?<=[;{}])\s*(?=(\w+\s*=[^;=]+);)"
)
_DECLARATOR = re.compile(r"(\w+)\s*(?:=\s*(.+)|[({](.+)[)}])", re.S)
_READ = "dim3 ceil_div static_cast min max ceil ceilf sizeof int float double unsigned size_t"
_UNREADABLE = re.compile(rf"[\[\"]|\b(?!(?:{_READ.replace(' ', '|')})\b)\w+\s*\(")
_WARP_SIZE_QUERY = re.compile(r"\(\s*&\s*(\w+)\s*,\s*hipDeviceAttributeWarpSize\b")
_BEYOND = re.compile(r"[?<>&|^~]|\b\w+\s*\(")  # what sizes have no word for
_CAST = re.compile(
    r"\bstatic_cast\s*<[^<>]*>"
    r"|(?<!sizeof)\((?:std::)?(?:unsigned|size_t|(?:unsigned\s+)?(?:int|long|long\s+long)|u?int(?:32|64)_t)\)"
)


class HostLaunch(msgspec.Struct, frozen=True):
    """One launch as the host writes it; grid and block are lists of expressions, what it names put in.

    file, line: where it stands. source, begin: the unit and the place in its text. commented: that a
    comment beside the kernel says it, and no code.
    """

    kernel: str
    template: list[str]
    grid: list[str]
    block: list[str]
    shared: str
    args: list[str]
    line: int
    file: Path
    source: Path
    begin: int
    commented: bool = False
    #: Of the grid: local names of the host that are whole numbers, empty for any other extent.
    counted: list[str] = []
    #: Of structs among the arguments, as far as they are numbers or null, by paths: `p.mask`.
    fields: dict[str, str] = {}


def launches_of(program: Program, functions: Mapping[str, Macro] | None = None) -> list[HostLaunch]:
    """All launches that the program's files hold, in their order.

    functions: those whose expressions stand in their place, as `variables.returned` has them.
    """
    found: list[HostLaunch] = []
    macros = functions or {}
    constants = constants_of(program)
    for source in program.sources:
        text = source.plain
        for begin, callee, configuration, args in _written(text):
            named = _NAMED.search(callee)
            if named is None:
                continue
            names = constants | _locals(spread(text[max(0, begin - _BEFORE) : begin], macros))
            names = {name: value for name, value in names.items() if name not in args}
            told = [spread(one, macros) for one in configuration]
            grid, block, shared = (*told, "", "", "")[:3]
            found.append(
                HostLaunch(
                    kernel=named["name"].rpartition("::")[2],
                    template=[resolved(one, names) for one in split(named["template"] or "")],
                    grid=_extents(grid, names),
                    counted=_counted(grid, names.keys() - constants.keys(), names),
                    block=_extents(block, names),
                    shared=resolved(shared, names) or "0",
                    args=args,
                    line=source.line(begin),
                    file=source.file(begin),
                    source=source.path,
                    begin=begin,
                )
            )
    return followed(program, found, HostLaunch)


def resolved(text: str, names: Mapping[str, str]) -> str:
    """`text` with local names of the host put in, a few times over, and casts left out."""
    space = r"(?<![\w.>:])(?:[A-Za-z_]\w*::)+(?=(\w+)\b(?!\s*[(:<]))"
    text = re.sub(space, lambda match: "" if match[1] in names else match[0], text)
    for _ in range(5):
        new = re.sub(
            r"(?<![.\w>])[A-Za-z_]\w*(?!\w*\s*[(.])",
            lambda match: f"({names[match.group()]})" if match.group() in names else match.group(),
            text,
        )
        if new == text or len(new) > 400:
            break
        text = new
    text = _NUMBER.sub(r"\1", _CAST.sub("", text))
    while (shorter := re.sub(r"(?<![\w>])\((\s*\w+\s*)\)", r"\1", text)) != text:
        text = shorter
    return " ".join(text.split())


def _written(text: str) -> Iterator[tuple[int, str, list[str], list[str]]]:
    """Offset, callee, configuration and arguments of each launch."""
    for begin, end in configurations(text):
        start = max(text.rfind(mark, 0, begin) for mark in ";{}") + 1
        opened = text.find("(", end)
        if opened >= 0 and not text[end:opened].strip():
            yield (
                begin,
                text[start:begin],
                split(text[begin + 3 : end - 3]),
                arguments_at(text, opened),
            )
    for match in _LAUNCH.finditer(text):
        parts = arguments_at(text, match.end() - 1)
        if len(parts) >= 5:
            callee = re.sub(r"HIP_KERNEL_NAME\s*\((.*)\)\s*$", r"\1", parts[0], flags=re.S)
            yield match.start(), callee, parts[1:4], parts[5:]


def arguments_at(text: str, opened: int) -> list[str]:
    """What stands in the parentheses that open there, apart; none where they do not close."""
    depth = 0
    for mark in re.compile("[()]").finditer(text, opened):
        depth += 1 if mark.group() == "(" else -1
        if depth == 0:
            return split(text[opened + 1 : mark.start()])
    return []


def _locals(before: str) -> dict[str, str]:
    """What local names of the host hold in front of a launch: the last initial value or assignment."""
    found = dict.fromkeys(_WARP_SIZE_QUERY.findall(before), "warp_size")
    for statement in _GIVEN.finditer(before):
        for match in map(_DECLARATOR.fullmatch, split(statement[1] or statement[2])):
            value = "" if match is None else " ".join((match[2] or match[3]).split())
            # Of a dim3 each extent is read for itself.
            if match is None or (_UNREADABLE.search(value) and not statement[0].startswith("dim3")):
                continue
            if not re.search(rf"\b{match[1]}\b", value):
                found[match[1]] = value
    return found


@remembered
def constants_of(program: Program) -> dict[str, str]:
    """Macros and constants with a value, as the program's text has it.

    As a number where the language of sizes has no word for what the text says.
    """
    found = {
        name: macro.bodies[0].strip()
        for name, macro in program.macros.items()
        if not macro.called and len(set(macro.bodies)) == 1 and re.search(r"\d", macro.bodies[0])
    }
    for tree in program.trees:
        found |= constants_in(tree)
    told = {name: constant(text, found, program.macros) for name, text in found.items()
            if _BEYOND.search(text)}  # fmt: skip
    return found | {name: str(number) for name, number in told.items() if number is not None}


@remembered
def enumerators_of(program: Program) -> dict[str, str]:
    """Enumerators with the texts of their values."""
    every = (one for pieces in program.pieces.values() for one in pieces if one.kind == "type")
    return {name: text for piece in every for name, text in enumerators(piece.node)}


def _extents(text: str, names: Mapping[str, str]) -> list[str]:
    """Expressions of a grid or block: `dim3(a, b)`, a local name of one, or a number."""
    return [resolved(one, names) for one in _written_extents(text, names)]


def _counted(text: str, own: Collection[str], names: Mapping[str, str]) -> list[str]:
    """Of each extent the name among `own` that it is, where that is a whole number."""
    numbers = {name for name in own if names[name].isdigit()}
    return [one if one in numbers else "" for one in _written_extents(text, names)]


def _written_extents(text: str, names: Mapping[str, str]) -> list[str]:
    """Extents as they stand in a `dim3`, or where a local name of one or several gets its value."""
    for _ in range(3):
        match = re.fullmatch(r"\s*dim3\s*[({](.*)[)}]\s*", text, re.S)
        if match is not None:
            text = match[1]
            break
        if names.get(text.strip(), "0").isdigit():
            break
        text = names[text.strip()]
    return [one.strip() for one in split(text)][:3]
