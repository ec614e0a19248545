"""Shapes of a kernel's arrays in the language of sizes, and what its blocks count.

All of it is a guess, which a draft marks as one. What an index goes over is said by a comparison, by
the strides of an array, by what blocks count, or by a name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tokitai_cli.cpp.body.polynomial import Atom, Polynomial, Quotient
from tokitai_cli.cpp.body.symbolic_values import Access, Facts, Loaded
from tokitai_cli.cpp.coordinates import Axis
from tokitai_cli.cpp.extent_words import BATCHES, ExtentWords
from tokitai_cli.cpp.index_forms import (
    every_limit,
    goes_by_ones,
    row_of_block,
    spelled_out,
)
from tokitai_cli.cpp.shapes import layout_of
from tokitai_cli.cpp.size_words import grouped

_TABLES = re.compile(r"voc|entr|max|table|cache|categ|class|emb", re.I)
_TOTALS = re.compile(r"nnz|total|entries|values|edges|tokens|indices|sum", re.I)
_DEPTH = 4  # of what is said by something else


class Layouts:
    """Shapes of arrays, and what blocks count.

    facts: of the kernel's body, in the spec's names. accesses: by array of the spec. sizes: of the spec,
    more may come. Attributes: these; words: what the spec calls extents. said: shapes of comments.
    rows: sizes that only the host knows, by the array whose values are below it, or which offsets of
    an array lead up to. axes: what blocks count along each axis.
    """

    def __init__(
        self, facts: Facts, accesses: Mapping[str, Sequence[Access]], sizes: Sequence[str]
    ) -> None:
        self.facts = facts
        self.accesses = {name: spelled_out(mine, facts, sizes) for name, mine in accesses.items()}
        self.arrays, self.sizes = [*accesses], [*sizes]
        self.said: dict[str, list[str]] = {}
        self.rows: dict[str, str] = {}
        self.axes: dict[str, str] = {}
        self.layouts = {
            name: _axes_of(mine, any(one.array in facts.escapes for one in mine))
            for name, mine in self.accesses.items()
        }
        self.layouts |= {
            name: []
            for name, axes in self.layouts.items()
            if axes and not axes[-1].moving and any(_atoms_in(axes, facts.reals))
        }
        self._limits: dict[Polynomial, dict[Polynomial, None]] = {}
        for limit in every_limit(facts):
            self._limits.setdefault(limit.moving, {})[limit.below] = None
        self._goes_over: dict[Polynomial, Polynomial] = {}
        for axes in self.layouts.values():
            for one in axes[1:]:
                if one.moving and one.extent is not None:
                    self._goes_over.setdefault(one.moving, one.extent)
        strides = {
            name for axes in self.layouts.values() for one in axes for name in one.stride.atoms()
        }
        self.words = ExtentWords(facts, self.sizes, strides)
        self.offsets = {name for name in self.arrays if self._has_offsets(name)}
        self._read_axes()

    def add_size(self, name: str) -> None:
        """A size that no argument of the kernel is."""
        self.sizes.append(name)

    def add_rows(self, name: str) -> None:
        """A size of the host's alone, which the blocks count that nothing else says the size of."""
        self.axes = {axis: said or name for axis, said in self.axes.items()}

    def name_rows(self, rows: Mapping[str, str]) -> None:
        """Sizes of the host's alone, as `unsaid` has them."""
        self.rows |= rows
        self._read_axes()

    # Shapes

    def shape(self, array: str) -> list[str]:
        """Extents of the array, by a comment or its accesses; empty where neither says them."""
        return self.said.get(array) or self._shape(array)

    def _shape(self, array: str) -> list[str]:
        axes = self.layouts[array]
        if not axes:
            return []
        inner = [word for one in axes[1:] for word in self.words.inner(one.extent)]
        if "" in inner:
            return []
        first = self.outermost(array)
        if not first and (held := next(filter(None, map(self.loaded, _atoms(axes[0]))), "")):
            first = [self.rows[held]] if held in self.rows else []
        if not first:
            unread = self._unread()
            rest = [one for one in unread if one not in {*self.axes.values(), *self.segments()}]
            first = (rest or unread)[:1]
            if array in self.offsets and first:
                first = [f"{first[0]} + 1"]
        return [*first, *inner] if first else []

    def outermost(self, array: str) -> list[str]:
        """Extents of the first axis; empty where nothing says them."""
        axes = self.layouts[array]
        if not axes:
            return []
        extent, moving = axes[0].extent, axes[0].moving
        if (rows := self._rows_of_blocks(axes[0])) and "" not in rows:
            return rows
        if extent is not None and "" not in (known := self.words.parts(extent)):
            return known
        found = self._bound(moving) if moving else []
        return [f"{found[0]} + 1"] if array in self.offsets and len(found) == 1 else found

    def _rows_of_blocks(self, axis: Axis) -> list[str]:
        """Rows of so many elements, one a block, where another array has an element for each block."""
        every = {one.moving for axes in self.layouts.values() for one in axes}
        told = row_of_block(axis, every)
        return [*self.words.parts(told[0]), str(told[1])] if told is not None else []

    def unsaid(self) -> dict[str, str]:
        """Names for sizes that only the host can know, by arrays: see `rows`."""
        known = [one for one in self._unread() if _TOTALS.search(one)]
        found = {one: "total" for one in self.offsets if not known}
        for axis in (one for one, said in self.axes.items() if not said):
            shared = self._shared_axis(axis)
            if shared is not None:
                outer = next(iter(self._names_of(Polynomial({(shared,): 1}))), "outer")
                found[f"blockIdx.{axis}"] = (
                    "batch" if outer.lower() in BATCHES else f"{outer}_count"
                )
        for array, axes in self.layouts.items():
            loaded = [*filter(None, map(self.loaded, _atoms(axes[0])))] if axes else []
            known_rows = {*self._unread()} - {*self.axes.values(), *self.segments()}
            unknown = loaded and array not in self.said and not known_rows
            if unknown and not self.outermost(array):
                found.setdefault(loaded[0], f"{array}_rows")
        return found

    # What indices stay below

    def _bound(self, moving: Polynomial, depth: int = _DEPTH) -> list[str]:
        """What a moving part of indices stays below, by its factors; empty where nothing says it."""
        if plain := [*self.compared(moving), *self._over(moving)]:
            return plain[0]
        if self._is_cut(moving):
            return self.segments()
        ((key, count),) = moving.terms.items() if len(moving.terms) == 1 else (((), 0),)
        if count != 1 or len(key) != 1 or not depth:
            return []
        (atom,) = key
        if isinstance(atom, Quotient):
            outer, over = self._bound(atom.dividend, depth - 1), self.words.parts(atom.divisor)
            return _divided(outer, over) or self._alike(moving)
        front, _, axis = str(atom).partition(".")
        if front == "blockIdx" and self.axes.get(axis):
            return self.axes[axis].split(" * ")
        return [] if self.loaded(atom) else self._alike(moving)

    def _is_cut(self, moving: Polynomial) -> bool:
        """Whether it begins at an offset, or goes up to one."""
        ends = (one for one in self.facts.compared if one.left == moving)
        atoms = [*moving.atoms(), *(atom for one in ends for atom in one.right.atoms())]
        return any(self.loaded(one) in self.offsets for one in atoms)

    def compared(self, moving: Polynomial) -> list[list[str]]:
        """Extents that it is compared with; a tail is compared with the whole."""
        words = [self.words.parts(one) for one in self._limits.get(moving, ())]
        known = [one for one in words if "" not in one]
        return sorted(known, key=lambda one: ("//" in one[0], one[0].isdigit()))

    def _over(self, moving: Polynomial) -> list[list[str]]:
        extent = self._goes_over.get(moving)
        return [[word]] if extent is not None and (word := self.words.word(extent)) else []

    def _alike(self, moving: Polynomial) -> list[str]:
        """A size that is named as a variable that holds it."""
        found = {size for name in self._names_of(moving) for size in self._named_alike(name)}
        return [*found] if len(found) == 1 else []

    def _names_of(self, moving: Polynomial) -> list[str]:
        counters = [one.partition("#")[0] for one in sorted(_names(moving)) if "#" in one]
        return [*self.facts.called.get(moving, ()), *counters]

    def _named_alike(self, name: str) -> list[str]:
        word = name.lower().removesuffix("_idx").removesuffix("_id").removesuffix("idx")
        if not word.isidentifier():
            return []
        alike = rf"(?:.*_)?{word}(?:s|es|_?len|_?count|_?size)?|{word}(?:ch|s)\w*|n{word}s?"
        found = [one for one in self.sizes if re.fullmatch(alike, one.lower())]
        return found if len(found) == 1 else []

    # What blocks count

    def _read_axes(self) -> None:
        used = [one for one in "xyz" if f"blockIdx.{one}" in self.facts.launch]
        self.axes = {axis: self._axis(axis) for axis in used}

    def _axis(self, axis: str) -> str:
        """Size that blocks count along an axis; empty where nothing says it."""
        shared = self._shared_axis(axis)
        if shared is not None:
            quotient = Polynomial({(shared,): 1})
            rest = next(iter(self.compared(quotient)), None) or self._alike(quotient)
            rest = rest or [*filter(None, [self.rows.get(f"blockIdx.{axis}", "")])]
            rest = rest or [one for one in self._unread() if not _TABLES.search(one)][:1]
            inner = self.words.parts(shared.divisor)
            return " * ".join(map(grouped, [*rest[:1], *inner])) if rest else ""
        name = f"blockIdx.{axis}"
        for moving in self._counted(axis):
            if (found := self._bound(moving)) and not found[0].isdigit():
                return " * ".join(map(grouped, found)) if len(found) > 1 else found[0]
        for guard in self.facts.compared:  # in another way, as from the last block on
            word = self.words.parts(guard.right) if name in guard.left.atoms() else [""]
            if "" not in word and not word[0].isdigit():
                return " * ".join(map(grouped, word))
        unread = self._unread()
        if any(self.loaded(one) for axes in self.layouts.values() for one in self._first(axes)):
            # Rows of a table, which values of another array name, are counted by no block.
            unread = [one for one in unread if not _TABLES.search(one)]
        return unread[0] if len(unread) == 1 else ""

    def _counted(self, axis: str) -> list[Polynomial]:
        """Moving parts that the block's place is in, and at last the place itself."""
        name = f"blockIdx.{axis}"
        alone = Polynomial({(name,): 1})
        every = [one.moving for axes in self.layouts.values() for one in axes]
        every += [*self._limits, *self.facts.called]
        begun = [one.counter for one in self.facts.loops if name in one.start.names()]
        found = (one for one in every if one != alone and name in _names(one))
        return [*dict.fromkeys([*found, *begun]), alone]

    def _shared_axis(self, axis: str) -> Quotient | None:
        """The quotient of an axis that two indices share."""
        name = f"blockIdx.{axis}"
        every = [one.moving for axes in self.layouts.values() for one in axes]
        for moving in [*every, *self._limits, *self.facts.called]:
            for atom in moving.atoms():
                if isinstance(atom, Quotient) and atom.dividend.terms == {(name,): 1}:
                    words = self.words.parts(atom.divisor)
                    if "" not in words and not any("//" in one or one.isdigit() for one in words):
                        return atom
        return None

    def _first(self, axes: Sequence[Axis]) -> list[Atom]:
        """What goes along the first axis, where a comparison does not say its extent."""
        return _atoms(axes[0]) if axes and not self.compared(axes[0].moving) else []

    def grid(self, block: Sequence[str]) -> list[str]:
        """Blocks along each axis, by the sizes that they count; empty where one is not known."""
        found = []
        for at, axis in enumerate(
            "xyz"[: max(("xyz".index(one) + 1 for one in self.axes), default=0)]
        ):
            size = self.axes.get(axis, "1")
            if size and (step := self._in_block(axis)):
                threads = block[at] if at < len(block) else "1"
                size = f"ceil_div({size}, {threads if step == 'blockDim' else step})"
            found.append(size)
        return found if found and all(found) else []

    def _in_block(self, axis: str) -> str:
        """What a block's place is multiplied with: a number, or its threads; empty for nothing."""
        block = f"blockIdx.{axis}"
        for factors in self.facts.products.values():
            if len(factors) == 2 and block in factors:
                other = str(factors[1] if factors[0] == block else factors[0])
                if other.startswith("blockDim"):
                    return "blockDim"
        for moving in (*self.facts.called, *self._limits):
            number = moving.terms.get((block,), 0)
            if number > 1 and len(moving.terms) > 1:
                return str(number)
        return ""

    # Offsets

    def offsets_to(self, array: str) -> str:
        """What the array's values rise to, where it holds offsets; else empty."""
        return next(iter([*self.segments(), *self.sizes]), "") if array in self.offsets else ""

    def _has_offsets(self, array: str) -> bool:
        """Whether an index goes over pairs of neighbours, of which one begins a loop, and one ends it.

        Neighbours in a short row, as sizes along x, y and z, are none.
        """
        every = {one.offset for one in self.accesses[array]}
        places = {one for one in every if not one.atoms() or any(goes_by_ones(one))}
        compared = (one for left, _, right in self.facts.compared for one in (left, right))
        ends = (atom for one in compared for atom in one.atoms())
        step = Polynomial({(): 1})
        neighbours = any(place + step in every for place in places)
        return neighbours and any(self.loaded(one) == array for one in ends)

    def segments(self) -> list[str]:
        """The size that offsets cut into pieces, which a kernel need not read."""
        if said := [self.rows[one] for one in self.offsets if one in self.rows]:
            return said[:1]
        found = self._unread() if self.offsets else []
        return ([one for one in found if _TOTALS.search(one)] or found)[-1:]

    def loaded(self, atom: Atom) -> str:
        """Array that a value is read from; empty where it is none."""
        told = self.facts.meanings.get(str(atom))
        if not isinstance(told, Loaded):
            return ""
        paths = ((name, one.array) for name in self.arrays for one in self.accesses[name][:1])
        return next((name for name, path in paths if path == told.array), "")

    def _unread(self) -> list[str]:
        return [one for one in self.sizes if one not in self.facts.words]


def _axes_of(accesses: Sequence[Access], escapes: bool) -> list[Axis]:
    """Axes of an array; none where fixed places are all that is seen of one that goes elsewhere."""
    found = layout_of(accesses)
    fixed = isinstance(found, str) or not any(one.moving for one in found)
    return [] if isinstance(found, str) or (escapes and fixed) else found


def _atoms(axis: Axis) -> list[Atom]:
    return sorted(axis.moving.atoms(), key=str)


def _atoms_in(axes: Sequence[Axis], names: Collection[str]) -> Iterator[bool]:
    """Whether each part of an index is one of the names: of numbers by which others are scaled."""
    return (str(atom) in names for one in axes for atom in one.moving.atoms())


def _names(moving: Polynomial) -> set[str]:
    """Names of a value, but for those that are divided too: of these it is a part."""
    atoms = moving.atoms()
    parts = {name for one in atoms if isinstance(one, Quotient) for name in one.dividend.names()}
    return {one for one in atoms if isinstance(one, str)} - parts


def _divided(outer: Sequence[str], over: Sequence[str]) -> list[str]:
    """What is left of factors; empty where they are not all there."""
    left = [*outer]
    for one in over if {*over} <= {*outer} and len(over) < len(outer) else outer:
        left.remove(one)
    return left
