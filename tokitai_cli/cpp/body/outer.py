"""Names that a body has from outside: variables, constants and functions of the program's."""

from __future__ import annotations

from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import constant, variable
from tokitai_cli.cpp.body.symbolic_values import Function, Place, Pointer, Value
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.declarations import enumerators, marks_of
from tokitai_cli.cpp.structs import resolved
from tokitai_cli.cpp.tree import Declarator, child, declarator_of, named, parsed_expression, text_of

_KINDS = {"function", "kernel", "prototype"}


def outer_place(walk: Walk, name: str) -> Place | None:
    """A variable at namespace scope that is not a constant; an array of the kernel from here on."""
    if name in walk.globals or name in walk.constants:
        return walk.globals.get(name)
    for one in walk.program.by_name.get(name, ()):
        told = _declared(one.node, name) if one.kind == "variable" else None
        if told is None:
            continue
        declarator, value = told
        if _is_constant(one.node, declarator, value):
            continue
        kind = resolved(walk.program, text_of(child(one.node, "type")))
        walk.facts.arrays[name] = kind
        if declarator.extents or declarator.pointers:
            inner = tuple(text_of(extent) for extent in declarator.extents[1:])
            pointer = Pointer(name, constant(0), 1, walk.row_sizes(inner))
            walk.globals[name] = walk.new_cell(pointer)
        else:
            walk.globals[name] = Pointer(name, constant(0))
        return walk.globals[name]
    return None


def outer_value(walk: Walk, name: str) -> Value:
    """A constant's number, a function; else a number by its name."""
    if name in walk.constants:
        return walk.constants[name]
    walk.constants[name] = variable(name)  # while its own value is read
    for one in walk.program.by_name.get(name, ()):
        if one.kind in _KINDS:
            walk.constants[name] = Function(name)
        told = _declared(one.node, name) if one.kind == "variable" else None
        if told is not None and told[1] is not None:
            walk.constants[name] = walk.number(walk.evaluate(_only(told[1])))
        text = dict(enumerators(one.node)).get(name) if one.kind == "enumerator" else None
        if text is not None:
            walk.constants[name] = walk.number(walk.evaluate(parsed_expression(text)))
    return walk.constants[name]


def _declared(node: Node, name: str) -> tuple[Declarator, Node | None] | None:
    for one in node.children_by_field_name("declarator"):
        has_value = one.type == "init_declarator"
        told = declarator_of(child(one, "declarator") if has_value else one)
        if text_of(told.name) == name:
            return told, child(one, "value") if has_value else None
    return None


def _is_constant(node: Node, declarator: Declarator, value: Node | None) -> bool:
    plain = not declarator.extents and not declarator.pointers
    return plain and value is not None and bool({"const", "constexpr"} & marks_of(node))


def _only(value: Node) -> Node:
    listed = value.type in {"initializer_list", "argument_list"} and len(named(value)) == 1
    return named(value)[0] if listed else value
