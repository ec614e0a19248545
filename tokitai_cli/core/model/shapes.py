"""What the shapes have in common at which something fails, and others lack."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Shape = Mapping[str, int]
Rule = Callable[[Shape], bool]

# Extents of tiles, waves and blocks that kernels are cut by, besides those of the launches.
_TILES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def in_common(
    failing: Sequence[Shape], passing: Sequence[Shape], blocks: Iterable[int] = ()
) -> str:
    """The simplest words that hold of all failing shapes and of no passing one; empty for none.

    With a single passing or failing shape nearly anything would: two of each are needed.
    """
    if len(failing) < 2 or len(passing) < 2:
        return ""
    tiles = sorted({*_TILES, *(one for one in blocks if one > 1)})
    for words, holds in _rules(failing, passing, tiles):
        if all(map(holds, failing)) and not any(map(holds, passing)):
            return words
    return ""


def _rules(
    failing: Sequence[Shape], passing: Sequence[Shape], tiles: Sequence[int]
) -> Iterator[tuple[str, Rule]]:
    """Rules and their words, the simplest first."""
    names = [name for name in failing[0] if all(name in shape for shape in (*failing, *passing))]
    for name in names:
        yield f"{name} = {failing[0][name]}", _of(name, operator.eq, failing[0][name])
    for name in names:
        for tile in tiles:
            yield f"{name} is not a multiple of {tile}", _of(name, operator.mod, tile)
        for tile in reversed(tiles):
            yield f"{name} is a multiple of {tile}", _of(name, _divides, tile)
    for name in names:
        most, least = (pick(shape[name] for shape in passing) for pick in (max, min))
        yield f"{name} is above {most}", _of(name, operator.gt, most)
        yield f"{name} is below {least}", _of(name, operator.lt, least)
    for one, other in itertools.permutations(names, 2):
        yield f"{one} is above {other}", _of_both(one, operator.gt, other)
    for one, other in itertools.combinations(names, 2):
        yield f"{one} and {other} differ", _of_both(one, operator.ne, other)


def _divides(size: int, tile: int) -> bool:
    return size % tile == 0


def _of(name: str, holds: Callable[[int, int], Any], value: int) -> Rule:
    return lambda shape: bool(holds(shape[name], value))


def _of_both(one: str, holds: Callable[[int, int], Any], other: str) -> Rule:
    return lambda shape: bool(holds(shape[one], shape[other]))
