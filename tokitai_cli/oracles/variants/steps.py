"""What a formula did on its arrays, step by step: with one changed, what comes of it is done again.

To call a formula costs more than its arithmetic in a small case. What it does beside its steps (a branch
on a value, a value that leaves its arrays) cannot be repeated: then the whole formula is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# Of a tape, the arguments and the named ones, in which arrays are plain.
Operate = Callable[..., Any]

# Elements of all arrays of a formula beyond which its steps are not kept.
_MOST = 1 << 21


class Slot(NamedTuple):
    """Stands for an array in the arguments of a step."""

    number: int


class Chosen(NamedTuple):
    """Stands for a tape before a step that is done again: the change of its operation, if any."""

    kind: str | None
    is_recording: bool = False
    is_repeating: bool = True

    def next(self, name: str, work: int, terms: int = 0, elements: int | None = None) -> str | None:
        """The change of the one operation that comes."""
        return self.kind

    def multiplies(self, extents: tuple[int, ...]) -> None:
        """Nothing is noted."""


class Step(NamedTuple):
    """Something that was done, and the numbers of the arrays that it read and made."""

    operate: Operate
    args: Sequence[Any]
    named: Mapping[str, Any]
    reads: frozenset[int]
    makes: range

    def again(self, kind: str | None, arrays: Sequence[Array]) -> list[Array]:
        """What it makes of other arrays, with a change."""
        args = [_filled(one, arrays) for one in self.args]
        named = {name: _filled(one, arrays) for name, one in self.named.items()}
        result = self.operate(Chosen(kind), *args, **named)
        several = result if isinstance(result, (list, tuple)) else [result]
        return [np.asarray(one) for one in several]


class Steps:
    """The steps of a formula in their order, with all arrays on the way."""

    def __init__(self, *, lost: bool = False) -> None:
        self.values: dict[str, Array] = {}
        self._arrays: list[Array] = []
        self._steps: list[Step] = []
        #: The step of each operation, by its place.
        self._at: dict[int, int] = {}
        self._outputs: dict[str, Any] = {}
        self._size = 0
        self._lost = lost
        self._checked = False

    def lose(self) -> None:
        """Something was done that is no step."""
        self._lost = True
        self._arrays, self._steps = [], []

    def kept(self, array: Array) -> int:
        """The number of an array."""
        if self._lost:
            return -1
        self._size += array.size
        if self._size > _MOST:
            self.lose()
        self._arrays.append(array)
        return len(self._arrays) - 1

    def took(
        self, operate: Operate, args: Any, named: Mapping[str, Any], made: Sequence[int], place: int
    ) -> None:
        """Keep a step; place: of its operation, below 0 for none."""
        if self._lost or not made:
            return
        if place >= 0:
            self._at[place] = len(self._steps)
        reads = frozenset(_numbers((args, [*named.values()])))
        self._steps.append(Step(operate, args, named, reads, range(made[0], made[-1] + 1)))

    def part_with(self, number: int) -> None:
        """Keep an array as it is before it is written to; one that shares its memory would be too."""
        if self._lost:
            return
        array = self._arrays[number]
        others = (one for at, one in enumerate(self._arrays) if at != number)
        if any(np.may_share_memory(array, one) for one in others):
            self.lose()
        else:
            self._arrays[number] = array.copy()

    def end(self, outputs: Mapping[str, Any], values: dict[str, Array]) -> None:
        """Say what the formula returned: by numbers, and the arrays."""
        self._outputs, self.values = dict(outputs), values

    def outputs(self, place: int, kind: str) -> dict[str, Array] | None:
        """What the formula gives with a change of the operation at `place`.

        An output that it does not alter is that of `values`. None where the formula has to be called.
        """
        if not self._repeatable:
            return None
        at, arrays = self._at[place], list(self._arrays)
        try:
            with np.errstate(all="ignore"):
                changed = self._again(at, kind, arrays)
        except (ArithmeticError, IndexError, TypeError, ValueError):
            return None  # told by the formula
        if changed is None:
            return None
        return {
            name: np.asarray(_filled(tree, arrays)) if changed & {*_numbers(tree)} else right
            for (name, tree), right in zip(self._outputs.items(), self.values.values(), strict=True)
        }

    def _again(self, at: int, kind: str, arrays: list[Array]) -> set[int] | None:
        """Put the arrays that a change alters into `arrays`: their numbers, None where forms differ."""
        changed: set[int] = set()
        for number, step in enumerate(self._steps[at:]):
            if number and changed.isdisjoint(step.reads):
                continue
            made = step.again(None if number else kind, arrays)
            for place, array in zip(step.makes, made, strict=True):
                right = arrays[place]
                if array.shape != right.shape or array.dtype != right.dtype:
                    return None
                if number or not _same(array, right):
                    changed.add(place)
                    arrays[place] = array
            if not changed:
                break
        return changed

    @property
    def _repeatable(self) -> bool:
        """Whether each step gives what it gave: its arguments may have been written to since."""
        if not self._checked and not self._lost:
            self._checked = True
            with np.errstate(all="ignore"):
                if not all(map(self._is_alike, self._steps)):
                    self.lose()
        return not self._lost

    def _is_alike(self, step: Step) -> bool:
        made, arrays = step.again(None, self._arrays), self._arrays
        return all(_same(one, arrays[at]) for at, one in zip(step.makes, made, strict=True))


def _filled(tree: Any, arrays: Sequence[Array]) -> Any:
    """Arguments with arrays in the place of their numbers."""
    if isinstance(tree, Slot):
        return arrays[tree.number]
    if isinstance(tree, (list, tuple)):
        return type(tree)([_filled(one, arrays) for one in tree])
    return tree


def _numbers(tree: Any) -> Iterator[int]:
    if isinstance(tree, Slot):
        yield tree.number
    elif isinstance(tree, (list, tuple)):
        for one in tree:
            yield from _numbers(one)


def _same(left: Array, right: Array) -> bool:
    """Whether arrays are equal to the bit."""
    return (
        left.shape == right.shape
        and left.dtype == right.dtype
        and left.tobytes() == right.tobytes()
    )
