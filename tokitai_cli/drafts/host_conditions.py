"""Limits of sizes and what they are multiples of, by the conditions under which the host launches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tokitai_cli.cpp.body.polynomial import Polynomial, Quotient, constant
from tokitai_cli.cpp.body.symbolic_values import Guard
from tokitai_cli.drafts.known_facts import Known

_LEAST = 8  # a smaller limit leaves no room for shapes
_MOST = 1 << 16  # a larger one is that of a machine
_SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "=="}


class Bounds(NamedTuple):
    """By sizes: the largest values, and what divides them."""

    limits: dict[str, int]
    multiples: dict[str, int]


def bounds_of(known: Known) -> Bounds:
    """What holds of sizes where the host makes the launch: `if (n <= 1024)`, `if (n % 4 == 0)`."""
    found = Bounds({}, {})
    for condition in known.launch.conditions if known.launch is not None else ():
        for guard in _both_ways(condition):
            name, most = _limit(known, guard)
            if name and _LEAST <= most <= _MOST:
                found.limits[name] = min(most, found.limits.get(name, most))
            name, step = _multiple(known, guard)
            if name and 1 < step <= _MOST:
                found.multiples[name] = math.lcm(step, found.multiples.get(name, 1))
    return found


def _both_ways(guard: Guard) -> Iterator[Guard]:
    yield guard
    if guard.sign in _SWAPPED:
        yield Guard(guard.right, _SWAPPED[guard.sign], guard.left)


def _limit(known: Known, guard: Guard) -> tuple[str, int]:
    """`n < 1025`: a size, and the most that it is."""
    most = guard.right.number
    if most is None or guard.sign not in {"<", "<="}:
        return "", 0
    return _size(known, guard.left), most - (guard.sign == "<")


def _multiple(known: Known, guard: Guard) -> tuple[str, int]:
    """`n % 4 == 0`: a size, and what divides it."""
    rest = guard.left - guard.right
    for atom in rest.atoms() if guard.sign == "==" else ():
        step = atom.divisor.number if isinstance(atom, Quotient) else None
        if isinstance(atom, Quotient) and step is not None:
            whole = Polynomial({(atom,): 1})
            if rest in (remainder := atom.dividend - whole * atom.divisor, constant(0) - remainder):
                return _size(known, atom.dividend), step
    return "", 0


def _size(known: Known, number: Polynomial) -> str:
    """The size that a number of the host's is; empty for another number."""
    text = known.in_sizes(number)
    return text if text in {one.name for one in known.sizes} else ""
