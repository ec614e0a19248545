"""How a kernel's text indexes its arrays: their shapes, and the sizes that blocks count.

All of it is a guess, which a draft marks as one. An index is taken apart as a polynomial: of
`(head * seq + query) * dim + d` the strides are `seq * dim`, `dim` and 1, so `query` goes over `seq`
and `d` over `dim`; what the first one goes over is told by a comparison, a division, or a name.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence

from tokitai_cli.cpp.indices.kernel_text import defined, indices
from tokitai_cli.cpp.indices.strides import Stride, apart, chain_of, product, quotient, without
from tokitai_cli.cpp.indices.terms import DEPTH, Terms
from tokitai_cli.cpp.source.macro_text import words_in

_COUNTED = re.compile(r"\bblockIdx\s*\.\s*([xyz])")
_TABLES = re.compile(r"voc|entr|max|table|cache|categ|class|emb", re.I)
_TOTALS = re.compile(r"nnz|total|entries|values|edges|tokens|indices|sum", re.I)


class Shapes(Terms):
    """What the text of a kernel's body says of its arrays.

    said: shapes that comments say; by_tree: those that a walk over the kernel's tree tells, and
    divided_by_tree sizes that are multiples, of what. rows: sizes that only the host knows, by the array
    whose values are below it, or which offsets of an array lead up to. axes: what blocks count along
    each axis.
    """

    def __init__(
        self,
        body: str,
        arrays: Sequence[str],
        sizes: Sequence[str],
        constants: Mapping[str, str],
        passed: Mapping[str, str],
    ) -> None:
        super().__init__(body, arrays, sizes, constants, passed)
        # Arrays of offsets: of each two neighbours one begins a loop, and the other ends it.
        indexed = {name: {_bare(one) for one in indices(self.body, name)} for name in arrays}
        self._offsets = {
            name
            for name, told in indexed.items()
            if any(f"{one}+1" in told for one in told)
            and any(one.startswith(f"{name}[") for one in self.variables.values())
        }
        self.said: dict[str, list[str]] = {}
        self.by_tree: dict[str, list[str]] = {}
        self.divided_by_tree: list[tuple[str, str]] = []
        self.rows: dict[str, str] = {}
        self._used: dict[str, dict[Stride, set[str]]] = {}
        self._told: dict[str, list[str]] = {}
        self._read()
        self.axes = {axis: self._axis(axis) for axis in _axes(self.body)}

    def _read(self) -> None:
        """Take the indices of the body apart, and learn what their names go over."""
        self._used = {name: self._strides(name) for name in self.arrays}
        for strides in self._used.values():
            self._learn(strides)

    def put_grid(self, extents: Mapping[str, str]) -> None:
        """Sizes in place of `gridDim`, by axes, where blocks count nothing but them.

        An axis along which the kernel steps may have any number of blocks, and is left.
        """
        for axis, told in extents.items():
            here, size = rf"\bgridDim\s*\.\s*{axis}\b", apart(told)
            if re.search(rf"\+=[^;{{]*{here}", self.body):
                continue
            self.body = re.sub(here, size, self.body)
            self.variables = {n: re.sub(here, size, one) for n, one in self.variables.items()}
        self._read()

    def add_rows(self, name: str) -> None:
        """A size of the host's alone, which the blocks count that nothing else tells the size of."""
        self.axes = {axis: told or name for axis, told in self.axes.items()}

    def shape(self, array: str) -> list[str]:
        """Extents of the array, by a comment, the tree or its strides; empty where none tells them."""
        if array in self.said:
            return self.said[array]
        by_text, by_tree = self._by_text(array), self.by_tree.get(array, [])
        finer = len(by_tree) < len(by_text) and _all_factors(by_tree) == _all_factors(by_text)
        return by_tree if by_tree and not finer else by_text

    def _by_text(self, array: str) -> list[str]:
        chain = chain_of(self._used[array])
        numbers = any(self.value(one) for stride in chain for one in stride)
        loaded = (
            next(filter(None, map(self._loaded, self._used[array][chain[-1]])), "") if chain else ""
        )
        of_block = bool(chain) and any("blockIdx" in one for one in self._used[array][chain[-1]])
        if numbers and not loaded and not of_block and not self.outermost(array):
            self._used[array] = self._strides(array, numbers=False)
            chain = chain_of(self._used[array])
        if not chain:  # what a part of an axis is a stride of says nothing
            whole = {
                stride: names
                for stride, names in self._used[array].items()
                if not any("//" in one for one in stride)
            }
            self._used[array], chain = whole, chain_of(whole)
        if not chain:
            return []
        inner = [one for below, above in itertools.pairwise(chain)
                 for one in reversed(self._inner(without(above, below)))]  # fmt: skip
        if not self._used[array][chain[-1]]:
            return ["1", *reversed(inner)]  # one place alone
        first = self.outermost(array, inner)
        rest = [
            one for one in self._unread() if one not in {*self.axes.values(), *self._segments()}
        ]
        hidden = [self.rows[loaded]] if loaded in self.rows else []
        first = first or hidden or (rest or self._unread())[:1]
        if array in self._offsets and len(first) == 1:
            first = [f"{first[0]} + 1"]
        return [*first, *reversed(inner)]

    def _inner(self, names: list[str]) -> list[str]:
        """Extents between two strides: factors of one name apart, several names in one extent."""
        if len(names) == 1:
            return self._factors(names[0]) or [self.value(names[0])]
        if told := self._orders.get(tuple(sorted(names))):
            return told
        return [" * ".join(apart(self.value(one) or self._in_sizes(one)) for one in names)]

    def outermost(self, array: str, inner: Sequence[str] = ()) -> list[str]:
        """What indices of the largest stride are below, empty where nothing says it."""
        chain = chain_of(self._used[array])
        names = sorted(self._used[array][chain[-1]]) if chain else []
        every = [told for one in names if (told := self._bounds(one))]
        every += [told for one in names for told in self._compared(one)]
        every.sort(key=lambda told: "//" in "".join(told))  # a tail is compared with the whole
        # A transposed copy compares one name with both sizes.
        return next((one for one in every if one != inner), every[0] if every else [])

    def offsets_to(self, array: str) -> str:
        """What the array's values rise to, where it holds offsets; else empty."""
        return next(iter([*self._segments(), *self.sizes]), "") if array in self._offsets else ""

    def _segments(self) -> list[str]:
        """The size that offsets cut into pieces, which a kernel need not read."""
        if told := [self.rows[one] for one in self._offsets if one in self.rows]:
            return told[:1]
        found = self._unread() if self._offsets else []
        return ([one for one in found if _TOTALS.search(one)] or found)[-1:]

    def unsaid(self) -> dict[str, str]:
        """Names for sizes that only the host can know, by arrays: see `rows`."""
        known = [one for one in self._unread() if _TOTALS.search(one)]
        found = {one: "total" for one in self._offsets if not known}
        for axis in (one for one, told in self.axes.items() if not told):
            outer, inner = self._shared_axis(axis)
            if inner:
                few = outer.lower() in {"b", "n", "batch", "bi", "batch_idx"}
                found[f"blockIdx.{axis}"] = "batch" if few else f"{outer}_count"
        for array, strides in self._used.items():
            chain = chain_of(strides)
            loaded = [self._loaded(one) for one in strides[chain[-1]]] if chain else []
            if any(loaded) and array not in self.said and not self.outermost(array):
                unread = {*self._unread()} - {*self.axes.values(), *self._segments()}
                if not unread:
                    found.setdefault(next(filter(None, loaded)), f"{array}_rows")
        return found

    def _learn(self, strides: Mapping[Stride, set[str]]) -> None:
        """What names go over, by the strides of this array."""
        for below, above in itertools.pairwise(chain_of(strides)):
            for name in strides.get(below, ()):
                extents = [self._in_sizes(one) for one in without(above, below)]
                self._told.setdefault(name, extents)

    def _bounds(self, name: str, depth: int = DEPTH) -> list[str]:
        if axis := _COUNTED.fullmatch(name):
            told = getattr(self, "axes", {}).get(axis[1], "")
            return product(told) if told else self._told.get(name, [])
        told = next(iter(self._compared(name)), None) or self._told.get(name, [])
        if told or not depth:
            return told
        made = self.variables.get(name, "")
        if self._loaded(name) in self._offsets:
            return self._segments()
        if parts := quotient(made or name):
            outer, over = self._bounds(parts[0], depth - 1), self._factors(parts[2])
            if parts[1] == "%":
                return over
            left = list(outer)
            for one in over if {*over} <= {*outer} else ():
                left.remove(one)
            if over and 0 < len(left) < len(outer):
                return left
        if re.fullmatch(r"[\w.]+", made) and (found := self._bounds(made, depth - 1)):
            return found
        alike = [] if self._loaded(name) else self._named_alike(name)
        return alike[:1]

    def _compared(self, name: str) -> list[list[str]]:
        """Extents that the name is compared with: sizes, and where there are none a number."""
        told = _compared_with(self.body, name)
        plain = [one.replace("(", " ").replace(")", " ").strip() for one in told]
        found = [sizes for one in plain if (sizes := self._factors(one))]
        numbers = [[number] for one in plain if (number := self.value(one)) not in ("", "0")]
        return found or (numbers if "threadIdx" in self.variables.get(name, "") else [])

    def _named_alike(self, name: str) -> list[str]:
        word = (
            re.sub(r"__\d+$", "", name.lower())
            .removesuffix("_idx")
            .removesuffix("_id")
            .removesuffix("idx")
        )
        if not word.isidentifier():
            return []
        alike = rf"(?:.*_)?{word}(?:s|es|_?len|_?count|_?size)?|{word}(?:ch|s)\w*|n{word}s?"
        found = [one for one in self.sizes if re.fullmatch(alike, one.lower())]
        return found if len(found) == 1 else []

    def name_rows(self, rows: Mapping[str, str]) -> None:
        """Sizes of the host's alone, as `unsaid` asks for them."""
        self.rows |= rows
        self.axes = {axis: self._axis(axis) for axis in _axes(self.body)}

    def _shared_axis(self, axis: str) -> tuple[str, list[str]]:
        """What the quotient of an axis that two indices share is called, and what it is divided by."""
        both = re.search(rf"blockIdx\s*\.\s*{axis}\s*%", self.body)
        told = {f"blockIdx.{axis}"} if both else set()
        told |= {
            name for name, made in self.variables.items()
            if made.strip() == f"blockIdx.{axis}" and not self._compared(name)
            and any(name in names for strides in self._used.values() for names in strides.values())
        }  # fmt: skip
        for name, made in self.variables.items():
            parts = quotient(made)
            inner = (
                self._factors(parts[2]) if parts and parts[1] == "/" and parts[0] in told else []
            )
            if inner and not any("//" in one for one in inner):
                return name, inner
        return "", []

    def _axis(self, axis: str) -> str:
        """Size that blocks count along an axis; empty where nothing tells it."""
        outer, inner = self._shared_axis(axis)
        if inner:
            rest = next(iter(self._compared(outer)), None) or self._named_alike(outer)
            rest = rest or [one for one in [self.rows.get(f"blockIdx.{axis}", "")] if one]
            rest = rest or [one for one in self._unread() if not _TABLES.search(one)][:1]
            return " * ".join(map(apart, [*rest[:1], *inner])) if rest else ""
        here = rf"\bblockIdx\s*\.\s*{axis}\b"
        plain = ((one, re.sub(r"\[[^\]]*\]", "", told)) for one, told in defined(self.body))
        names = [one for one, told in plain if re.search(here, told)]
        for name in [*names, f"blockIdx.{axis}"]:
            if (found := self._bounds(name)) and not found[0].isdigit():
                return " * ".join(map(apart, found)) if len(found) > 1 else found[0]
        unread = self._unread()
        if any(self._loaded(one) for told in self._used.values() for one in self._first(told)):
            # Rows of a table, which values of another array name, are counted by no block.
            unread = [one for one in unread if not _TABLES.search(one)]
        return unread[0] if len(unread) == 1 else ""

    def _first(self, strides: Mapping[Stride, set[str]]) -> set[str]:
        """What indexes the first axis, where a comparison does not tell its extent."""
        chain = chain_of(strides)
        return {one for one in strides[chain[-1]] if not self._compared(one)} if chain else set()

    def _loaded(self, name: str) -> str:
        """Array that a name's value is read from; empty where it is none."""
        match = re.match(r"(\w+)\[", self.variables.get(name, name))
        return match[1] if match and match[1] in self._used else ""

    def _unread(self) -> list[str]:
        words = _words(self.body)
        return [one for one in self.sizes if one not in words]


@functools.lru_cache(maxsize=64)  # asked for each array
def _words(body: str) -> set[str]:
    return words_in(body)


@functools.lru_cache(maxsize=1 << 14)  # asked for each array, and at each of a draft's sizes
def _compared_with(body: str, name: str) -> list[str]:
    word = re.escape(name)
    told = re.findall(
        rf"(?<![\w.]){word}\s*(?:\+\s*\w+\s*)?(?:<|>=|!=)\s*([\w\s*/()]+?)\s*(?:[;)&|?,{{]|$)", body
    )
    return told + re.findall(rf"(?<![\w*])([\w*]+)\s*(?:>|<=)\s*{word}(?!\w)", body)


def _all_factors(extents: Sequence[str]) -> list[str]:
    return sorted(part for one in extents for part in one.split(" * "))


def _bare(index: str) -> str:
    return re.sub(r"^\(([^()]*)\)$", r"\1", re.sub(r"\s", "", index))


def _axes(body: str) -> list[str]:
    return sorted(set(_COUNTED.findall(body)))
