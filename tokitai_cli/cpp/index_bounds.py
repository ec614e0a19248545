"""How far a kernel's indices go at given sizes, in a given launch: elements that its arrays need.

Each index is bounded by what its names may be (threads by the launch, counters by their loops, values
of arrays by what they are drawn from) and by the comparisons that hold where it is used. A bound may be
more than what is reached, never less; an index that nothing bounds has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tokitai_cli.cpp.body.meanings import Dependencies
from tokitai_cli.cpp.body.polynomial import Polynomial, constant
from tokitai_cli.cpp.body.symbolic_values import (
    Access,
    Facts,
)
from tokitai_cli.cpp.body.walk import row_of
from tokitai_cli.cpp.constraints import Constraints
from tokitai_cli.cpp.intervals import (
    Interval,
    point,
)
from tokitai_cli.cpp.number_bounds import NumberBounds


class IndexBounds:
    """Bounds of a body's indices.

    known: of names: sizes, extents of the launch, threads and blocks. drawn: of values of arrays.
    dependencies: of the body's names.
    """

    def __init__(
        self,
        facts: Facts,
        known: Mapping[str, Interval],
        drawn: Mapping[str, Interval],
        dependencies: Dependencies | None = None,
    ) -> None:
        self._facts = facts
        self._numbers = NumberBounds(facts, known, drawn, dependencies or Dependencies(facts))
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
        self._numbers.start()
        high = self._numbers.interval(self._numbers.fixed(value), Constraints()).high
        return math.floor(high) if math.isfinite(high) else None

    def goes_beyond_shared(self) -> bool:
        """Whether some index goes beyond a shared array of fixed extents."""
        for array, one in self._facts.local.items():
            if not one.shared or one.extents is None:
                continue
            held = math.prod(map(self._numbers.fixed, one.extents), start=constant(1))
            if held.number is not None and (self.elements(array, least=True) or 0) > held.number:
                return True
        return False

    def _elements(self, array: str, row: int | None) -> tuple[int | None, int]:
        """Elements, None where these are not known, and those of the bounded indices."""
        facts = self._facts
        every = (*(facts.local_accesses if array in facts.local else facts.accesses), *facts.lent)
        mine = dict.fromkeys((one.offset, one.guards, one.unit, one.units) for one in every
                             if one.array == array)  # fmt: skip
        missed = array in facts.roaming or bool(facts.undecided)
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
        numbers = self._numbers
        numbers.start()
        constraints = numbers.constraints(one.guards)
        if constraints.contradict:
            return 0
        try:
            reached = numbers.interval(
                numbers.fixed(one.offset.with_values({rows: constant(0)})), constraints
            )
            never = any(numbers.excludes(each, constraints) for each in constraints)
        except RecursionError:
            return None
        if reached.is_empty or never:
            return 0
        units = self.top(one.units) if one.units is not None else None
        if one.unit is None or units is None or math.isinf(reached.high):
            return None
        width = max(1, math.ceil(units * one.unit))
        return max(0, math.floor(reached.high) + width) if units > 0 else 0


def launched(kind: str, counts: Sequence[int]) -> dict[str, Interval]:
    """Threads of a block ("thread") or blocks of a grid ("block") along each axis, and their extents."""
    extents = {"thread": "blockDim", "block": "gridDim"}[kind]
    found = {}
    for axis, count in zip("xyz", [*counts, 1, 1], strict=False):
        found[f"{kind}Idx.{axis}"] = Interval(0, max(1, count) - 1)
        found[f"{extents}.{axis}"] = point(max(1, count))
    return found
