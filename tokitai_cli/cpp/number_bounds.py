"""What numbers of a body may be: names by their meanings, by comparisons that hold, by assumptions.

An interval may be more than what a number ever is, never less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from tokitai_cli.cpp.body.meanings import Dependencies
from tokitai_cli.cpp.body.operators import OPPOSITE
from tokitai_cli.cpp.body.origins import literal
from tokitai_cli.cpp.body.polynomial import Atom, Composite, Polynomial, Quotient, constant
from tokitai_cli.cpp.body.symbolic_values import (
    Applied,
    Choice,
    Evolving,
    Facts,
    Guard,
    Loaded,
)
from tokitai_cli.cpp.constraints import Constraints, splits
from tokitai_cli.cpp.intervals import (
    NOTHING,
    UNKNOWN,
    Interval,
    Number,
    applied,
    divided,
    hull,
    meet,
    plus,
    point,
    scaled,
    times,
)

_BUDGET, _WHOLE_BUDGET = 2_000, 8_000  # bounds that are computed for a question, and for all
_LESS = 300  # for a question, where another one about the body has taken all of them
_PASSES = 3  # over a loop until its variables' intervals hold
_DEEPEST = 3  # comparisons that one bound is made of
_Key = tuple[object, frozenset[Polynomial], int]


class NumberBounds:
    """Bounds of a body's numbers.

    known: of names: sizes, extents of the launch, threads and blocks. drawn: of values of arrays.
    dependencies: of the body's names.
    """

    def __init__(
        self,
        facts: Facts,
        known: Mapping[str, Interval],
        drawn: Mapping[str, Interval],
        dependencies: Dependencies,
    ) -> None:
        self._facts, self._known, self._drawn = facts, known, drawn
        self._dependencies = dependencies
        self._exact = {
            name: constant(one.number) for name, one in known.items() if isinstance(one.number, int)
        }
        self._assumed: dict[str, Interval] = {}
        # What holds without assumptions, with the first one, with two of them.
        self._highs: list[dict[_Key, Number]] = [{}]
        self._atoms: list[dict[_Key, Interval]] = [{}]
        self._left, self._whole = 0, _WHOLE_BUDGET
        self._fixed: dict[Polynomial, Polynomial] = {}
        self._deep: dict[frozenset[Polynomial], frozenset[str]] = {}
        self._compared_by: dict[tuple[Guard, ...], Constraints] = {}

    def start(self) -> None:
        """Begin a question, which has a budget of its own."""
        self._left = min(_LESS if self._dependencies.hard else _BUDGET, self._whole)

    def fixed(self, value: Polynomial) -> Polynomial:
        """A number with those names put in that are known exactly."""
        found = self._fixed.get(value)
        if found is None:
            found = self._fixed[value] = value.with_values(self._exact)
        return found

    def constraints(self, guards: Sequence[Guard]) -> Constraints:
        """Comparisons with names put in."""
        key = tuple(guards)
        if key not in self._compared_by:
            fixed = [Guard(self.fixed(one), sign, self.fixed(other)) for one, sign, other in guards]
            self._compared_by[key] = Constraints.of(fixed, self._facts.reals)
        return self._compared_by[key]

    def interval(
        self, value: Polynomial, constraints: Constraints, depth: int = _DEEPEST
    ) -> Interval:
        """All that a number may be where constraints hold; names are put in already."""
        return Interval(
            -self._high(-value, constraints, depth), self._high(value, constraints, depth)
        )

    def excludes(self, constraint: Polynomial, constraints: Constraints) -> bool:
        """Whether one of the constraints never holds beside the others."""
        return self._box(constraint, constraints.without(constraint), 1).low > 0

    def _layer(self, value: Polynomial, constraints: Constraints) -> int:
        """How many of the assumptions it may depend on."""
        if not self._assumed:
            return 0
        key, deep = constraints.key, self._dependencies.deep
        if key not in self._deep:
            self._deep[key] = frozenset[str]().union(*map(deep, constraints))
        own, others = deep(value), self._deep[key]
        for back, name in enumerate(reversed(self._assumed)):
            if name in own or name in others:
                return len(self._assumed) - back
        return 0

    def _high(self, value: Polynomial, constraints: Constraints, depth: int) -> Number:
        """The least of the upper bounds that are found."""
        if value.number is not None:
            return value.number
        constraints = constraints.about(self._dependencies.of(value))
        key = (value, constraints.key, depth)
        memory = self._highs[self._layer(value, constraints)]
        if key in memory:
            return memory[key]
        self._left, self._whole = self._left - 1, self._whole - 1
        if self._left < 0:
            self._dependencies.hard = True
            return math.inf
        best = self._box(value, constraints, depth).high
        for one in constraints.replacing(value) if depth > 0 else ():
            more = self._high(one.rest, constraints.without(one.by), depth - 1)
            most = (
                plus(point(more), point(one.most * one.times)) if math.isfinite(more) else UNKNOWN
            )
            best = min(best, divided(most, point(one.over), real=True).high)
        for part in splits(value) if depth > 0 else ():
            whole = self.interval(part.dividend, constraints, depth - 1)
            last = meet(
                Interval(1 - part.divisor, part.divisor - 1),
                Interval(min(0, whole.low), max(0, whole.high)),
            )
            rest = Interval(-math.inf, self._high(part.rest, constraints, depth - 1))
            best = min(best, plus(scaled(last, part.times), rest).high)
        memory[key] = best
        return best

    def _box(self, value: Polynomial, constraints: Constraints, depth: int) -> Interval:
        """The sum of its terms, each as far as it goes by itself."""
        total = point(0)
        for atoms, count in value.terms.items():
            term = point(count)
            for atom in atoms:
                term = times(term, self._within(atom, constraints, depth))
            total = plus(total, term)
        return total

    def _within(self, atom: Atom, constraints: Constraints, depth: int) -> Interval:
        """A name or quotient, by its meaning and what it is compared with."""
        whole = Polynomial({(atom,): 1})
        constraints = constraints.about(self._dependencies.of(whole))
        key = (atom, constraints.key, depth)
        memory = self._atoms[self._layer(whole, constraints)]
        if key not in memory:
            memory[key] = self._compared(atom, constraints, depth)
        return memory[key]

    def _compared(self, atom: Atom, constraints: Constraints, depth: int) -> Interval:
        found = self._atom(atom, constraints, depth)
        for one in constraints if depth > 0 else ():
            parts = one.linear(atom) if atom in one.atoms() else None
            factor = parts[0].number if parts is not None else None
            if parts is None or not factor:
                continue
            rest = -self._high(-parts[1], constraints.without(one), depth - 1)
            if math.isinf(rest):
                continue
            end = divided(point(-rest), point(abs(factor)), real=True).low
            real = atom in self._facts.reals
            if factor > 0:
                found = meet(found, Interval(-math.inf, end if real else math.floor(end)))
            else:
                found = meet(found, Interval(-end if real else math.ceil(-end), math.inf))
        return self._stepped(atom, found)

    def _stepped(self, atom: Atom, interval: Interval) -> Interval:
        """What of an interval a counter may be whose start and steps have a factor in common."""
        meaning = self._facts.meanings.get(atom) if isinstance(atom, str) else None
        if not isinstance(meaning, Evolving) or not isinstance(interval.high, int):
            return interval
        start, end = self.fixed(meaning.start), self.fixed(meaning.end)
        step = (end - Polynomial({(atom,): 1})).number
        common = math.gcd(step or 1, *(count for key, count in start.terms.items() if key))
        return Interval(
            interval.low, interval.high - (interval.high - start.terms.get((), 0)) % common
        )

    def _atom(self, atom: Atom, constraints: Constraints, depth: int) -> Interval:
        if isinstance(atom, Quotient):
            names = atom.dividend.names() | atom.divisor.names()
            above, below = (
                self.interval(one, constraints, depth) for one in (atom.dividend, atom.divisor)
            )
            return divided(above, below, real=bool(names & self._facts.reals))
        if isinstance(atom, Composite):
            return self._composite(atom, constraints, depth)
        if atom in self._assumed:
            return self._assumed[atom]
        if atom in self._known:
            return self._known[atom]
        meaning = self._facts.meanings.get(atom)
        if isinstance(meaning, Loaded):
            return self._assumed.get(meaning.array) or self._loaded(meaning.array)
        if meaning is None:
            number = literal(atom)
            return point(Fraction(number)) if number is not None else UNKNOWN
        if isinstance(meaning, Choice):
            return hull([*self._ways(meaning.ways, constraints)])
        if isinstance(meaning, Applied):
            of_lanes = meaning.operator.startswith("__shfl")
            here = Constraints() if of_lanes else constraints
            given = [self.interval(self.fixed(one), here) for one in meaning.operands]
            return applied(meaning.operator, given)
        return self._evolving(atom, meaning, constraints)

    def _composite(self, atom: Composite, constraints: Constraints, depth: int) -> Interval:
        sign = atom.function.removeprefix("?")
        if sign not in OPPOSITE:
            return applied(sign, [self.interval(one, constraints, depth) for one in atom.parts])
        left, right, yes, no = atom.parts
        holds, fails = Guard(left, sign, right), Guard(left, OPPOSITE[sign], right)
        return hull([*self._ways([(yes, (holds,)), (no, (fails,))], constraints)])

    def _ways(
        self, ways: Sequence[tuple[Polynomial, tuple[Guard, ...]]], constraints: Constraints
    ) -> Iterator[Interval]:
        for value, guards in ways:
            both = constraints.joined(self.constraints(guards))
            if not both.contradict:
                yield self.interval(self.fixed(value), both, max(1, _DEEPEST - len(self._assumed)))

    def _loaded(self, array: str) -> Interval:
        """What an element may hold: what it is drawn from, or what the function puts there."""
        facts = self._facts
        if array in facts.escapes or (array in facts.local and array not in facts.stored):
            return UNKNOWN
        drawn = NOTHING if array in facts.local else self._drawn.get(array, UNKNOWN)
        puts = facts.stored.get(array, ())
        return self._steady(array, drawn, lambda: hull([*self._ways(puts, Constraints())]))

    def _evolving(self, name: str, meaning: Evolving, constraints: Constraints) -> Interval:
        """What a loop's variable may be in front of a pass: an interval that a pass does not leave."""
        start = self.interval(self.fixed(meaning.start), constraints)
        ends = [(meaning.end, meaning.guards)]
        return self._steady(name, start, lambda: hull([*self._ways(ends, Constraints())]))

    def _steady(self, name: str, start: Interval, step: Callable[[], Interval]) -> Interval:
        """The numbers of `start`, and all that steps make of them, each of those before.

        step: what one makes of the numbers that are assumed for the name.
        """
        held = start
        for _ in range(_PASSES if start != UNKNOWN else 0):
            self._assumed[name] = held
            self._highs.append({})
            self._atoms.append({})
            after = hull([start, step()])
            self._highs.pop()
            self._atoms.pop()
            del self._assumed[name]
            if after.within(held):
                return after
            held = Interval(
                held.low if after.low >= held.low else -math.inf,
                held.high if after.high <= held.high else math.inf,
            )
        return held
