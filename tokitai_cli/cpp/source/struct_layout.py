"""Fields of structs, and sizes of types as a C++ compiler lays them out, where the text says them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.declarations import Declaration
from tokitai_cli.cpp.elements import VECTORS, dtypes_of, lanes
from tokitai_cli.cpp.lexing import names_in, put_in
from tokitai_cli.cpp.program import Program as Tree
from tokitai_cli.cpp.source.classes import KnownClass, aliases_in, class_of
from tokitai_cli.cpp.source.signatures import Parameter, bindable, parameter_of
from tokitai_cli.cpp.source.types import (
    CLASSES,
    HEADERS,
    generator_bytes,
    is_functor,
    known_types,
    of_header,
)
from tokitai_cli.cpp.structs import accessor_of, alias_of
from tokitai_cli.cpp.tree import first, parsed_name
from tokitai_cli.cpp.whole import Program

_POINTER = (8, 8)
_WIDEST = 16  # alignment of a vector
_DEEPEST = 16  # bases of bases

Fields = list[tuple[Parameter, int]]


class UnboundError(Exception):
    """Why fields of a struct are not all known."""


def fields_of(program: Program, name: str, *, guess: bool = True) -> Fields | None:
    """Fields of a struct or vector, each with its extent (0 for one that is no array).

    None where they are not all known: a template without arguments, an extent that is no number.
    guess: of an alias that has several meanings the last is taken.
    """
    try:
        fields = _fields_of(program, name, guess)
        return fields[:1] if is_union(program, name) else fields
    except UnboundError:
        return None


def why_unbound(program: Program, name: str) -> str:
    """Why fields of a struct are not all known; empty where they are."""
    try:
        _fields_of(program, name, True)
    except UnboundError as error:
        return str(error)
    return ""


def _fields_of(program: Program, name: str, guess: bool, depth: int = _DEEPEST) -> Fields:
    if name in VECTORS:
        scalar, count = VECTORS[name]
        kind = dtypes_of(scalar)
        return [(Parameter(x, scalar, "scalar", kind, 0, False, ""), 0) for x in "xyzw"[:count]]
    if is_functor(name):
        return []
    found = class_of(program, name)
    if found is not None:
        return _of_class(program, found, guess, depth)
    types = known_types(program, guess=guess)
    library = parsed_name(name.removeprefix("thrust::"))
    if (told := HEADERS.get(library.last)) and not library.scopes:
        put = dict(zip("TU", library.arguments or (), strict=False))
        return [(parameter_of(f"{put_in(kind, put)} {one}", one, types), 0) for one, kind in told]
    if (guess or "::" in name) and (accessor := accessor_of(name)) is not None:
        return [
            (parameter_of(f"{accessor.element}* data_", "data_", types), 0),
            *((parameter_of(f"{accessor.size_type} {one}", one), accessor.dimensions)
              for one in ("sizes_", "strides_")),
        ]  # fmt: skip
    raise UnboundError(f"{name} is not defined in what was read")


def _of_class(program: Program, found: KnownClass, guess: bool, depth: int) -> Fields:
    struct = found.struct
    if struct.unread or not depth:
        raise UnboundError(struct.unread or "it is derived of itself")
    put = aliases_in(struct, found.bound)
    fields: Fields = []
    for base in struct.bases:
        fields += _fields_of(program, put_in(base, put), guess, depth - 1)
    types = known_types(program, guess=guess)
    values = {**struct.values, **found.bound}
    for one in struct.fields:
        if one.reference:
            raise UnboundError(f"`{one.name}` is a reference")
        spelled = put_in(one.type, put)
        kind, opened, rest = (types.resolved(spelled, {}) or spelled).partition("[")
        inner = rest.removesuffix("]").split("][") if opened else []  # an alias of an array
        extents = one.pointer_extents or (() if one.pointers else (*one.extents, *inner))
        count = _elements(extents, values, found)
        pointers = one.pointers - bool(one.pointer_extents)
        plain = msgspec.structs.replace(one, type=kind, pointers=pointers, extents=(), default="")
        fields.append((bindable(plain, types), count))
    return fields


def is_union(program: Program, name: str) -> bool:
    """Whether a name is of a union."""
    found = class_of(program, name)
    return found is not None and found.struct.union


def _elements(extents: Sequence[str], values: Mapping[str, str], found: KnownClass) -> int:
    """Elements of what is declared with extents: 0 without any."""
    counts = [constant(one, values, None, found.tree) or 0 for one in extents]
    if 0 in counts:
        raise UnboundError(f"its extent `{extents[counts.index(0)]}` is not a known number")
    return math.prod(counts) if counts else 0


def certain_fields(program: Program, name: str) -> dict[str, Parameter] | None:
    """Fields of a struct by name; None where its text leaves any doubt which it has."""
    plain = name.partition("<")[0].strip().rpartition("::")[2]
    known = [
        (source, one)
        for source in program.sources
        for one in source.tree.by_name.get(plain, ())
        if one.kind in {"type", "forward"}
    ]
    for source, one in known:
        parted = source.is_parted(one.node.start_byte, one.node.end_byte)
        if len(known) > 1 or parted or first(one.node, "abstract_function_declarator"):
            return None
    fields = None if _shares_bytes(program, name) else fields_of(program, name, guess=False)
    if not fields or any(field.kind == "unknown" for field, _ in fields):
        return None
    return {field.name: field for field, _ in fields}


def members_of(program: Program, name: str) -> dict[str, str]:
    """Numbers that a class, its template's arguments put in, has as static members."""
    found = class_of(program, name)
    if found is None:
        return {}
    told = found.struct.values
    known = told | found.bound
    values = {one: constant(value, known, None, found.tree) for one, value in told.items()}
    return {one: str(number) for one, number in values.items() if number}


def hides_fields(program: Program, name: str) -> bool:
    """Whether a class, an alias of one or a base of it may have fields that others cannot name."""
    known: set[str] = set()
    waiting = set(names_in(name))
    while new := waiting - known:
        known |= new
        waiting = set[str]()
        for one in _declared(program, new):
            for struct in one[0].classes.get(one[1].name, ()) if one[1].kind == "type" else ():
                if struct.hidden:
                    return True
                waiting |= {word for base in struct.bases for word in names_in(base)}
            for _, told in alias_of(one[1].node) if one[1].kind == "alias" else ():
                waiting |= set(names_in(told))
    return False


def _declared(program: Program, names: set[str]) -> Iterator[tuple[Tree, Declaration]]:
    for tree in program.trees:
        for name in names:
            yield from ((tree, one) for one in tree.by_name.get(name, ()))


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
    single = DTYPES[parameter.dtypes[0]].nbytes
    aligned = single if count == 3 else single * count
    return single * count, min(aligned, _WIDEST)


def _struct(program: Program, name: str) -> tuple[int, int] | None:
    if size := CLASSES.get(of_header(name)):
        return size, size
    if size := generator_bytes(name):
        return size, 16 if size % 64 == 0 else 8
    found = class_of(program, name)
    try:
        fields = _fields_of(program, name, True)
    except UnboundError:
        return None
    if not fields or (found is not None and found.struct.overlaid):
        return None
    union = found is not None and found.struct.union
    size, widest = 0, 1
    for field, extent in fields:
        pointer = field.pointers or field.kind == "structs"
        known = _POINTER if pointer else bytes_of(program, field)
        if known is None:
            return None
        own = known[0] * max(1, extent)
        size = max(size, own) if union else -(-size // known[1]) * known[1] + own
        widest = max(widest, known[1])
    return -(-size // widest) * widest, widest


def _shares_bytes(program: Program, name: str) -> bool:
    """Whether members of a class lie in one, a union's."""
    found = class_of(program, name)
    return found is not None and (found.struct.union or found.struct.overlaid)
