"""Numbers that a program's constants stand for."""

from __future__ import annotations

from tokitai_cli.cpp.body.outer import outer_value
from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.body.reader import READERS
from tokitai_cli.cpp.body.walk import BudgetError, Walk
from tokitai_cli.cpp.declarations import marks_of
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import child, declarator_of, text_of


def constants_in(program: Program) -> dict[str, str]:
    """Constants at namespace scope by name: their numbers, where these are known, else their texts."""
    walk = Walk(program, READERS)
    found: dict[str, str] = {}
    for one in program.declarations:
        if one.kind != "variable" or not {"const", "constexpr"} & marks_of(one.node):
            continue
        try:
            value = outer_value(walk, one.name)
        except (BudgetError, RecursionError):
            return found
        number = value.number if isinstance(value, Polynomial) else None
        for declarator in one.node.children_by_field_name("declarator"):
            if text_of(declarator_of(declarator).name) == one.name:
                told = text_of(child(declarator, "value"))
                found |= {one.name: str(number) if number is not None else told} if told else {}
    return found
