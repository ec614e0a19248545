"""Sums and maxima of a kernel's body, and means that are taken away from what they are made of."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from tokitai_cli.cpp.body.origins import Origins, is_same
from tokitai_cli.cpp.body.polynomial import Atom, Monomial, Polynomial, Quotient, variable
from tokitai_cli.cpp.body.symbolic_values import (
    Applied,
    Choice,
    Evolving,
    Facts,
    Guard,
    Line,
    Loaded,
    Meaning,
    Value,
)

MAXIMUM = re.compile(r"_*h?2?[fu]?(?:ll|ull)?max(?:imum)?[fl]?(?:_nan)?", re.I)
_SUM = re.compile(r"sum|reduce|add\b", re.I)


class Maximum(NamedTuple):
    """Two values of which the larger is taken, and where."""

    left: Polynomial
    right: Polynomial
    at: Line | None


class Reductions:
    """What is made of several elements of arrays of floats.

    floats: names of these arrays in the body.
    """

    def __init__(self, facts: Facts, floats: Collection[str]) -> None:
        self._facts, self._floats = facts, frozenset(floats)
        self._origins = Origins(facts)

    @functools.cached_property
    def addends(self) -> Mapping[str, list[Polynomial]]:
        """What is added to variables of loops, to elements, and by functions, by their names."""
        found: dict[str, list[Polynomial]] = {}
        for name, told in self._facts.meanings.items():
            if isinstance(told, Evolving):
                for end in self.alternatives(told.end):
                    parts = end.linear(name)
                    if parts is not None and parts[0] and end != variable(name):
                        found.setdefault(name, []).append(parts[1])
            elif isinstance(told, Applied) and _SUM.search(told.operator):
                found.setdefault(name, []).extend(told.operands)
        for array in self._facts.stored:
            for value in self._origins.put_into(array):
                for atom in value.atoms():
                    own, parts = self._origins.meaning(atom), value.linear(atom)
                    if isinstance(own, Loaded) and own.array == array and parts is not None:
                        found.setdefault(array, []).append(parts[1])
        return found

    @functools.cached_property
    def maxima(self) -> list[Maximum]:
        """Where the larger of two values of an array is taken."""
        lines = self._facts.lines
        found = [
            Maximum(one, other, lines.get(name))
            for name, told in self.named_calls(MAXIMUM)
            for at, one in enumerate(told.operands) for other in told.operands[at + 1 :]
        ]  # fmt: skip
        for name, value, guards in self.ways():
            larger = (one for one in guards if _larger(value, one))
            found += [Maximum(one.left, one.right, lines.get(name)) for one in larger]
        return [one for one in found if self.shared(one.left, one.right)]

    def is_reduced(self, value: Value) -> bool:
        """Whether a value is made of a sum over elements."""
        names = value.names() if isinstance(value, Polynomial) else set()
        return any(self._sums.get(one) for one in names)

    @functools.cached_property
    def _sums(self) -> Mapping[str, frozenset[str]]:
        """Names of sums over elements, and of the function's own arrays of such, behind names."""
        summed = {name for name, every in self.addends.items() if any(map(self.loads, every))}
        begin = {name: frozenset({name}) for name in summed}
        for name, told in self._facts.meanings.items():
            if isinstance(told, Loaded) and told.array in summed & self._facts.local.keys():
                begin[name] = frozenset({told.array})
        return self._origins.spread(begin)

    def is_signed(self, value: Polynomial) -> bool:
        """Whether a value is an element, or a multiple of one."""
        if any(len({*key}) < len(key) for key in value.terms):
            return False
        return bool(self._origins.elements(value, into=_keeps_sign) & self._floats)

    def is_difference(self, value: Value) -> bool:
        """Whether a value is an element less a mean of such."""
        if not isinstance(value, Polynomial):
            return False
        more = {one for key, count in value.terms.items() if count > 0 for one in key}
        less = [key for key, count in value.terms.items() if key and count < 0]
        means = {mean for key in less for mean in key if self.is_reduced(number(mean))}
        return any(self._is_mean(mean, one) for mean in means for one in more)

    def is_variance(self, whole: Polynomial) -> bool:
        """Whether a value has squares of such differences, or squares less a mean's square."""
        if any(map(self._is_power_of_difference, whole.atoms())):
            return True
        for key, count in whole.terms.items():
            squared = {atom for atom in key if key.count(atom) > 1}
            if any(self.is_difference(one) for atom in squared for one in self._made_of(atom)):
                return True
            if count < 0 and (
                self._from_squares(whole, key, squared) or self._of_difference(whole, key)
            ):
                return True
        return False

    def alternatives(self, value: Polynomial) -> Iterator[Polynomial]:
        """A value, and those that it is one of."""
        yield value
        told = self._origins.meaning(str(value))
        if isinstance(told, Choice):
            yield from (one for one, _ in told.ways)

    @functools.cached_property
    def values(self) -> Mapping[Polynomial, Line | None]:
        """All numbers that the body computes on the way, and where."""
        facts = self._facts
        sides = ((side, one.at) for one in facts.operations for side in (one.left, one.right))
        found = {one: at for one, at in sides if isinstance(one, Polynomial)}
        for name, told in facts.meanings.items():
            for part in self._origins.parts(told):
                found.setdefault(part, self._line(name, part))
        for put, line in self._written():
            found.setdefault(put, line)
        for name, every in self.addends.items():
            for addend in every:
                found.setdefault(addend, self._line(name, addend))
        return found

    def _written(self) -> Iterator[tuple[Polynomial, Line | None]]:
        """Numbers that are put into arrays, and where; initial values are in front of the others."""
        facts = self._facts
        lines: dict[str, list[Line]] = {}
        for access in (*facts.accesses, *facts.local_accesses):
            if access.kind != "read":
                lines.setdefault(access.array, []).append(Line(access.file, access.line))
        for array in facts.stored:
            put = self._origins.put_into(array)
            known = lines.get(array, [])
            yield from zip(put, [*[None] * (len(put) - len(known)), *known], strict=False)

    def _line(self, name: str, value: Polynomial) -> Line | None:
        """Where a number is computed that is part of what a name stands for: behind its own names."""
        lines = self._facts.lines
        found = [line for one in (name, *value.names()) if (line := lines.get(one)) is not None]
        here = [one for one in found if one.file == found[0].file]
        return max(here, key=lambda one: one.line, default=None)

    def shared(self, left: Value, right: Value) -> set[str]:
        """Arrays that two values are both made of elements of."""
        return self._origins.elements(left) & self._origins.elements(right)

    def loads(self, value: Value) -> bool:
        """Whether a value is made of elements of arrays of floats."""
        return bool(self._origins.elements(value) & self._floats)

    def ways(self) -> Iterator[tuple[str, Polynomial, tuple[Guard, ...]]]:
        """Values that are one of several: what they are then called, and what holds where they are."""
        for name, told in self._facts.meanings.items():
            yield from (((name, *way) for way in told.ways) if isinstance(told, Choice) else ())

    def calls(self, name: re.Pattern[str]) -> list[Applied]:
        """Functions of that name, as they are applied."""
        return [one for _, one in self.named_calls(name)]

    def named_calls(self, name: re.Pattern[str]) -> list[tuple[str, Applied]]:
        """Functions of that name as they are applied, and what their results are called."""
        every = (
            (told, one) for told, one in self._facts.meanings.items() if isinstance(one, Applied)
        )
        return [(told, one) for told, one in every if name.fullmatch(one.operator)]

    def _is_power_of_difference(self, atom: Atom) -> bool:
        told = self._origins.meaning(atom)
        if not isinstance(told, Applied) or "pow" not in told.operator:
            return False
        return any(map(self.is_difference, told.operands[:1]))

    def _made_of(self, atom: Atom) -> Iterator[Polynomial]:
        """What a name is, or is one of."""
        told = self._origins.meaning(atom)
        if told is not None and not isinstance(told, Applied):
            for value in self._origins.parts(told):
                yield from self.alternatives(value)

    def _from_squares(self, whole: Polynomial, key: Monomial, squared: set[Atom]) -> bool:
        """`squares - mean * mean`, the mean as a quotient too."""
        inner = [atom.dividend for atom in key if isinstance(atom, Quotient)]
        squared = squared | {
            one for each in inner for part in each.terms for one in part if part.count(one) > 1
        }
        means = [one for one in map(number, squared) if self.is_reduced(one)]
        others = Polynomial({term: 1 for term in whole.terms if term != key})
        return any(self.shared(mean, others) for mean in means)

    def _of_difference(self, whole: Polynomial, key: Monomial) -> bool:
        """`(x - mean) * (x - mean)`, multiplied out."""
        for one in key:
            for other in {*key} - {one}:
                doubled = list(key)
                doubled[doubled.index(other)] = one
                square = tuple(sorted(doubled, key=str))
                if whole.terms.get(square, 0) > 0 and self._is_mean(other, one):
                    return True
        return False

    def _is_mean(self, mean: Atom, one: Atom) -> bool:
        """Whether a name is made of a sum over elements of the array that another is of."""
        whole = number(mean)
        return self.is_reduced(whole) and bool(self.shared(whole, number(one)) & self._floats)


def number(atom: Atom) -> Polynomial:
    """A name as a number."""
    return Polynomial({(atom,): 1})


def _keeps_sign(told: Meaning) -> bool:
    if isinstance(told, Applied):
        return is_same(told) or told.operator == "{}"
    return not (isinstance(told, Evolving) and len(told.end.terms) > 1)


def _larger(value: Polynomial, guard: Guard) -> bool:
    """Whether a value is taken where it is the larger of two."""
    above = guard.left if guard.sign in {">", ">="} else guard.right
    return guard.sign in {"<", "<=", ">", ">="} and above == value
