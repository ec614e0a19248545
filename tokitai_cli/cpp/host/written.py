"""Numbers of a launch as a comment says them, where a division in `ceil` is one of real numbers."""

from __future__ import annotations

from tree_sitter import Node

from tokitai_cli.cpp.body.expressions import EXPRESSIONS
from tokitai_cli.cpp.body.function_calls import call
from tokitai_cli.cpp.body.polynomial import Polynomial, variable
from tokitai_cli.cpp.body.reader import READERS
from tokitai_cli.cpp.body.symbolic_values import Returned, Value
from tokitai_cli.cpp.body.walk import BudgetError, Walk
from tokitai_cli.cpp.host.host_walk import Handed, HostWalk
from tokitai_cli.cpp.host.ratios import as_whole, binary
from tokitai_cli.cpp.host.runtime import runtime_call
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import parsed_expression

_BUDGET = 2_000


def number_of(program: Program, text: str) -> Polynomial:
    """The number that a comment's expression is, in names of the comment's and constants."""
    node = parsed_expression(text)
    walk = HostWalk(program, _READERS, _BUDGET, Handed((), ()))
    try:
        value = as_whole(walk.evaluate(node)) if node is not None else None
    except (BudgetError, RecursionError):
        value = None
    return value if isinstance(value, Polynomial) else variable(text)


def _divided(walk: Walk, node: Node) -> Value:
    return binary(walk, node, real=True)


def _call(walk: Walk, node: Node, operator: str = "") -> Returned:
    known = runtime_call(walk, node) if isinstance(walk, HostWalk) and not operator else None
    return known or call(walk, node, operator)


_READERS = READERS._replace(expressions={**EXPRESSIONS, "binary_expression": _divided}, call=_call)
