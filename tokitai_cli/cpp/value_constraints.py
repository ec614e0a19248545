"""What a kernel's body asks of the values that its arrays hold, so that loops end and asserts hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.body.meanings import Dependencies
from tokitai_cli.cpp.body.origins import Origins, number_of
from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.body.symbolic_values import (
    Choice,
    Evolving,
    Facts,
    Guard,
    Loaded,
    Meaning,
    Operation,
    Value,
)
from tokitai_cli.cpp.value_branches import MIRRORED, Branch

#: Words of constants for the largest number of a type, and for one that says it is none.
_LARGEST = re.compile(r"(?:U?(?:INT|LONG|LLONG)|U?INT(?:8|16|32|64))_MAX|numeric_limits::max")
_NOTHING = re.compile(r"[A-Z_]*(?:EMPTY|INVALID|UNUSED|NULL|NIL)[A-Z_]*")


class ValueConstraint(NamedTuple):
    """What values of an array are to be."""

    #: `fixed` for `least` everywhere, `slots` for that at many places, `own` for the place of each,
    #: `range` from `least` to `most`, None where it has no such end.
    kind: str
    least: int | None = None
    most: int | None = None


class _Comparison(NamedTuple):
    """An element next to what it is compared with, the sign as from the element on."""

    element: Loaded
    sign: str
    other: Value
    told: Operation


_Number = Callable[[Value], int | None]


class Values:
    """What loops, asserts and branches compare with values of arrays, and what is done with them.

    constants: what names of the source stand for that the walk does not know.
    """

    def __init__(self, facts: Facts, constants: Mapping[str, str]) -> None:
        self._facts, self._constants = facts, constants
        self._origins, self._behind = Origins(facts), Dependencies(facts)
        self._compared: dict[str, list[_Comparison]] = {}
        for one in facts.operations:
            for left, sign, right in (
                (one.left, one.sign, one.right),
                (one.right, MIRRORED.get(one.sign, ""), one.left),
            ):
                for element in self._origins.plainly(left) if sign in MIRRORED else ():
                    found = _Comparison(element, sign, right, one)
                    self._compared.setdefault(element.array, []).append(found)

    def constraint(self, array: str, bits: int, signed: bool) -> ValueConstraint | None:
        """What whole numbers in the array have to be; None where the body asks nothing known."""

        def number(value: Value) -> int | None:
            return self._number(value, bits, signed)

        rules = (self._free, self._awaited, self._linked, self._searched, self._asserted)
        return next(filter(None, (rule(array, number) for rule in rules)), None)

    def divides(self, array: str) -> bool:
        """Whether the kernel divides by elements of the array."""
        return any(one.sign in {"/", "%"} and self._is(one.right, array)
                   for one in self._facts.operations)  # fmt: skip

    def tests_zero(self, array: str) -> bool:
        """Whether a comparison tells an element of 0 from others."""
        return any(number_of(one.other) == 0 for one in self._compared.get(array, ()))

    def tests_below_zero(self, array: str) -> bool:
        """Whether a comparison tells elements below 0 from others, with -1 or with 0."""
        return any(
            (told := self._number(one.other, 64, signed=True)) == -1
            or (told == 0 and one.sign in {"<", ">="})
            for one in self._compared.get(array, ())
        )

    def compared_with(self, array: str) -> set[str]:
        """Names that elements are equal to, or not."""
        found = (one for one in self._compared.get(array, ()) if one.sign in {"==", "!="})
        return {str(one.other) for one in found if isinstance(one.other, Polynomial)}

    def is_packed(self, array: str) -> bool:
        """Whether parts of an element's bits are taken apart, so that it is several small numbers."""
        return any(
            self._is(one.left, array)
            for one in self._facts.operations
            if one.sign == ">>" or (one.sign == "&" and (number_of(one.right) or 0) > 0)
        )

    def indexes(self, array: str) -> bool:
        """Whether places of elements are made of the array's elements.

        Dynamic shared memory does not count, which may hold numbers of several kinds.
        """
        offsets = {one.offset for one in self._facts.accesses}
        told = self._facts.meanings.values()
        offsets |= {one.offset for one in told if isinstance(one, Loaded)}
        return any(array in self._origins.elements(one, self._of_one_kind) for one in offsets)

    def is_bisected(self, array: str) -> bool:
        """Whether comparisons with its elements lead to the next one that is read: a binary search."""
        mine = (one for one in self._facts.accesses if one.array == array and one.kind == "read")
        return any(array in self._behind.deep(one.offset) for one in mine)

    def _of_one_kind(self, told: Meaning) -> bool:
        own = self._facts.local.get(told.array) if isinstance(told, Loaded) else None
        return own is None or own.extents is not None

    def branches(self, array: str) -> list[Branch]:
        """Comparisons of elements that decide which way the kernel goes, not whether it ends."""
        every = self._compared.get(array, ())
        ending = {one[:3] for one in every if one.told.role in {"loop", "assert"}}
        found = (
            Branch(one.sign, one.other, one.told.at)
            for one in every
            if isinstance(one.other, Polynomial) and one[:3] not in ending and self._is_whole(one)
        )
        return list(dict.fromkeys(found))

    def _is_whole(self, one: _Comparison) -> bool:
        """Whether the element itself is compared, and not some of its bits."""
        sides = (one.told.left, one.told.right)
        return any(one.element in self._origins.plainly(side, bits=False) for side in sides)

    def branches_on(self, name: str) -> list[Branch]:
        """Comparisons of an argument by value; as a condition itself it is compared with 0."""
        found = dict[Branch, None]()
        for one in self._facts.operations:
            for side, sign, other in (
                (one.left, one.sign, one.right),
                (one.right, MIRRORED.get(one.sign, ""), one.left),
            ):
                if sign in MIRRORED and isinstance(other, Polynomial) and self._named(side) == name:
                    found[Branch(sign, other, one.at)] = None
        return [*found]

    def tested(self, name: str) -> list[float]:
        """0 and -1 where an argument by value equals them or not, is above 0 or not, or a condition."""
        found = dict[float, None]()
        for one in self.branches_on(name):
            number = number_of(one.operand)
            signs = {"==", "!=", ">", "<="} if number == 0 else {"==", "!="}
            if number in {0, -1} and one.sign in signs:
                found[number] = None
        return list(found)

    def _named(self, value: Value) -> str:
        """The name that a number is, in another type too."""
        told = self._origins.meaning(str(value))
        while isinstance(told, Choice) and len(told.ways) == 1:
            value = told.ways[0][0]
            told = self._origins.meaning(str(value))
        return str(value)

    def number(self, value: Value) -> float | None:
        """The number that a value is, by a constant's name too; None where it is none."""
        told = number_of(value)
        return self._number(value, 64, signed=True) if told is None else told

    def marks(self, name: str) -> bool:
        """Whether elements are equal to an argument by value or not, which bounds nothing: `skip`."""
        bounds = any(
            one.sign in {"<", "<=", ">", ">="}
            and any(isinstance(side, Polynomial) and name in side.names() for side in one[1:3])
            for one in self._facts.operations
        )
        return not bounds and any(name in self.compared_with(one) for one in self._compared)

    def multiplies(self, name: str) -> bool:
        """Whether an index has a product with an argument by value."""
        return any(
            name in key and len(key) > 1 for one in self._facts.accesses for key in one.offset.terms
        )

    def behind_last(self, array: str) -> Iterator[Polynomial]:
        """Numbers that stand in for the element behind the last: `i + 1 < n ? at[i + 1] : total`."""
        for told in self._facts.meanings.values():
            ways = told.ways if isinstance(told, Choice) else ()
            for element, guards in ways[:1] if len(ways) == 2 else ():
                if any(_is_last(one, guards) for one in self._own(element, array)):
                    yield ways[1][0]

    def _own(self, value: Value, array: str) -> Iterator[Loaded]:
        """Elements of the array that a value is."""
        return (one for one in self._origins.plainly(value) if one.array == array)

    def _is(self, value: Value, array: str) -> bool:
        return any(True for _ in self._own(value, array))

    def _number(self, value: Value, bits: int, signed: bool) -> int | None:
        """What a constant is in a type of so many bits; all of them for one that says it is none."""
        every = (1 << bits) - 1
        if not isinstance(value, Polynomial):
            return None
        number = value.number
        if number is None and (told := self._constants.get(str(value))):
            number = constant(told, self._constants)
        if number is not None:
            number &= every
            return number - every - 1 if signed and number > every >> 1 else number
        if _LARGEST.fullmatch(str(value)):
            return every >> signed
        named = str(value).rpartition("::")[2].partition("<")[0]
        return (-1 if signed else every) if _NOTHING.fullmatch(named) else None

    def _free(self, array: str, number: _Number) -> ValueConstraint | None:
        """Locks and slots that are taken where they hold a constant are free."""
        for one in self._facts.operations:
            if one.sign == "swap" and self._is(one.left, array):
                value = number(one.right)
                if value is not None:
                    return ValueConstraint("fixed", value)
        return None

    def _awaited(self, array: str, number: _Number) -> ValueConstraint | None:
        """Flags that loops wait for, and that the kernel sets, are set."""
        given = {number(one) for one in self._origins.put_into(array)} - {None}
        for one in self._compared.get(array, ()) if given else ():
            value = number(one.other) if one.sign == "==" and one.told.loops else None
            if value in given:
                return ValueConstraint("fixed", value)
        return None

    def _linked(self, array: str, number: _Number) -> ValueConstraint | None:
        """Links that a loop goes along end at once: with a constant, or each at its own place."""
        for loop in self._along(array):
            inside = [one for one in self._compared.get(array, ()) if loop in one.told.loops]
            equal = [one for one in inside if one.sign in {"==", "!="}]
            for one in equal:
                if (value := number(one.other)) is not None:
                    return ValueConstraint("fixed", value)
            if any(self._is(one.told.left, array) and self._is(one.told.right, array)
                   for one in equal):  # fmt: skip
                return ValueConstraint("own")
        return None

    def _along(self, array: str) -> Iterator[int]:
        """Loops with a variable that becomes the element at the place that it says itself."""
        for name, told in self._facts.meanings.items():
            if not isinstance(told, Evolving):
                continue
            for one in self._origins.plainly(told.end):
                if one.array == array and name in self._origins.behind(one.offset, places=True):
                    loops = enumerate(self._facts.every_loop)
                    yield from (at for at, loop in loops if name in loop.changes)

    def _searched(self, array: str, number: _Number) -> ValueConstraint | None:
        """What a search goes on until it finds is found soon."""
        for one in self._compared.get(array, ()):
            if one.sign not in {"==", "!="} or (value := number(one.other)) is None:
                continue
            if one.told.role == "loop":
                fixed = one.sign == "==" or not self._moves(one)
                return ValueConstraint("fixed" if fixed else "slots", value + (one.sign == "=="))
            endless = any(self._facts.every_loop[at].endless for at in one.told.loops)
            if one.told.role == "leave" and one.sign == "==" and endless:
                return ValueConstraint("slots", value)
        return None

    def _moves(self, one: _Comparison) -> bool:
        """Whether the loop goes from one element to others that are not told by elements themselves."""
        loop = self._facts.every_loop[one.told.loops[-1]]
        by_itself = one.element.array in self._origins.elements(one.element.offset)
        return not by_itself and not loop.changes.isdisjoint(
            self._origins.behind(one.element.offset, places=True)
        )

    def _asserted(self, array: str, number: _Number) -> ValueConstraint | None:
        """What asserts say of elements."""
        least: int | None = None
        most: int | None = None
        for one in self._compared.get(array, ()):
            value = number(one.other) if one.told.role == "assert" else None
            if value is None:
                continue
            if one.sign == "==":
                return ValueConstraint("fixed", value)
            if one.sign in {">", ">="} or (one.sign == "!=" and value == 0):
                least = value + (one.sign != ">=")
            elif one.sign in {"<", "<="}:
                most = value - (one.sign == "<")
        return None if least is None and most is None else ValueConstraint("range", least, most)


def _is_last(one: Loaded, guards: Sequence[Guard]) -> bool:
    """Whether an element is the one behind another, and a comparison says that there is one."""
    return one.offset.terms.get(()) == 1 and any(guard.left == one.offset for guard in guards)
