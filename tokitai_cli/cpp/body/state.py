"""The state of a walk over a function's body: scopes, values of variables, guards, and findings."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import MOST_TERMS, Polynomial, constant, variable
from tokitai_cli.cpp.body.symbolic_values import (
    SINGLE,
    Applied,
    Cell,
    Choice,
    Condition,
    Facts,
    Guard,
    Line,
    Loaded,
    Meaning,
    Operation,
    Place,
    Pointer,
    Record,
    Returned,
    Value,
    truth,
)
from tokitai_cli.cpp.elements import is_real, is_vector
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import text_of

_LONGEST = 160  # letters of a name that stands for an expression


class State:
    """What a walk knows at a place of the text, by names for what no polynomial says.

    scopes: places of names, the innermost last. store: what cells hold. guards: comparisons that hold
    here. dry: how many loops are only tried. returns: what the function in hand has returned; None in
    the function that the walk is of. by_reference: whether it returns a reference. breaks, continues:
    what variables hold where the loop in hand is left, and where its next pass begins. types: what
    names of templates' parameters stand for. kinds: types that variables are declared with. lists:
    values of arrays of the function's own, by name. inside: loops that the walk is in, by their place
    among the facts'. elements: of arrays, by what their records are called. at: what is read.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.facts = program, Facts()
        self.inside: list[int] = []
        self.scopes: list[dict[str, Place]] = [{}]
        self.store: dict[int, Value] = {}
        self.guards: list[Guard] = []
        self.dry = 0
        self.calls: list[tuple[int, int]] = []
        self.returns: list[Returned] | None = None
        self.by_reference = False
        self.breaks: list[dict[int, Value]] = []
        self.continues: list[dict[int, Value]] = []
        self.types: dict[str, str] = {}
        self.kinds: dict[int, str] = {}
        self.lists: dict[str, tuple[Value, ...]] = {}
        self.constants: dict[str, Value] = {}
        self.globals: dict[str, Place] = {}
        self.accessors: set[str] = set()
        self.elements: dict[str, Loaded] = {}
        self.at: Node | None = None
        self._fresh = 0

    def fresh(self, hint: str, meaning: Meaning | None = None) -> Polynomial:
        """A number with a new name; without a meaning nothing is known of it."""
        self._fresh += 1
        return self.named(f"{hint}#{self._fresh}", hint, meaning)

    def named(self, text: str, hint: str = "?", meaning: Meaning | None = None) -> Polynomial:
        """A number by the text of its expression, a fresh one where that is long."""
        if len(text) > _LONGEST:
            return self.fresh(hint[:_LONGEST], meaning)
        if meaning is not None and text not in self.facts.meanings:
            self.mean(text, meaning)
        return variable(text)

    def mean(self, name: str, meaning: Meaning) -> None:
        """Note what a name stands for, and the line that has it."""
        self.facts.meanings[name] = meaning
        if (line := self._line()) is not None:
            self.facts.lines[name] = line

    def _line(self) -> Line | None:
        if self.at is None:
            return None
        origin = self.program.unit.origin(self.at.start_byte)
        return Line(origin.file, origin.line)

    def number(self, value: Value) -> Polynomial:
        """A value as a number."""
        if isinstance(value, Polynomial):
            whole = len(value.terms) <= MOST_TERMS
            return value if whole else self.fresh("sum", Choice(((value, ()),)))
        if isinstance(value, Record | Pointer):
            return self.fresh("?", self._meaning(value))
        if not isinstance(value, Condition):
            return self.fresh("?")
        known = truth(value)
        if known is not None:
            return constant(int(known))
        ways = ((SINGLE, value.holds), (constant(0), value.fails))
        return self.named(value.text, "?", Choice(ways))

    def _meaning(self, value: Record | Pointer) -> Meaning | None:
        """What a struct or an address is made of, as a number."""
        if isinstance(value, Pointer):
            return Applied("&", (self.number(self.element(value)),))
        fields = (self.number(one) for _, one in value.fields if isinstance(one, Polynomial))
        return self.elements.get(value.path) or Applied("{}", tuple(fields))

    def note(self, sign: str, left: Value, right: Value, role: str = "") -> None:
        """Note an operator."""
        if not self.dry:
            inside = tuple(self.inside)
            self.facts.operations.append(Operation(sign, left, right, inside, role, self._line()))

    def note_guards(self, guards: Sequence[Guard], role: str) -> None:
        """Note what comparisons decide."""
        for left, sign, right in guards:
            self.note(sign, left, right, role)

    def new_cell(self, value: Value) -> Cell:
        """A variable without a name."""
        self._fresh += 1
        self.store[self._fresh] = value
        return Cell(self._fresh)

    def declare(self, name: str, value: Value, kind: str = "") -> None:
        """A new variable in the innermost scope, of a type."""
        place = self.scopes[-1][name] = self.new_cell(value)
        self.kinds[place.number] = kind
        if isinstance(value, Polynomial) and value.number is None and not self.dry:
            self.facts.called.setdefault(value, []).append(name)

    def find(self, name: str) -> Place | None:
        """Where a name is, the innermost first."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.globals.get(name)

    def marked(self, value: Polynomial, kind: str) -> Polynomial:
        """A number of that type."""
        if is_real(kind):
            self.facts.reals |= value.names()
        return value

    def element(self, place: Pointer) -> Value:
        """A name for what an element holds, which is no access."""
        facts = self.facts
        kind_of = facts.type_of(place.array)
        element = Loaded(place.array, place.offset)
        if is_vector(kind_of) or kind_of in self.program.structs:
            name = f"{place.array}[{place.offset}]"[:_LONGEST]
            self.elements[name] = element
            return Record(name, kind_of)
        new = self.named(f"{place.array}[{place.offset}]", place.array, element)
        return self.marked(new, kind_of)

    def type_text(self, node: Node | None) -> str:
        """A type as it is written, arguments of templates put in."""
        told = text_of(node)
        return self.types.get(told, told)
