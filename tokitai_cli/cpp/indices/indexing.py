"""What a kernel's text asks of its launch and sizes: blocks, limits, and how sizes fit each other."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.indices.blocks import block_of
from tokitai_cli.cpp.indices.kernel_text import conditions
from tokitai_cli.cpp.indices.shapes import Shapes
from tokitai_cli.cpp.indices.strides import chain_of, quotient, without

_ASSERTED = re.compile(r"\bassert\s*\(([^;]*)\)\s*;")


class Indexing(Shapes):
    """All that the text says, for a draft to be made of."""

    @property
    def block(self) -> list[str]:
        """Threads of a block, where the text fixes them; empty where it does not."""
        body = self.body
        for name, told in self.variables.items():
            given = re.findall(rf"(?<![\w.]){name}\s*(?:\+\+|[-+*/%&|^]?=(?!=))", body)
            if re.fullmatch(r"threadIdx\s*\.\s*[xyz]", told.strip()) and len(given) == 1:
                body = re.sub(rf"(?<![\w.]){name}\b(?!\s*=(?!=))", told.strip(), body)
        return block_of(re.sub(r"\s+", "", body), self.value)

    def grid(self, block: Sequence[str]) -> list[str]:
        """Blocks along each axis, by the sizes that they count; empty where one is not known."""
        found = []
        text = re.sub(r"\s+", "", self.body)
        for axis in "xyz"[: max(("xyz".index(one) + 1 for one in self.axes), default=0)]:
            size = self.axes.get(axis, "1")
            scales = "|".join(["blockDim", *self._scales(), r"\d+"])
            scaled = (
                rf"blockIdx\.{axis}\)?\*\(?({scales})\b|\b({scales})(?:\.{axis})?\*blockIdx\.{axis}"
            )
            if size and (match := re.search(scaled, text)):
                at = "xyz".index(axis)
                threads = block[at] if at < len(block) else "1"
                size = f"ceil_div({size}, {self.value(match[1] or match[2]) or threads})"
            found.append(size)
        return found if found and all(found) else []

    def _scales(self) -> list[str]:
        return [re.escape(one) for one in self.constants if self.value(one)] or ["(?!)"]

    def values_below(self, array: str) -> str:
        """What the array's values index, as an extent; empty where the text does not say."""
        within = {large: small for small, large in self.within()}
        for other, strides in self._used.items():
            chain, shape = chain_of(strides), self.shape(other)
            outer = [(chain[-1], shape[0])] if chain and shape else []
            inner = list(zip(chain, reversed(shape), strict=False))
            for stride, extent in outer + inner if len(chain) != len(shape) else inner:
                for name in strides.get(stride, ()):
                    if self._loaded(name) == array:
                        return within.get(extent, extent)
        for own in re.findall(rf"\b(\w+)\s*\[\s*{array}\s*\[", self.body):
            declared = re.search(rf"\b[A-Za-z_]\w*\s+{own}\s*\[\s*(\w+)\s*\]", self.body)
            if declared and (told := self.value(declared[1])):
                return told
        return ""

    def within(self) -> list[tuple[str, str]]:
        """Sizes that others, the strides of rows that they go over, are at least: vocab, stride."""
        every = [pair for array in self.arrays for pair in self._rows_within(array)]
        return list(dict.fromkeys(every))

    def padded(self, array: str) -> tuple[int, str]:
        """The axis along which an array is longer than what is reached, and up to where; else empty."""
        shape = self.shape(array)
        for small, large in self._rows_within(array):
            if shape.count(large) == 1:
                return shape.index(large), small
        return 0, ""

    def _rows_within(self, array: str) -> Iterator[tuple[str, str]]:
        strides = self._used[array]
        for below, above in itertools.pairwise(chain_of(strides)):
            for large in without(above, below)[:1] if len(above) == len(below) + 1 else ():
                told = {one for name in strides.get(below, ()) for one in self._plainly(name)}
                if large in self.sizes and told and large not in told:
                    yield from ((small, large) for small in sorted(told))

    def _plainly(self, name: str) -> list[str]:
        """Sizes that the name is compared with, as they are."""
        return [one[0] for one in self._compared(name) if len(one) == 1 and one[0] in self.sizes]

    def spans(self) -> list[tuple[str, str]]:
        """Totals of offsets, and what one piece of them is at most: pages of a row, times their size."""
        found: dict[tuple[str, str], None] = {}
        for strides in self._used.values():
            for below, above in itertools.pairwise(chain_of(strides)):
                parts = [quotient(name) for name in strides.get(below, ())]
                extent = " * ".join(without(above, below))
                for steps, sign, size in filter(None, parts):
                    of = self._cut_by_offsets(steps) and self._segments() and self._is_size(size)
                    if sign == "/" and of:
                        found[self._segments()[0], f"{extent} * {self._in_sizes(size)}"] = None
        return list(found)

    def _cut_by_offsets(self, name: str) -> bool:
        """Whether a name goes up to what lies between two offsets."""
        ends = re.findall(rf"(?<![\w.]){re.escape(name)}\s*<\s*(\w+)", self.body)
        made = [self.variables.get(one, one) for one in ends]
        return any(re.search(rf"\b{array}\s*\[", one) for array in self._offsets for one in made)

    def divided(self) -> list[tuple[str, str]]:
        """Sizes that a kernel divides by others and expects no rest of: heads, heads of keys."""
        sizes = "|".join(map(re.escape, self.sizes)) or "(?!)"
        pairs = [pair for pair in self.divided_by_tree if not pair[1].isdigit()]
        found: dict[tuple[str, str], None] = dict.fromkeys(pairs)
        for told in self.variables.values():
            for many, few in re.findall(rf"(?<![\w.)] )\b({sizes})\s*/\s*({sizes})\b", told):
                if many != few and not re.search(rf"\b{many}\s*%\s*{few}\b", self.body):
                    found[many, few] = None
        return list(found)

    def limits(self) -> dict[str, int]:
        """Largest value of sizes, by the arrays of the kernel's own that they index."""
        found: dict[str, int] = {}
        text = re.sub(r"\s+", " ", self.body)
        own = (
            r"\b(?:float|double|int|half|__half|T|scalar_t)\s+(\w+)((?:\s*\[\s*\w+\s*\])+)\s*[;,=]"
        )
        for name, extents in re.findall(own, text):
            counts = [self.value(one.strip()) for one in re.findall(r"\[([^\]]*)\]", extents)]
            for used in re.findall(rf"\b{name}((?:\s*\[[^\[\]]*\])+)", text):
                for index, count in zip(re.findall(r"\[([^\]]*)\]", used), counts, strict=False):
                    held = self._held(index.strip(), count)
                    free = count and not held and "threadIdx" not in index
                    for size in self._bounds(index.strip()) if free else []:
                        if size in self.sizes:
                            found[size] = min(int(count), found.get(size, int(count)))
        return found

    def _held(self, index: str, count: str) -> bool:
        """Whether a comparison with a number keeps the index within the array."""
        below = rf"(?<![\w.]){re.escape(index)}\s*<\s*(\w+)"
        told = [self.value(one) for one in re.findall(below, self.body)]
        return any(one and int(one) <= int(count) for one in told)

    def strided(self) -> set[str]:
        """Sizes that threads step up to with barriers on the way, which all of a block are to reach."""
        found: set[str] = set()
        for begin, head, end in conditions(self.body):
            loop = re.match(
                r"(?:for|while)\s*\((?:[^;]*;)?\s*(\w+)\s*<\s*(\w+)\s*[;)]", self.body[begin:end]
            )
            first = self.variables.get(loop[1], "") if loop else ""
            barrier = re.search(r"\b(?:__syncthreads\w*|sync)\s*\(", self.body[head:end])
            if (
                loop
                and barrier
                and "threadIdx.x" in first.replace(" ", "")
                and loop[2] in self.sizes
            ):
                found.add(loop[2])
        return found

    def multiples(self) -> dict[str, int]:
        """Sizes that the kernel divides without a remainder of its own, or asserts it of, by what."""
        found: dict[str, int] = {}
        body = _ASSERTED.sub(";", self.body)
        for size, number in self.divided_by_tree:
            if number.isdigit():
                found[size] = math.lcm(int(number), found.get(size, 1))
        for size in self.sizes:
            whole = rf"\b{size}\s*%\s*(\w+|\([^()]*\))\s*==\s*0"
            sworn = re.findall(whole, " ".join(_ASSERTED.findall(self.body)))
            if numbers := [n for one in sworn if (n := constant(one, self.constants))]:
                found[size] = math.lcm(*numbers, found.get(size, 1))
            if re.search(rf"<=?\s*{size}\s*[;)&|]|\b{size}\s*%", body):
                continue  # a tail of its own
            for number in re.findall(rf"(?<![\w)])\s*{size}\s*/\s*(\d+)\b", body):
                found[size] = max(int(number), found.get(size, 1))
            if re.search(rf"\b{size}\s*>>\s*1\b", body):
                found.setdefault(size, 2)
        return {size: number for size, number in found.items() if number > 1}
