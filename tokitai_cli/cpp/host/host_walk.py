"""A walk over a function of the host's, in which the numbers that kernels are handed keep their names.

After `int n = 1 << 20;` a grid of `n / 256` blocks is 4096 blocks, which says nothing of other sizes. So
a variable that some launch is handed is a name, and what it holds is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tree_sitter import Node

from tokitai_cli.cpp.body.operators import indicator
from tokitai_cli.cpp.body.polynomial import Polynomial, composite, constant, variable
from tokitai_cli.cpp.body.symbolic_values import (
    Applied,
    Cell,
    Choice,
    Condition,
    Function,
    Place,
    Record,
    Value,
)
from tokitai_cli.cpp.body.walk import Readers, Walk
from tokitai_cli.cpp.declarations import Declaration, Parameter
from tokitai_cli.cpp.elements import dtypes_of
from tokitai_cli.cpp.host.declared_types import deduced, type_of
from tokitai_cli.cpp.host.launch import name_in
from tokitai_cli.cpp.host.ratios import as_real, as_whole
from tokitai_cli.cpp.host.spelling import plain, with_names, words_of
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.structs import resolved

_REAL = frozenset({"float", "double"})
_MOST_STEPS = 8  # names that are defined by names
_LONGEST = 400  # letters of a number that names are put into


class Handed:
    """Names of variables of the host's: those that launches are handed, and those that are extents."""

    def __init__(self, arguments: Iterable[str], extents: Iterable[str]) -> None:
        self.arguments, self.extents = frozenset(arguments), frozenset(extents)
        self.all = self.arguments | self.extents


class HostWalk(Walk):
    """See the module.

    definitions: what names hold. owner: the class of the member function in hand. sizes: bytes of
    memory of the device's, by the names of arrays. bound: what parameters of templates stand for in
    calls that were seen, by where the function begins.
    """

    def __init__(self, program: Program, readers: Readers, budget: int, handed: Handed) -> None:
        super().__init__(program, readers, budget)
        self.handed = handed
        self.definitions: dict[str, Polynomial] = {}
        self.owner = ""
        self.sizes: dict[str, Polynomial | None] = {}
        self.bound: dict[int, dict[str, str]] = {}
        self._taken: set[str] = set()
        self._kept: dict[str, Polynomial] = {}

    # Names

    def add_parameter(self, parameter: Parameter) -> None:
        """Declare a parameter of the function that the walk is of: a number by its name."""
        self._taken.add(parameter.name)
        super().add_parameter(parameter)
        place = self.scopes[-1].get(parameter.name)
        if isinstance(place, Cell):
            self.kinds[place.number] = self.declared_kind(_spelled(parameter), None)

    def declare(self, name: str, value: Value, kind: str = "") -> None:
        """A new variable, whose number keeps its name where a launch is handed it."""
        super().declare(name, self._held(name, value), kind)

    def bind(self, parameter: Parameter, value: Value) -> Cell:
        """A parameter of a function that is read where it is called."""
        kind = self.declared_kind(_spelled(parameter), None)
        place = self.new_cell(self._held(parameter.name, value))
        self.kinds[place.number] = kind
        return place

    def save(self, place: Place | None, value: Value, kind: str, node: Node | None) -> None:
        """Put a value at a place; see `declare`."""
        if isinstance(place, Cell):
            declared = "" if place.path else self.kinds.get(place.number, "")
            value = self.converted(value, declared)
            name = self._name_of(place) or self._name_of(Cell(place.number))
            path = name if self._name_of(place) else ".".join([name, *place.path])
            value = self._held(path, value) if name else value
        super().save(place, value, kind, node)

    def kept_constant(self, name: str, value: Value) -> Value:
        """The number of a constant of the program's, by a name where launches are handed it."""
        if name in self.handed.arguments and isinstance(value, Polynomial):
            if name not in self._kept:
                self._kept[name] = self._versioned(name, value)
            return self._kept[name]
        return value

    def _name_of(self, place: Cell) -> str:
        scopes = reversed(self.scopes)
        return next((name for one in scopes for name, other in one.items() if other == place), "")

    def _held(self, name: str, value: Value) -> Value:
        if name.partition(".")[0] not in self.handed.all or self.dry:
            return value
        if isinstance(value, Polynomial):
            return self._versioned(name, value)
        if isinstance(value, Record):
            fields = tuple(
                (field, self._held(f"{name}.{field}", inner)) for field, inner in value.fields
            )
            return Record(value.path, value.type, fields)
        return value

    def converted(self, value: Value, kind: str) -> Value:
        """A number as one of another type: a real one is a ratio."""
        own = resolved(self.program, self.types.get(kind, kind)) if kind else ""
        if own in _REAL:
            return as_real(value)
        return as_whole(value) if dtypes_of(own) else value

    def _versioned(self, name: str, value: Polynomial) -> Polynomial:
        """A name for a number; a number that has one keeps it."""
        single = next(iter(value.terms)) if len(value.terms) == 1 else ()
        atom = single[0] if len(single) == 1 and value.terms[single] == 1 else ""
        if isinstance(atom, str) and atom.replace(".", "_").isidentifier():
            return value
        own, count = name, 2
        while own in self._taken:
            own, count = f"{name}'{count}", count + 1
        self._taken.add(own)
        whole = self.meant(value)
        unknown = (one.partition("#")[0] for one in whole.names() if "#" in one)
        if all(one.isidentifier() and one != name for one in unknown):
            self.definitions[own] = whole
        return variable(own)

    def settled(self, number: Polynomial) -> Polynomial:
        """A number that is compared: what no launch is handed is worth what it holds."""
        return self._put_in(number, self._is_handed)

    def expanded(self, number: Polynomial, kept: Collection[str] = ()) -> Polynomial:
        """A number with what names hold put in, those that are `kept` not."""
        return self._put_in(number, kept.__contains__)

    def _is_handed(self, name: str) -> bool:
        return name.partition("'")[0].partition(".")[0] in self.handed.arguments

    def _put_in(self, number: Polynomial, is_kept: Callable[[str], bool]) -> Polynomial:
        number = self.meant(number)
        for _ in range(_MOST_STEPS):
            known = number.names() & self.definitions.keys()
            held = {name: self.definitions[name] for name in known if not is_kept(name)}
            if not held:
                break
            number = self.meant(number.with_values(held))
        return number

    def meant(self, number: Polynomial) -> Polynomial:
        """A number with what the walk's own names stand for, where that is a number by itself."""
        for _ in range(_MOST_STEPS):
            values = {
                name: told for name in number.names() if (told := self._meant_by(name)) is not None
            }
            if not values or len(str(number)) > _LONGEST:
                break
            number = number.with_values(values)
        return number

    def _meant_by(self, name: str) -> Polynomial | None:
        meaning = self.facts.meanings.get(name)
        if isinstance(meaning, Applied) and meaning.operator in {"min", "max"} and meaning.operands:
            return composite(meaning.operator, *meaning.operands)
        if not isinstance(meaning, Choice) or not 0 < len(meaning.ways) <= 2:
            return None
        (yes, holds), (no, fails) = meaning.ways[0], meaning.ways[-1]
        here = {*self.guards}
        if len(meaning.ways) == 1 or (holds and here.issuperset(holds)):
            return yes
        if fails and here.issuperset(fails):
            return no
        rest = indicator(Condition(holds, (), ""))
        step = (self.expanded(yes) - self.expanded(no)).number
        if rest is not None and step is not None:
            return no + rest * constant(step)
        if len(holds) == 1:
            ((left, sign, right),) = holds
            return composite(f"?{sign}", left, right, yes, no)
        return None

    # Types

    def declared_kind(self, spelled: str, value: Node | None) -> str:
        """A declared type; that of its value for `auto`."""
        told = plain(spelled)
        if told.rstrip("*") == "auto":
            return type_of(self, value)
        return told

    def template_types(
        self, function: Declaration, arguments: Sequence[str], given: Sequence[Node]
    ) -> Mapping[str, str]:
        """What parameters of a function's template stand for that a call leaves to be deduced."""
        names = {one.name for one in function.template if one.type == "type"}
        names -= {one.name for one in function.template[: len(arguments)]}
        actual = [type_of(self, one) for one in given] if names else []
        found = deduced(names, function.parameters, actual)
        pairs = zip(function.template, arguments, strict=False)
        own = {one.name: self.spelled(text) for one, text in pairs}
        if function.template and not self.dry:
            self.bound.setdefault(function.node.start_byte, own | found)
        return found

    def spelled(self, text: str) -> str:
        """A type or a template's argument, with what names in it stand for."""
        meaning = dict(self.types)
        for name in words_of(text) - meaning.keys():
            place = self.find(name)
            value = self.load(place) if isinstance(place, Cell) else None
            if isinstance(value, Polynomial):
                told = self.expanded(value)
                if told.number is not None or name_in(told):
                    meaning[name] = str(told)
            elif isinstance(value, Function):
                listed = f"<{', '.join(value.arguments)}>" if value.arguments else ""
                meaning[name] = value.name + listed
        return with_names(text, meaning)

    def unbound(self, spelled: str) -> bool:
        """Whether a text has names of parameters of templates that nothing is known of."""
        return bool(words_of(spelled) & template_names(self.program))


def _spelled(parameter: Parameter) -> str:
    return parameter.type + "*" * (parameter.pointers + len(parameter.extents))


def template_names(program: Program) -> frozenset[str]:
    """Names of parameters of a program's templates."""
    return frozenset(
        parameter.name
        for one in program.declarations
        for parameter in one.template
        if parameter.name
    )
