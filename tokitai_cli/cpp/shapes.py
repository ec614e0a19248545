"""Shapes of arrays from their accesses: what an index goes over, with which strides, and how far.

An index such as `(b * h + y) * w + x` is a sum of coordinates times strides. A guard (`y < h`) says
how far a coordinate goes; where none does, the next stride has to. All of it is a guess: a guard may
hold for less than the array has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tokitai_cli.cpp.body.polynomial import Atom, Monomial, Polynomial, Quotient, constant, quotient
from tokitai_cli.cpp.body.symbolic_values import Access, Guard

_MOVING = ("threadIdx", "blockIdx", "#", "[", "?")
_LAUNCH = ("gridDim", "blockDim")
_FAR = 1 << 20


class _Coordinate(NamedTuple):
    stride: Polynomial
    #: How many values it takes; None where nothing says it.
    extent: Polynomial | None


class _Bound(NamedTuple):
    """`below` is more than `moving` ever is."""

    moving: Polynomial
    below: Polynomial


def shape_of(accesses: Iterable[Access]) -> list[Polynomial] | str:
    """Extents of an array, the outermost first; or why its accesses do not tell them."""
    best: list[Polynomial] | None = None
    why = "nothing accesses it"
    for one in dict.fromkeys(accesses):
        if one.unit is None:
            why = "the width of an access is not known"
            continue
        for few_first in (False, True):
            found = _coordinates(one.offset, one.guards, few_first)
            shape = _nested(*found, one) if found is not None else "an index is not linear"
            if isinstance(shape, str):
                why = shape
            elif best is None or _better(shape, best):
                best = shape
    return best if best is not None else why


def _better(shape: list[Polynomial], best: list[Polynomial]) -> bool:
    if _rank(shape) != _rank(best):
        return _rank(shape) > _rank(best)
    return ((shape[0] - best[0]).number or 0) > 0


def _rank(shape: list[Polynomial]) -> tuple[bool, bool, int, int]:
    """Own sizes of the kernel go first, then whole extents, then more of them, then larger ones."""
    names = {name for extent in shape for name in extent.names()}
    own = not any(name.startswith(_LAUNCH) or "#" in name for name in names)
    whole = not any(isinstance(atom, Quotient) for extent in shape for atom in extent.atoms())
    return own, whole, len(shape), shape[0].number or 0


def is_moving(atom: Atom) -> bool:
    """Whether an atom differs between threads, or between passes of a loop."""
    if not isinstance(atom, str):
        return any(map(_moves, atom.parts))
    return any(mark in atom for mark in _MOVING)


def _moves(whole: Polynomial) -> bool:
    return any(map(is_moving, whole.atoms()))


def _moving_part(whole: Polynomial) -> Polynomial:
    return Polynomial(
        {key: count for key, count in whole.terms.items() if any(map(is_moving, key))}
    )


def _bounds(guards: Sequence[Guard]) -> list[_Bound]:
    """What comparisons say: `c + p < b` bounds `p` by `b - c`."""
    found = []
    for guard in guards:
        small, large = guard.left, guard.right
        if guard.sign in {">", ">="}:
            small, large = large, small
        if guard.sign in {"==", "!="} or not _moves(small):
            continue
        difference = small - large
        moving = _moving_part(difference)
        if moving:
            found.append(_Bound(moving, moving - difference + constant("=" in guard.sign)))
    return found


def _coordinates(
    index: Polynomial, guards: Sequence[Guard], few_first: bool
) -> tuple[list[_Coordinate], Polynomial] | None:
    """Coordinates of an index and what is left over; None where it is not linear in what moves."""
    found: list[_Coordinate] = []
    sign = 1 if few_first else -1
    limits = sorted(_bounds(guards), key=lambda one: len(one.moving.atoms()) * sign)
    left = _split(index, limits, found)
    for limit in limits:
        if not (limit.moving.atoms() & left.atoms()):
            continue
        factor = _factor(left, limit.moving)
        if factor is not None and factor:
            found.append(_Coordinate(factor, limit.below))
            left = left - factor * limit.moving
    for atom in sorted((one for one in left.atoms() if is_moving(one)), key=str):
        parts = left.linear(atom)
        if parts is None or _moves(parts[0]):
            return None
        if parts[0]:
            found.append(_Coordinate(parts[0], _of_launch(atom)))
            left = parts[1]
    return found, left


def _split(left: Polynomial, limits: list[_Bound], found: list[_Coordinate]) -> Polynomial:
    """Quotient and remainder of one whole: `c * (p / q) + d * p` is `(c + d q) (p / q) + d (p % q)`."""
    quotients = [one for one in left.atoms() if isinstance(one, Quotient) and is_moving(one)]
    for atom in sorted(quotients, key=lambda one: len(one.text), reverse=True):
        parts = left.linear(atom)
        if parts is None or not parts[0] or _moves(atom.divisor):
            continue
        factor = _factor(parts[1], atom.dividend)
        if factor is None or not factor:
            continue
        whole = next((one.below for one in limits if one.moving == atom.dividend), None)
        found.append(_Coordinate(factor, atom.divisor))
        left = parts[1] - factor * atom.dividend
        stride = parts[0] + factor * atom.divisor
        own = Polynomial({(atom,): 1})
        if stride:
            left = left + stride * own
            if whole is not None:
                limits.insert(0, _Bound(own, quotient(whole, atom.divisor)))
    return left


def _factor(left: Polynomial, moving: Polynomial) -> Polynomial | None:
    """The c with which `c * moving` takes what moves in it out of `left`."""
    single: list[Monomial] = [key for key in moving.terms if len(key) == 1 and is_moving(key[0])]
    if not single:
        return None
    lead = min(single, key=str)
    parts = left.linear(lead[0])
    if parts is None or not parts[0]:
        return None
    factor = parts[0].over(constant(moving.terms[lead]))
    if factor is None or _moves(factor):
        return None
    rest = (left - factor * moving).atoms() & {one for one in moving.atoms() if is_moving(one)}
    return factor if not rest or len(moving.terms) == 1 else None


def _of_launch(atom: Atom) -> Polynomial | None:
    front, _, axis = str(atom).partition(".")
    whole = {"threadIdx": "blockDim", "blockIdx": "gridDim"}.get(front)
    return Polynomial({(f"{whole}.{axis}",): 1}) if whole and len(axis) == 1 else None


def _nested(
    coordinates: list[_Coordinate], left: Polynomial, access: Access
) -> list[Polynomial] | str:
    """Extents of coordinates whose strides nest in each other."""
    left, steps = _whole_steps(coordinates, left)
    if left.number is None:
        return "an offset is left"
    width = int(access.unit) if access.unit and access.unit >= 1 else 1
    if not coordinates:
        return [constant(left.number + width)]
    shape = _chain(sorted(coordinates, key=_by_stride))
    if isinstance(shape, str):
        return shape
    if len(shape) == 1 and coordinates[0].stride == constant(1):
        steps += width - 1  # a wide access behind `i + 7 < n`
    if steps > 0:
        shape[0] = shape[0] + constant(steps)
    if any(extent and all(count < 0 for count in extent.terms.values()) for extent in shape):
        return "an extent is negative"
    shape[0] = _with_border(shape[0])
    return _undivided(shape)


def _undivided(shape: list[Polynomial]) -> list[Polynomial]:
    """`[n]` for `[n / 4, 4]`: an array of n elements whose tail is no whole vector."""
    first = next(iter(shape[0].terms), ())
    atom = first[0] if len(first) == 1 and len(shape[0].terms) == 1 else None
    if len(shape) > 1 and isinstance(atom, Quotient) and atom.divisor == shape[1]:
        return [atom.dividend, *shape[2:]]
    return shape


def _with_border(extent: Polynomial) -> Polynomial:
    """`n` for `n - 1`, behind which the kernel leaves a border alone: its array has one."""
    border = extent.terms.get((), 0)
    single = len(extent.terms) == 2 and border < 0
    return extent - constant(border) if single else extent


def _chain(order: Sequence[_Coordinate]) -> list[Polynomial] | str:
    """Extents of coordinates in the order of their strides, the smallest first."""
    out: list[Polynomial] = []
    size, first = constant(1), order[0].stride
    if first != size:
        if (first.number or 0) <= 1:
            return "no coordinate has the stride 1"
        out, size = [first], first
    for at, (stride, extent) in enumerate(order):
        if stride != size:
            return "strides do not nest"
        following = order[at + 1].stride if at + 1 < len(order) else None
        if following == stride:
            return "two coordinates have one stride"
        own = (following.over(size) if following is not None else None) or extent
        if own is None:
            return "nothing bounds a coordinate"
        out.insert(0, own)
        size = size * own
    return out


def _by_stride(one: _Coordinate) -> tuple[int, int]:
    degree = max(map(len, one.stride.terms), default=0)
    number = one.stride.number
    return degree, abs(number) if number else _FAR


def _whole_steps(coordinates: list[_Coordinate], left: Polynomial) -> tuple[Polynomial, int]:
    """An offset by whole steps of strides, as `in[(y + 1) * w + x + 1]`; how many of the largest."""
    strides = {one.stride for one in coordinates}
    found = 0
    for stride in sorted(strides, key=lambda one: -max(map(len, one.terms), default=0)):
        key = next(iter(stride.terms)) if len(stride.terms) == 1 else None
        count = left.terms.get(key, 0) if key is not None else 0
        if key is not None and count and count % stride.terms[key] == 0:
            steps = count // stride.terms[key]
            left = left - stride * constant(steps)
            found = found or steps
    return left, found
