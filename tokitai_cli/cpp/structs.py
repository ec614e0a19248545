"""Members of classes, and what types stand for."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.declarations import (
    Declaration,
    Parameter,
    Struct,
    enumerators,
    marks_of,
    parameter_in,
    parameters_of,
    spelled_type,
)
from tokitai_cli.cpp.elements import sized
from tokitai_cli.cpp.tree import (
    child,
    declarator_of,
    first,
    is_function,
    name_of,
    named,
    parsed_type,
    text_of,
)

_DROPPED = frozenset(
    {"const", "volatile", "typename", "struct", "class", "register", "__restrict__"}
)
_DEEPEST = 8  # aliases of aliases, structs within structs
_TYPES = frozenset({"type_identifier", "qualified_identifier", "template_type"})
_ACCESSORS = {f"{front}PackedTensorAccessor{bits}": bits
              for front in ("", "Generic") for bits in ("", "32", "64")}  # fmt: skip

#: Types of parameters that are textures.
TEXTURE_OBJECTS = frozenset({"cudaTextureObject_t", "hipTextureObject_t"})


class _Types(Protocol):
    structs: dict[str, Struct]
    aliases: dict[str, str]


def read_struct(node: Node, name: str, declaration: Declaration) -> Struct:
    """The members of a class's definition."""
    own = name_of(child(node, "name"))
    struct = Struct(name, declaration, (), [], {}, {}, own.arguments, hidden=_hides(node))
    for one in named(node):
        if one.type == "base_class_clause":
            struct.bases = tuple(text_of(inner) for inner in named(one) if inner.type in _TYPES)
    struct.union = node.type == "union_specifier"
    for one in named(child(node, "body")):
        _add_member(struct, one)
    return struct


def _add_member(struct: Struct, member: Node) -> None:
    while member.type == "template_declaration" and named(member):
        member = named(member)[-1]
    if member.type == "function_definition":
        _method(struct, member)
    elif member.type in {"alias_declaration", "type_definition"}:
        struct.aliases |= dict(alias_of(member))
    elif member.type == "field_declaration":
        _fields(struct, member)
    elif member.type == "enum_specifier":
        struct.values |= dict(enumerators(member))
    elif member.type == "ERROR":
        struct.unread = struct.unread or "a member could not be read"


def _hides(node: Node) -> bool:
    """Whether a class has members that others cannot name, or may have."""
    words = {text_of(one) for one in named(child(node, "body")) if one.type == "access_specifier"}
    return node.type == "class_specifier" or bool(words & {"private", "protected"})


def _method(struct: Struct, node: Node) -> None:
    own = declarator_of(child(node, "declarator")).name
    name = text_of(own).replace("operator ", "operator").replace(" ", "")
    new = Declaration("function", name, (), node, node, (), parameters_of(node), [])
    struct.methods.setdefault(name, []).append(new)


def _fields(struct: Struct, node: Node) -> None:
    kind = child(node, "type")
    declarators = node.children_by_field_name("declarator")
    if "static" in marks_of(node):  # no part of an object
        value = child(node, "default_value")
        if value is not None and len(declarators) == 1:
            struct.values[text_of(declarator_of(declarators[0]).name)] = text_of(value)
        return
    if kind is not None and kind.type == "enum_specifier":
        struct.values |= dict(enumerators(kind))
    own = kind is not None and child(kind, "body") is not None and child(kind, "name") is None
    if own and kind is not None and not declarators:
        _add_nameless(struct, kind)
    for one in declarators:
        if is_function(one):
            continue
        told = parameter_in(node, one)
        if own:
            told = msgspec.structs.replace(told, type=member_class(struct.name, node))
        if first(one, "function_declarator") is not None:
            struct.unread = struct.unread or f"`{told.name}` is a pointer to a function"
            told = msgspec.structs.replace(told, type=text_of(node))
        elif first(node, "bitfield_clause") is not None:
            struct.unread = struct.unread or f"`{told.name}` is a bit-field"
        struct.fields.append(told)


def _add_nameless(struct: Struct, kind: Node) -> None:
    """A class without a name within another: its members are the outer one's."""
    if kind.type == "enum_specifier":
        return
    inner = read_struct(kind, struct.name, struct.declaration)
    struct.fields += inner.fields[:1] if inner.union else inner.fields
    struct.overlaid = struct.overlaid or inner.union or inner.overlaid
    struct.unread = struct.unread or inner.unread


def member_class(outer: str, member: Node) -> str:
    """What a class without a name goes by that a member of another one is of: `Outer.member`."""
    declarator = child(member, "declarator")
    name = text_of(declarator_of(declarator).name)
    return f"{outer}.{name}" if name else ""


def alias_of(node: Node) -> Iterator[tuple[str, str]]:
    """Names that a `using` or `typedef` gives, and what each stands for; "?" for what is no type's name.

    A class without a name that a pointer's typedef defines goes by that name.
    """
    kind = child(node, "type")
    if node.type == "alias_declaration":
        inner = first(kind, "abstract_function_declarator") is not None
        yield text_of(child(node, "name")), "?" if inner else text_of(kind)
        return
    for one in node.children_by_field_name("declarator"):
        told = declarator_of(one)
        name = text_of(told.name)
        if first(one, "function_declarator") is not None:
            yield name, "?"
            continue
        extents = "".join(f"[{text_of(extent)}]" for extent in told.extents)
        yield name, (spelled_type(node) or name) + "*" * told.pointers + extents


@functools.lru_cache(maxsize=1 << 12)
def bare(spelled: str) -> str:
    """A type without qualifiers and scopes."""
    words = [one for one in spelled.replace("&", " ").split() if one not in _DROPPED]
    text = " ".join(words)
    head, mark, rest = text.partition("<")
    return head.rpartition("::")[2].strip() + mark + rest


def resolved(types: _Types, spelled: str, struct: str = "") -> str:
    """A type with the program's aliases put in; those of a struct and of its bases first."""
    key = bare(spelled)
    for _ in range(_DEEPEST):
        told = _member_alias(types, key, struct) if struct else None
        if told is None:
            own = key not in types.structs and types.aliases.get(key, key) != key
            told = types.aliases[key] if own else None
        if told is None:
            return key
        key = bare(told)
    return key


def _member_alias(types: _Types, key: str, struct: str) -> str | None:
    waiting, seen = [struct], set[str]()
    while waiting and len(seen) < _DEEPEST:
        here = types.structs.get(waiting.pop(0))
        if here is None or here.name in seen:
            continue
        seen.add(here.name)
        if key in here.aliases:
            return here.aliases[key]
        waiting += here.base_names
    return None


def layout(
    types: _Types, name: str, path: str = "", depth: int = _DEEPEST
) -> list[tuple[str, Parameter]] | None:
    """Fields of a struct, its bases' first and nested structs unfolded, by their paths.

    None for a name that is no struct of the program's.
    """
    struct = types.structs.get(name)
    if struct is None or not depth:
        return None
    found: list[tuple[str, Parameter]] = []
    for base in struct.base_names:
        found += layout(types, resolved(types, base), path, depth - 1) or []
    for one in struct.fields:
        kind = resolved(types, one.type, name)
        plain = not one.pointers and not one.extents
        inner = layout(types, kind, f"{path}{one.name}.", depth - 1) if plain else None
        found += inner or [(path + one.name, one)]
    return found


def size_of(types: _Types, spelled: str) -> int | None:
    """Bytes of a number, a vector or a pointer, or of a struct of such; None where it is not known."""
    if spelled.rstrip().endswith("*"):
        return 8
    kind = resolved(types, spelled)
    if (known := sized(kind)) is not None:
        return known
    fields = layout(types, kind)
    if not fields:
        return None
    total = 0
    for _, one in fields:
        size = 8 if one.pointers else sized(resolved(types, one.type, kind))
        if size is None or not all(extent.isdigit() for extent in one.extents):
            return None
        for extent in one.extents:
            size *= int(extent)
        total += size
    return total


class TensorAccessor(NamedTuple):
    """A view of a tensor that is passed by value: PyTorch's, or a program's that took it from there."""

    element: str
    dimensions: int
    #: The type of its sizes.
    size_type: str


@functools.lru_cache(maxsize=1 << 10)
def accessor_of(spelled: str) -> TensorAccessor | None:
    """What a type says of a tensor accessor; None for another type."""
    name = name_of(parsed_type(spelled) if "PackedTensorAccessor" in spelled else None)
    if name.last not in _ACCESSORS or not name.arguments or len(name.arguments) < 2:
        return None
    element, dimensions, *more = name.arguments
    if not dimensions.isdigit():
        return None
    told = {"32": "int32_t", "64": "int64_t"}.get(_ACCESSORS[name.last])
    return TensorAccessor(element, int(dimensions), told or (more[1:] or ["int64_t"])[0])


def texture_of(spelled: str) -> tuple[str, tuple[str, ...]]:
    """Of `texture<float4, 2>` the type of a texel, and the other arguments; "" for another type."""
    name = name_of(parsed_type(spelled) if "texture" in spelled else None)
    if name.last != "texture" or not name.arguments:
        return "", ()
    return name.arguments[0], tuple(name.arguments[1:])
