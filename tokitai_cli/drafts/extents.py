"""Sizes of a draft's defaults, and room in its arrays for what the indices reach at them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.indices.blocks import LANES, WARP
from tokitai_cli.cpp.indices.kernel_text import flat
from tokitai_cli.cpp.indices.reach import Reach, places
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.host_sizes import HostSizes
from tokitai_cli.drafts.launch_writer import (
    MOST_BLOCK,
    MOST_THREADS,
    SHARED,
    defaults,
)

STRUCT_BYTES = 64  # of a struct where nothing says it
_ALL_SHARED = 65536  # bytes of shared memory that a block can have
_SIZE = 96  # of arrays where no size is told
_UNBOUNDED_THREADS = 1 << 13  # of a launch that reaches nobody knows how far
_TOTAL = 67  # of what offsets cut into pieces, where a piece may hold it
_FEW = 4  # of a size that blocks count
AFFORDED = 12 << 20  # elements of all arrays in a first run
_MOST_STRUCT_BYTES = 1 << 26  # of an array of structs
_ROOM, _MOST_ROOM = 1 << 21, 1 << 25  # elements of an array that nothing bounds, of any array

_SHARED = re.compile(r"__shared__\s+[\w:<>]+\s+(\w+)\s*((?:\[[^\[\]]+\]\s*)+)")
_VECTORS = re.compile(
    r"\b[a-z_]+[248]\s*(?:const\s*)?\*|[Pp]acked128|load128|[vV]ec(?:_t|_type)?\s*(?:const\s*)?\*"
)


class RoomWriter(HostSizes):
    """The part of a draft that says how large sizes and arrays are."""

    roles: dict[str, str]
    reached: str
    _limits: Mapping[str, int]
    _multiples: Mapping[str, int]
    _blocks: dict[int, tuple[list[str], str]]

    def _draw(self, one: Parameter) -> str:
        raise NotImplementedError

    def _numbers(self) -> list[Parameter]:
        raise NotImplementedError

    def _room(self, array: str, extents: list[str]) -> list[str]:
        """One extent that holds all that the indices reach, where `extents` do not; else empty.

        extents: as the text's strides tell them; none where it does not say any.
        """
        values = self._values
        names = [one.name for one in self.sizes[:3]] or ["elements"]
        total = math.prod(values[name] for name in names)
        held = math.prod(count(one, values) for one in extents) if extents else total
        if seen := self.origin.seen.elements.get(array):
            per = self._weight(array) * (2 if array in self.leaves.rows else 1)
            return self._extent(array, max(held, -(-seen // per)), total, names)
        if len(extents) > 1 and not self.origin.room:
            return []  # strides say more than the indices' bounds, in what is read before it runs
        # Structs of unknown bytes may be larger than those that were guessed.
        unknown = self._structs(array) and array not in self.leaves.inner
        reached = None if unknown else self._reach.elements(array)
        if reached is None and total * self._weight(array) > AFFORDED:  # large structs
            return [str(max(1, AFFORDED // len(self.roles) // self._weight(array)))]
        if reached is None:
            if not self.origin.room:
                return []
            reached = max(held, min(_ROOM, AFFORDED // len(self.roles) // self._weight(array)))
        if reached <= held:
            return []
        return self._extent(array, reached, total, names)

    def _extent(self, array: str, reached: int, total: int, names: list[str]) -> list[str]:
        """As many times the product of the sizes as hold so many elements."""
        most = _MOST_STRUCT_BYTES if self._structs(array) else _MOST_ROOM
        times = -(-min(reached, most // self._weight(array)) // total)
        return [" * ".join([str(times), *names] if times > 1 else names)]

    def _block(self) -> tuple[list[str], str]:
        """See `_small_block`; found once for each number of sizes, which grows with what is read."""
        if len(self.sizes) not in self._blocks:
            self._blocks[len(self.sizes)] = self._small_block()
        return self._blocks[len(self.sizes)]

    def _small_block(self) -> tuple[list[str], str]:
        """As told; a guess as small as the kernel's own shared arrays of fixed extents ask for."""
        block, guess = super()._block()
        if not guess or self.text.block or not all(map(str.isdigit, block)):
            return block, guess
        told, body = self._fixed_shared()
        names = [one.name for one in self.sizes]
        values = dict(zip(names, defaults(len(names)), strict=True))
        counts = [int(one) for one in block]
        while told:
            here = values | places("thread", counts)
            reach = Reach(body, here, self.text.constants, {})
            pairs = [
                (reach.elements(name, least=True) or 0, reach.top(extent)) for name, extent in told
            ]
            if all(extent is None or reached <= extent for reached, extent in pairs):
                return [str(one) for one in counts], guess
            if max(counts) == 1:
                break
            counts = [max(1, one // 2) for one in counts]
        return block, guess

    def _shared(self, guessed: bool) -> tuple[str, str]:
        """As told, with room for what the indices reach at the guessed sizes."""
        told, guess = super()._shared(guessed)
        array = SHARED.search(self.kernel.body)
        name = (array["name"] or array["hip_name"]) if array else None
        words = [array[one] or "" for one in ("before", "type", "hip_type")] if array else []
        size = self._bytes(" ".join(" ".join(words).split())) if name else ""
        held, more = count(told, self._values), self.origin.seen.shared
        if name and size.isdigit():
            reached = (self._reach.elements(name, least=True) or 0) * int(size)
            more += max(0, reached - held)
        room = "  # guess: room for what its indices may reach, where the host has {told}"
        fits = 0 < more <= _ALL_SHARED - held
        return (f"{told} + {more}", room.format(told=told)) if fits else (told, guess)

    @functools.cached_property
    def _values(self) -> dict[str, int]:
        """The sizes' defaults: one that products of others are taken from is the product of all."""
        names = [one.name for one in self.sizes]
        told = dict(zip(names, defaults(len(names)), strict=True))
        if _VECTORS.search(self.reached):  # a row begins where a vector may
            told = {name: n if n % 8 == 0 else 8 * n + 8 for name, n in told.items()}
        for name in names:
            less = re.findall(rf"(?<![\w.]){name}\s*-\s*((?:\w+\s*\*\s*)+\w+)", self.text.body)
            others = {word for one in less for word in re.findall(r"\w+", one)} - {name}
            product = math.prod(n for other, n in told.items() if other != name)
            if others & told.keys() and product <= AFFORDED:
                told[name] = product
        told = {name: self._fitting(name, n) for name, n in told.items()}
        block = self._block()[0]
        launch = " * ".join(f"({one})" for one in (*self._grid(block)[0], *block))
        threads = " * ".join(f"({one})" for one in block)
        told = self._halved(told, threads, MOST_BLOCK)
        far = self._unbounded(self._reach_at(told))
        told = self._halved(told, launch, _UNBOUNDED_THREADS if far else MOST_THREADS)
        told = self._affordable(self._within(told))
        for _ in range(self.origin.seen.halvings):
            told = {name: self._fitting(name, max(1, n // 2)) for name, n in told.items()}
        told = told if self.origin.room else self._fitted(told)
        return told or {"elements": self._whole or _SIZE}

    def _halved(self, sizes: dict[str, int], of: str, most: int) -> dict[str, int]:
        """`sizes`, those that `of` is made of halved until it is no more than `most`."""
        told = dict(sizes)
        while count(of, told) > most:
            counted = [one for one in expressions.names_in(of) if told.get(one, 0) > _FEW]
            largest = max(counted, key=lambda one: told[one], default="")
            half = self._fitting(largest, told[largest] // 2) if largest else 0
            if half in {0, told.get(largest)}:
                break
            told[largest] = half
        return told

    def _fitted(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """`sizes` with those raised that others have to fit in, or to divide."""
        new = dict(sizes)
        for small, large in self.text.within():
            if new[large] < new[small]:
                new[large] = self._fitting(large, new[small] + 7) if new[small] > 1 else 1
        for total, most in self.text.spans():
            new[total] = max(1, min(max(new[total], _TOTAL), count(most, new)))
        for name in [one for one in new if one.endswith("_q") and f"{one[:-1]}k" in new]:
            if new[name] > new[f"{name[:-1]}k"]:  # as many keys as queries, or more
                new[name], new[f"{name[:-1]}k"] = new[f"{name[:-1]}k"], new[name]
        for many, few in self.text.divided():
            if new[many] < new[few]:
                new[many], new[few] = new[few], new[many]
            new[many] = -(-new[many] // new[few]) * new[few]
        return new

    def _fixed_shared(self) -> tuple[list[tuple[str, str]], str]:
        """Shared arrays of fixed extents with their elements; the text without, one index for each."""
        found = _SHARED.findall(self.text.body)
        told = [
            (name, re.sub(r"\]\s*\[", ") * (", f"({one.strip()[1:-1]})")) for name, one in found
        ]
        inner = ", ".join(
            re.sub(r"\[[^\[\]]+\]", "[]", f"{name}{one}", count=1) for name, one in found
        )
        return told, flat(_SHARED.sub("", self.text.body), f"({inner})")

    def _within(self, sizes: dict[str, int]) -> dict[str, int]:
        """`sizes`, halved until shared arrays of fixed extents hold what indexes them, if they do."""
        told, body = self._fixed_shared()
        less = sizes
        while told:
            reach = self._reach_at(less, body=body)
            pairs = ((reach.elements(name, least=True), reach.top(extent)) for name, extent in told)
            if all(held is None or (need or 0) <= held for need, held in pairs):
                return less
            before, less = (
                less,
                {name: self._fitting(name, max(1, n // 2)) for name, n in less.items()},
            )
            if less == before:
                break
        return sizes

    def _affordable(self, sizes: dict[str, int]) -> dict[str, int]:
        """`sizes`, halved as often as the arrays are too large for a first run."""
        while max(sizes.values(), default=0) > _FEW:
            needed = self._needed(self._reach_at(sizes))
            less = {
                name: self._fitting(name, min(n, max(_FEW, n // 2))) for name, n in sizes.items()
            }
            if needed <= AFFORDED or less == sizes:
                break
            sizes = less
        return sizes

    @functools.cached_property
    def _reach(self) -> Reach:
        """How far indices go at the defaults, in the launch that the draft has."""
        return self._reach_at(self._values)

    def _too_many(self, blocks: Sequence[int], threads: int) -> bool:
        """Whether a launch has too many threads for a first run, or they reach too far."""
        reach = self._reach_at({"elements": _SIZE}, [str(one) for one in blocks])
        started = math.prod(blocks) * threads
        return (
            super()._too_many(blocks, threads)
            or self._needed(reach) > AFFORDED
            or (started > _UNBOUNDED_THREADS and self._unbounded(reach))
        )

    def _unbounded(self, reach: Reach) -> bool:
        """Whether nothing bounds an index of some array, so that few threads are to reach little."""
        return any(reach.elements(name) is None for name in self.text.arrays)

    def _needed(self, reach: Reach) -> int:
        """Elements of all arrays, those that nothing bounds left out."""
        arrays = self.text.arrays
        return sum((reach.elements(name) or 0) * self._weight(name) for name in arrays)

    def _weight(self, array: str) -> int:
        """What an element of an array counts as: lanes of a vector, bytes of a struct."""
        if self._structs(array):
            return self.leaves.inner.get(array, STRUCT_BYTES)
        return self.leaves.inner.get(array, 1)

    def _structs(self, array: str) -> bool:
        return any(one.name == array and one.kind == "structs" for one in self.parameters)

    def _reach_at(
        self, sizes: Mapping[str, int], blocks: Sequence[str] = (), body: str = ""
    ) -> Reach:
        block = self._block()[0]
        grid = blocks or self._grid(block)[0]
        values = {**sizes, **{one.name: 1 for one in self._numbers() if one.integer}}
        values |= places("thread", [count(one, sizes) for one in block])
        values |= places("block", [count(one, sizes) for one in grid])
        drawn = {name: count(end, sizes) - less for name, (end, less) in self._drawn.items()}
        return Reach(body or self.text.body, values, self.text.constants, drawn)

    @functools.cached_property
    def _drawn(self) -> dict[str, tuple[str, bool]]:
        """The end of what arrays that are read are drawn up to, and whether they stay below it."""
        read = [one for one in self.parameters if self.roles.get(one.name) in {"inputs", "inout"}]
        ends = (re.search(r"(below|end|hi|value): \"?([^,}\"]+)", self._draw(one)) for one in read)
        return {
            one.name: (end[2], end[1] == "below")
            for one, end in zip(read, ends, strict=True)
            if end
        }

    def _fitting(self, size: str, value: int) -> int:
        """About `value`, as the kernel takes it: a multiple, and no more than its own arrays hold."""
        step, most = self._multiples.get(size, 1), self._limits.get(size, value)
        value = value if value <= most else most - value % 2
        return max(step, value // step * step)


def count(extent: str, sizes: Mapping[str, int]) -> int:
    """An extent at those sizes; 0 where it has none there."""
    try:
        return max(0, expressions.evaluate(extent, {WARP: LANES, **sizes}))
    except SpecError:
        return 0
