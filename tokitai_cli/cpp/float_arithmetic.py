"""What a kernel's body computes of floats, as far as it decides at which values faults show."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from tokitai_cli.cpp.body.origins import Origins, is_same, literal, number_of
from tokitai_cli.cpp.body.polynomial import Atom, Monomial, Polynomial, Quotient
from tokitai_cli.cpp.body.symbolic_values import Applied, Evolving, Facts, Line, Loaded, Value
from tokitai_cli.cpp.sums_and_maxima import MAXIMUM, Reductions, number

# Functions by their names, those of half precision and of single precision too.
_EXPONENTIAL = re.compile(r"_*h?2?(?:fast_?)?exp(?:2|10|e)?[fl]?(?:_\w+)?", re.I)
_ROOT = re.compile(r"_*[hdf]?2?r?sqrt[fl]?(?:_\w+)?|r?(?:norm(?:[34]d)?|hypot)[fl]?", re.I)
_RECIPROCAL_ROOT = re.compile(r"_*[hdf]?2?rsqrt[fl]?(?:_\w+)?|r(?:norm(?:[34]d)?|hypot)[fl]?", re.I)
_CLIPPING = re.compile(r"_*h?2?[fu]?(?:ll|ull)?(?:m(?:ax|in)(?:imum)?|clamp)[fl]?(?:_nan)?", re.I)
_MAGNITUDE = re.compile(r"_*h?2?[fl]*abs(?:max)?[fl]?2?", re.I)
#: Names of constants that keep roots and divisors from 0.
EPSILON = re.compile(r"(?:^|[._])eps(?:ilon)?$|^k?eps|eps(?:ilon)?$", re.I)
_SMALL = 1e-2  # constants up to it do so


class Computed(NamedTuple):
    """Something that a body computes: of which numbers, and where."""

    of: tuple[Polynomial, ...]
    at: Line | None


class Numerics:
    """What is computed of arrays of floats; of several places all are told.

    floats: names of these arrays in the body.
    """

    def __init__(self, facts: Facts, floats: Collection[str]) -> None:
        self._facts = facts
        self._floats = frozenset(floats)
        self._origins = Origins(facts)
        self._reductions = Reductions(facts, floats)

    def arrays(self, computed: Computed) -> frozenset[str]:
        """Arrays of floats that something is computed of."""
        every = (self._origins.elements(one) for one in computed.of)
        return frozenset[str]().union(*every) & self._floats

    @functools.cached_property
    def exponentials(self) -> list[Computed]:
        """Exponentials of what it loads."""
        lines = self._facts.lines
        return [
            Computed((one,), lines.get(name))
            for name, told in self._reductions.named_calls(_EXPONENTIAL)
            for one in told.operands if self._reductions.loads(one)
        ]  # fmt: skip

    @property
    def open_exponentials(self) -> list[Computed]:
        """Those whose exponents no function clips, so that they may be large."""
        return [
            one for one in self.exponentials
            if not any(self._called(atom, _CLIPPING) for atom in self._origins.behind(one.of[0]))
        ]  # fmt: skip

    @property
    def summed_exponentials(self) -> list[Computed]:
        """Exponentials that are added up."""
        return [
            Computed((number(atom),), self._facts.lines.get(str(atom)))
            for every in self._reductions.addends.values()
            for value in every for atom in self._factors(value)
            if self._called(atom, _EXPONENTIAL)
        ]  # fmt: skip

    @property
    def maxima(self) -> list[Computed]:
        """Where the largest of several values of an array is found."""
        return [Computed((one.left, one.right), one.at) for one in self._reductions.maxima]

    @property
    def loaded_maxima(self) -> list[Computed]:
        """Those with values of the array itself among them, which may all be negative."""
        return [one for one in self.maxima if any(map(self._reductions.is_signed, one.of))]

    @property
    def places_found(self) -> list[Computed]:
        """Where what it does next depends on which of two elements of an array is larger."""
        return [
            Computed((guard.left, guard.right), self._facts.lines.get(name))
            for name, _, guards in self._reductions.ways()
            for guard in guards
            if guard.sign not in {"==", "!="}
            and self._reductions.shared(guard.left, guard.right) & self._floats
        ]

    @property
    def variances(self) -> list[Computed]:
        """Where it squares distances from a mean, or takes a mean's square from that of squares."""
        told = self._reductions
        return [Computed((one,), at) for one, at in told.values.items() if told.is_variance(one)]

    @property
    def normalises(self) -> bool:
        """Whether it takes elements less their mean, or by their sum: of one the same for any value."""
        told = self._reductions
        parts = [(one.left, one.right) for one in self._facts.operations if one.sign == "/"]
        parts += [(number(one), number(root)) for one, root in self._times_roots()]
        return any(map(told.is_difference, told.values)) or any(
            told.is_reduced(divisor) and told.shared(one, divisor) for one, divisor in parts
        )

    @property
    def divisions_by_own(self) -> list[Computed]:
        """Where it divides by a largest magnitude, a length, or a sum that it tests, all maybe 0."""
        tested = [one.left for one in self._facts.operations if number_of(one.right) == 0]
        return [
            Computed((value,), at)
            for value, root, at in self._divisors
            if self._is_open(value) and (root or self._measures(value) or value in tested)
        ]

    @property
    def small_addends(self) -> list[Computed]:
        """Where a small constant keeps a root or a divisor from 0."""
        lines, told = self._facts.lines, self._reductions
        found = [Computed(one.operands, lines.get(name)) for name, one in told.named_calls(MAXIMUM)]
        found += [
            Computed(one.operands[:1], lines.get(name)) for name, one in told.named_calls(_ROOT)
        ]
        found += [Computed((value,), at) for value, _, at in self._divisors]
        return [
            one for one in found
            if any(map(told.loads, one.of)) and any(_is_small(k) for each in one.of for k in each.terms)
        ]  # fmt: skip

    def takes_root(self, array: str) -> bool:
        """Whether a root is taken of what becomes of an array's elements, as of second moments."""
        return any(
            array in self._origins.elements(value, into=lambda told: not isinstance(told, Evolving))
            and not self._squares(value, array)
            for told in self._reductions.calls(_ROOT)
            for value in told.operands
        )

    def carries(self, name: str) -> bool:
        """Whether what a variable of a loop becomes is made of itself, and no sum."""
        told = self._facts.meanings.get(name)
        if not isinstance(told, Evolving) or name not in self._origins.behind(told.end):
            return False
        ends = [one for one in self._reductions.alternatives(told.end) if name in one.names()]
        return not ends or not all(self._is_sum_with(one, name) for one in ends)

    @functools.cached_property
    def _divisors(self) -> list[tuple[Polynomial, bool, Line | None]]:
        """What it divides by, whether a root is taken of it first, and where."""
        found = [(one.right, False, one.at) for one in self._facts.operations if one.sign == "/"]
        found += [
            (one, True, self._facts.lines.get(name))
            for name, told in self._reductions.named_calls(_RECIPROCAL_ROOT)
            for one in told.operands
        ]
        return [
            (one, root, at) for one, root, at in found
            if isinstance(one, Polynomial) and self._reductions.loads(one)
        ]  # fmt: skip

    def _times_roots(self) -> Iterator[tuple[Atom, Atom]]:
        """Factors beside reciprocal roots: `x * rsqrt(squares)`."""
        for value in self._reductions.values:
            for key in value.terms if len(value.terms) == 1 else ():
                roots = [one for one in key if self._called(one, _RECIPROCAL_ROOT)]
                yield from ((one, root) for root in roots for one in key if one != root)

    def _is_sum_with(self, value: Polynomial, name: str) -> bool:
        """Whether a value is a variable and what does not depend on it."""
        return name not in self._origins.behind(value - number(name))

    def _measures(self, value: Value) -> bool:
        """Whether a value is a root, or the largest of magnitudes."""
        every = [*self._origins.behind(value)]
        if any(self._called(atom, _ROOT) for atom in every):
            return True
        of_magnitudes = any(self._called(atom, _MAGNITUDE) for atom in every)
        return of_magnitudes and any(
            self._reductions.shared(value, one) for each in self.maxima for one in each.of
        )

    def _is_open(self, value: Value) -> bool:
        """Whether nothing keeps a computed value from 0, and no exponential is in it."""
        is_element = any(True for _ in self._origins.plainly(value))
        if is_element and not self._reductions.is_reduced(value):
            return False
        for atom in self._origins.behind(value):
            told = self._origins.meaning(atom)
            given = told.operands if isinstance(told, Applied) else ()
            clipped = self._called(atom, MAXIMUM) and any(map(_is_above_zero, given))
            if clipped or self._called(atom, _EXPONENTIAL) or _is_small((atom,)):
                return False
        return True

    def _called(self, atom: Atom, name: re.Pattern[str]) -> bool:
        told = self._origins.meaning(atom)
        return isinstance(told, Applied) and name.fullmatch(told.operator) is not None

    def _factors(self, value: Polynomial) -> Iterator[Atom]:
        """Names that a value is made of by sums and products, not as a divisor or within a function."""
        waiting, seen = [value], set[Atom]()
        while waiting:
            for atom in waiting.pop().atoms() - seen:
                seen.add(atom)
                yield atom
                told = self._origins.meaning(atom)
                if isinstance(atom, Quotient):
                    waiting.append(atom.dividend)
                elif isinstance(told, Loaded):
                    waiting += self._origins.put_into(told.array)
                elif told is not None and (not isinstance(told, Applied) or is_same(told)):
                    waiting += self._origins.parts(told)

    def _squares(self, value: Polynomial, array: str) -> bool:
        """Whether elements of the array are squared in a value."""
        quotients = [one for one in self._origins.behind(value) if isinstance(one, Quotient)]
        keys = [*value.terms, *(key for one in quotients for key in one.dividend.terms)]
        doubled = {one for key in keys for one in key if key.count(one) > 1}
        return any(array in self._origins.elements(number(one)) for one in doubled)


def _is_small(key: Monomial) -> bool:
    """Whether a term is a small constant, or is called so."""
    if len(key) != 1:
        return False
    told = literal(key[0])
    named = isinstance(key[0], str) and bool(EPSILON.search(key[0]))
    return named or (told is not None and 0 < told <= _SMALL)


def _is_above_zero(value: Polynomial) -> bool:
    return (number_of(value) or 0) > 0 or bool(EPSILON.search(str(value)))
