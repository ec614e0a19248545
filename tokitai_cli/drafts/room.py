"""An extent that holds what indices reach at several shapes, where strides tell none that does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.drafts.reaching import count

_MOST = 1 << 25  # elements of an array
_MOST_STRUCT_BYTES = 1 << 26  # of an array of structs
_MOST_SIZES, _MOST_FACTORS = 6, 4  # sizes that are tried together, and factors of a product
_WORSE = 1.5  # times the elements of the tightest extent that a plainer one may have


class _Option(NamedTuple):
    #: Elements at all shapes together.
    cost: int
    #: What it is at least, whatever the sizes are.
    least: int
    factor: int
    text: str


def room_for(
    reached: Sequence[int],
    shapes: Sequence[Mapping[str, int]],
    extents: Sequence[str],
    sizes: Sequence[str],
    most: int,
) -> str:
    """One extent for the elements that are reached at each shape, but no more than `most` of them.

    shapes: the defaults first. extents: as the strides tell them. sizes: names.
    """
    needs = [min(need, most) for need in reached]
    found = [option for base in _bases(extents, sizes) for option in _options(needs, shapes, base)]
    least = min((one.cost for one in found), default=0)
    tight = [one for one in found if one.cost <= _WORSE * least]
    plainest = min(tight, key=lambda one: (one.least > 0, one.factor), default=None)
    return plainest.text if plainest is not None else str(max(needs))


def _bases(extents: Sequence[str], sizes: Sequence[str]) -> Iterator[Sequence[str]]:
    """Products to scale, of several that do as well the first ones."""
    yield sizes[:3]
    if extents:
        yield extents
    several = range(1, min(_MOST_FACTORS, len(sizes)) + 1)
    yield from (
        one for many in several for one in itertools.combinations(sizes[:_MOST_SIZES], many)
    )
    yield sizes
    yield from ([*sizes[:3], one] for one in sizes[:3])


def _options(
    needs: Sequence[int], shapes: Sequence[Mapping[str, int]], base: Sequence[str]
) -> Iterator[_Option]:
    """A multiple of a product that is enough everywhere; one for the defaults, and a least extent."""
    holds = [math.prod(count(one, shape) for one in base) for shape in shapes]
    if min(holds) == 0:
        return
    factors = [max(1, -(-need // held)) for need, held in zip(needs, holds, strict=True)]
    for factor in (max(factors), factors[0]):
        pairs = zip(needs, holds, strict=True)
        least = max((need for need, held in pairs if need > factor * held), default=0)
        alone = factor == 1 == len(base)
        parts = [one if alone or one.isidentifier() else f"({one})" for one in base]
        text = " * ".join([str(factor), *parts] if factor > 1 else parts)
        cost = sum(max(least, factor * held) for held in holds)
        yield _Option(cost, least, factor, f"max({least}, {text})" if least else text)


def most_elements(weight: int, *, structs: bool) -> int:
    """Elements that an array may have at most; weight: of one, which is a struct's bytes for structs."""
    return (_MOST_STRUCT_BYTES if structs else _MOST) // weight


def times(reached: int, weight: int, total: int, names: Sequence[str], *, structs: bool) -> str:
    """An extent that holds so many elements: as many times the product of the sizes as that takes.

    weight: of an element. total: the product of the sizes `names`. structs: whether elements are.
    """
    needed = -(-min(reached, most_elements(weight, structs=structs)) // total)
    return " * ".join([str(needed), *names] if needed > 1 else names)
