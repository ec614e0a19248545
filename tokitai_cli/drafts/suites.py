"""Suites of a draft: shapes that tell faults apart, and fit what the kernel asks of its sizes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.indices.kernel_text import statement_end
from tokitai_cli.drafts.extents import AFFORDED, count
from tokitai_cli.drafts.launch_writer import quoted
from tokitai_cli.drafts.profiles import ProfileWriter
from tokitai_cli.spec.reader.gaps import GUESS

# Shapes of suites, from the last size to the first: one, a tail, a multiple of blocks, a large one.
# No shape but the first has two equal sizes.
_EXTENTS = ((1, 257, 512, 1031), (1, 5, 3, 67), (1, 7, 2, 13), (1, 2, 5, 3), (1, 3, 4, 2))
_WHY = ("one of each", "a tail", "a multiple of blocks", "a large one")
# Sizes that are few, which the smallest extents are for.
_FEW = re.compile(
    r"(?:^|_)(?:b|bs|bsz|batch\w*|nh|nkv|n?_?(?:kv_?)?heads?(?:_\w+)?|groups?|experts?|layers?|seqs|k[hw]|ksize|kernel_?\w*|taps)$",
    re.I,
)
_PADDED, _TAPS = re.compile(r"pad|dilat", re.I), re.compile(r"(?:^|_)(?:r|s|f[hw]?)$", re.I)
_CENTRED = re.compile(r"\b(?:mean|mu|avg|average)\b|/\s*sum\b", re.I)
_STEPS = (1, 37, 64, 67)  # of a recurrence
# A value that is made of itself by a factor, or within a function, and how it is indexed.
_CARRIED = re.compile(r"\b(\w+(\[\w+\])?)\s*=(?!=)[^;]*[*(]\s*\1\s*[-+*;,)]")
_PADS = (0, 7, 8, 5)  # of what a row lies behind the one before, beside its own length
_HELD, _KEPT = 1 << 22, 3  # elements of a shape's arrays, and what a size is not cut below for that
_LARGEST = 4096  # that a size is raised to for a second block


class SuiteWriter(ProfileWriter):
    """The part of a draft that says which shapes are run."""

    def _requires(self) -> list[str]:
        """Comparisons that a shape must meet, as a line of the spec."""
        told = [f"{small} <= {large}" for small, large in self.text.within()]
        told += [f"{total} <= {most}" for total, most in self.text.spans()]
        told += [f"{many} % {few} == 0" for many, few in self.text.divided()]
        if not told:
            return []
        return [f"    requires: [{', '.join(map(quoted, told))}]  {GUESS} by indices and divisions"]

    def _suites(self) -> list[str]:
        rows = {large: small for small, large in self.text.within() if small in self._size_names()}
        names = sorted(self._size_names() - rows.keys(), key=self._order)
        names = names or ["elements"]
        more = _EXTENTS + _EXTENTS[-1:] * len(names)
        lines = ["suites:", "  quick:"]
        for index, kind in enumerate(_WHY):
            why, extents = kind, [extent[index] for extent in more[: len(names)]][::-1]
            told = dict(zip(names, extents, strict=True))
            if index == 0 and (two := self._at_least_two()):
                told |= dict.fromkeys(two, 2)
                why = f"one of each, 2 of {' and '.join(two)}, whose answers may all be one at 1"
            told |= {name: min(told[name], _STEPS[index]) for name in self._steps()}
            told = self._held({name: self._fitting(name, n) for name, n in told.items()})
            for large, small in rows.items():
                told[large] = self._fitting(large, told.get(small, 1) + _PADS[index])
            told = self._fitted(told)
            told = self._of_several_blocks(told) if index == len(_WHY) - 1 else told
            said = ", ".join(f"{one.name}: {told[one.name]}" for one in self.sizes)
            said = f"elements: {self._whole * (index + 1)}" if self._whole else said
            said = said or f"elements: {told['elements']}"
            why = quoted(why) if "," in why else why
            lines.append(f"    - {{shape: {{{said}}}, why: {why}}}  {GUESS} its sizes")
        return lines

    def _size_names(self) -> set[str]:
        return {one.name for one in self.sizes}

    def _order(self, name: str) -> tuple[bool, int]:
        """Place among the sizes, those that are few in front."""
        padded = any(_PADDED.search(one.name) for one in self.parameters)
        few = _FEW.search(name) or (padded and _TAPS.search(name))
        return not few, [one.name for one in self.sizes].index(name)

    def _held(self, shape: dict[str, int]) -> dict[str, int]:
        """`shape` with its first sizes cut until the arrays are small enough for a quick run."""
        held = dict(shape)
        for name in shape:
            while self._elements(held) > _HELD and held[name] > _KEPT:
                less = self._fitting(name, max(_KEPT, held[name] // 2))
                if less >= held[name]:
                    break
                held[name] = less
        return held

    def _steps(self) -> list[str]:
        """Sizes that a loop goes over with a state that each step changes, as an oracle has to, too."""
        found = []
        for loop in re.finditer(r"\bfor\s*\([^;]*;\s*([\w.]+)\s*<\s*(\w+)\s*;", self.text.body):
            size = next((one.name for one in self.sizes if one.name == loop[2]), "")
            inside = self.text.body[loop.start() : statement_end(self.text.body, loop.start())]
            begun = inside.partition(";")[0]
            carried = [
                one
                for one in _CARRIED.findall(inside)
                if not re.search(rf"Idx|\b{loop[1]}\b", f"{one[1]} {begun.partition('=')[2]}")
            ]
            written = any(
                re.search(rf"\b{name}\s*\[[^\]]*\b{loop[1]}\b[^\]]*\]\s*=(?!=)", inside)
                for name, role in self.roles.items() if role != "inputs"
            )  # fmt: skip
            found += [size] if size and carried and written else []
        return found

    def _at_least_two(self) -> list[str]:
        """Sizes at which 1 would make an output constant: classes of a loss, columns of a mean."""
        telling = {name for name, _ in self._telling()}
        if not telling & {"large", "ties"} and not _CENTRED.search(self.text.body):
            return []
        looped = re.findall(r"\bfor\s*\([^;]*;\s*[\w.]+\s*<\s*(\w+)\s*;", self.text.body)
        return [one.name for one in self.sizes if one.name in looped]

    def _of_several_blocks(self, shape: Mapping[str, int]) -> dict[str, int]:
        """`shape` with a tail behind a block along each axis of the grid, where arrays stay small."""
        new = dict(shape)
        for extent in self._grid(self._block()[0])[0]:
            names = expressions.names_in(extent)
            if len(names) != 1 or not {*names} <= new.keys():
                continue
            (name,) = names
            before = new[name]
            while count(extent, new) == 1 < count(extent, {**new, name: _LARGEST}):
                more = self._fitting(name, new[name] + max(16, new[name] // 2)) + 1
                if (more := self._fitting(name, more)) <= new[name]:
                    break  # as large as the kernel takes it
                new[name] = more
            if new[name] > before and self._elements(new) > AFFORDED:
                new[name] = before
        return self._fitted(new)

    def _elements(self, shape: Mapping[str, int]) -> int:
        """Elements of all arrays."""
        return sum(math.prod(count(one, shape) for one in extents) for extents in self._extents_of)

    @functools.cached_property
    def _extents_of(self) -> list[list[str]]:
        return [self.text.shape(name) for name in self.text.arrays]

    def _started(self, grid: list[str]) -> list[str]:
        """The grid with a block at least along each axis, where the smallest shape would have none."""
        ones = {one.name: self._fitting(one.name, 1) for one in self.sizes}
        found = []
        for one in grid:
            try:
                empty = expressions.evaluate(one, ones) < 1
            except SpecError:
                empty = False
            found.append(f"max(1, {one})" if empty else one)
        return found
