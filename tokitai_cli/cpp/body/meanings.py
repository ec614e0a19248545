"""What the names that a walk made up are made of."""

from __future__ import annotations

from collections.abc import Sequence

from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.body.symbolic_values import (
    Evolving,
    Facts,
    Guard,
    Loaded,
    Meaning,
    ways_of,
)


class Dependencies:
    """Names that numbers have, and those that these are made of."""

    def __init__(self, facts: Facts) -> None:
        #: Whether a question about the body's numbers took all that is spent on one.
        self.hard = False
        self._facts = facts
        self._known: dict[str, frozenset[str]] = {}
        self._numbers: dict[Polynomial, frozenset[str]] = {}
        self._deep: dict[str, frozenset[str]] = {}
        self._deep_numbers: dict[Polynomial, frozenset[str]] = {}

    def of(self, value: Polynomial) -> frozenset[str]:
        """Of a number."""
        found = self._numbers.get(value)
        if found is None:
            found = frozenset[str]().union(*map(self._of_name, value.names()))
            self._numbers[value] = found
        return found

    def deep(self, value: Polynomial) -> frozenset[str]:
        """All that a number may depend on: passes of loops, comparisons, and arrays, too."""
        found = self._deep_numbers.get(value)
        if found is None:
            found = frozenset[str]().union(*map(self._behind, value.names()))
            self._deep_numbers[value] = found
        return found

    def _behind(self, name: str) -> frozenset[str]:
        if name not in self._deep:
            found, waiting = {name}, [name]
            while waiting:
                more = self._next(waiting.pop()) - found
                found |= more
                waiting += more
            self._deep[name] = frozenset(found)
        return self._deep[name]

    def _next(self, name: str) -> set[str]:
        """Names and arrays that a name's meaning has; of an array those that are put into it."""
        meaning = self._facts.meanings.get(name)
        if isinstance(meaning, Loaded):
            return {meaning.array}
        ways = ways_of(meaning) if meaning is not None else self._facts.stored.get(name, ())
        return set[str]().union(*(one.names() | _compared(guards) for one, guards in ways))

    def _of_name(self, name: str) -> frozenset[str]:
        if name not in self._known:
            self._known[name] = frozenset({name})
            values = _begins_as(self._facts.meanings.get(name))
            self._known[name] = frozenset({name}).union(*map(self.of, values))
        return self._known[name]


def _begins_as(meaning: Meaning | None) -> list[Polynomial]:
    """Numbers that one with a meaning is made of before any pass of a loop."""
    ways = ways_of(meaning)
    return [one for one, _ in (ways[:1] if isinstance(meaning, Evolving) else ways)]


def names_of(facts: Facts) -> set[str]:
    """All names that accesses and their comparisons have, or that these are made of."""
    found: set[str] = set()
    for one in (*facts.accesses, *facts.local_accesses):
        found |= one.offset.names() | _compared(one.guards)
    for meaning in facts.meanings.values():
        found = found.union(*(value.names() for value, _ in ways_of(meaning)))
        if isinstance(meaning, Evolving):
            found |= _compared(meaning.guards)
    return found.union(*(_compared([one]) for one in facts.compared))


def _compared(guards: Sequence[Guard]) -> set[str]:
    return set[str]().union(*(one.left.names() | one.right.names() for one in guards))


def is_unguarded(facts: Facts) -> bool:
    """Whether no thread is left out: what is made of a thread's index is compared with nothing."""
    dependencies = Dependencies(facts)
    return any(one.startswith("threadIdx") for one in facts.launch) and not any(
        "threadIdx.x" in dependencies.of(one.left) | dependencies.of(one.right)
        for one in facts.compared
    )
