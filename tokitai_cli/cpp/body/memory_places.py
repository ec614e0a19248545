"""Which variable or element an expression names."""

from __future__ import annotations

from tree_sitter import Node

from tokitai_cli.cpp.body.outer import outer_place
from tokitai_cli.cpp.body.polynomial import constant
from tokitai_cli.cpp.body.symbolic_values import Cell, Place, Pointer, Record
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.tree import child, named, text_of

_VALUES = frozenset(
    [
        "cast_expression",
        "conditional_expression",
        "assignment_expression",
        "update_expression",
        "comma_expression",
    ]
)


def place_of(walk: Walk, node: Node) -> Place | None:
    """The place that an expression names; None where it names none, or none that is known."""
    kind = node.type
    if kind == "parenthesized_expression":
        inner = named(node)
        return walk.place(inner[0]) if inner else None
    if kind == "identifier":
        return walk.find(text_of(node)) or outer_place(walk, text_of(node))
    if kind == "subscript_expression":
        return _element(walk, node)
    if kind == "pointer_expression" and text_of(node)[0] == "*":
        value = walk.evaluate(child(node, "argument"))
        return value if isinstance(value, Cell) else _row(walk.moved(value, constant(0)))
    if kind == "field_expression":
        return _field(walk, node)
    if kind == "call_expression":
        return walk.call(node).place
    if kind in _VALUES:
        value = walk.evaluate(node)
        return value if isinstance(value, Pointer) else None
    return None


def _element(walk: Walk, node: Node) -> Place | None:
    array, indices = child(node, "argument"), named(child(node, "indices"))
    if array is None or not indices:
        return None
    value = walk.evaluate(array)
    if isinstance(value, Record):
        return _by_operator(walk, node, value)
    index = walk.number(walk.evaluate(indices[-1]))
    return value if isinstance(value, Cell) else _row(walk.moved(value, index))


def _row(pointer: Pointer | None) -> Pointer | None:
    """What a pointer leads to: the next row, or an element."""
    if pointer is None:
        return None
    return Pointer(pointer.array, pointer.offset, pointer.unit, pointer.rows[1:])


def _by_operator(walk: Walk, node: Node, value: Record) -> Place | None:
    """An element by a class's own `operator[]`."""
    return walk.call(node, "operator[]").place if value.type in walk.program.structs else None


def _field(walk: Walk, node: Node) -> Place | None:
    name, whole = text_of(child(node, "field")), child(node, "argument")
    if whole is None:
        return None
    if any(one.type == "->" for one in node.children):
        place = walk.find("*this") if whole.type == "this" else None
        value = walk.evaluate(whole) if place is None else None
        place = value if isinstance(value, Cell | Pointer) else place
    else:
        place = walk.place(whole)
    if isinstance(place, Cell):
        return Cell(place.number, (*place.path, name))
    if isinstance(place, Pointer) and not place.rows:
        return Pointer(place.array, place.offset, place.unit, (), (*place.path, name))
    return None
