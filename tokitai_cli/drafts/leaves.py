"""What a launch passes for a kernel's parameters one by one, and how the kernel uses each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec

from tokitai_cli.core import expressions
from tokitai_cli.cpp.body.symbolic_values import Access
from tokitai_cli.cpp.elements import lanes
from tokitai_cli.cpp.lexing import names_in, put_in
from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.source.reached import indexes_others
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.cpp.source.struct_layout import (
    bytes_of,
    fields_of,
    hides_fields,
    is_union,
    why_unbound,
)
from tokitai_cli.cpp.source.types import ENUM
from tokitai_cli.cpp.source.variables import Variable
from tokitai_cli.cpp.structs import TEXTURE_OBJECTS, accessor_of
from tokitai_cli.cpp.whole import Program
from tokitai_cli.drafts.accessors import Accessor, same_sizes
from tokitai_cli.drafts.model import Flow, Guess
from tokitai_cli.drafts.texturing import TextureLeaf
from tokitai_cli.spec.reader.rules import RESERVED

_REASONS = {
    "struct": "is a struct by value with fields that are not all known",
    "pointers": "is a pointer to pointers to pointers, or to structs",
    "unknown": "has a type that a macro, a template's argument or an absent header decides",
}
_LONGEST = 63  # letters of a name in a spec
_POINTERS = 32  # of an array of them in a struct


class LaunchArguments:
    """What is passed for a kernel's parameters, one by one: arrays and numbers, those of structs too.

    args: names in the kernel's order. found: each array and number by a name of its own. places:
    how the kernel's text says each of them. paths: the same for a reader of trees,
    `mesh.edges.next`, `mesh.rows[1]` of several pointers. structs: fields by name. lists: their
    arrays by name. rows: arrays with a row for each pointer. reasons: what cannot be passed.
    variables: of the arrays found those that are variables of the source, with extents and role.
    unsized: others that the kernel writes. unbound: those that the draft leaves out, and whether
    the kernel reads them. inner: what an element of an array holds: lanes of a vector, bytes of a
    struct. words: values that the launch passes. limits: of sizes that say how much of a struct's
    arrays is used. accessors: those of PyTorch's tensors. pointees: types of structs behind
    pointers that have pointers themselves, by parameter. texture_arguments: names of arguments that
    are textures. textures: those that the kernel fetches from, see `texturing`.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self.args: list[Parameter] = []
        self.found: list[Parameter] = []
        self.places: dict[str, str] = {}
        self.paths: dict[str, str] = {}
        self.structs: dict[str, Guess[Flow]] = {}
        self.lists: dict[str, str] = {}
        self.rows: set[str] = set()
        self.reasons: list[str] = []
        self.variables: dict[str, tuple[Variable, list[int], str]] = {}
        self.unsized: list[str] = []
        self.unbound: list[tuple[str, bool]] = []
        self.inner: dict[str, int] = {}
        self.words = 0
        self.limits: dict[str, int] = {}
        self.accessors: list[Accessor] = []
        self.pointees: dict[str, str] = {}
        self.texture_arguments: list[str] = []
        self.textures: dict[str, TextureLeaf] = {}

    def add_variables(self, known: Sequence[Variable], role_of: Callable[[Variable], str]) -> None:
        """Variables that a kernel reads by name, and those that it writes where it has no other output.

        role_of: what the kernel does with one, empty for nothing.
        """
        taken = {one.name for one in (*self.args, *self.found)}
        written = any(one.pointers and not one.const for one in self.found)
        for one in known:
            role, extents = role_of(one), [n for n in one.extents if n is not None]
            name = free(one.element.name)
            reads = role == "symbols"
            if not role:
                continue
            if name in taken or (one.space if reads else written):
                self.unbound.append((one.qualified, reads))
                continue
            if len(extents) < len(one.extents):
                self.unsized += [] if reads else [one.qualified]
                continue
            array = msgspec.structs.replace(
                one.element, name=name, kind="array", pointers=1, const=reads
            )
            self.found.append(array)
            self.places[name] = one.element.name
            self.paths[name] = one.element.name
            count = lanes(one.element.type)
            self.variables[name] = one, [*extents, count][: len(extents) + (count > 1)] or [1], role

    def add(self, parameter: Parameter, kernel: Part | None = None) -> None:
        """One parameter of the kernel, the next; kernel: its part of the unit."""
        enumerator = parameter.kind == "scalar" and parameter.dtypes == ENUM
        name = "0" if enumerator else self.unique(parameter.name)
        named = msgspec.structs.replace(parameter, name=name)
        self.args.append(named)
        self.words += 1
        if enumerator:
            return
        place = parameter.name
        if parameter.type in TEXTURE_OBJECTS and not parameter.pointers:
            self.texture_arguments.append(named.name)
            self.paths[named.name] = place
            return
        pointee = parameter.kind == "structs" and holds_pointers(self._program, parameter.type)
        if pointee:
            self.pointees[place] = parameter.type
        if parameter.kind == "struct" or pointee:
            told = self._struct(parameter.type, named.name, place, place)
            if told is None or is_union(self._program, parameter.type):
                self._refuse(parameter)
            else:
                several = pointee and kernel is not None and indexes_others(kernel, place)
                why = "that the pointer leads to one struct" if several else ""
                self.structs[named.name] = Guess(told, why)
        elif parameter.kind in _REASONS:
            if self._list(parameter, named.name, place, place) is None:
                self._refuse(parameter)
        else:
            self._leaf(parameter, named.name, place, place)

    def join_sizes(self, accesses: Sequence[Access]) -> None:
        """Make one of the accessors' sizes that the kernel goes over by one index."""
        for size, other in same_sizes(self.accessors, accesses).items():
            for one in self.accessors:
                one.sizes = [other if name == size else name for name in one.sizes]
            self.structs = {
                name: Guess(_renamed(one.value, size, other), one.why)
                for name, one in self.structs.items()
            }
            self.found = [one for one in self.found if one.name != size]
            here = self.places.pop(size)
            self.places.setdefault(other, here)

    def _refuse(self, one: Parameter) -> None:
        why = why_unbound(self._program, one.type) if one.kind in {"struct", "structs"} else ""
        why = "it is a union" if is_union(self._program, one.type) else why
        told = f"{_REASONS['struct']} ({why})" if why else _REASONS[one.kind]
        self.reasons.append(f"`{one.name or one.type}` {told}: {one.text}")

    def unique(self, name: str) -> str:
        """A name that no other has: of `x` and `x_`, too."""
        name, taken = free(name), {one.name for one in (*self.args, *self.found)}
        while name in taken:
            name += "_"
        return name

    def _leaf(self, one: Parameter, name: str, place: str, path: str = "") -> str:
        """name: its own, of `unique`."""
        self.found.append(msgspec.structs.replace(one, name=name))
        self.places[name] = place
        if path:
            self.paths[name] = path
        if one.kind == "array" and (count := lanes(one.type)) > 1:
            self.inner[name] = count
        elif one.kind == "structs" and (size := bytes_of(self._program, one)) is not None:
            self.inner[name] = size[0]
        return name

    def add_array(self, array: Parameter, name: str, path: str) -> str:
        """An array that no argument is by itself, which the kernel's text calls `path`; its name."""
        return self._leaf(array, self.unique(name), path, path)

    def _struct(self, type_name: str, name: str, place: str, path: str) -> Flow:
        fields = fields_of(self._program, type_name)
        if fields is None:
            return None
        names = [field.name for field, _ in fields]
        if accessor_of(type_name) and names == ["data_", "sizes_", "strides_"]:
            return self._accessor(fields, name, place, path)
        told: dict[str, Flow] = {}
        axes = min((extent for field, extent in fields if field.integer and extent), default=0)
        for field, extent in fields:
            here = f"{place}.{field.name}"
            own, inner = f"{name}_{field.name}", f"{path}.{field.name}"
            if not extent:
                value = self._field(field, own, here, inner)
                if axes and _counts_axes(field.name):
                    self.limits[str(value)] = axes
            elif field.integer or not field.pointers:
                one = 1 if field.integer else self._field(field, own, here, "")
                self.words += extent if field.integer else extent - 1
                value = None if one is None else [one] * extent
            elif extent <= _POINTERS:
                each = [
                    self._field(field, f"{own}_{at}", here, f"{inner}[{at}]")
                    for at in range(extent)
                ]
                value = None if None in each else each
            else:
                return None
            if value is None:
                return None
            told[field.name] = value
        return told

    def _accessor(
        self, fields: list[tuple[Parameter, int]], name: str, place: str, path: str
    ) -> Flow:
        (data, _), (size, dims), _ = fields
        struct, name = name, name.rstrip("_")
        sizes = [self._leaf(size, self.unique(f"{name}_{at}"), "") for at in range(dims)]
        data_name = self._leaf(data, self.unique(f"{name}_data"), place, path)
        accessor = Accessor(struct, path, data_name, sizes)
        self.accessors.append(accessor)
        self.words += 1 + 2 * dims
        return accessor.fields

    def _field(self, field: Parameter, name: str, place: str, path: str) -> Flow:
        """What fills a field of a struct; None where nothing can."""
        if field.kind == "struct":
            return self._struct(field.type, name, place, path)
        self.words += 1
        if field.kind == "scalar" and field.dtypes == ENUM:
            return 0
        if field.kind in {"array", "scalar", "structs"}:
            return self._leaf(field, self.unique(name), place, path)
        return self._list(field, name, place, path)

    def _list(self, one: Parameter, name: str, place: str, path: str) -> str | None:
        """A list of pointers to the rows of an array of its own; None where it is no such list."""
        if one.kind != "pointers" or one.pointers != 2 or not one.dtypes:
            return None
        rows = self._leaf(one, self.unique(f"{name}_rows"), place, path)
        self.rows.add(rows)
        self.lists[name] = rows
        return name


def _renamed(value: Flow, size: str, other: str) -> Flow:
    """Fields of structs with another word for a size."""
    if isinstance(value, dict):
        return {key: _renamed(one, size, other) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, size, other) for one in value]
    return put_in(value, {size: other}) if isinstance(value, str) else value


def holds_pointers(program: Program, type_name: str, depth: int = 2) -> bool | None:
    """Whether a struct has pointers; None where not all of its fields can be filled.

    depth: how deep structs may stand in it, as a spec's text has levels for.
    """
    fields = None if hides_fields(program, type_name) else fields_of(program, type_name)
    found: bool | None = None if fields is None else False
    for one, _ in fields or ():
        inner = one.kind == "struct" and depth > 0
        other = one.kind in {"array", "structs"} or (one.kind == "pointers" and one.dtypes)
        told = holds_pointers(program, one.type, depth - 1) if inner else bool(other)
        if told is None or not (inner or other or one.kind == "scalar"):
            return None
        found = found or told
    return found


def last_word(place: str) -> str:
    """The name that a place of a kernel's text ends with, a field's own."""
    words = names_in(place)
    return words[-1] if words else ""


def _counts_axes(name: str) -> bool:
    """Whether a field says how many of another one's elements are used, by its name."""
    for end in ("dim", "dims", "rank", "axes"):
        front = name.lower().removesuffix(end)
        if len(front) < len(name) and (not front or front[-1] in "_n"):
            return True
    return False


def free(name: str) -> str:
    """A name for a param or an array: none of the options of `verify`, nor a word of expressions."""
    name = name.strip("_") or "p"
    if len(name) > _LONGEST:  # the digest keeps two that begin alike apart
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        name = f"{name[: _LONGEST - 1 - len(digest)]}_{digest}"
    taken = RESERVED | {*expressions.FUNCTIONS, *expressions.KEYWORDS}
    return f"{name}_" if name.lower() in taken else name
