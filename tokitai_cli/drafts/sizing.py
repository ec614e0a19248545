"""Sizes of a draft's defaults, and room in its arrays for what the indices reach at them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.host.runtime import WARP
from tokitai_cli.cpp.launch_facts import LANES, subtracted
from tokitai_cli.cpp.layout_relations import spans, within
from tokitai_cli.cpp.source.reached import pointed_types
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.launching import (
    MOST_BLOCK,
    MOST_THREADS,
    SIZE,
    UNBOUNDED_THREADS,
    Launching,
    defaults,
)
from tokitai_cli.drafts.reaching import AFFORDED, Reach, Reaching, count
from tokitai_cli.drafts.room import most_elements, room_for, times

_TOTAL = 67  # of what offsets cut into pieces, where a piece may hold it
_FEW = 4  # of a size that blocks count
_ROOM = 1 << 21  # elements of an array that nothing bounds
_LARGEST = 4096  # that a size is raised to for a second block
_HELD, _KEPT = 1 << 22, 3  # elements of a shape's arrays, and what a size is not cut below for that
# Names of types that hold several numbers, and of what packs them.
_VECTORS = re.compile(r"[a-z_]+[248]|.*[vV]ec(?:_t|_type)?")
_PACKING = re.compile(r"[Pp]acked128|load128")
_RAISES = (1, 3, 7, 16, 19, 35, 67, 131, *(3 * 2**at + 7 for at in range(6, 18)))


class Sizing:
    """Values of a draft's sizes that fit what the kernel asks of them."""

    def __init__(self, known: Known, launching: Launching, reaching: Reaching) -> None:
        self._known, self._launching, self._reaching = known, launching, reaching
        self._reaches: dict[tuple[tuple[str, int], ...], Reach] = {}

    @functools.cached_property
    def values(self) -> dict[str, int]:
        """The sizes' defaults: one that products of others are taken from is the product of all."""
        known = self._known
        names = [one.name for one in known.sizes]
        told = dict(zip(names, defaults(len(names)), strict=True)) | known.host_values
        if self._packs:  # a row begins where a vector may
            told = {name: n if n % 8 == 0 else 8 * n + 8 for name, n in told.items()}
        for name in names:
            others = subtracted(known.layouts.facts, name)
            whole = math.prod(n for other, n in told.items() if other != name)
            if others & told.keys() and whole <= AFFORDED:
                told[name] = whole
        told = {name: known.fitting(name, n) for name, n in told.items()}
        block, grid = self._launching.block.value, self._launching.grid.value
        threads = " * ".join(f"({one})" for one in block)
        launch = " * ".join(f"({one})" for one in (*grid, *block))
        told = self._halved(told, threads, MOST_BLOCK)
        far = self._reaching.unbounded(self._launching.reach(told))
        told = self._halved(told, launch, UNBOUNDED_THREADS if far else MOST_THREADS)
        told = self._affordable(self._within(told))
        told = told if known.origin.room else self.fitted(told)
        return told or {"elements": self._launching.whole or SIZE}

    @property
    def _packs(self) -> bool:
        """Whether the kernel speaks of vectors behind pointers, by the names of types."""
        parts = self._known.subject.reached
        words = (word for one in parts for word in one.words)
        return any(map(_VECTORS.fullmatch, pointed_types(parts))) or any(
            map(_PACKING.search, words)
        )

    @functools.cached_property
    def reach(self) -> Reach:
        """How far indices go at the defaults, in the launch that the draft has."""
        return self._launching.reach(self.values)

    def fitted(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """`sizes` with those raised that others have to fit in, or to divide."""
        new = dict(sizes)
        for small, large in within(self._known.layouts):
            if new[large] < new[small]:
                new[large] = self._known.fitting(large, new[small] + 7) if new[small] > 1 else 1
        for total, most in spans(self._known.layouts):
            new[total] = max(1, min(max(new[total], _TOTAL), count(most, new)))
        for name in [one for one in new if one.endswith("_q") and f"{one[:-1]}k" in new]:
            if new[name] > new[f"{name[:-1]}k"]:  # as many keys as queries, or more
                new[name], new[f"{name[:-1]}k"] = new[f"{name[:-1]}k"], new[name]
        for many, few in self._known.divisors:
            if new[many] < new[few]:
                new[many], new[few] = new[few], new[many]
            new[many] = -(-new[many] // new[few]) * new[few]
        return new

    def held(self, shape: Mapping[str, int]) -> dict[str, int]:
        """`shape` with its first sizes cut until the arrays are small enough for a quick run."""
        held = dict(shape)
        for name in shape:
            while self.elements(held) > _HELD and held[name] > _KEPT:
                less = self._known.fitting(name, max(_KEPT, held[name] // 2))
                if less >= held[name]:
                    break
                held[name] = less
        return held

    def unequal(self, shape: Mapping[str, int]) -> dict[str, int]:
        """`shape` without two equal sizes but 1, where the arrays stay small."""
        for least in (2, 1):
            new: dict[str, int] = {}
            for name, size in reversed([*shape.items()]):
                step = self._known.multiples.get(name, 1)
                several = range(max(1, least // step) * step, (len(shape) + 10) * step, step)
                free = (n for n in several if n not in new.values())
                fits = (n for n in free if self._known.fitting(name, n) == n)
                new[name] = next(fits, size) if size > 1 and size in new.values() else size
            if self.elements(new) <= AFFORDED:
                return {name: new[name] for name in shape}
        return dict(shape)

    def of_several_blocks(self, shape: Mapping[str, int]) -> dict[str, int]:
        """`shape` with a tail behind a block along each axis of the grid, where arrays stay small."""
        new, fitting = dict(shape), self._known.fitting
        for extent in self._launching.grid.value:
            names = expressions.names_in(extent)
            if len(names) != 1 or not {*names} <= new.keys():
                continue
            (name,) = names
            before = new[name]
            while count(extent, new) == 1 < count(extent, {**new, name: _LARGEST}):
                more = fitting(name, new[name] + max(16, new[name] // 2)) + 1
                if (more := fitting(name, more)) <= new[name]:
                    break  # as large as the kernel takes it
                new[name] = more
            if new[name] > before and self.elements(new) > AFFORDED:
                new[name] = before
        return self.fitted(new)

    def meeting(self, goal: str, shape: Mapping[str, int]) -> dict[str, int]:
        """`shape` with one size raised until a comparison holds, where the arrays stay small."""
        fitting = self._known.fitting
        for name in expressions.names_in(goal):
            for more in _RAISES if name in shape and not _holds(goal, shape) else ():
                new = self.fitted({**shape, name: fitting(name, shape[name] + more)})
                if _holds(goal, new) and self.elements(new) <= AFFORDED:
                    return new
        return dict(shape)

    def elements(self, shape: Mapping[str, int]) -> int:
        """Elements of all arrays."""
        return sum(math.prod(count(one, shape) for one in extents) for extents in self._shapes)

    def started(self) -> list[str]:
        """The grid with a block at least along each axis, where the smallest shape would have none."""
        ones = {one.name: self._known.fitting(one.name, 1) for one in self._known.sizes}
        found = []
        for one in self._launching.grid.value:
            try:
                empty = expressions.evaluate(one, ones) < 1
            except SpecError:
                empty = False
            found.append(f"max(1, {one})" if empty else one)
        return found

    def room(self, array: str, extents: Sequence[str], shapes: Sequence[Mapping[str, int]]) -> str:
        """One extent that holds all that the indices reach, where `extents` do not; else empty.

        extents: as the strides tell them; none where these say nothing. shapes: those of suites.
        """
        known, every = self._known, [self.values, *shapes]
        named = {name for one in extents for name in expressions.names_in(one)}
        if (len(extents) > 1 or named & known.guessed.keys()) and not known.origin.room:
            return ""  # strides say more than the indices' bounds, in what is read before it runs
        sizes = [one.name for one in known.sizes] or ["elements"]
        told = extents or sizes[:3]
        held = [math.prod(count(one, shape) for one in told) for shape in every]
        reached = [self._reach(shape).elements(array) for shape in every]
        structs, weight = self._reaching.structs(array), self._reaching.weight(array)
        # Structs of unknown bytes may be larger than those that were guessed.
        bounded = [one for one in reached if one is not None]
        if len(bounded) < len(every) or (structs and array not in known.leaves.inner):
            return self._unbounded_room(array, held[0], sizes[:3])
        if all(need <= has for need, has in zip(bounded, held, strict=True)):
            return ""
        return room_for(bounded, every, extents, sizes, most_elements(weight, structs=structs))

    def _reach(self, shape: Mapping[str, int]) -> Reach:
        key = tuple(shape.items())
        if key not in self._reaches:
            self._reaches[key] = self._launching.reach(shape)
        return self._reaches[key]

    def _unbounded_room(self, array: str, held: int, names: Sequence[str]) -> str:
        """An extent for an array of which nothing says how far its indices go."""
        known, weight = self._known, self._reaching.weight(array)
        share = AFFORDED // len(known.roles) // weight
        total = math.prod(self.values[name] for name in names)
        if total * weight > AFFORDED:  # large structs
            return str(max(1, share))
        reached = max(held, min(_ROOM, share)) if known.origin.room else 0
        structs = self._reaching.structs(array)
        return times(reached, weight, total, names, structs=structs) if reached > held else ""

    @functools.cached_property
    def _shapes(self) -> list[list[str]]:
        layouts = self._known.layouts
        return [layouts.shape(name) for name in layouts.arrays]

    def _halved(self, sizes: dict[str, int], of: str, most: int) -> dict[str, int]:
        """`sizes`, those that `of` is made of halved until it is no more than `most`."""
        told = dict(sizes)
        while count(of, told) > most:
            counted = [one for one in expressions.names_in(of) if told.get(one, 0) > _FEW]
            largest = max(counted, key=lambda one: told[one], default="")
            half = self._known.fitting(largest, told[largest] // 2) if largest else 0
            if half in {0, told.get(largest)}:
                break
            told[largest] = half
        return told

    def _within(self, sizes: dict[str, int]) -> dict[str, int]:
        """`sizes`, halved until shared arrays of fixed extents hold what indexes them, if they do."""
        less: dict[str, int] = sizes
        before: dict[str, int] = {}
        while less != before:
            if not self._launching.reach(less).bounds.goes_beyond_shared():
                return less
            before = less
            less = {name: self._known.fitting(name, max(1, n // 2)) for name, n in less.items()}
        return sizes

    def _affordable(self, sizes: dict[str, int]) -> dict[str, int]:
        """`sizes`, halved as often as the arrays are too large for a first run."""
        while max(sizes.values(), default=0) > _FEW:
            needed = self._reaching.needed(self._launching.reach(sizes))
            less = {
                name: self._known.fitting(name, min(n, max(_FEW, n // 2)))
                for name, n in sizes.items()
            }
            if needed <= AFFORDED or less == sizes:
                break
            sizes = less
        return sizes


def _holds(goal: str, shape: Mapping[str, int]) -> bool:
    try:
        return expressions.holds(goal, {WARP: LANES, **shape})
    except SpecError:
        return False
