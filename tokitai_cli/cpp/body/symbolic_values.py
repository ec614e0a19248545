"""What an expression of a kernel's body stands for, and what is learned of arrays on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import SIGNS, Monomial, Polynomial, constant

SINGLE = constant(1)


class Pointer(msgspec.Struct, frozen=True):
    """A pointer into an array, which is also the place of the element that it leads to."""

    array: str
    #: In elements of the array.
    offset: Polynomial
    #: Elements of the array in one step of the pointer; None where that is not known.
    unit: int | Fraction | None = 1
    #: Elements in one step of each index to come, where it is to rows; none for a plain pointer.
    rows: tuple[Polynomial, ...] = ()
    #: Fields within the element, as a place.
    path: tuple[str, ...] = ()


class Record(msgspec.Struct, frozen=True):
    """A struct or vector by value. `path` is how the kernel's parameter that it came of is called."""

    path: str
    type: str = ""
    #: Fields that were written, by name.
    fields: tuple[tuple[str, Value], ...] = ()


class Guard(NamedTuple):
    """A comparison that holds where something happens."""

    left: Polynomial
    sign: str
    right: Polynomial


class Condition(msgspec.Struct, frozen=True):
    """What a comparison says where it holds, and where it does not; `text` is for names."""

    holds: tuple[Guard, ...]
    fails: tuple[Guard, ...]
    text: str


class Closure(msgspec.Struct, frozen=True):
    """A lambda expression with the scopes that it sees."""

    node: Node
    scopes: tuple[Mapping[str, Place], ...]


class Function(msgspec.Struct, frozen=True):
    """A function by its name, as an argument or behind a pointer."""

    name: str
    arguments: tuple[str, ...] | None = None


class Cell(msgspec.Struct, frozen=True):
    """A variable, or a field of one."""

    number: int
    path: tuple[str, ...] = ()


#: A cell as a value is its address.
Value = Polynomial | Pointer | Record | Condition | Closure | Function | Cell | None
Place = Cell | Pointer


class Returned(msgspec.Struct):
    """What a call gives: a value, and the place behind a reference."""

    value: Value = None
    place: Place | None = None
    #: What variables hold there.
    store: Mapping[int, Value] = {}
    #: What holds where it returns.
    guards: tuple[Guard, ...] = ()


class Loaded(NamedTuple):
    """An element's value: a number that an array held."""

    array: str
    offset: Polynomial


class Applied(NamedTuple):
    """What an operator or a function makes of numbers, where no polynomial says it."""

    operator: str
    operands: tuple[Polynomial, ...]


class Choice(NamedTuple):
    """One of several numbers, each with the comparisons that hold where it is that one."""

    ways: tuple[tuple[Polynomial, tuple[Guard, ...]], ...]


class Evolving(NamedTuple):
    """A variable that a loop changes, where a pass begins: `start`, or what the pass before left.

    guards: comparisons that held where that pass ended.
    """

    start: Polynomial
    end: Polynomial
    guards: tuple[Guard, ...]


Meaning = Loaded | Applied | Choice | Evolving
#: A number, and the comparisons under which something is made of it.
Way = tuple[Polynomial, tuple[Guard, ...]]


def ways_of(meaning: Meaning | None) -> Sequence[Way]:
    """Numbers that one with a meaning is made of; of a loop's variable first what it begins with."""
    if isinstance(meaning, Choice):
        return meaning.ways
    if isinstance(meaning, Evolving):
        return [(meaning.start, ()), (meaning.end, meaning.guards)]
    return [(one, ()) for one in meaning.operands] if isinstance(meaning, Applied) else ()


class Access(NamedTuple):
    """One access to an array by a kernel's text."""

    array: str
    offset: Polynomial
    #: read, write, part (of an element written), or update (which reads and writes).
    kind: str
    guards: tuple[Guard, ...]
    file: str
    line: int
    #: Elements of the array that it reaches from the index on; None where that is not known.
    unit: int | Fraction | None
    #: How many of such units; None where that is not known.
    units: Polynomial | None = SINGLE


class Line(NamedTuple):
    """Where something stands in a source."""

    file: str
    line: int


class Operation(NamedTuple):
    """An operator between two values, where the text has it."""

    #: As in C++; `swap` where an element that holds `right` is exchanged.
    sign: str
    left: Value
    right: Value
    #: Loops that it stands in, the outermost first.
    loops: tuple[int, ...]
    #: Of a comparison: `loop` where a loop goes on while it holds, `leave` where a loop or function is
    #: left if it holds, `assert` where it is sworn to.
    role: str = ""
    at: Line | None = None


class Loop(msgspec.Struct, frozen=True):
    """A loop of any kind."""

    counter: Stepped | None
    #: Names of what its variables hold where a pass begins.
    changes: frozenset[str]
    #: Whether no condition ends it.
    endless: bool


class LocalArray(NamedTuple):
    """An array that the function declares, in shared memory or a thread's own."""

    type: str
    #: The outermost first; None for one without an extent: dynamic shared memory.
    extents: tuple[Polynomial, ...] | None
    shared: bool


class Stepped(NamedTuple):
    """A loop whose counter goes by a constant step from `start` on."""

    counter: Polynomial
    start: Polynomial
    step: Polynomial


class Fetch(NamedTuple):
    """How a body fetches from a texture: the type that it gets, and by how many coordinates."""

    type: str
    axes: int


class Facts(msgspec.Struct):
    """What a walk over a function's body has found."""

    accesses: list[Access] = []
    #: Arrays with an access that may have been missed, and why.
    escapes: dict[str, str] = {}
    #: Of them those with a pointer that may lead to any element.
    roaming: set[str] = set()
    #: Elements that are handed to where the walk does not follow.
    lent: list[Access] = []
    #: Why parts of the body were not read.
    undecided: list[str] = []
    #: Types of arrays: pointers among parameters and in their structs, variables of the program.
    arrays: dict[str, str] = {}
    loops: list[Stepped] = []
    #: What names stand for that the walk made up.
    meanings: dict[str, Meaning] = {}
    #: Where the text has those first.
    lines: dict[str, Line] = {}
    #: All comparisons of numbers.
    compared: list[Guard] = []
    #: Loops of any kind, and operators in the order of the text.
    every_loop: list[Loop] = []
    operations: list[Operation] = []
    #: Arrays of its own, their accesses, and the numbers that were put into arrays.
    local: dict[str, LocalArray] = {}
    local_accesses: list[Access] = []
    stored: dict[str, list[tuple[Polynomial, tuple[Guard, ...]]]] = {}
    #: Names of numbers that are no whole ones.
    reals: set[str] = set()
    #: Pointers that conditions ask for, so that they may lead nowhere.
    tested: set[str] = set()
    #: Those that are asserted, and those that hold at each barrier of a block.
    asserted: list[Guard] = []
    barriers: list[tuple[Guard, ...]] = []
    #: Arrays that atomic operations change.
    atomics: set[str] = set()
    #: Threads that primitives of a whole block are made for: `BlockReduce<float, 128>`.
    primitives: list[int] = []
    #: Factors of products as the text has them, by their monomials.
    products: dict[Monomial, Monomial] = {}
    #: Names of variables, by the values that they begin with.
    called: dict[Polynomial, list[str]] = {}
    #: What of the launch it reads: `blockIdx.x`, `gridDim.y`.
    launch: set[str] = set()
    #: Textures among the arrays that it fetches from.
    fetches: dict[str, Fetch] = {}
    #: Names that the body has; an array that is none of them is not touched.
    words: frozenset[str] = frozenset()

    def declare(self, name: str, declared: LocalArray) -> str:
        """An array of the function's own, by a name that no other one has."""
        number, array = 1, f"local {name}"
        while self.local.setdefault(array, declared) != declared:
            number += 1
            array = f"local {name} {number}"
        return array

    def note_condition(self, value: Value) -> None:
        """Note a value that decides a condition."""
        if isinstance(value, Pointer):
            self.tested.add(value.array)

    def type_of(self, array: str) -> str:
        """Type of an array's elements; empty where it is not known."""
        own = self.local.get(array)
        return self.arrays.get(array, own.type if own is not None else "")

    def escape(self, array: str, why: str, *, whole: bool = True) -> None:
        """An array, and those that its structs lead to, may be accessed elsewhere.

        whole: by a pointer that may lead to any element.
        """
        inner = [one for one in self.arrays if one.startswith(f"{array}.")]
        for one in [array, *inner] if array in self.arrays or array in self.local else ():
            self.escapes.setdefault(one, why)
        self.roaming.update([array, *inner] if whole else inner)


def fields_of(record: Record) -> Mapping[str, Value]:
    """Fields of a record that were written."""
    return dict(record.fields)


def lanes(values: Sequence[Value]) -> tuple[tuple[str, Value], ...]:
    """Values as the lanes of a vector."""
    return tuple(zip("xyzw", values, strict=False))


def decided(guards: tuple[Guard, ...]) -> bool | None:
    """Whether comparisons of numbers hold; None where one is none, or where there are none."""
    found = []
    for left, sign, right in guards:
        one, other = left.number, right.number
        if one is None or other is None or sign not in SIGNS:
            return None
        found.append(SIGNS[sign](one, other))
    return all(found) if found else None


def truth(value: Value) -> bool | None:
    """Whether a value is another one than 0; None where that is not known."""
    if isinstance(value, Polynomial):
        return None if value.number is None else value.number != 0
    if not isinstance(value, Condition):
        return None
    if value.holds:
        return decided(value.holds)
    fails = decided(value.fails)
    return None if fails is None else not fails
