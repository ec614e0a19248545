"""Sizes that a kernel goes over, those with a state that each step changes, and sizes as divisors."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tokitai_cli.cpp.body.origins import Origins
from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.float_arithmetic import Numerics
from tokitai_cli.cpp.size_words import in_sizes
from tokitai_cli.cpp.tiles import bounds_of


def looped(facts: Facts, names: Mapping[str, str]) -> set[str]:
    """Sizes that loops go up to. names: of whole numbers of the kernel's, in the language of sizes."""
    every = {below for one in facts.loops for below in bounds_of(facts, one.counter)}
    return {told for one in every if (told := in_sizes(one, names))}


def divisors(facts: Facts, names: Mapping[str, str]) -> set[str]:
    """What the kernel divides by, where sizes say it. names: as in `looped`."""
    every = (one.right for one in facts.operations if one.sign in {"/", "%"})
    return {in_sizes(one, names) for one in every if isinstance(one, Polynomial)} - {""}


def recurrences(facts: Facts, names: Mapping[str, str], written: Collection[str]) -> set[str]:
    """Sizes that a loop goes over with a state that each step makes anew of itself, and writes.

    An oracle has to go over them too. written: arrays of outputs.
    """
    numerics, origins = Numerics(facts, ()), Origins(facts)
    places = {
        offset: {*origins.behind(offset, places=True)}
        for offset in {one.offset for one in facts.accesses if one.array in written}
    }
    found = set[str]()
    for loop in facts.every_loop:
        counter = loop.counter
        if counter is None or counter.step.number not in {1, -1}:
            continue
        (name,) = counter.counter.names()
        carried = any(numerics.carries(one) for one in loop.changes if one != name)
        stepwise = any(
            one.array in written and one.kind != "read" and name in places[one.offset]
            for one in facts.accesses
        )
        if carried and stepwise:
            found |= {in_sizes(one, names) for one in bounds_of(facts, counter.counter)}
    return found - {""}
