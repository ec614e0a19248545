"""How a draft's kernel is launched: by the host's launch, else by what the kernel's text counts."""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.body.meanings import is_unguarded
from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.host.launch import name_in
from tokitai_cli.cpp.host.runtime import WARP
from tokitai_cli.cpp.launch_facts import LANES, block_of, strided
from tokitai_cli.cpp.tiles import Tiles
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.model import Guess
from tokitai_cli.drafts.reaching import AFFORDED, Reach, Reaching

_BLOCK, _FLAT_BLOCK = ["256"], ["16", "16"]
_SIZES = (96, 40, 7, 5, 3)
_MANY_BLOCKS, MOST_BLOCK, _FIXED_THREADS = 1024, 1024, 1024
MOST_THREADS = 1 << 17  # of a launch: it is to end soon
UNBOUNDED_THREADS = 1 << 13  # of a launch that reaches nobody knows how far
SIZE = 96  # of arrays where no size is told
_NAMED = "the value of the host's variable"
_ALIKE = "the host has {} for several sizes"
_UNSAID = "the host's launch does not show it"
_NO_LAUNCH = "from the kernel's code; there is no launch"
_COMMENTED = "according to its comment"
_ALONG = "the host's {} is not known, and no block of the kernel reads it"

Extents = Guess[list[str]]


def defaults(count: int) -> list[int]:
    """Values of so many sizes, told apart; further ones rise, as of two ends the first is the lower."""
    return [*_SIZES, *range(2, 2 * count, 2)][:count]


class Launching:
    """Grid and block of a draft."""

    def __init__(self, known: Known, reaching: Reaching) -> None:
        self._known, self._reaching = known, reaching
        self._blocks: dict[int, Extents] = {}

    @property
    def block(self) -> Extents:
        """Threads of a block; found once for each number of sizes, which grows with what is read."""
        sizes = len(self._known.sizes)
        if sizes not in self._blocks:
            self._blocks[sizes] = self._small_block()
        return self._blocks[sizes]

    @property
    def threads(self) -> int:
        """Threads of a block, as far as its extents are numbers."""
        return product(self.block.value)

    @property
    def whole(self) -> int:
        """Threads of a block, where every thread of all blocks has an element; else 0."""
        return self.threads if not self._known.sizes and self._unguarded else 0

    @property
    def grid(self) -> Extents:
        """Blocks; those of the host that fit its own sizes alone are not taken."""
        known, block = self._known, self.block.value
        read = {one.partition(".")[0] for one in known.layouts.facts.launch}
        one_block = "threadIdx" in read and "blockIdx" not in read
        counted = ["1"] if one_block else known.layouts.grid(block)
        otherwise = counted or [f"ceil_div({known.total}, {product(block)})"]
        found = self._extents("grid", otherwise)
        had = f"the host has {', '.join(found.value)}"
        fixed = not any(expressions.names_in(one) for one in found.value)
        if fixed and not known.sizes and not self.whole:  # the host's sizes are its constants
            cut = self._cut(found.value, product(block))
            return found if cut == found.value else Guess(cut, had)
        most = 1 if counted else _MANY_BLOCKS
        unfit = fixed and (self.whole or product(found.value) > most)
        names = [one.name for one in known.sizes]
        values = {**dict(zip(names, defaults(len(names)), strict=True)), WARP: LANES}
        with contextlib.suppress(SpecError):
            unfit = unfit or min(expressions.evaluate(one, values) for one in found.value) < 1
        return Guess(otherwise, had) if unfit and found.value != otherwise else found

    @functools.cached_property
    def tiles(self) -> list[Tiles]:
        """Loops over tiles of sizes, in the launch that the draft has."""
        known, axes = self._known, "xyz"
        names = {one.name: one.name for one in known.sizes}
        names |= {name: f"({told})" for name, told in known.passed.items()}
        for key, extents in (("blockDim", self.block.value), ("gridDim", self.grid.value)):
            told = [*extents, "1", "1"][:3]
            names |= {f"{key}.{axis}": f"({one})" for axis, one in zip(axes, told, strict=True)}
        return known.subject.reading.tiles(names)

    def filled(self) -> dict[str, int]:
        """Sizes that have to fill blocks, by their threads: all are to step, or none is left out."""
        known = self._known
        counted = re.match(r"ceil_div\((\w+)", self.grid.value[0])
        facts = known.layouts.facts
        found = strided(facts, known.layouts.sizes)
        if counted and counted[1] in {one.name for one in known.sizes}:
            found |= {counted[1]} if self._unguarded else set()
        return dict.fromkeys(found, self.threads)

    def in_sizes(self, number: Polynomial) -> str:
        """A number of the host's in sizes, with the numbers that its block has by guess."""
        return self._known.in_sizes(number, self._variables())

    def reach(self, sizes: Mapping[str, int]) -> Reach:
        """How far indices go at those sizes."""
        return self._reaching.at(sizes, self.block.value, self.grid.value)

    @functools.cached_property
    def _unguarded(self) -> bool:
        return is_unguarded(self._known.subject.reading.facts)

    def _told_block(self) -> Extents:
        facts = self._known.layouts.facts
        flat = "threadIdx.y" not in facts.launch
        limit = self._known.subject.most_threads if flat else 0
        told = block_of(facts) or ([str(limit)] if limit else [])
        told = told if product(told) <= MOST_BLOCK else []
        return self._extents("block", told or (_BLOCK if flat else _FLAT_BLOCK))

    def _small_block(self) -> Extents:
        """As told; a guess as small as the kernel's own shared arrays of fixed extents ask for."""
        block = self._told_block()
        if not block.why or not all(map(str.isdigit, block.value)):
            return block
        names = [one.name for one in self._known.sizes]
        values = dict(zip(names, defaults(len(names)), strict=True))
        counts = [int(one) for one in block.value]
        while max(counts) >= 1:
            threads = [str(one) for one in counts]
            if not self._reaching.at(values, threads, ["1"]).bounds.goes_beyond_shared():
                return Guess(threads, block.why)
            counts = [one // 2 if max(counts) == 1 else max(1, one // 2) for one in counts]
        return block

    def _cut(self, extents: list[str], threads: int) -> list[str]:
        """A grid of numbers, its largest extents halved until a first run can start all threads."""
        counts = [expressions.evaluate(one, {WARP: LANES}) for one in extents]
        while max(counts) > 1 and self._too_many(counts, threads):
            largest = counts.index(max(counts))
            counts[largest] = -(-counts[largest] // 2)
        return extents if math.prod(counts) == product(extents) else [*map(str, counts)]

    def _too_many(self, blocks: Sequence[int], threads: int) -> bool:
        """Whether a launch has too many threads for a first run, or they reach too far."""
        grid = [str(one) for one in blocks]
        reach = self._reaching.at({"elements": SIZE}, self.block.value, grid)
        started = math.prod(blocks) * threads
        return (
            started > _FIXED_THREADS
            or self._reaching.needed(reach) > AFFORDED
            or (started > UNBOUNDED_THREADS and self._reaching.unbounded(reach))
        )

    def _extents(self, key: str, otherwise: list[str]) -> Extents:
        """What the host's launch says of grid or block; else what the kernel's text does.

        An extent of the block that is a variable of the host's takes its place beside those that are
        told.
        """
        launch, in_sizes = self._known.launch, self._known.in_sizes
        host = getattr(launch, key, ())
        variables = self._variables() if key == "grid" else {}
        by_axis = [self._of_axis(axis) if key == "grid" else {} for axis in "xyz"]
        found = [in_sizes(one, variables | own) for one, own in zip(host, by_axis, strict=False)]
        along = ""  # an axis of the grid that nothing counts blocks along
        while key == "grid" and len(found) > max(1, len(otherwise)) and not found[-1]:
            found, host, along = found[:-1], host[:-1], "xyz"[len(found) - 1]
        if launch and found and all(found):
            named = any(one.names() & variables.keys() for one in host)
            alike = {
                name for one in host for name in one.names()
            } & self._known.of_one_number.keys()
            why = _COMMENTED if launch.commented else _NAMED if named else ""
            why = why or (_ALONG.format(along) if along else "")
            return Guess(found, why or (_ALIKE.format(sorted(alike)[0]) if alike else ""))
        if key == "grid" and any(found) and len(otherwise) == len(found):
            merged = [one or other for one, other in zip(found, otherwise, strict=True)]
            axis = found.index("")
            said = f"{'xyz'[axis]} from the kernel's code; the host has {host[axis]}"
            return Guess(merged, said)
        if key == "block" and any(found):
            beside = max(1, int(_BLOCK[0]) // product([one for one in found if one]))
            words = [name_in(one) for one, told in zip(host, found, strict=True) if not told]
            if len(words) == 1 and words[0].isidentifier():
                return Guess([one or str(beside) for one in found], _NAMED)
        return Guess(otherwise, _UNSAID if host else _NO_LAUNCH)

    def _of_axis(self, axis: str) -> dict[str, str]:
        """Of sizes that the host has one number for, the one that blocks of an axis count."""
        counted = self._known.layouts.axes.get(axis, "")
        alike = self._known.of_one_number.items()
        return {host: counted for host, sizes in alike if counted in sizes}

    def _variables(self) -> dict[str, str]:
        """Variables of the host's that are extents of its block, by the numbers that were guessed."""
        host = getattr(self._known.launch, "block", ())
        unknown = {name_in(one) for one in host if not self._known.in_sizes(one)} - {""}
        block = self.block if unknown else Guess(list[str]())
        same = block.why and len(block.value) == len(host)
        pairs = zip(map(name_in, host), block.value, strict=True) if same else ()
        return {name: value for name, value in pairs if name in unknown and value.isdigit()}


def product(extents: Sequence[str]) -> int:
    """Of those that are numbers."""
    size = 1
    for one in extents:
        with contextlib.suppress(SpecError):
            size *= expressions.evaluate(one, {WARP: LANES})
    return size
