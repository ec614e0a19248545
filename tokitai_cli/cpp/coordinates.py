"""Indices taken apart: what moves in them, with which strides, and how far comparisons let it go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tokitai_cli.cpp.body.polynomial import Atom, Monomial, Polynomial, Quotient, constant, quotient
from tokitai_cli.cpp.body.symbolic_values import Guard

_MOVING = ("threadIdx", "blockIdx", "#", "[", "?", "rank()", "group_index()", "pass of ")
_LAUNCH = ("gridDim", "blockDim")


class Axis(NamedTuple):
    """What an index goes along: `moving` times `stride` is a part of it."""

    stride: Polynomial
    moving: Polynomial
    #: How many values it takes; None where nothing says it.
    extent: Polynomial | None
    #: What a comparison says of it, where strides say another extent.
    compared: Polynomial | None = None


class Limit(NamedTuple):
    """`below` is more than `moving` ever is."""

    moving: Polynomial
    below: Polynomial


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


def limits_of(guards: Iterable[Guard]) -> list[Limit]:
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
            found.append(Limit(moving, moving - difference + constant("=" in guard.sign)))
    return found + [Limit(*wide) for one in found if (wide := _undivided_limit(one)) is not None]


def _undivided_limit(limit: Limit) -> tuple[Polynomial, Polynomial] | None:
    """What `i / d < b` says of `i`; None for another comparison."""
    quotients = [one for one in limit.moving.atoms() if isinstance(one, Quotient)]
    if len(quotients) != 1 or limit.moving.terms != {(quotients[0],): 1}:
        return None
    return quotients[0].dividend, limit.below * quotients[0].divisor


def coordinates(
    index: Polynomial, guards: Sequence[Guard], few_first: bool
) -> tuple[list[Axis], Polynomial] | None:
    """Coordinates of an index and what is left over; None where it is not linear in what moves."""
    found: list[Axis] = []
    sign = 1 if few_first else -1
    index = _plainly(index)
    guards = [Guard(_plainly(one.left), one.sign, _plainly(one.right)) for one in guards]
    limits = sorted(limits_of(guards), key=lambda one: len(one.moving.atoms()) * sign)
    left = _split(index, limits, found)
    for limit in limits:
        if not (limit.moving.atoms() & left.atoms()):
            continue
        factor = _factor(left, limit.moving)
        if factor is not None and factor:
            found.append(Axis(factor, limit.moving, limit.below))
            left = left - factor * limit.moving
    for atom in sorted((one for one in left.atoms() if is_moving(one)), key=str):
        parts = left.linear(atom)
        if parts is None or _moves(parts[0]):
            return None
        if parts[0]:
            found.append(Axis(parts[0], Polynomial({(atom,): 1}), _of_launch(atom)))
            left = parts[1]
    return _tiled(found), left


def _plainly(value: Polynomial) -> Polynomial:
    """`i / w - b * h` for `(i - b * h * w) / w`: what comes out even stands beside a quotient."""
    for atom in value.atoms():
        parts = value.linear(atom) if isinstance(atom, Quotient) else None
        if not isinstance(atom, Quotient) or parts is None:
            continue
        dividend = _plainly(atom.dividend)
        terms = (Polynomial({key: count}) for key, count in dividend.terms.items() if key)
        whole = [part for one in terms if (part := one.over(atom.divisor)) is not None]
        outside = sum(whole, constant(0))
        inside = dividend - outside * atom.divisor
        if inside:
            value = parts[0] * (quotient(inside, atom.divisor) + outside) + parts[1]
    return value


def _tiled(coordinates: list[Axis]) -> list[Axis]:
    """Coordinates, a block's place and a thread's in it as one."""
    by_name = {str(one.moving): one for one in coordinates}
    found = list(coordinates)
    for axis in "xyz":
        block = by_name.get(f"blockIdx.{axis}")
        for thread in coordinates if block else ():
            threads = block.stride.over(thread.stride) if block else None
            inside = any(f"threadIdx.{axis}" in str(one) for one in thread.moving.atoms())
            if block and inside and threads is not None and is_of_launch(threads):
                moving = threads * block.moving + thread.moving
                blocks = Polynomial({(f"gridDim.{axis}",): 1})
                found = [one for one in found if one not in (block, thread)]
                found.append(Axis(thread.stride, moving, blocks * threads))
                break
    return found


def _split(left: Polynomial, limits: list[Limit], found: list[Axis]) -> Polynomial:
    """Quotient and remainder of one whole: `c * (p / q) + d * p` is `(c + d q) (p / q) + d (p % q)`."""
    quotients = [one for one in left.atoms() if isinstance(one, Quotient) and is_moving(one)]
    for atom in sorted(quotients, key=lambda one: (-_depth(one), len(one.text))):
        parts = left.linear(atom)
        if parts is None or not parts[0] or _moves(atom.divisor):
            continue
        for dividend, divisor in _spellings(atom, quotients):
            factor = _factor(parts[1], dividend)
            if factor is None or not factor:
                continue
            whole = next((one.below for one in limits if one.moving == dividend), None)
            whole = _modulus(dividend) if whole is None else whole
            own = Polynomial({(atom,): 1})
            found.append(Axis(factor, dividend - own * divisor, divisor))
            left = parts[1] - factor * dividend
            stride = parts[0] + factor * divisor
            if stride:
                left = left + stride * own
                if whole is not None:
                    limits.insert(0, Limit(own, quotient(whole, divisor)))
            break
    return left


def _depth(atom: Quotient) -> int:
    """How many quotients stand in each other."""
    inner = [_depth(one) for one in atom.dividend.atoms() if isinstance(one, Quotient)]
    return 1 + max(inner, default=0)


def _spellings(
    atom: Quotient, quotients: Sequence[Quotient]
) -> Iterator[tuple[Polynomial, Polynomial]]:
    """Dividend and divisor, also of what another quotient is: `i / (h * w)` is `(i / w) / h`."""
    yield atom.dividend, atom.divisor
    for one in quotients:
        rest = atom.divisor.over(one.divisor) if one != atom else None
        if one.dividend == atom.dividend and rest is not None:
            yield Polynomial({(one,): 1}), rest


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
    own = {one for one in moving.atoms() if is_moving(one) and not isinstance(one, Quotient)}
    rest = (left - factor * moving).atoms() & own
    return factor if not rest or len(moving.terms) == 1 else None


def _modulus(value: Polynomial) -> Polynomial | None:
    """The n of what is `i % n`; None for another value."""
    for one in value.atoms():
        if isinstance(one, Quotient):
            whole = Polynomial({(one,): 1}) * one.divisor
            if value == one.dividend - whole:
                return one.divisor
    return None


def _of_launch(atom: Atom) -> Polynomial | None:
    """Values that an atom of the launch takes, or a part of a remainder; None for another."""
    if isinstance(atom, Quotient):
        modulus = _modulus(atom.dividend)
        return quotient(modulus, atom.divisor) if modulus is not None else None
    front, _, axis = str(atom).partition(".")
    whole = {"threadIdx": "blockDim", "blockIdx": "gridDim"}.get(front)
    return Polynomial({(f"{whole}.{axis}",): 1}) if whole and len(axis) == 1 else None


def is_of_launch(extent: Polynomial) -> bool:
    """Whether an extent is a number, or one of the launch."""
    return extent.number is not None or any(
        name.startswith(_LAUNCH) or name == "warpSize" for name in extent.names()
    )
