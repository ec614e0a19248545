"""Extents of arrays in the language of sizes: polynomials in the words of a spec."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tokitai_cli.cpp.body.polynomial import Atom, Monomial, Polynomial
from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.index_forms import whole_groups
from tokitai_cli.cpp.size_words import grouped, in_sizes, polynomial_of, ungrouped

BATCHES = {"b", "n", "batch", "bi", "batch_idx"}


class ExtentWords:
    """What a spec calls extents.

    facts: of the kernel's body, in the spec's names. sizes: of the spec; the list may grow.
    strides: what steps of indices are made of.
    """

    def __init__(self, facts: Facts, sizes: Sequence[str], strides: Collection[Atom]) -> None:
        self._facts, self._sizes, self._strides = facts, sizes, strides
        self._grid: dict[str, str] = {}
        self._blocks: dict[str, Polynomial] = {}

    def put_grid(self, extents: Mapping[str, str]) -> None:
        """Blocks of the launch, by axes, where the kernel does not step by them."""
        stepped = {name for one in self._facts.loops for name in one.step.names()}
        named = {f"gridDim.{axis}": one for axis, one in extents.items()}
        plain = {name: one for name, one in named.items() if name not in stepped}
        self._grid |= {name: grouped(one) for name, one in plain.items()}
        values = {name: polynomial_of(one) for name, one in plain.items()}
        self._blocks |= {name: one for name, one in values.items() if one is not None}

    def parts(self, extent: Polynomial | None) -> list[str]:
        """An extent in words, a product of sizes in several; empty text for what has none."""
        if extent is None:
            return [""]
        extent = whole_groups(extent.with_values(self._blocks))
        return self._factors(extent) or [self.word(extent)]

    def inner(self, extent: Polynomial | None) -> list[str]:
        """As `parts`, a product whose order nothing says in one."""
        ordered = extent is not None and self._ordered(next(iter(extent.terms), ()))
        return self.parts(extent) if ordered or extent is None else [self.word(extent)]

    def word(self, extent: Polynomial) -> str:
        """An extent in the language of sizes; empty where it has other names."""
        return ungrouped(in_sizes(extent, {**{one: one for one in self._sizes}, **self._grid}))

    def _factors(self, extent: Polynomial) -> list[str] | None:
        """What an extent is the product of, sizes of strides at the end; None for another."""
        if len(extent.terms) != 1:
            return None
        ((key, count),) = extent.terms.items()
        words = {one: self.word(Polynomial({(one,): 1})) for one in key}
        if count != 1 or not all(words.values()):
            return None
        if order := self._ordered(key):
            return [words[one] for one in order]
        return sorted(map(str, key), key=self._order) if {*key} <= {*self._sizes} else None

    def _ordered(self, key: Monomial) -> list[Atom]:
        """Factors as some product of the text has them; none where none has them all."""
        for factors in self._facts.products.values():
            found = [one for one in factors if one in key]
            if sorted(map(str, found)) == [*map(str, key)]:
                return found
        return []

    def _order(self, size: str) -> tuple[bool, bool, int]:
        """Batches are outermost most likely; a size that strides have is not."""
        batches = size.lower() in BATCHES or "batch" in size.lower()
        return size in self._strides, not batches, self._sizes.index(size)
