"""What an expression of a kernel's body stands for, and what is learned of arrays on the way."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import Polynomial

_SIGNS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


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


class Stepped(NamedTuple):
    """A loop whose counter goes by a constant step from `start` on."""

    counter: Polynomial
    start: Polynomial
    step: Polynomial


class Facts(msgspec.Struct):
    """What a walk over a function's body has found."""

    accesses: list[Access] = []
    #: Arrays with an access that may have been missed, and why.
    escapes: dict[str, str] = {}
    #: Why parts of the body were not read.
    undecided: list[str] = []
    #: Types of arrays: pointers among parameters and in their structs, variables of the program.
    arrays: dict[str, str] = {}
    loops: list[Stepped] = []
    #: Names that the body has; an array that is none of them is not touched.
    words: frozenset[str] = frozenset()


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
        if one is None or other is None or sign not in _SIGNS:
            return None
        found.append(_SIGNS[sign](one, other))
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
