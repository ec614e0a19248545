"""Axes of arrays along which no comparison keeps an index below a size.

`x[row * n + threadIdx.x]` without a comparison is within its row only where n is at least the threads
of a block; `a[k + threadIdx.x]` in a loop over `k < n` only where n is a multiple of the step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.cpp.body.meanings import Dependencies
from tokitai_cli.cpp.body.polynomial import Polynomial, Quotient, constant
from tokitai_cli.cpp.body.symbolic_values import Access, Facts
from tokitai_cli.cpp.coordinates import Axis, coordinates, limits_of

_THREADS, _BLOCKS, _COUNTER, _MADE = "threadIdx.", "blockIdx.", "#", ("?", "pass of ")


class OpenAxis(NamedTuple):
    """An axis of an access along which nothing bounds the index."""

    access: Access
    #: Names of its extent, as the strides tell it; none where they do not.
    names: frozenset[str]
    #: Axes of the grid whose blocks it counts, by their letters.
    blocks: frozenset[str]
    #: Whether places of threads alone move along it.
    threads: bool


def open_axes(
    facts: Facts, accesses: Iterable[Access], sizes: Collection[str], block: Sequence[str]
) -> Iterator[OpenAxis]:
    """Open axes of accesses. sizes: of the spec. block: extents of the launch's blocks."""
    dependencies = Dependencies(facts)
    for access in dict.fromkeys(accesses):
        found = coordinates(access.offset, access.guards, few_first=False)
        axes = _merged(found[0]) if found is not None else [_whole(access)]
        for at, axis in enumerate(axes):
            moving = _moving(axis.moving)
            extents = _extents(axes, at)
            if not moving or _is_bounded(axis, access, moving):
                continue
            made = {one for one in axis.moving.names() if any(mark in one for mark in _MADE)}
            if any(_decided(dependencies, one, sizes) for one in made):
                continue
            threads = all(one.startswith(_THREADS) for one in moving) and not made
            if threads and _is_block(extents, moving, block):
                continue
            blocks = frozenset(one[-1] for one in axis.moving.names() if one.startswith(_BLOCKS))
            yield OpenAxis(access, extents.names() & {*sizes}, blocks, threads)


def _whole(access: Access) -> Axis:
    return Axis(constant(1), access.offset, None)


def _merged(coordinates: Iterable[Axis]) -> list[Axis]:
    """Coordinates, those of one stride as one: where a tile begins, and a thread's place in it."""
    found: dict[Polynomial, Axis] = {}
    for one in coordinates:
        before = found.get(one.stride, Axis(one.stride, constant(0), None))
        found[one.stride] = Axis(
            one.stride, before.moving + one.moving, before.extent or one.extent
        )
    return [*found.values()]


def _moving(value: Polynomial) -> set[str]:
    """Places of threads and counters of loops that a value is made of."""
    return {one for one in value.names() if one.startswith(_THREADS) or _is_counter(one)}


def _is_counter(name: str) -> bool:
    return _COUNTER in name and not any(mark in name for mark in (*_MADE, "["))


def _is_bounded(axis: Axis, access: Access, moving: Collection[str]) -> bool:
    """Whether a comparison, or a remainder, bounds all that moves along an axis."""
    parts = [one for one in axis.moving.atoms() if isinstance(one, Quotient)]
    whole = (Polynomial({(one,): 1}) * one.divisor for one in parts)
    if any(axis.moving == one.dividend - rest for one, rest in zip(parts, whole, strict=True)):
        return True
    return any({*moving} <= _moving(one.moving) for one in limits_of(access.guards))


def _decided(dependencies: Dependencies, name: str, sizes: Collection[str]) -> bool:
    """Whether sizes decide a number that the walk made up: the least of two, one of two ways."""
    return bool(dependencies.deep(Polynomial({(name,): 1})) & {*sizes})


def _extents(axes: Sequence[Axis], at: int) -> Polynomial:
    """How far an axis goes: as is said, else to the next larger stride."""
    own = axes[at]
    wider = [ratio for one in axes if one is not own and (ratio := one.stride.over(own.stride))]
    found = [one for one in wider if one.number != 1]
    least = min(found, key=lambda one: len(one.names()), default=None)
    return least if least is not None else own.extent or Polynomial({})


def _is_block(extent: Polynomial, moving: Collection[str], block: Sequence[str]) -> bool:
    """Whether an extent is that of the block along the one axis whose threads move."""
    (name,) = moving if len(moving) == 1 else ("",)
    told: Mapping[str, str] = dict(zip("xyz", block, strict=False))
    return bool(name) and str(extent) in {told.get(name[-1], ""), f"blockDim.{name[-1]}"}
