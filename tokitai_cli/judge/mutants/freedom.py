"""Wrong outputs of what is right in several orders, or has several right values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.judge.checks.target import Index, Target
from tokitai_cli.judge.mutants.values import Mutant
from tokitai_cli.judge.order import FreeOrder

ONE_TWICE, OTHER_SEGMENT, UNGROUPED, BETWEEN = (
    "one-twice", "other-segment", "ungrouped", "between-choices",
)  # fmt: skip
RIGHT_TOO = "it is one of the correct outputs"


def mutants_of_freedom(target: Target, order: FreeOrder | None) -> list[Mutant]:
    """Wrong outputs that a comparison of all elements in any order, or with any choice, may pass."""
    made = [] if order is None else list(_of_order(target, order))
    if target.form is not None and target.allowed is not None:
        made.append(_between(target))
    return made


def arranged(target: Target, mutant: Mutant) -> Mutant:
    """The mutant in the reference's order, as a kernel's output is judged in it."""
    if target.arranged is None or mutant.values is None:
        return mutant
    arrange, given = target.arranged, mutant.values
    made: list[NDArray[Any]] = []

    def values(index: Index) -> NDArray[Any]:
        if not made:
            whole = arrange(target.round(given(slice(0, target.size))))
            made.append(whole.astype(target.reference.dtype))
        return np.asarray(made[0][index])

    return msgspec.structs.replace(mutant, values=values, only=None, rows=None)


def _of_order(target: Target, order: FreeOrder) -> Iterator[Mutant]:
    units = target.reference.reshape(order.labels.size, -1)
    spread = units.astype(np.float64)
    sizes = np.where(np.isfinite(spread), spread, 0.0)
    sizes = sizes[:, int(np.argmax(np.ptp(sizes, axis=0)))]
    rank = np.lexsort((sizes, order.labels))
    starts = np.flatnonzero(np.diff(order.labels[rank], prepend=order.labels[rank[0]] - 1))
    ends = np.append(starts[1:], rank.size) - 1
    least, most = rank[starts], rank[ends]
    widest = int(np.argmax(sizes[most] - sizes[least]))
    changed = {"one": (int(least[widest]), int(most[widest]))}
    if sizes[changed["one"][1]] > sizes[changed["one"][0]]:
        where = f"element {changed['one'][1]} replaces {changed['one'][0]} too"
        yield Mutant(ONE_TWICE, where, _with(target, units, [changed["one"]]))
    else:
        yield Mutant(
            ONE_TWICE, "all elements that may change places are equal", None, "not-applicable"
        )
    yield _other_segment(target, units, sizes, (least, most))
    if target.name != order.targets[0].name:
        yield _ungrouped(target, units, order)


def _other_segment(
    target: Target,
    units: NDArray[Any],
    sizes: NDArray[np.float64],
    ends: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Mutant:
    least, most = ends
    if least.size < 2:
        return Mutant(OTHER_SEGMENT, "all elements are of one segment", None, "not-applicable")
    above = int(np.argmax(sizes[most]))
    others = np.delete(np.arange(least.size), above)
    below = int(others[np.argmin(sizes[least[others]])])
    one, other = int(most[above]), int(least[below])
    if sizes[one] == sizes[other]:
        return Mutant(OTHER_SEGMENT, "the segments are equal", None, "not-applicable")
    detail = f"elements {one} and {other}, of two segments, have changed places"
    return Mutant(OTHER_SEGMENT, detail, _with(target, units, [(one, other), (other, one)]))


def _ungrouped(target: Target, units: NDArray[Any], order: FreeOrder) -> Mutant:
    """Each segment moved by one, and what belongs to it not."""
    moves = [
        (int(to), int(of))
        for one in order.segments()
        for to, of in zip(one, np.roll(one, 1), strict=True)
    ]
    first = order.targets[0].name
    if not moves:
        return Mutant(UNGROUPED, "no two elements may change places", None, "not-applicable")
    return Mutant(UNGROUPED, f"moved by one relative to {first}", _with(target, units, moves))


def _with(
    target: Target, units: NDArray[Any], moves: list[tuple[int, int]]
) -> Callable[[Index], NDArray[Any]]:
    """The reference with units (to, of) copied."""
    made: list[NDArray[Any]] = []

    def values(index: Index) -> NDArray[Any]:
        if not made:
            whole = units.copy()
            to, of = np.array(moves).T
            whole[to] = units[of]
            made.append(whole.reshape(-1))
        return np.asarray(made[0][index])

    return values


def _between(target: Target) -> Mutant:
    """Half way between two right values."""

    def values(index: Index) -> NDArray[Any]:
        assert target.allowed is not None
        choices = np.stack([target.reference[index], *(one[index] for one in target.allowed)])
        with np.errstate(all="ignore"):
            return np.asarray((choices.min(axis=0) + choices.max(axis=0)) / 2)

    return Mutant(BETWEEN, "half way between the smallest and the largest correct value", values)
