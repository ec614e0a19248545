"""A kernel's body read: its accesses and what they tell of its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from tokitai_cli.cpp.body.expressions import EXPRESSIONS
from tokitai_cli.cpp.body.function_calls import call
from tokitai_cli.cpp.body.memory_places import place_of
from tokitai_cli.cpp.body.statements import STATEMENTS
from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.body.walk import BUDGET, BudgetError, Readers, Walk
from tokitai_cli.cpp.declarations import Declaration
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import name_of, parsed_expression, text_of
from tokitai_cli.cpp.tree import walk as nodes_of

_WORDS = {"identifier", "field_identifier"}
READERS = Readers(EXPRESSIONS, STATEMENTS, place_of, call)


def read(
    program: Program,
    kernel: Declaration,
    budget: int = BUDGET,
    given: Mapping[str, str] | None = None,
) -> Facts:
    """Walk over a kernel's body. What cannot be read is said in the facts, never left out in silence.

    given: template arguments by the parameters' names.
    """
    walk = Walk(program, READERS, budget)
    for name, told in (given or {}).items():
        node = parsed_expression(told)
        if node is not None and node.type == "number_literal":
            walk.declare(name, walk.evaluate(node))
        else:
            walk.types[name] = told
    for one in kernel.parameters:
        walk.add_parameter(one)
    body = kernel.body
    if body is None:
        walk.facts.undecided.append("it has no body")
        return walk.facts
    try:
        walk.execute(body)
    except BudgetError:
        walk.facts.undecided.append("it is too long")
    except RecursionError:
        walk.facts.undecided.append("it is too deep")
    if body.has_error:
        walk.facts.undecided.append("a part could not be read")
    walk.facts.primitives = [*_primitives(walk, body)]
    walk.facts.words = frozenset(text_of(one) for one in nodes_of(body) if one.type in _WORDS)
    return walk.facts


def _primitives(walk: Walk, body: Node) -> Iterator[int]:
    """Threads that primitives of a whole block are made for, by their second template argument."""
    for node in nodes_of(body):
        if node.type == "template_type":
            name = name_of(node)
            arguments = name.arguments or ()
            made = name.last.startswith(("Block", "block_")) and len(arguments) > 1
            told = parsed_expression(arguments[1]) if made else None
            number = walk.number(walk.evaluate(told)).number if told is not None else None
            if number:
                yield number


def roles(facts: Facts) -> Mapping[str, str]:
    """What a kernel does with each array: read, write, part, update, none, or unknown.

    part: it writes parts of elements, so that the others keep what they held.

    unknown where a pointer to it went where the walk does not follow, or a part was not read; but what
    is seen to be read and written is that, whatever else is done with it.
    """
    found = {}
    for array in facts.arrays:
        kinds = {one.kind for one in facts.accesses if one.array == array}
        both = "update" in kinds or ("read" in kinds and len(kinds) > 1)
        role = "update" if both else "part" if "part" in kinds else next(iter(kinds), "none")
        lost = array in facts.escapes or bool(facts.undecided)
        unseen = role == "none" and array.rpartition(".")[2] in facts.words
        found[array] = "unknown" if (lost or unseen) and not both else role
    return found
