"""Constants of a program by name, and the arguments of a call in a text."""

from __future__ import annotations

import re

from tokitai_cli.cpp.arithmetic import constant, constants_in
from tokitai_cli.cpp.declarations import enumerators
from tokitai_cli.cpp.source.macro_text import split
from tokitai_cli.cpp.whole import Program, remembered

_BEYOND = re.compile(r"[?<>&|^~]|\b\w+\s*\(")  # what sizes have no word for


def arguments_at(text: str, opened: int) -> list[str]:
    """What stands in the parentheses that open there, apart; none where they do not close."""
    depth = 0
    for mark in re.compile("[()]").finditer(text, opened):
        depth += 1 if mark.group() == "(" else -1
        if depth == 0:
            return split(text[opened + 1 : mark.start()])
    return []


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
