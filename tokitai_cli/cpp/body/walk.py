"""A walk over a function's body: its nodes are read, and accesses to memory noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import MOST_TERMS, Polynomial, constant, variable
from tokitai_cli.cpp.body.state import State
from tokitai_cli.cpp.body.symbolic_values import (
    SINGLE,
    Access,
    Cell,
    Choice,
    Place,
    Pointer,
    Record,
    Returned,
    Value,
    fields_of,
)
from tokitai_cli.cpp.declarations import Declaration, Parameter
from tokitai_cli.cpp.elements import is_real, is_vector
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.structs import TEXTURE_OBJECTS, accessor_of, layout, resolved
from tokitai_cli.cpp.tree import parsed_expression

BUDGET = 120_000  # nodes that are evaluated of one function
LAUNCH = frozenset({"blockIdx", "blockDim", "gridDim", "threadIdx"})
#: HIP's older words for their members, as `hipThreadIdx_x`.
OLD_LAUNCH = {f"hip{one[:1].upper()}{one[1:]}_{axis}": one for one in LAUNCH for axis in "xyz"}


class BudgetError(Exception):
    """A body that takes too long to read."""


class Readers(NamedTuple):
    """What reads nodes, by their types ("" for all others); they call each other through the walk."""

    expressions: Mapping[str, Callable[[Walk, Node], Value]]
    #: Each says whether control goes on behind the statement.
    statements: Mapping[str, Callable[[Walk, Node], bool]]
    place: Callable[[Walk, Node], Place | None]
    #: The last argument is the name of the operator where a class's own is called.
    call: Callable[[Walk, Node, str], Returned]


class Walk(State):
    """A walk over one function.

    budget_left: nodes that may still be evaluated.
    """

    def __init__(self, program: Program, readers: Readers, budget: int = BUDGET) -> None:
        super().__init__(program)
        self._readers, self.budget_left = readers, budget

    # Reading nodes

    def evaluate(self, node: Node | None) -> Value:
        """The value of an expression."""
        self.budget_left -= 1
        if self.budget_left < 0:
            raise BudgetError
        if node is None:
            return None
        table = self._readers.expressions
        outer, self.at = self.at, node
        value = (table.get(node.type) or table[""])(self, node)
        self.at = outer
        return value

    def execute(self, node: Node) -> bool:
        """Read a statement; whether control goes on behind it."""
        table = self._readers.statements
        outer, self.at = self.at, node
        goes_on = (table.get(node.type) or table[""])(self, node)
        self.at = outer
        return goes_on

    def place(self, node: Node) -> Place | None:
        """The variable or element that an expression names; None where it names none that is known."""
        return self._readers.place(self, node)

    def call(self, node: Node, operator: str = "") -> Returned:
        """What a call gives."""
        return self._readers.call(self, node, operator)

    # Variables

    def bind(self, parameter: Parameter, value: Value) -> Cell:
        """A variable for a parameter of a function that is read where it is called."""
        del parameter
        return self.new_cell(value)

    def declared_kind(self, spelled: str, value: Node | None) -> str:
        """The type of a variable that is declared with one and a value."""
        del value
        return spelled

    def converted(self, value: Value, kind: str) -> Value:
        """A number as one of another type: of a whole one that becomes real `/` takes no whole part."""
        kind = resolved(self.program, self.types.get(kind, kind))
        if not is_real(kind) or not isinstance(value, Polynomial) or value.number is not None:
            return value
        if value.names() & self.facts.reals:
            return value
        return self.marked(self.named(f"float({value})", "float", Choice(((value, ()),))), kind)

    def settled(self, number: Polynomial) -> Polynomial:
        """A number that is compared, as far as it is known."""
        return number

    def template_types(
        self, function: Declaration, arguments: Sequence[str], given: Sequence[Node]
    ) -> Mapping[str, str]:
        """Types that parameters of a function's template stand for where a call leaves them out."""
        del function, arguments, given
        return {}

    def add_parameter(self, parameter: Parameter) -> None:
        """Declare a parameter of the function that the walk is of."""
        kind = resolved(self.program, self.types.get(parameter.type, parameter.type))
        self.declare(parameter.name, self.outer(parameter.name, kind, parameter))

    def outer(self, name: str, kind: str, parameter: Parameter) -> Value:
        """The value of a parameter, or of a variable of the program's, before anything is known."""
        if not parameter.pointers and (accessor := accessor_of(kind)) is not None:
            return self._accessor(name, accessor.element, accessor.dimensions)
        if parameter.pointers or parameter.extents or kind.endswith("*"):
            self.facts.arrays[name] = kind = kind.rstrip("*").strip()
            self._add_fields(name, kind)
            return Pointer(name, constant(0), 1, self._rows(name, parameter))
        if kind in TEXTURE_OBJECTS:
            self.facts.arrays[name] = kind
            return Pointer(name, constant(0), 1)
        if kind in self.program.structs:
            self._add_fields(name, kind)
            return Record(name, kind)
        if is_vector(kind):
            return Record(name, kind)
        return self.marked(variable(name), kind)

    def _accessor(self, name: str, element: str, dimensions: int) -> Value:
        """A tensor of PyTorch's by its accessor: `x[n][c]` is an element."""
        self.facts.arrays[name] = resolved(self.program, self.types.get(element, element))
        self.accessors.add(name)
        strides = [variable(f"{name}.stride({axis})") for axis in range(dimensions - 1)]
        return Pointer(name, constant(0), 1, (*strides, constant(1)))

    def _add_fields(self, name: str, kind: str) -> None:
        """Arrays that a struct has, or leads to; those of several structs of an array are one."""
        for path, field in layout(self.program, kind) or ():
            if field.pointers or field.extents:
                self.facts.arrays[f"{name}.{path}"] = resolved(self.program, field.type, kind)

    def _rows(self, name: str, one: Parameter) -> tuple[Polynomial, ...]:
        """See `row_sizes`; each of several pointers leads to a row of its own."""
        rows = self.row_sizes(one.inner)
        return (variable(row_of(name)), constant(1)) if one.pointers > 1 and not rows else rows

    def row_sizes(self, inner: tuple[str, ...]) -> tuple[Polynomial, ...]:
        """Elements in one step of each index of an array with these inner extents; none without."""
        sizes = [constant(1)]
        for extent in reversed(inner):
            sizes.insert(0, sizes[0] * self._extent(extent))
        return tuple(sizes) if inner else ()

    def _extent(self, text: str) -> Polynomial:
        if text.isdigit():
            return constant(int(text))
        node = parsed_expression(text) if text else None
        return self.number(self.evaluate(node)) if node is not None else self.fresh("extent")

    # Places

    def load(self, place: Place, node: Node | None = None) -> Value:
        """What stands at a place; of an array's element it is an access."""
        if isinstance(place, Pointer):
            if place.rows:  # a row, which is a pointer to its first element
                return Pointer(place.array, place.offset, place.unit, place.rows)
            value = self.touch(place, "read", node)
            for name in place.path:
                value = self.member(value, name)
            return value
        value = self.store.get(place.number)
        for name in place.path:
            value = self.member(value, name)
        return value

    def member(self, value: Value, name: str) -> Value:
        """A field of a struct or vector."""
        if isinstance(value, Record):
            known = fields_of(value)
            if name in known:
                return known[name]
            path = f"{value.path}.{name}"
            array = _array_of(path)
            struct = self.program.structs.get(value.type)
            every = layout(self.program, value.type) if struct is not None else None
            mine = next((one for place, one in every or () if place == name), None)
            if array in self.facts.arrays:
                rows = self._rows(array, mine) if mine else ()
                return Pointer(array, constant(0), 1, rows)
            inner = (
                next((one for one in struct.fields if one.name == name), None) if struct else None
            )
            kind = resolved(self.program, inner.type, value.type) if inner is not None else ""
            is_static = struct is not None and inner is None
            element = None if is_static else self.elements.get(value.path)
            if kind in self.program.structs or is_vector(kind):
                if element is not None:
                    self.elements[path] = element
                return Record(path, kind)
            return self.marked(self.named(path, name, element), kind or value.type)
        if not isinstance(value, Polynomial):
            return None
        found = self.named(f"{value}.{name}", name, self.facts.meanings.get(str(value)))
        if str(value) in LAUNCH:
            self.facts.launch.add(str(found))
        return found

    def save(self, place: Place | None, value: Value, kind: str, node: Node | None) -> None:
        """Put a value at a place; into an array's element it is an access of that kind."""
        if isinstance(place, Pointer):
            self.touch(place, "part" if place.path and kind == "write" else kind, node, value)
        elif place is not None:
            self.store[place.number] = self._put(
                self.store.get(place.number), place.path, value, place.number
            )

    def _put(self, old: Value, path: tuple[str, ...], value: Value, number: int) -> Value:
        if not path:
            return value
        record = old if isinstance(old, Record) else Record(f"?{number}")
        inner = self._put(self.member(record, path[0]), path[1:], value, number)
        rest = tuple(one for one in record.fields if one[0] != path[0])
        return Record(record.path, record.type, (*rest, (path[0], inner)))

    def touch(
        self,
        place: Pointer,
        kind: str,
        node: Node | None,
        value: Value = None,
        units: Polynomial | None = SINGLE,
    ) -> Value:
        """Note an access to an array's element; what it gives is a name for it.

        value: what is written. units: how many of the pointer's elements, one behind the other.
        """
        facts, own = self.facts, self.facts.local.get(place.array)
        if not self.dry and (own is not None or place.array in facts.arrays):
            origin = self.program.unit.origin(node.start_byte) if node is not None else None
            file, line = (origin.file, origin.line) if origin is not None else ("", 0)
            guards = tuple(self.guards)
            where = facts.accesses if own is None else facts.local_accesses
            where.append(
                Access(place.array, place.offset, kind, guards, file, line, place.unit, units)
            )
            if kind != "read":
                put = self.number(value) if value is not None else self.fresh("?")
                facts.stored.setdefault(place.array, []).append((put, guards))
        return self.element(place)

    def moved(self, value: Value, by: Polynomial) -> Pointer | None:
        """A pointer so many steps on; None for what is no pointer."""
        if not isinstance(value, Pointer):
            return None
        if value.unit is None or value.unit != int(value.unit):
            return Pointer(value.array, self.fresh("?"), None)
        step = value.rows[0] if value.rows else constant(int(value.unit))
        offset = value.offset + by * step
        if len(offset.terms) > MOST_TERMS:
            offset = self.number(offset)
        return Pointer(value.array, offset, value.unit, value.rows)

    def lend(self, place: Pointer, why: str) -> None:
        """An element that goes where the walk does not follow."""
        found, guards = self.facts, tuple(self.guards)
        found.escape(place.array, why, whole=False)
        if not self.dry:
            found.lent.append(Access(place.array, place.offset, "", guards, "", 0, place.unit))

    def escape(self, value: Value, why: str) -> None:
        """A value that goes where the walk does not follow: what it leads to may be read or written."""
        if isinstance(value, Cell):  # what is behind the address may change too
            inner = self.load(value)
            self.escape(inner, why)
            self.save(value, inner if isinstance(inner, Record) else self.fresh("?"), "write", None)
        if self.dry:
            return
        parts = [one for _, one in value.fields] if isinstance(value, Record) else [value]
        for one in parts:
            if isinstance(one, Pointer):
                self.facts.escape(one.array, why)
        if isinstance(value, Record) and value.path:
            known = fields_of(value)
            for array in self.facts.arrays:
                front, _, field = array.partition(".")
                if front == value.path and field not in known:
                    self.facts.escape(array, why)


def row_of(name: str) -> str:
    """What the distance of two rows is called that an array's own pointers lead to."""
    return f"({name} row)"


def _array_of(path: str) -> str:
    """A field's path without the indices of the structs that have it: `h[i].x` is `h.x`."""
    front, opened, rest = path.partition("[")
    return front + rest.rpartition("]")[2] if opened else path
