"""How far a kernel's indices go at given sizes, in a given launch: elements that its arrays need.

Each index is bounded by what its names may be (threads by the launch, counters by their loops, values
of arrays by what they are drawn from) and by the comparisons that hold where it is used. A bound may be
more than what is reached, never less; an index that nothing bounds has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tokitai_cli.cpp.body.polynomial import Atom, Composite, Polynomial, Quotient, constant
from tokitai_cli.cpp.body.symbolic_values import (
    Access,
    Applied,
    Choice,
    Evolving,
    Facts,
    Guard,
    Loaded,
    Meaning,
)
from tokitai_cli.cpp.body.walk import row_of
from tokitai_cli.cpp.constraints import Constraints, splits
from tokitai_cli.cpp.intervals import (
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

_BUDGET = 40_000  # intervals that are computed of one access
_PASSES = 3  # over a loop until its variables' intervals hold
_DEEPEST = 3  # comparisons that one bound is made of
_NEVER = Interval(math.inf, -math.inf)


class IndexBounds:
    """Bounds of a body's indices.

    known: of names: sizes, extents of the launch, threads and blocks. drawn: of values of arrays.
    """

    def __init__(
        self, facts: Facts, known: Mapping[str, Interval], drawn: Mapping[str, Interval]
    ) -> None:
        self._facts, self._known, self._drawn = facts, known, drawn
        self._exact = {
            name: constant(int(one.low)) for name, one in known.items() if one.number is not None
        }
        self._assumed: dict[str, Interval] = {}
        self._open: set[str] = set()
        self._memory: list[dict[tuple[object, ...], Interval]] = [{}]
        self._left = 0
        self._near: dict[str, frozenset[str]] = {}
        self._reached: dict[tuple[str, int | None], tuple[int | None, int]] = {}

    def elements(self, array: str, row: int | None = None, *, least: bool = False) -> int | None:
        """Elements that are reached; None where an index has no bound or the walk missed some.

        row: of an array of pointers, the one that is asked for. least: those that the bounded indices
        reach, whatever the others do.
        """
        key = array, row
        if key not in self._reached:
            self._reached[key] = self._elements(array, row)
        whole, bounded = self._reached[key]
        return bounded if least else whole

    def top(self, value: Polynomial) -> int | None:
        """Largest value of a number; None where it has no bound."""
        self._left = _BUDGET
        high = self._interval(self._fixed(value), Constraints()).high
        return math.floor(high) if math.isfinite(high) else None

    def goes_beyond_shared(self) -> bool:
        """Whether some index goes beyond a shared array of fixed extents."""
        for array, one in self._facts.local.items():
            if not one.shared or one.extents is None:
                continue
            held = math.prod(
                (one.with_values(self._exact) for one in one.extents), start=constant(1)
            )
            if held.number is not None and (self.elements(array, least=True) or 0) > held.number:
                return True
        return False

    def _elements(self, array: str, row: int | None) -> tuple[int | None, int]:
        """Elements, None where these are not known, and those of the bounded indices."""
        facts = self._facts
        every = facts.local_accesses if array in facts.local else facts.accesses
        mine = dict.fromkeys((one.offset, one.guards, one.unit, one.units) for one in every
                             if one.array == array)  # fmt: skip
        missed = array in facts.escapes or bool(facts.undecided)
        unseen = not mine and array.rpartition(".")[2] in facts.words
        ends = [
            self._end(Access(array, offset, "", guards, "", 0, unit, units), row)
            for offset, guards, unit, units in mine
        ]
        bounded = max((one for one in ends if one is not None), default=0)
        known = None not in ends and not missed and not unseen
        return (bounded if known else None), bounded

    def _end(self, one: Access, row: int | None) -> int | None:
        """The place behind what an access reaches; 0 where it is never done."""
        rows = row_of(one.array)
        parts = one.offset.linear(rows)
        if parts is not None and row is not None and parts[0].number not in {None, row}:
            return 0
        self._left = _BUDGET
        constraints = self._constraints(one.guards)
        offset = self._fixed(one.offset.with_values({rows: constant(0)}))
        reached = _NEVER if constraints.contradict else self._interval(offset, constraints)
        if reached.is_empty or any(self._excludes(each, constraints) for each in constraints):
            return 0
        units = self.top(one.units) if one.units is not None else None
        if one.unit is None or units is None or math.isinf(reached.high):
            return None
        width = max(1, math.ceil(units * one.unit))
        return max(0, math.floor(reached.high) + width) if units > 0 else 0

    def _excludes(self, one: Polynomial, constraints: Constraints) -> bool:
        """Whether a comparison never holds."""
        return self._box(one, constraints.without(one), 1).low > 0

    # Intervals of numbers

    def _fixed(self, value: Polynomial) -> Polynomial:
        return value.with_values(self._exact)

    def _names(self, value: Polynomial) -> frozenset[str]:
        """Names that a number has, and those that these are made of."""
        return frozenset().union(*(self._made_of(one) for one in value.names()))

    def _made_of(self, name: str) -> frozenset[str]:
        if name in self._near:
            return self._near[name]
        self._near[name] = frozenset({name})
        meaning = self._facts.meanings.get(name)
        parts: Sequence[Polynomial] = ()
        if isinstance(meaning, Choice):
            parts = [one for one, _ in meaning.ways]
        elif isinstance(meaning, Applied):
            parts = meaning.operands
        elif isinstance(meaning, Evolving):
            parts = [meaning.start]
        self._near[name] = frozenset({name}).union(*map(self._names, parts))
        return self._near[name]

    def _constraints(self, guards: Sequence[Guard]) -> Constraints:
        fixed = [Guard(self._fixed(one), sign, self._fixed(other)) for one, sign, other in guards]
        return Constraints.of(fixed, self._facts.reals)

    def _interval(
        self, value: Polynomial, constraints: Constraints, depth: int = _DEEPEST
    ) -> Interval:
        """All that a number may be where constraints hold; exact names are put in already."""
        if value.number is not None:
            return point(value.number)
        constraints = constraints.about(self._names(value))
        key = (value, constraints.key, depth)
        memory = self._memory[-1]
        if key in memory:
            return memory[key]
        self._left -= 1
        if self._left < 0:
            return UNKNOWN
        high = self._high(value, constraints, depth)
        low = -self._high(-value, constraints, depth)
        memory[key] = Interval(low, high)
        return memory[key]

    def _high(self, value: Polynomial, constraints: Constraints, depth: int) -> Number:
        """The least of the upper bounds that are found."""
        best = self._box(value, constraints, depth).high
        for one in constraints.replacing(value) if depth > 0 else ():
            more = self._interval(one.rest, constraints.without(one.by), depth - 1)
            most = plus(more, point(one.most * one.times)).high
            best = min(best, divided(point(most), point(one.over), real=True).high)
        for part in splits(value) if depth > 0 else ():
            whole = self._interval(part.dividend, constraints, depth - 1)
            last = meet(
                Interval(1 - part.divisor, part.divisor - 1),
                Interval(min(0, whole.low), max(0, whole.high)),
            )
            rest = self._interval(part.rest, constraints, depth - 1)
            best = min(best, plus(scaled(last, part.times), rest).high)
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
        found = self._atom(atom, constraints, depth)
        if depth <= 0:
            return found
        for one in constraints:
            parts = one.linear(atom) if atom in one.atoms() else None
            factor = parts[0].number if parts is not None else None
            if parts is None or not factor:
                continue
            rest = self._interval(parts[1], constraints.without(one), depth - 1).low
            if math.isinf(rest):
                continue
            end = divided(point(-rest), point(abs(factor)), real=True).low
            real = atom in self._facts.reals
            if factor > 0:
                found = meet(found, Interval(-math.inf, end if real else math.floor(end)))
            else:
                found = meet(found, Interval(-end if real else math.ceil(-end), math.inf))
        return found

    def _atom(self, atom: Atom, constraints: Constraints, depth: int) -> Interval:
        if isinstance(atom, Quotient):
            names = atom.dividend.names() | atom.divisor.names()
            above, below = (
                self._interval(one, constraints, depth) for one in (atom.dividend, atom.divisor)
            )
            return divided(above, below, real=bool(names & self._facts.reals))
        if isinstance(atom, Composite):
            parts = [self._interval(one, constraints, depth) for one in atom.parts]
            return applied(atom.function, parts) if atom.function in {"min", "max"} else UNKNOWN
        if atom in self._assumed:
            return self._assumed[atom]
        if atom in self._known:
            return self._known[atom]
        meaning = self._facts.meanings.get(atom)
        if meaning is None or atom in self._open:
            return UNKNOWN
        self._open.add(atom)
        found = self._meant(atom, meaning, constraints)
        self._open.discard(atom)
        return found

    def _meant(self, name: str, meaning: Meaning, constraints: Constraints) -> Interval:
        if isinstance(meaning, Loaded):
            return self._loaded(meaning.array)
        if isinstance(meaning, Choice):
            return hull([*self._ways(meaning.ways, constraints)])
        if isinstance(meaning, Applied):
            of_lanes = meaning.operator.startswith("__shfl")
            here = Constraints() if of_lanes else constraints
            given = [self._interval(self._fixed(one), here) for one in meaning.operands]
            return applied(meaning.operator, given)
        return self._evolving(name, meaning, constraints)

    def _ways(
        self, ways: Sequence[tuple[Polynomial, tuple[Guard, ...]]], constraints: Constraints
    ) -> Iterator[Interval]:
        for value, guards in ways:
            both = constraints.joined(self._constraints(guards))
            if not both.contradict:
                yield self._interval(self._fixed(value), both)

    def _loaded(self, array: str) -> Interval:
        """What an element may hold: what it is drawn from, or what the function puts there."""
        facts = self._facts
        if array not in facts.local:
            return self._drawn.get(array, UNKNOWN)
        if array in facts.escapes or array in self._open or array not in facts.stored:
            return UNKNOWN
        self._open.add(array)
        found = hull([*self._ways(facts.stored[array], Constraints())])
        self._open.discard(array)
        return found

    def _evolving(self, name: str, meaning: Evolving, constraints: Constraints) -> Interval:
        """What a loop's variable may be in front of a pass: an interval that a pass does not leave."""
        start = self._interval(self._fixed(meaning.start), constraints)
        guards = self._constraints(meaning.guards)
        held = start
        for _ in range(_PASSES):
            after = hull([start, self._after(name, held, meaning, guards)])
            if after.within(held):
                return after
            held = Interval(
                held.low if after.low >= held.low else -math.inf,
                held.high if after.high <= held.high else math.inf,
            )
        return held

    def _after(self, name: str, held: Interval, meaning: Evolving, guards: Constraints) -> Interval:
        """What a pass leaves, where the variable was within `held` in front of it."""
        before = self._assumed.get(name)
        self._assumed[name] = held
        self._memory.append({})
        end = self._interval(self._fixed(meaning.end), guards)
        self._memory.pop()
        del self._assumed[name]
        if before is not None:
            self._assumed[name] = before
        return _NEVER if guards.contradict else end


def launched(kind: str, counts: Sequence[int]) -> dict[str, Interval]:
    """Threads of a block ("thread") or blocks of a grid ("block") along each axis, and their extents."""
    extents = {"thread": "blockDim", "block": "gridDim"}[kind]
    found = {}
    for axis, count in zip("xyz", [*counts, 1, 1], strict=False):
        found[f"{kind}Idx.{axis}"] = Interval(0, max(1, count) - 1)
        found[f"{extents}.{axis}"] = point(max(1, count))
    return found
