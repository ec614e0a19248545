"""Shapes of arrays from their accesses: what an index goes over, with which strides, and how far.

An index such as `(b * h + y) * w + x` is a sum of coordinates times strides. A guard (`y < h`) says
how far a coordinate goes; where none does, the next stride has to. All of it is a guess: a guard may
hold for less than the array has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from tokitai_cli.cpp.body.polynomial import Polynomial, Quotient, constant
from tokitai_cli.cpp.body.symbolic_values import Access
from tokitai_cli.cpp.coordinates import Axis, coordinates, is_of_launch

_LAUNCH = ("gridDim", "blockDim")
_FAR = 1 << 20


def layout_of(accesses: Iterable[Access]) -> list[Axis] | str:
    """Axes of an array, the outermost first; or why they are not known.

    The first one alone may lack an extent.
    """
    best: tuple[_Rank, list[Axis]] | None = None
    why = "nothing accesses it"
    for one in dict.fromkeys(accesses):
        if one.unit is None:
            why = "the width of an access is not known"
            continue
        for few_first in (False, True):
            found = coordinates(one.offset, one.guards, few_first)
            axes = _nested(*found, one) if found is not None else "an index is not linear"
            if isinstance(axes, str) or found is None:
                why = str(axes)
            elif best is None or _better(_rank(axes, found[1]), axes, *best):
                best = _rank(axes, found[1]), axes
    return best[1] if best is not None else why


_Rank = tuple[bool, bool, bool, bool, int, int]


def _better(rank: _Rank, axes: list[Axis], best_rank: _Rank, best: list[Axis]) -> bool:
    first, other = axes[0].extent, best[0].extent
    if rank != best_rank or first is None or other is None:
        return rank > best_rank
    return ((first - other).number or 0) > 0


def _rank(axes: list[Axis], left: Polynomial) -> _Rank:
    """Known extents go first, then own sizes of the kernel, whole extents, more of them, larger ones.

    left: of the index, behind its coordinates: where that is no number, the array begins elsewhere.
    """
    extents = [one.extent for one in axes if one.extent is not None]
    names = {name for extent in extents for name in extent.names()}
    known = len(extents) == len(axes)
    own = not any(name.startswith(_LAUNCH) or "#" in name for name in names)
    whole = not any(isinstance(atom, Quotient) for extent in extents for atom in extent.atoms())
    first = axes[0].extent
    number = (first.number or 0) if first is not None else 0
    return known, own, not left.names(), whole, len(axes), number


def _nested(coordinates: list[Axis], left: Polynomial, access: Access) -> list[Axis] | str:
    """Coordinates whose strides nest in each other as axes, the outermost first."""
    left, steps = _whole_steps(coordinates, left)
    width = int(access.unit) if access.unit and access.unit >= 1 else 1
    if not coordinates:
        nothing = constant(0)
        return [Axis(constant(1), nothing, left + constant(width))]
    axes = _chain(sorted(_merged(coordinates), key=_by_stride))
    if isinstance(axes, str):
        return axes
    more = constant(steps)
    if len(axes) == 1 and axes[0].stride == constant(1):
        more += constant(width - 1)  # a wide access behind `i + 7 < n`
        more += left if left.number is None else constant(0)  # a part that begins at a size
    first = axes[0].extent
    if first is not None and ((more.number or 0) > 0 or more.number is None):
        first = first + more
    if any(_is_negative(one) for one in (first, *(axis.extent for axis in axes[1:]))):
        return "an extent is negative"
    axes[0] = axes[0]._replace(extent=_with_border(first) if first is not None else None)
    return _undivided(axes)


def _merged(coordinates: Iterable[Axis]) -> list[Axis]:
    """Coordinates, those of one stride as one: a tile's place and a thread's in it."""
    found: dict[Polynomial, Axis] = {}
    for one in coordinates:
        before = found.get(one.stride)
        found[one.stride] = one if before is None else _joined(before, one)
    return [*found.values()]


def _joined(one: Axis, other: Axis) -> Axis:
    extents = [each.extent for each in (one, other) if each.extent is not None]
    own = [each for each in extents if not is_of_launch(each)]
    return Axis(one.stride, one.moving + other.moving, own[0] if len(own) == 1 else None)


def _is_negative(extent: Polynomial | None) -> bool:
    return bool(extent) and extent is not None and all(n < 0 for n in extent.terms.values())


def _undivided(axes: list[Axis]) -> list[Axis]:
    """`[n]` for `[n / 4, 4]`: rows of n elements, of which every fourth is read, or with a tail."""
    for at, (outer, inner) in enumerate(itertools.pairwise(axes)):
        extent = outer.extent
        atom = next(iter(extent.atoms()), "") if extent is not None else ""
        every = isinstance(atom, Quotient) and extent == Polynomial({(atom,): 1})
        if not isinstance(atom, Quotient) or not every or atom.divisor != inner.extent:
            continue
        if at == 0 or not inner.moving:
            moving = outer.moving * atom.divisor + inner.moving
            return [*axes[:at], Axis(inner.stride, moving, atom.dividend), *axes[at + 2 :]]
    return axes


def _with_border(extent: Polynomial) -> Polynomial:
    """`n` for `n - 1`, behind which the kernel leaves a border alone: its array has one."""
    border = extent.terms.get((), 0)
    single = len(extent.terms) == 2 and border < 0
    return extent - constant(border) if single else extent


def _chain(order: Sequence[Axis]) -> list[Axis] | str:
    """Coordinates in the order of their strides, the smallest first, as axes."""
    axes: list[Axis] = []
    size, first = constant(1), order[0].stride
    if first != size:
        if first.number is not None and first.number <= 1:
            return "no coordinate has the stride 1"
        axes, size = [Axis(size, constant(0), first)], first
    for at, one in enumerate(order):
        if one.stride != size:
            size = _undone(size)
            gap = one.stride.over(size)
            if gap is None:
                return "strides do not nest"
            axes = axes if one.stride == size else [Axis(size, constant(0), gap), *axes]
            size = one.stride
        following = order[at + 1].stride if at + 1 < len(order) else None
        own = (following.over(size) if following is not None else None) or one.extent
        if following is not None and (own is None or is_of_launch(own)):
            if following.over(size) is None and all(_is_tile(each) for each in (one, *axes)):
                moving = sum((each.stride * each.moving for each in (one, *axes)), constant(0))
                axes, size = [Axis(constant(1), moving, following)], following
                continue
            if own is None:
                return "nothing bounds a coordinate"
        axes.insert(0, one._replace(extent=own, compared=one.extent))
        size = size * own if own is not None else size
    return axes


def _undone(size: Polynomial) -> Polynomial:
    """`n` for `n / k * k`: strides are taken for whole."""
    if len(size.terms) != 1:
        return size
    ((key, count),) = size.terms.items()
    for atom in key:
        if isinstance(atom, Quotient):
            left = list(key)
            left.remove(atom)
            rest = Polynomial({tuple(left): count}).over(atom.divisor)
            if rest is not None:
                return rest * atom.dividend
    return size


def _is_tile(axis: Axis) -> bool:
    return axis.extent is None or is_of_launch(axis.extent)


def _by_stride(one: Axis) -> tuple[int, int]:
    degree = max(map(len, one.stride.terms), default=0)
    return degree, abs(sum(one.stride.terms.values())) or _FAR


def _whole_steps(coordinates: list[Axis], left: Polynomial) -> tuple[Polynomial, int]:
    """An offset by whole steps of strides, as `in[(y + 1) * w + x + 1]`; how many of the largest."""
    strides = dict.fromkeys(one.stride for one in coordinates)
    found = 0
    for stride in sorted(strides, key=lambda one: -max(map(len, one.terms), default=0)):
        key = next(iter(stride.terms)) if len(stride.terms) == 1 else None
        count = left.terms.get(key, 0) if key is not None else 0
        if key is not None and count and count % stride.terms[key] == 0:
            steps = count // stride.terms[key]
            left = left - stride * constant(steps)
            found = found or steps
    return left, found
