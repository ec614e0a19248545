"""Initialisers, and what is handed to where the walk does not follow."""

from __future__ import annotations

from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import constant
from tokitai_cli.cpp.body.symbolic_values import Cell, Pointer, Record, Value, lanes
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.elements import is_vector, sized
from tokitai_cli.cpp.structs import bare, resolved
from tokitai_cli.cpp.tree import child, first, named, text_of

_MAY_BE_ELEMENTS = frozenset(
    {"identifier", "subscript_expression", "pointer_expression", "field_expression"}
    | {"parenthesized_expression"}
)


def initial(walk: Walk, node: Node | None, type_text: str = "") -> Value:
    """The value of an initialiser of that type, a list's too."""
    if node is None or node.type not in {"initializer_list", "argument_list"}:
        return walk.evaluate(node)
    parts = named(node)
    if parts and parts[0].type == "initializer_pair":
        return _designated(walk, parts, type_text)
    if _has_constructor(walk, type_text):
        return made(
            walk, [hand_over(walk, one, "goes to a constructor") for one in parts], type_text
        )
    return made(walk, [initial(walk, one) for one in parts], type_text)


def _has_constructor(walk: Walk, type_text: str) -> bool:
    """Whether an object of that type may take references to what it is made of."""
    kind = resolved(walk.program, type_text)
    struct = walk.program.structs.get(kind)
    if struct is not None:
        return kind in struct.methods or bool(struct.bases)
    return bool(kind) and sized(kind) is None and kind not in {"auto", "dim3"} and "*" not in kind


def hand_over(walk: Walk, node: Node, why: str) -> Value:
    """The value of what goes where the walk does not follow, as a copy or as a reference."""
    if node.type in _MAY_BE_ELEMENTS:
        place = walk.place(node)
        if isinstance(place, Pointer) and not place.rows:
            walk.lend(place, why)
            return walk.fresh("?")
        if isinstance(place, Cell) and isinstance(walk.load(place), Pointer):
            walk.escape(walk.load(place), why)
    value = walk.evaluate(node)
    walk.escape(value, why)
    return value


def _designated(walk: Walk, parts: list[Node], type_text: str) -> Value:
    pairs = tuple(
        (text_of(first(one, "field_identifier")), initial(walk, child(one, "value")))
        for one in parts if one.type == "initializer_pair"
    )  # fmt: skip
    return Record("", resolved(walk.program, type_text), pairs)


def made(walk: Walk, values: list[Value], type_text: str) -> Value:
    """An object of that type of values between its braces or parentheses."""
    kind = resolved(walk.program, type_text)
    if is_vector(kind) or kind == "dim3":
        rest = [constant(1)] * (3 - len(values)) if kind == "dim3" else []
        return Record("", kind, lanes([*values, *rest]))
    struct = walk.program.structs.get(kind)
    if struct is not None:
        own = kind in struct.methods
        if struct.fields and not own and not struct.bases:
            return Record(
                "", kind, tuple(zip((one.name for one in struct.fields), values, strict=False))
            )
        for one in values:
            walk.escape(one, "goes to a constructor")
        return Record(str(walk.fresh("object")), kind)
    if len(values) == 1 and (sized(bare(type_text)) is not None or bare(type_text) in {"", "auto"}):
        return values[0]
    if not values:
        return constant(0)
    for one in values:
        walk.escape(one, "goes to a constructor" if len(values) == 1 else "is one of a list")
    return values[0] if len(values) == 1 else walk.fresh("list")
