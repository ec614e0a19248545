"""Launches of kernels: the host's functions are walked as kernels are, and what they launch is noted.

So a kernel behind a pointer or a wrapper's argument, a `dim3` that is set field by field, and the lambda
of a dispatch macro need no rules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.body.expressions import EXPRESSIONS
from tokitai_cli.cpp.body.function_calls import call, given_to
from tokitai_cli.cpp.body.polynomial import Polynomial, variable
from tokitai_cli.cpp.body.reader import READERS
from tokitai_cli.cpp.body.statements import STATEMENTS
from tokitai_cli.cpp.body.symbolic_values import Returned, Value
from tokitai_cli.cpp.body.walk import BudgetError, Walk
from tokitai_cli.cpp.host.declared_types import type_of
from tokitai_cli.cpp.host.functions import HostFunction, HostFunctions
from tokitai_cli.cpp.host.host_walk import HostWalk
from tokitai_cli.cpp.host.launch import Launch, agreed, name_in
from tokitai_cli.cpp.host.notes import Note, note
from tokitai_cli.cpp.host.ratios import binary, literal
from tokitai_cli.cpp.host.runtime import APIS, configured, listed, runtime_call
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import child, declarator_of, named, parsed_expression, text_of
from tokitai_cli.cpp.whole import Program as Whole
from tokitai_cli.cpp.whole import remembered

_BUDGET = 40_000  # nodes of one host function, and of all of a file together three times that
_HOLDS = frozenset({"compound_statement"})


class _Launching(HostWalk):
    """A walk that notes launches. visited: calls that launch, by where they begin."""

    def __init__(self, functions: HostFunctions, budget: int) -> None:
        super().__init__(functions.program, _READERS, budget, functions.handed)
        self.notes: list[Note] = []
        self.visited: set[int] = set()


def launches_in(program: Program) -> list[Launch]:
    """All launches that the program's functions make: those that are sure to be made first.

    Then those of functions that are handed a kernel, and those whose conditions do not hold.
    """
    functions = HostFunctions(program)
    reader = _Reader(functions)
    for function in functions.callers:
        reader.read(function)
    called = reader.notes
    reader.notes = []
    for function in functions.launching:
        reader.read(function)
    for around, node in functions.sites:
        if node.start_byte not in reader.visited:
            reader.read_towards(around, node)
    by_site: dict[tuple[int, str], list[Note]] = {}
    for one in [*reader.notes, *called]:
        by_site.setdefault((one.start, one.launch.kernel), []).append(one)
    sites = sorted(by_site.values(), key=lambda same: same[0].order)
    return [_joined(same) for same in sites]


@remembered
def launches_of(program: Whole) -> list[Launch]:
    """Launches of all sources of a program, each once."""
    found: dict[tuple[Path, int, str], Launch] = {}
    for tree in program.trees:
        for one in launches_in(tree):
            found.setdefault((one.file, one.line, one.kernel), one)
    return list(found.values())


def _joined(same: Sequence[Note]) -> Launch:
    numbers = agreed([one.launch.numbers for one in same])
    return msgspec.structs.replace(same[0].launch, numbers=numbers)


class _Reader:
    """Walks over functions, with what is learned from one for the next."""

    def __init__(self, functions: HostFunctions) -> None:
        self._functions = functions
        self._left = 6 * _BUDGET
        self._bound: dict[int, dict[str, str]] = {}
        self.notes: list[Note] = []
        self.visited: set[int] = set()

    def read(self, function: HostFunction) -> None:
        """Walk over a function as if it was called with nothing that is known."""
        body = function.declaration.body
        if body is not None and self._left > 0:
            self._walk(function, body, None)

    def read_towards(self, function: HostFunction | None, target: Node) -> None:
        """Walk over what stands in front of a launch that no walk came by, and the launch."""
        body = function.declaration.body if function is not None else _outermost(target)
        if body is not None and self._left > 0:
            self._walk(function, body, target)

    def _walk(self, function: HostFunction | None, body: Node, target: Node | None) -> None:
        walk = _Launching(self._functions, min(_BUDGET, self._left))
        spent = walk.budget_left
        try:
            if function is not None:
                _enter(walk, function, self._functions.instance(function, self._bound))
            if target is None:
                walk.execute(body)
            else:
                _towards(walk, body, target)
        except (BudgetError, RecursionError):
            pass
        self._left -= spent - max(walk.budget_left, 0)
        for start, given in walk.bound.items():
            if not any(walk.unbound(one) for one in given.values()):
                self._bound.setdefault(start, given)
        self.visited |= walk.visited
        for one in walk.notes:
            one.forced = target is not None
        self.notes += walk.notes


def _enter(walk: HostWalk, function: HostFunction, instance: dict[str, str]) -> None:
    """Declare parameters, and what those of the templates around stand for."""
    walk.owner = function.owner.name if function.owner is not None else ""
    aliases = function.owner.aliases if function.owner is not None else {}
    for parameter in function.template:
        given = instance.get(parameter.name, "")
        node = parsed_expression(given) if given and parameter.type != "type" else None
        if node is not None:
            walk.scopes[-1][parameter.name] = walk.new_cell(walk.evaluate(node))
        elif given and parameter.type == "type":
            walk.types[parameter.name] = given
    for name, spelled in aliases.items():
        walk.types[name] = walk.spelled(spelled)
    for parameter in function.declaration.parameters:
        walk.add_parameter(parameter)


def _outermost(node: Node) -> Node | None:
    """The outermost braces of statements that a node stands in."""
    found = None
    while (outer := node.parent) is not None:
        found = outer if outer.type in _HOLDS else found
        node = outer
    return found


def _towards(walk: HostWalk, node: Node, target: Node) -> None:
    if node == target:
        walk.evaluate(node)
        return
    if node.type in _HOLDS:
        walk.scopes.append({})
    if node.type == "for_statement" and (start := child(node, "initializer")) is not None:
        walk.execute(start)
    for one in node.named_children:
        if one.start_byte <= target.start_byte and target.end_byte <= one.end_byte:
            _towards(walk, one, target)
            return
        if node.type in _HOLDS:
            walk.execute(one)


# What the host reads in its own way


def _number(walk: Walk, node: Node) -> Value:
    told = literal(text_of(node))
    return EXPRESSIONS[node.type](walk, node) if told is None else told


def _name(walk: Walk, node: Node) -> Value:
    """A constant of the program's that launches are handed keeps its name, as variables do."""
    value, name = EXPRESSIONS[node.type](walk, node), text_of(node)
    known = isinstance(walk, HostWalk) and walk.find(name) is None
    return walk.kept_constant(name, value) if known and isinstance(walk, HostWalk) else value


def _qualified(walk: Walk, node: Node) -> Value:
    """A member of a class, whose template arguments are put in: `Traits::THREADS`."""
    value, scope = EXPRESSIONS[node.type](walk, node), child(node, "scope")
    unknown = isinstance(value, Polynomial) and name_in(value) == text_of(node)
    if not unknown or scope is None or not isinstance(walk, HostWalk):
        return value
    return variable(f"{walk.spelled(text_of(scope))}::{text_of(child(node, 'name'))}")


def _alias(walk: Walk, node: Node) -> bool:
    name = child(node, "name") or declarator_of(child(node, "declarator")).name
    told = text_of(child(node, "type"))
    walk.types[text_of(name)] = walk.spelled(told) if isinstance(walk, HostWalk) else told
    return True


def _call(walk: Walk, node: Node, operator: str = "") -> Returned:
    if operator or not isinstance(walk, _Launching):
        return call(walk, node, operator)
    function = child(node, "function")
    given = given_to(node)
    syntax = next((one for one in node.named_children if one.type == "kernel_call_syntax"), None)
    if syntax is not None and function is not None:
        parts = (*named(syntax)[:3], None, None, None)[:3]
        values = [(walk.evaluate(one), type_of(walk, one)) for one in given]
        extents = [None if one is None else walk.evaluate(one) for one in parts]
        _launched(walk, node, function, extents, values)
        return Returned()
    api = APIS.get(text_of(function))
    if api is not None and len(given) > api.kernel:
        rest = given[api.given :] if api.given is not None else []
        values = [(walk.evaluate(one), type_of(walk, one)) for one in rest]
        if api.listed is not None and api.listed < len(given):
            values = listed(walk, given[api.listed])
        _launched(walk, node, given[api.kernel], configured(walk, api, given), values)
        return Returned()
    return runtime_call(walk, node) or call(walk, node)


def _launched(
    walk: _Launching,
    node: Node,
    callee: Node,
    extents: Sequence[Value],
    given: Sequence[tuple[Value, str]],
) -> None:
    if walk.dry:
        return
    walk.visited.add(node.start_byte)
    made = note(walk, node, callee, extents, given)
    if made is not None:
        walk.notes.append(made)


_READERS = READERS._replace(
    expressions={
        **EXPRESSIONS, "identifier": _name, "number_literal": _number, "binary_expression": binary,
        "qualified_identifier": _qualified,
    },
    statements={**STATEMENTS, "alias_declaration": _alias, "type_definition": _alias},
    call=_call,
)  # fmt: skip
