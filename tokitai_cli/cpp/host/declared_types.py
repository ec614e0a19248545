"""Types of what the host writes: of its variables as they are declared, of casts, calls and literals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tree_sitter import Node

from tokitai_cli.cpp.body.symbolic_values import Cell
from tokitai_cli.cpp.declarations import Declaration, Parameter
from tokitai_cli.cpp.host.spelling import element_of, parts, plain, with_names, words_of
from tokitai_cli.cpp.structs import resolved
from tokitai_cli.cpp.tree import child, declarator_of, name_of, named, text_of

if TYPE_CHECKING:
    from tokitai_cli.cpp.host.host_walk import HostWalk

_RANKS = ("bool", "char", "short", "int", "unsigned", "long", "size_t", "float", "double")
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!=", "&&", "||"})
_CAST = "_cast"
_HOLDS = frozenset(
    {"data", "get", "begin", "raw_pointer_cast", "to_address"}
)  # gives a pointer to elements


def type_of(walk: HostWalk, node: Node | None) -> str:
    """The type of an expression as it is declared somewhere; empty where nothing says it."""
    if node is None:
        return ""
    read = _READERS.get(node.type)
    return with_names(plain(read(walk, node)), walk.types) if read is not None else ""


def _inner(walk: HostWalk, node: Node) -> str:
    parts_inside = named(node)
    return type_of(walk, parts_inside[0]) if parts_inside else ""


def _number(walk: HostWalk, node: Node) -> str:
    del walk
    text = text_of(node)
    if text[:2] in {"0x", "0X"} or not {*text} & {*".eE"}:
        unsigned, long = {*text} & {*"uU"}, {*text} & {*"lL"}
        return (
            "size_t" if unsigned and long else "unsigned" if unsigned else "long" if long else "int"
        )
    return "float" if text[-1] in "fF" else "double"


def _named(walk: HostWalk, node: Node) -> str:
    name = text_of(node)
    place = walk.find(name)
    if isinstance(place, Cell) and place.number in walk.kinds and not place.path:
        return walk.kinds[place.number]
    if isinstance(place, Cell) and place.path:
        return _field_type(walk, walk.kinds.get(place.number, ""), place.path[-1])
    own = _field_type(walk, walk.owner, name) if walk.owner else ""
    return own or _of_variable(walk, name)


def _of_variable(walk: HostWalk, name: str) -> str:
    """The type of a variable at namespace scope."""
    for one in walk.program.by_name.get(name, ()):
        if one.kind == "variable":
            for declarator in one.node.children_by_field_name("declarator"):
                inner = child(declarator, "declarator") or declarator
                told = declarator_of(declarator if declarator.type != "init_declarator" else inner)
                if text_of(told.name) == name:
                    stars = "*" * (told.pointers + len(told.extents))
                    return text_of(child(one.node, "type")) + stars
    return ""


def _field(walk: HostWalk, node: Node) -> str:
    return _field_type(walk, type_of(walk, child(node, "argument")), text_of(child(node, "field")))


def _field_type(walk: HostWalk, whole: str, name: str) -> str:
    """The type of a member of a class, the class's own template arguments put in."""
    known = parts(plain(whole))
    struct = walk.program.structs.get(resolved(walk.program, known.last))
    if struct is None:
        return ""
    for one in struct.fields:
        if one.name == name:
            told = one.type + "*" * (one.pointers + len(one.extents))
            return with_names(told, _given(struct.declaration.template, known.arguments or ()))
    return ""


def _given(template: Sequence[Parameter], arguments: Sequence[str]) -> dict[str, str]:
    return {one.name: told for one, told in zip(template, arguments, strict=False)}


def _cast(walk: HostWalk, node: Node) -> str:
    del walk
    told = child(node, "type")
    return text_of(told)


def _pointer(walk: HostWalk, node: Node) -> str:
    inner = type_of(walk, child(node, "argument"))
    if not inner:
        return ""
    return f"{inner}*" if text_of(node)[0] == "&" else element_of(inner)


def _element(walk: HostWalk, node: Node) -> str:
    return element_of(type_of(walk, child(node, "argument")))


def _binary(walk: HostWalk, node: Node) -> str:
    if text_of(child(node, "operator")) in _COMPARISONS:
        return "bool"
    left, right = type_of(walk, child(node, "left")), type_of(walk, child(node, "right"))
    if left.endswith("*") or not right:
        return left
    if right.endswith("*") or not left:
        return right
    ranks = [_RANKS.index(one) if one in _RANKS else -1 for one in (left, right)]
    return left if ranks[0] >= ranks[1] or min(ranks) < 0 else right


def _conditional(walk: HostWalk, node: Node) -> str:
    return type_of(walk, child(node, "consequence")) or type_of(walk, child(node, "alternative"))


def _made(walk: HostWalk, node: Node) -> str:
    del walk
    return text_of(child(node, "type"))


def _new(walk: HostWalk, node: Node) -> str:
    return _made(walk, node) + "*"


def _call(walk: HostWalk, node: Node) -> str:
    """What a call gives: a cast, an object by its constructor, what a function is declared to give."""
    function = child(node, "function")
    given = named(child(node, "arguments"))
    if function is None:
        return ""
    if function.type == "primitive_type":
        return text_of(function)
    whole = child(function, "argument") if function.type == "field_expression" else None
    name = name_of(child(function, "field") if whole is not None else function)
    if name.last.endswith(_CAST) and name.arguments:
        return name.arguments[0]
    if whole is not None:
        return _of_method(walk, type_of(walk, whole), name.last, name.arguments or ())
    if name.last in _HOLDS and len(given) == 1:
        return type_of(walk, given[0])
    struct = resolved(walk.program, name.last) in walk.program.structs
    functions = walk.program.functions(name.last, len(given))
    if struct or (name.scopes and not functions and not given):
        return text_of(function)
    if functions:
        return _returned(functions[0], _given(functions[0].template, name.arguments or ()))
    return f"{name.arguments[0]}*" if name.arguments and len(name.arguments) == 1 else ""


def _of_method(walk: HostWalk, whole: str, name: str, arguments: Sequence[str]) -> str:
    known = parts(plain(whole).rstrip("*"))
    struct = walk.program.structs.get(resolved(walk.program, known.last))
    methods = struct.methods.get(name, ()) if struct is not None else ()
    if struct is not None and methods:
        return _returned(methods[0], _given(struct.declaration.template, known.arguments or ()))
    if name.startswith("packed_accessor"):
        return f"{name.replace('packed_accessor', 'PackedTensorAccessor')}<{', '.join(arguments)}>"
    if len(arguments) == 1:  # x.data_ptr<float>()
        return f"{arguments[0]}*"
    return f"{element_of(whole)}*" if name in _HOLDS and element_of(whole) else ""


def _returned(function: Declaration, given: Mapping[str, str]) -> str:
    told = text_of(child(function.node, "type"))
    stars = "*" * declarator_of(child(function.node, "declarator")).pointers
    return "" if told in {"auto", ""} else with_names(told + stars, given)


_READERS: Mapping[str, Callable[[HostWalk, Node], str]] = {
    "parenthesized_expression": _inner,
    "number_literal": _number,
    "true": lambda _, __: "bool",
    "false": lambda _, __: "bool",
    "char_literal": lambda _, __: "char",
    "identifier": _named,
    "field_expression": _field,
    "cast_expression": _cast,
    "pointer_expression": _pointer,
    "subscript_expression": _element,
    "unary_expression": lambda walk, node: type_of(walk, child(node, "argument")),
    "update_expression": lambda walk, node: type_of(walk, child(node, "argument")),
    "binary_expression": _binary,
    "conditional_expression": _conditional,
    "compound_literal_expression": _made,
    "new_expression": _new,
    "call_expression": _call,
}


def deduced(
    names: Collection[str], formal: Sequence[Parameter], actual: Sequence[str]
) -> dict[str, str]:
    """What parameters of a template stand for, by the types of what a function of it is handed."""
    found: dict[str, str] = {}
    for one, told in zip(formal, actual, strict=False):
        if not told or not words_of(one.type) & {*names}:
            continue
        bare = plain(told)
        for _ in range(one.pointers + len(one.extents)):
            bare = element_of(bare)
        if one.type in names:
            found.setdefault(one.type, bare)
            continue
        own, given = parts(plain(one.type)), parts(bare)
        if own.arguments and len(own.arguments) == len(given.arguments or ()):
            for name, argument in zip(own.arguments, given.arguments or (), strict=True):
                if name in names:
                    found.setdefault(name, argument)
    return {name: told for name, told in found.items() if told}
