"""Loops of a kernel over tiles of a size, in the language of sizes.

A loop that goes by a block's threads, or by pieces of a size, has passes of its own: what is carried
from one to the next shows from the third on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.cpp.body.polynomial import Monomial, Polynomial, Quotient
from tokitai_cli.cpp.body.reader import read
from tokitai_cli.cpp.body.symbolic_values import Access, Applied, Choice, Facts, Line, Stepped
from tokitai_cli.cpp.coordinates import is_moving
from tokitai_cli.cpp.size_words import grouped, in_sizes
from tokitai_cli.cpp.source.signatures import Kernel, declaration_of
from tokitai_cli.cpp.whole import Program

_VECTORS = (2, 4, 8, 16)  # elements of one


class Tiles(NamedTuple):
    """A loop over a size, in the language of sizes."""

    #: What it goes over, and how much of it in a pass.
    size: str
    step: str
    at: Line | None

    @property
    def several(self) -> str:
        """Comparison of shapes with three whole passes and a tail."""
        step, size = grouped(self.step), grouped(self.size)
        return f"{size} > 3 * {step} and {size} % {step} != 0"


def facts_of(program: Program, kernel: Kernel, arguments: Mapping[str, str]) -> Facts:
    """What the kernel's body does; nothing where the tree does not have it.

    arguments: of its template, by the parameters' names.
    """
    known = declaration_of(program, kernel)
    return read(*known, given=arguments) if known else Facts()


def tiles_of(facts: Facts, names: Mapping[str, str]) -> list[Tiles]:
    """Loops over tiles of sizes that `names` say.

    names: of whole numbers of the kernel's and of the launch (`blockDim.x`), in the language of sizes.
    """
    found: dict[Tiles, None] = {}
    for one in facts.loops:
        for below in bounds_of(facts, one.counter):
            every = (_tiles(facts, one, size, names) for size in _uncapped(facts, below))
            found |= dict.fromkeys(told for told in every if told)
    return list(found)


def _uncapped(facts: Facts, below: Polynomial) -> list[Polynomial]:
    """What a loop goes up to; of the lesser of a size and a number the size, which may exceed it."""
    told = facts.meanings.get(str(below))
    if not isinstance(told, Applied) or told.operator != "min":
        return [below]
    capped = any(one.number is not None for one in told.operands)
    return [one for one in told.operands if one.number is None] if capped else [below]


def divided(facts: Facts, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Sizes that indices take for multiples, and of what: groups of a row, tiles without a tail.

    names: as in `tiles_of`.
    """
    found: dict[tuple[str, str], None] = {}
    for one in facts.accesses:
        for key, count in one.offset.terms.items():
            for atom in key:
                if isinstance(atom, Quotient) and not (is_moving(atom) or _down(atom, key, count)):
                    told = in_sizes(atom.dividend, names), in_sizes(atom.divisor, names)
                    found[told] = None
    found |= dict.fromkeys([*_untailed(facts, names), *_aligned(facts, names)])
    return _of_sizes(found)


def untailed(facts: Facts, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Of `divided` those that loops say, which would go over whole tiles alone: or leave a tail out.

    names: as in `tiles_of`.
    """
    return _of_sizes(_untailed(facts, names))


def _of_sizes(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(many, few) for many, few in pairs if many.isidentifier() and few.isalnum()]


def _untailed(facts: Facts, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for loop in facts.loops:
        inside = [one for one in facts.accesses if loop.counter.atoms() <= one.offset.atoms()]
        for below in bounds_of(facts, loop.counter) if _whole_tiles(loop, inside) else ():
            yield in_sizes(below, names), in_sizes(loop.step, names)
        for whole in _whole_passes(facts, loop):
            yield in_sizes(whole.dividend, names), in_sizes(whole.divisor, names)


def _whole_passes(facts: Facts, loop: Stepped) -> list[Quotient]:
    """Divisions rounded down that say how many passes a loop has, where nothing goes over the rest."""
    if loop.step.number != 1:
        return []
    ends: list[Polynomial] = []
    for below in bounds_of(facts, loop.counter):
        told = facts.meanings.get(str(below))
        ends += [way for way, _ in told.ways] if isinstance(told, Choice) else [below]
    single = (next(iter(one.terms)) for one in ends if len(one.terms) == 1)
    found = [key[0] for key in single if len(key) == 1 and isinstance(key[0], Quotient)]
    return [one for one in found if not _has_tail(facts, one.dividend)]


def _has_tail(facts: Facts, size: Polynomial) -> bool:
    """Whether a comparison has the size itself, or what is left of it."""
    guards = [*facts.compared, *(one for access in facts.accesses for one in access.guards)]
    return any(size.atoms() & (one.left - one.right).atoms() for one in guards)


def _aligned(facts: Facts, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Sizes that rows of vectors are as long as, and the elements of such a vector."""
    for one in facts.accesses:
        if one.unit not in _VECTORS or not isinstance(one.unit, int):
            continue
        for key, count in one.offset.terms.items():
            sizes = [atom for atom in key if not is_moving(atom)]
            step = one.unit // math.gcd(count, one.unit)
            if len(sizes) == 1 and len(key) > 1 and step > 1 and isinstance(sizes[0], str):
                yield names.get(sizes[0], ""), str(step)


def _down(atom: Quotient, key: Monomial, count: int) -> bool:
    """Whether a quotient times its divisor stands there: what is rounded down has a tail."""
    number = atom.divisor.number
    return count % number == 0 if number else bool(atom.divisor.atoms() & {*key})


def _whole_tiles(loop: Stepped, inside: Sequence[Access]) -> bool:
    """Whether accesses go beyond the counter of a loop, and nothing bounds them but the loop."""
    beyond = [one for one in inside if _beside(loop, one)]
    return bool(beyond) and not any(
        guard.left != loop.counter and loop.counter.atoms() & (guard.left - guard.right).atoms()
        for one in beyond
        for guard in one.guards
    )


def _beside(loop: Stepped, access: Access) -> bool:
    """Whether an index adds something that moves to the counter, with the counter's own stride."""
    (counter,) = loop.counter.atoms()
    parts = access.offset.linear(counter)
    others = (one for one in access.offset.atoms() if is_moving(one) and one != counter)
    return parts is not None and any(
        (told := access.offset.linear(one)) is not None and told[0] == parts[0] for one in others
    )


def bounds_of(facts: Facts, counter: Polynomial) -> set[Polynomial]:
    """What a counter stays below."""
    return {
        guard.right
        for access in facts.accesses
        for guard in access.guards
        if guard.left == counter and guard.sign in {"<", "<="}
    }


def _tiles(
    facts: Facts, loop: Stepped, below: Polynomial, names: Mapping[str, str]
) -> Tiles | None:
    atoms = [*below.terms]
    single = atoms[0][0] if len(atoms) == 1 and len(atoms[0]) == 1 else None
    if loop.step.number == 1 and isinstance(single, Quotient):  # counts the tiles themselves
        divisor = single.divisor
        size, rest = single.dividend, single.dividend.terms.get((), 0)
        size = size - Polynomial({(): rest})
        step = divisor
    elif (loop.step.number or 2) > 1:
        size, step = below, loop.step
    else:
        return None
    if any(map(is_moving, (*size.atoms(), *step.atoms()))):
        return None
    told = in_sizes(size, names), in_sizes(step, names)
    at = facts.lines.get(str(loop.counter))
    return Tiles(*told, at) if all(told) and not told[0].isdigit() else None
