"""What a walk notes of a launch where it comes by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import Polynomial, constant, variable
from tokitai_cli.cpp.body.symbolic_values import (
    Cell,
    Function,
    Guard,
    Pointer,
    Record,
    Value,
    decided,
    fields_of,
)
from tokitai_cli.cpp.declarations import Declaration, Parameter, marks_of, parameters_of
from tokitai_cli.cpp.elements import dtypes_of
from tokitai_cli.cpp.host.declared_types import deduced
from tokitai_cli.cpp.host.host_walk import HostWalk
from tokitai_cli.cpp.host.launch import HostNumbers, Launch, in_terms_of, name_in, trimmed
from tokitai_cli.cpp.host.ratios import as_whole, fraction_of, parts_of
from tokitai_cli.cpp.structs import layout, resolved
from tokitai_cli.cpp.tree import child, name_of, named, parsed_expression

_AROUND = frozenset({"parenthesized_expression", "pointer_expression", "cast_expression"})
_MOST_FIELDS = 256
Given = Sequence[tuple[Value, str]]


class Note(msgspec.Struct):
    """A launch, and how sure it is to be made."""

    launch: Launch
    start: int
    #: Whether the kernel's name stands at the launch.
    direct: bool
    #: Whether conditions do not hold with the host's numbers.
    excluded: bool
    #: Whether conditions that may not hold were passed over.
    forced: bool = False

    @property
    def order(self) -> tuple[bool, bool, int]:
        """The surest first, then by the order of the text."""
        return self.excluded or self.forced, not self.direct, self.start


def note(
    walk: HostWalk, node: Node, callee: Node, extents: Sequence[Value], given: Given
) -> Note | None:
    """The launch that a call makes, None where it starts no kernel of the program's."""
    kernels, arguments, direct = _kernels(walk, callee)
    fitting = [one for one in kernels if not given or len(one.parameters) >= len(given)]
    kernel = next(iter(fitting or kernels), None)
    if kernel is None:
        return None
    pairs = zip(given, _padded(kernel, given), strict=False)
    values = [_number(walk, value, one) for (value, _), one in pairs]
    fields = dict(_fields(walk, kernel, given))
    grid, block = (_extents(walk, one) for one in extents[:2])
    shared = _known(walk, extents[2]) if extents[2] is not None else constant(0)
    handed = [one for one in (*values, *fields.values()) if one is not None]
    kept = {name for one in handed if (name := name_in(one))}
    definitions = {name: value for name, value in walk.definitions.items() if name in kept}
    held = {name: walk.expanded(value, kept) for name, value in definitions.items()}
    made = [walk.expanded(one, kept) for one in (*grid, *block, shared)]
    own = tuple(_real(walk, one) for one in values)
    for at, value in _without_names(walk, values, kept):  # these are called by their text
        values[at] = variable(str(value))
        held[str(value)] = value
        made = [in_terms_of(extent, value, str(value)) for extent in made]
    guards = [
        [walk.expanded(one.left, kept), walk.expanded(one.right, kept)] for one in walk.guards
    ]
    names = _Names(
        walk, [*handed, *held.values(), *made, *(side for pair in guards for side in pair)]
    )
    shown = [names.shown(one) for one in made]
    origin = walk.program.unit.origin(node.start_byte)
    launch = Launch(
        kernel.name,
        _template(walk, kernel, arguments, [kind for _, kind in given]),
        trimmed(shown[: len(grid)]),
        trimmed(shown[len(grid) : -1]),
        shown[-1],
        tuple(None if one is None else names.shown(one) for one in values),
        Path(origin.file),
        origin.line,
        {path: names.shown(one) for path, one in fields.items()},
        {names.of(name): names.shown(one) for name, one in held.items()},
        tuple(_counted(walk, one, kept) for one in grid),
        HostNumbers(
            tuple(_whole(walk, one) for one in trimmed(grid)),
            tuple(_whole(walk, one) for one in trimmed(block)),
            own,
            _defaults(walk, kernel) | _reals(walk, fields),
            tuple(_allocated(walk, value) for value, _ in given),
        ),
        tuple(
            Guard(names.shown(left), one.sign, names.shown(right))
            for one, (left, right) in zip(walk.guards, guards, strict=True)
        ),
    )
    return Note(launch, node.start_byte, direct, _excluded(walk, walk.guards))


def _without_names(
    walk: HostWalk, values: Sequence[Polynomial | None], kept: set[str]
) -> list[tuple[int, Polynomial]]:
    """What is handed over that has no name and is no number, each with its place."""
    found = []
    for at, one in enumerate(values):
        value = walk.expanded(one, kept) if one is not None and not name_in(one) else None
        if value is not None and value.number is None and parts_of(value) is None:
            found.append((at, value))
    return found


def _padded(kernel: Declaration, given: Given) -> Iterator[Parameter | None]:
    yield from kernel.parameters
    yield from [None] * max(0, len(given) - len(kernel.parameters))


def _kernels(walk: HostWalk, node: Node) -> tuple[list[Declaration], tuple[str, ...], bool]:
    """Kernels that an expression may name, template arguments, and whether it names them itself."""
    while node.type in _AROUND and named(node):
        node = named(node)[-1]
    wrapped = named(child(node, "arguments")) if node.type == "call_expression" else []
    if wrapped:  # HIP_KERNEL_NAME(k<3>), reinterpret_cast<const void*>(k)
        return _kernels(walk, wrapped[-1])
    name = name_of(node)
    last, arguments, direct = name.last, name.arguments or (), True
    place = walk.find(last) if node.type == "identifier" else None
    value = walk.load(place) if isinstance(place, Cell) else None
    if isinstance(value, Cell):
        value = walk.load(value)
    if isinstance(value, Function):
        last, arguments, direct = value.name, value.arguments or (), False
    known = walk.program.by_name.get(last, ())
    kernels = [one for one in known if one.kind == "kernel"]
    return kernels or [_declared(one) for one in known if _is_prototype(one)], arguments, direct


def _is_prototype(one: Declaration) -> bool:
    return one.kind == "prototype" and "__global__" in marks_of(one.node)


def _declared(one: Declaration) -> Declaration:
    """A kernel that another source defines."""
    return msgspec.structs.replace(one, kind="kernel", parameters=parameters_of(one.node))


def _template(
    walk: HostWalk, kernel: Declaration, arguments: Sequence[str], kinds: Sequence[str]
) -> tuple[str, ...]:
    """Template arguments: those that are written, their names put in, and those of what is passed."""
    names = {one.name for one in kernel.template if one.type == "type"}
    types = deduced(names, kernel.parameters, kinds)
    found = []
    for at, one in enumerate(kernel.template):
        if one.pack:
            found += [walk.spelled(told) for told in arguments[at:]]
            break
        if at < len(arguments):
            found.append(_argument(walk, one, arguments[at]))
        else:
            found.append(walk.spelled(types.get(one.name, "")))
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _argument(walk: HostWalk, parameter: Parameter, text: str) -> str:
    integral = parameter.type != "type" and bool(dtypes_of(resolved(walk.program, parameter.type)))
    node = parsed_expression(text) if integral else None
    if node is None or node.type in {"true", "false", "char_literal"}:
        return walk.spelled(text)
    number = _whole(walk, as_whole(walk.evaluate(node)))
    return str(number) if number is not None else walk.spelled(text)


def _extents(walk: HostWalk, value: Value) -> list[Polynomial]:
    if value is None:
        return []
    if isinstance(value, Record):
        return [_known(walk, walk.member(value, axis)) for axis in "xyz"]
    return [_known(walk, value), constant(1), constant(1)]


def _known(walk: HostWalk, value: Value) -> Polynomial:
    return walk.number(as_whole(value))


def _number(walk: HostWalk, value: Value, parameter: Parameter | None) -> Polynomial | None:
    """A number that is handed over; 0 for a null pointer."""
    if not isinstance(value, Polynomial):
        return None
    null = parameter is not None and parameter.pointers and walk.expanded(value).number == 0
    return constant(0) if null else walk.meant(value)


def _fields(walk: HostWalk, kernel: Declaration, given: Given) -> Iterator[tuple[str, Polynomial]]:
    for one, (value, _) in zip(kernel.parameters, given, strict=False):
        if isinstance(value, Record):
            kind = value.type or resolved(walk.program, one.type)
            yield from _of_record(walk, one.name, value, kind)


def _defaults(walk: HostWalk, kernel: Declaration) -> dict[str, Fraction]:
    """Numbers that fields of structs begin with by the structs' declarations."""
    found = {}
    for one in kernel.parameters:
        for path, field in layout(walk.program, resolved(walk.program, one.type)) or ():
            node = parsed_expression(field.default) if field.default else None
            value = walk.evaluate(node) if node is not None else None
            number = _real(walk, value) if isinstance(value, Polynomial) else None
            if number is not None:
                found[f"{one.name}.{path}"] = number
    return found


def _reals(walk: HostWalk, fields: Mapping[str, Polynomial]) -> dict[str, Fraction]:
    """Fields that are numbers with what the host's names hold."""
    told = {path: _real(walk, one) for path, one in fields.items()}
    return {path: number for path, number in told.items() if number is not None}


def _of_record(
    walk: HostWalk, front: str, record: Record, kind: str
) -> Iterator[tuple[str, Polynomial]]:
    """Numbers in the fields of a struct, null pointers as 0, by their paths."""
    every = layout(walk.program, kind) or ()
    paths = [path for path, one in every if not one.pointers and not one.extents][:_MOST_FIELDS]
    for path in dict.fromkeys([*paths, *_written(record)]):
        value: Value = record
        for name in path.split("."):
            value = walk.member(value, name)
        if isinstance(value, Polynomial):
            null = walk.expanded(value).number == 0 and not any(path == one for one in paths)
            yield f"{front}.{path}", constant(0) if null else value


def _written(record: Record) -> Iterator[str]:
    for name, inner in fields_of(record).items():
        if isinstance(inner, Record):
            yield from (f"{name}.{one}" for one in _written(inner))
        else:
            yield name


def _counted(walk: HostWalk, extent: Polynomial, kept: Iterable[str]) -> str:
    """The variable that an extent is, where that is a number and no argument."""
    name = name_in(extent)
    number = name not in {*kept} and _whole(walk, extent) is not None
    plain = name.partition("'")[0]
    return plain if number and extent.number is None and plain.isidentifier() else ""


def _whole(walk: HostWalk, value: Value) -> int | None:
    return walk.expanded(value).number if isinstance(value, Polynomial) else None


def _real(walk: HostWalk, value: Polynomial | None) -> Fraction | None:
    return fraction_of(walk.expanded(value)) if value is not None else None


def _allocated(walk: HostWalk, value: Value) -> int | None:
    at_start = isinstance(value, Pointer) and not value.offset
    size = walk.sizes.get(value.array) if at_start and isinstance(value, Pointer) else None
    return size.number if size is not None else None


def _excluded(walk: HostWalk, guards: Sequence[Guard]) -> bool:
    """Whether a condition does not hold with what the host's names hold."""
    each = (Guard(walk.expanded(left), sign, walk.expanded(right)) for left, sign, right in guards)
    return any(decided((one,)) is False for one in each)


class _Names:
    """How names of a walk are shown: as the variables that hold them, where these are told apart."""

    def __init__(self, walk: HostWalk, numbers: Iterable[Polynomial]) -> None:
        used = {name for one in numbers for name in one.names()}
        held = _variables(walk)
        self._shown: dict[str, str] = {}
        for name in sorted(used):
            plain = name.partition("'")[0].partition("#")[0]
            if name.replace(".", "_").isidentifier():
                continue
            is_name = plain.replace(".", "_").isidentifier() and walk.find(plain.partition(".")[0])
            new = held.get(name) or (plain if is_name else "")
            if new and new not in used and new not in self._shown.values():
                self._shown[name] = new

    def of(self, name: str) -> str:
        """How one is shown."""
        return self._shown.get(name, name)

    def shown(self, number: Polynomial) -> Polynomial:
        """A number with its names as they are shown."""
        return number.with_values({name: variable(new) for name, new in self._shown.items()})


def _variables(walk: HostWalk) -> dict[str, str]:
    """Variables in scope that hold what is no number, by what they hold."""
    found: dict[str, str] = {}
    for scope in walk.scopes:
        for name, place in scope.items():
            if isinstance(place, Cell) and not place.path:
                value = walk.store.get(place.number)
                held = name_in(value) if isinstance(value, Polynomial) else ""
                if held:
                    found.setdefault(held, name)
    return found
