"""Constants of a program by name."""

from __future__ import annotations

from tokitai_cli.cpp.arithmetic import constant, constants_in
from tokitai_cli.cpp.whole import Program, remembered

_BEYOND = frozenset("?<>&|^~(")  # what sizes have no word for


@remembered
def constants_of(program: Program) -> dict[str, str]:
    """Macros and constants with a value, as the program's text has it.

    As a number where the language of sizes has no word for what the text says.
    """
    found = {
        name: told[0].body
        for name, told in program.macros.items()
        if len(told) == 1 and told[0].parameters is None and any(map(str.isdigit, told[0].body))
    }
    for tree in program.trees:
        found |= constants_in(tree)
    told = {name: constant(text, found, program.macros) for name, text in found.items()
            if _BEYOND & {*text}}  # fmt: skip
    return found | {name: str(number) for name, number in told.items() if number is not None}
