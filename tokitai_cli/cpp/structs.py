"""Members of classes, and what types stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from tree_sitter import Node

from tokitai_cli.cpp.declarations import Declaration, Parameter, Struct, parameters_of
from tokitai_cli.cpp.tree import (
    TYPE_SPECIFIERS,
    child,
    declarator_of,
    is_function,
    name_of,
    named,
    text_of,
)

_DROPPED = frozenset(
    {"const", "volatile", "typename", "struct", "class", "register", "__restrict__"}
)
_DEEPEST = 8  # aliases of aliases, structs within structs
_TYPES = frozenset({"type_identifier", "qualified_identifier", "template_type"})
#: Bytes of the types that indices and vectors are made of.
SIZES: Mapping[str, int] = {
    **dict.fromkeys(("char", "signed char", "bool", "int8_t", "uint8_t", "unsigned char", "uchar"), 1),
    **dict.fromkeys(("half", "__half", "_Float16", "__nv_bfloat16", "nv_bfloat16"), 2),
    **dict.fromkeys(("__hip_bfloat16", "hip_bfloat16", "short", "unsigned short", "ushort"), 2),
    **dict.fromkeys(("int16_t", "uint16_t", "short int"), 2),
    **dict.fromkeys(("half2", "__half2", "__nv_bfloat162", "nv_bfloat162", "float", "int"), 4),
    **dict.fromkeys(("unsigned", "unsigned int", "uint", "int32_t", "uint32_t", "signed"), 4),
    **dict.fromkeys(("double", "int64_t", "uint64_t", "long", "unsigned long", "long long"), 8),
    **dict.fromkeys(("unsigned long long", "size_t", "ptrdiff_t", "intptr_t", "uintptr_t"), 8),
    **dict.fromkeys(("long int", "long long int", "unsigned long int", "ulong", "ssize_t"), 8),
    **{f"{kind}{lanes}": size * lanes
       for kind, size in (("char", 1), ("uchar", 1), ("short", 2), ("ushort", 2), ("int", 4),
                          ("uint", 4), ("float", 4), ("long", 8), ("ulong", 8), ("longlong", 8),
                          ("double", 8))
       for lanes in (1, 2, 3, 4)},
}  # fmt: skip
#: Vectors whose lanes are x, y, z, w.
VECTORS = frozenset(
    name for name in SIZES if name[-1] in "1234" and name[:-1].removeprefix("u") in
    {"char", "short", "int", "float", "long", "longlong", "double"}
) | {"half2", "__half2"}  # fmt: skip


#: Types of numbers that are no whole ones.
REALS = frozenset({"float", "double", "long double", "half", "__half", "_Float16"}) | frozenset(
    {"__nv_bfloat16", "nv_bfloat16", "__hip_bfloat16", "hip_bfloat16"}
)
#: Views of tensors that are passed by value: PyTorch's, and those of programs that took them from there.
ACCESSOR = re.compile(
    r"(?:Generic)?PackedTensorAccessor(?:32|64|)\s*<\s*(?P<element>[^,<>]+),\s*(?P<dimensions>\d+)\b.*>"
)


class _Types(Protocol):
    structs: dict[str, Struct]
    aliases: dict[str, str]


def read_struct(node: Node, name: str, declaration: Declaration) -> Struct:
    """The members of a class's definition."""
    struct = Struct(name, declaration, (), [], {}, {})
    for one in named(node):
        if one.type == "base_class_clause":
            struct.bases = tuple(
                name_of(inner).last for inner in named(one) if inner.type in _TYPES
            )
    for one in named(child(node, "body")):
        member = one
        while member.type == "template_declaration" and named(member):
            member = named(member)[-1]
        if member.type == "function_definition":
            _method(struct, member)
        elif member.type in {"alias_declaration", "type_definition"}:
            own = child(member, "name") or declarator_of(child(member, "declarator")).name
            struct.aliases[text_of(own)] = text_of(child(member, "type"))
        elif member.type == "field_declaration":
            _fields(struct, member)
    return struct


def _method(struct: Struct, node: Node) -> None:
    own = declarator_of(child(node, "declarator")).name
    name = text_of(own).replace("operator ", "operator").replace(" ", "")
    new = Declaration("function", name, (), node, node, (), parameters_of(node), [])
    struct.methods.setdefault(name, []).append(new)


def _fields(struct: Struct, node: Node) -> None:
    kind = child(node, "type")
    if "static" in text_of(node).split("=")[0].split():
        return  # no part of an object
    nested = kind is not None and kind.type in TYPE_SPECIFIERS
    spelled = name_of(child(kind, "name")).last if nested else text_of(kind)
    front = text_of(node).partition("*")[0].split()
    for one in node.children_by_field_name("declarator"):
        if is_function(one):
            continue
        told = declarator_of(one)
        extents = () if told.of_pointers else tuple(text_of(extent) for extent in told.extents)
        default = text_of(child(node, "default_value"))
        pointers = told.pointers + told.of_pointers
        struct.fields.append(
            Parameter(text_of(told.name), spelled, pointers, told.reference, extents, default,
                      "const" in front)
        )  # fmt: skip


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
        waiting += here.bases
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
    for base in struct.bases:
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
    if kind in SIZES:
        return SIZES[kind]
    fields = layout(types, kind)
    if not fields:
        return None
    total = 0
    for _, one in fields:
        size = 8 if one.pointers else SIZES.get(resolved(types, one.type, kind))
        if size is None or not all(extent.isdigit() for extent in one.extents):
            return None
        for extent in one.extents:
            size *= int(extent)
        total += size
    return total
