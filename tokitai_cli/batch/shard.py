"""One part of a batch for one machine of several, cut alike on each of them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import msgspec

from tokitai_cli.batch.collected import BatchCase


def shard(cases: Sequence[BatchCase], index: int, count: int) -> tuple[BatchCase, ...]:
    """Cases of part `index` of `count`, 1 <= index <= count, in their order and numbered from 0.

    What is judged together stays together: whole groups go to the part that has the least weight so
    far, the heaviest group first (R. L. Graham, SIAM J. Appl. Math. 17, 1969: the heaviest part has
    at most 4/3 of the least possible). Depends on nothing but names and weights of the groups.
    """
    weights: dict[str, list[float]] = {}
    for case in cases:
        weights.setdefault(case.group, []).append(case.weight)
    # fsum rounds once, so that the order of the cases has no say.
    groups = sorted(weights, key=lambda group: (-math.fsum(weights[group]), group))
    parts = [(0.0, 0, number) for number in range(1, count + 1)]
    ours = set()
    for group in groups:
        weight, size, number = parts[0]
        if number == index:
            ours.add(group)
        heavier = (weight + math.fsum(weights[group]), size + len(weights[group]), number)
        heapq.heapreplace(parts, heavier)
    return numbered([case for case in cases if case.group in ours])


def numbered(cases: Sequence[BatchCase]) -> tuple[BatchCase, ...]:
    """The cases with the number of their place."""
    return tuple(
        case if case.number == number else msgspec.structs.replace(case, number=number)
        for number, case in enumerate(cases)
    )
