"""Fields of structs, and sizes of types as a C++ compiler lays them out, where the text says them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tokitai_cli.kernel_source.launches import constants_of
from tokitai_cli.kernel_source.pieces import leaf
from tokitai_cli.kernel_source.signatures import Parameter, parameter_of
from tokitai_cli.kernel_source.take import Program
from tokitai_cli.kernel_source.types import ELEMENTS, VECTOR, Types, lanes

if TYPE_CHECKING:
    from tree_sitter import Node

_POINTER = (8, 8)
_WIDEST = 16  # alignment of a vector
_DEPTH = 4  # of constants put in


def fields_of(program: Program, name: str) -> list[tuple[Parameter, int]] | None:
    """Fields of a struct or vector, each with its extent (0 for one that is no array).

    None where they are not all known: a template, a base class, an extent that is no number.
    """
    vector = VECTOR.fullmatch(name)
    types = Types(program)
    if vector is not None:
        kind = ELEMENTS[vector[1].replace("longlong", "long")]
        count = int(name[-1])
        return [
            (Parameter(x, vector[1], "scalar", (kind,), 0, False, ""), 0) for x in "xyzw"[:count]
        ]
    for path, pieces in program.pieces.items():
        for piece in pieces:
            if piece.kind == "class" and name in piece.names:
                constants = constants_of(program)
                return _fields(piece.node, program.texts[path].parsed, types, constants)
    return None


def _fields(
    node: Node, text: str, types: Types, constants: Mapping[str, str]
) -> list[tuple[Parameter, int]] | None:
    body = node.child_by_field_name("body")
    for child in node.children if body is None else ():
        body = body or child.child_by_field_name("body")
    if (
        body is None
        or body.has_error
        or (node.parent and node.parent.type == "template_declaration")
    ):
        return None
    if any(one.type == "base_class_clause" for one in (body.parent or node).children):
        return None
    found: list[tuple[Parameter, int]] = []
    for member in body.named_children:
        declarators = member.children_by_field_name("declarator")
        if member.type != "field_declaration" or any(
            d.type == "function_declarator" for d in declarators
        ):
            continue
        front = text[member.start_byte : declarators[0].start_byte] if declarators else "?"
        if not declarators or re.search(r"\bstatic\b", front):
            continue
        for one in declarators:
            whole = text[one.start_byte : one.end_byte]
            counts = [_count(one, constants) for one in re.findall(r"\[([^\]]*)\]", whole)]
            if 0 in counts:
                return None
            name = next(leaf(one), "")
            bare = re.sub(r"\[[^\]]*\]", "", whole)
            known = parameter_of(f"{front} {bare}", name, types)
            found.append((known, math.prod(counts) if counts else 0))
    return found


def _count(text: str, constants: Mapping[str, str]) -> int:
    """Value of an array's extent; 0 where it is no number."""
    for _ in range(_DEPTH):
        text = re.sub(r"[A-Za-z_]\w*", lambda one: f"({constants.get(one[0], one[0])})", text)
        text = re.sub(r"\(\s*(\d+)\s*\)", r"\1", text)
    if not re.fullmatch(r"\s*\d+(?:\s*[+*]\s*\d+)*\s*", text):
        return 0
    return sum(math.prod(int(one) for one in part.split("*")) for part in text.split("+"))


def bytes_of(program: Program, one: Parameter) -> tuple[int, int] | None:
    """Bytes and alignment of what a parameter or field is, of a pointer to structs those of a struct.

    None where it is not known.
    """
    if one.pointers and one.kind != "structs":
        return _POINTER
    if one.kind in {"struct", "structs"} and lanes(one.type) == 1:
        return _struct(program, one.type)
    if not one.dtypes:
        return None
    bits = re.search(r"\d+", one.dtypes[0])
    single = int(bits[0]) // 8 if bits else 1
    count = lanes(one.type)
    aligned = single if count == 3 else single * count
    return single * count, min(aligned, _WIDEST)


def _struct(program: Program, name: str) -> tuple[int, int] | None:
    fields = fields_of(program, name)
    if not fields:
        return None
    size, widest = 0, 1
    for field, extent in fields:
        pointer = field.pointers or field.kind == "structs"
        known = _POINTER if pointer else bytes_of(program, field)
        if known is None:
            return None
        size = -(-size // known[1]) * known[1] + known[0] * max(1, extent)
        widest = max(widest, known[1])
    return -(-size // widest) * widest, widest
