"""Fields of structs, and sizes of types as a C++ compiler lays them out, where the text says them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.declarations import enumerators
from tokitai_cli.cpp.source.classes import ALIAS, class_of, put_in
from tokitai_cli.cpp.source.launches import constants_of, enumerators_of
from tokitai_cli.cpp.source.macro_text import Macro, split, words_in
from tokitai_cli.cpp.source.signatures import Parameter, parameter_of
from tokitai_cli.cpp.source.types import (
    ACCESSOR,
    CLASSES,
    ELEMENTS,
    FUNCTOR,
    HEADERS,
    VECTOR,
    item_size,
    known_types,
    lanes,
    of_header,
)
from tokitai_cli.cpp.tree import declarator_of, is_function, name_of
from tokitai_cli.cpp.whole import Program

if TYPE_CHECKING:
    from tree_sitter import Node

_POINTER = (8, 8)
_WIDEST = 16  # alignment of a vector
_EXTENT = re.compile(r"\[([^\]]*)\]")
_VALUE = re.compile(r"static\s+(?:constexpr|const)\s+[\w:]+\s+(\w+)\s*=([^;]+);")


def fields_of(
    program: Program, name: str, *, guess: bool = True
) -> list[tuple[Parameter, int]] | None:
    """Fields of a struct or vector, each with its extent (0 for one that is no array).

    None where they are not all known: a template without arguments, an extent that is no number.
    guess: of an alias that has several meanings the last is taken.
    """
    vector = VECTOR.fullmatch(name)
    if vector is not None:
        kind = ELEMENTS[vector[1].replace("longlong", "long")]
        count = int(name[-1])
        return [
            (Parameter(x, vector[1], "scalar", (kind,), 0, False, ""), 0) for x in "xyzw"[:count]
        ]
    if FUNCTOR.fullmatch(name):
        return []
    if (found := class_of(program, name)) is not None:
        return _fields(program, *found, guess)
    head, _, given = of_header(name).removesuffix(">").partition("<")
    if told := HEADERS.get(head):
        put = dict(zip("TU", split(given), strict=False))
        types = known_types(program, guess=guess)
        return [(parameter_of(f"{put_in(kind, put)} {one}", one, types), 0) for one, kind in told]
    if (guess or "::" in name) and (accessor := accessor_of(name)) is not None:
        element, dims, index = accessor
        return [
            (parameter_of(f"{element}* data_", "data_", known_types(program)), 0),
            *((parameter_of(f"{index} {one}", one), dims) for one in ("sizes_", "strides_")),
        ]
    return None


def certain_fields(program: Program, name: str) -> dict[str, Parameter] | None:
    """Fields of a struct by name; None where its text leaves any doubt which it has."""
    plain = name.partition("<")[0].strip().rpartition("::")[2]
    classes = [
        (path, piece)
        for path, pieces in program.pieces.items()
        for piece in pieces
        if piece.kind == "class" and plain in piece.names
    ]
    for path, piece in classes:
        parted = program.texts[path].is_parted(piece.begin, piece.end)
        pointers = re.search(r"\(\s*\*", piece.plain)  # to functions
        if len(classes) > 1 or parted or pointers:
            return None
    fields = fields_of(program, name, guess=False)
    return None if not fields else {field.name: field for field, _ in fields}


def members_of(program: Program, name: str) -> dict[str, str]:
    """Numbers that a class, its template's arguments put in, has as static members."""
    found = class_of(program, name)
    if found is None:
        return {}
    node, text, bound = found
    told = dict(enumerators(node))
    told |= {one[1]: one[2] for one in _VALUE.finditer(text[node.start_byte : node.end_byte])}
    known = constants_of(program) | told | bound
    values = {one: constant(value, known, program.macros) for one, value in told.items()}
    return {one: str(number) for one, number in values.items() if number}


def hides_fields(program: Program, name: str) -> bool:
    """Whether a class, an alias of one or a base of it may have fields that others cannot name."""
    every = [one for pieces in program.pieces.values() for one in pieces]
    known: set[str] = set()
    waiting = words_in(name)
    while new := waiting - known:
        known |= new
        for piece in every:
            if piece.kind in {"class", "type"} and piece.names & new:
                text = (piece.node.text or b"").decode()
                if piece.kind == "class" and re.search(
                    r"^\s*class\b|\b(?:private|protected)\s*:", text
                ):
                    return True
                waiting |= words_in(text.partition("{")[0])
    return False


def accessor_of(name: str) -> tuple[str, int, str] | None:
    """Of one of PyTorch's tensor accessors: its element, its dimensions, the type of its sizes."""
    match = ACCESSOR.fullmatch(name)
    element, dims, *more = split(match[2]) if match is not None else ("", "")
    if match is None or not dims.isdigit():
        return None
    told = {"32": "int32_t", "64": "int64_t"}.get(match[1]) or (more[1:] or ["int64_t"])[0]
    return element, int(dims), told


def _fields(
    program: Program, node: Node, text: str, bound: Mapping[str, str], guess: bool
) -> list[tuple[Parameter, int]] | None:
    """bound: what stands for the template's parameters."""
    body = node.child_by_field_name("body")
    for child in node.children if body is None else ():
        body = body or child.child_by_field_name("body")
    if body is None or body.has_error:
        return None
    found: list[tuple[Parameter, int]] = []
    for one in (body.parent or node).children:
        for base in one.named_children if one.type == "base_class_clause" else ():
            above = fields_of(program, text[base.start_byte : base.end_byte], guess=guess)
            if above is None and base.type != "access_specifier":
                return None
            found += above or []
    types, constants, put = (
        known_types(program, guess=guess),
        {**constants_of(program), **enumerators_of(program), **bound},
        dict(bound),
    )
    for member in body.named_children:
        whole = text[member.start_byte : member.end_byte].strip()
        if alias := ALIAS.fullmatch(whole):
            put[alias[1] or alias[4]] = put_in(alias[2] or alias[3], put).strip()
        if value := _VALUE.fullmatch(whole):
            constants[value[1]] = value[2]
        constants.update(enumerators(member))
        for front, name, whole in _members(member, text):
            declared = f"{put_in(front, put)} {whole}"  # an alias may be of an array
            extent = _elements(declared, constants, program.macros)
            found.append((parameter_of(_EXTENT.sub("", declared), name, types), extent))
    return None if any(extent < 0 for _, extent in found) else found


def _members(member: Node, text: str) -> Iterator[tuple[str, str, str]]:
    """Type, name and declarator of each field of a declaration."""
    declarators = member.children_by_field_name("declarator")
    functions = any(map(is_function, declarators))
    front = text[member.start_byte : declarators[0].start_byte] if declarators else ""
    if not declarators and re.match(r"(?:union|struct|class)\s*\{", text[member.start_byte :]):
        yield "", "", "[]"  # its members are the outer one's
    if member.type != "field_declaration" or functions or re.search(r"\bstatic\b", front):
        return
    for one in declarators:
        yield front, name_of(declarator_of(one).name).last, text[one.start_byte : one.end_byte]


def _elements(declared: str, constants: Mapping[str, str], macros: Mapping[str, Macro]) -> int:
    """Elements of what is declared with extents: 0 without any, -1 where one is no number."""
    counts = [constant(one, constants, macros) or 0 for one in _EXTENT.findall(declared)]
    return -1 if 0 in counts else math.prod(counts) if counts else 0


def bytes_of(program: Program, parameter: Parameter) -> tuple[int, int] | None:
    """Bytes and alignment of what a parameter or field is, of a pointer to structs those of a struct.

    None where it is not known.
    """
    if parameter.pointers and parameter.kind != "structs":
        return _POINTER
    if parameter.kind in {"struct", "structs"} and lanes(parameter.type) == 1:
        return _struct(program, parameter.type)
    if not parameter.dtypes:
        return None
    count = lanes(parameter.type)
    single = item_size(parameter.dtypes[0])
    aligned = single if count == 3 else single * count
    return single * count, min(aligned, _WIDEST)


def _struct(program: Program, name: str) -> tuple[int, int] | None:
    if size := CLASSES.get(of_header(name)):
        return size, size
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
