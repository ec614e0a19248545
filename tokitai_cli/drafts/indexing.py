"""How a kernel's text indexes its arrays: shapes, the sizes that blocks count, limits of sizes.

All of it is a guess, which a draft marks as one. An index is taken apart as a polynomial: of
`(head * seq + query) * dim + d` the strides are `seq * dim`, `dim` and 1, so `query` goes over `seq`
and `d` over `dim`; what the first one goes over is told by a comparison, a division, or a name.
"""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from collections.abc import Mapping, Sequence

from tokitai_cli import expressions
from tokitai_cli.drafts.blocks import block_of
from tokitai_cli.drafts.kernel_text import defined, indices, scoped, without_pointers
from tokitai_cli.drafts.strides import Stride, apart, chain_of, product, quotient, without
from tokitai_cli.errors import SpecError

_COUNTED = re.compile(r"\bblockIdx\s*\.\s*([xyz])")
_TABLES = re.compile(r"voc|entr|max|table|cache|categ|class|emb", re.I)
_TOTALS = re.compile(r"nnz|total|entries|values|edges|tokens|indices|sum", re.I)
_DEPTH = 4  # of definitions put in


class Indexing:
    """What the text of a kernel's body says of its arrays and sizes.

    body: with arrays and sizes by the names that they have in the spec. constants: values of names that
    are no sizes. Attributes: these, `body` with pointers made from arrays (`row = x + i * n`) put in;
    said: shapes that comments say; rows: sizes that only the host knows, by the array whose values are
    below it, or which offsets of an array lead up to.
    """

    def __init__(
        self, body: str, arrays: Sequence[str], sizes: Sequence[str], constants: Mapping[str, str]
    ) -> None:
        self.sizes = list(sizes)
        self.arrays, self.constants = arrays, constants
        self.body = scoped(without_pointers(body, arrays))
        self.variables = dict(defined(self.body))
        # Arrays of offsets: of each two neighbours one begins a loop, and the other ends it.
        indexed = {name: {_bare(one) for one in indices(self.body, name)} for name in arrays}
        self._offsets = {
            name
            for name, told in indexed.items()
            if any(f"{one}+1" in told for one in told)
            and any(one.startswith(f"{name}[") for one in self.variables.values())
        }
        self.said: dict[str, list[str]] = {}
        self.rows: dict[str, str] = {}
        self._used = {name: self._strides(name) for name in arrays}
        self._told: dict[str, list[str]] = {}
        for strides in self._used.values():
            self._learn(strides)
        self.axes = {axis: self._axis(axis) for axis in _axes(self.body)}

    def add_rows(self, name: str) -> None:
        """A size of the host's alone, which the blocks count that nothing else tells the size of."""
        self.axes = {axis: told or name for axis, told in self.axes.items()}

    @property
    def block(self) -> list[str]:
        """Threads of a block, where the text fixes them; empty where it does not."""
        return block_of(re.sub(r"\s+", "", self.body), self.value)

    def value(self, name: str) -> str:
        """Number that a constant stands for; empty where it is none."""
        for _ in range(_DEPTH):
            if name.isdigit():
                return name
            name = self.constants.get(name, "").strip("() ")
        return ""

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

    def shape(self, array: str) -> list[str]:
        """Extents of the array, by a comment or its strides; empty where the text does not say."""
        if array in self.said:
            return self.said[array]
        chain = chain_of(self._used[array])
        if any(self.value(one) for stride in chain for one in stride) and not self.outermost(array):
            self._used[array] = self._strides(array, numbers=False)
            chain = chain_of(self._used[array])
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
        loaded = next(filter(None, map(self._loaded, self._used[array][chain[-1]])), "")
        hidden = [self.rows[loaded]] if loaded in self.rows else []
        first = first or hidden or (rest or self._unread())[:1]
        if array in self._offsets and len(first) == 1:
            first = [f"{first[0]} + 1"]
        return [*first, *reversed(inner)]

    def _inner(self, names: list[str]) -> list[str]:
        """Extents between two strides: factors of one name apart, several names in one extent."""
        if len(names) == 1:
            return self._factors(names[0]) or [self.value(names[0])]
        return [" * ".join(apart(self.value(one) or self._in_sizes(one)) for one in names)]

    def outermost(self, array: str, inner: Sequence[str] = ()) -> list[str]:
        """What indices of the largest stride are below, empty where nothing says it."""
        chain = chain_of(self._used[array])
        names = sorted(self._used[array][chain[-1]]) if chain else []
        every = [told for one in names if (told := self._bounds(one))]
        every += [told for one in names for told in self._compared(one)]
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
        for array, strides in self._used.items():
            chain = chain_of(strides)
            loaded = [self._loaded(one) for one in strides[chain[-1]]] if chain else []
            if any(loaded) and array not in self.said and not self.outermost(array):
                unread = {*self._unread()} - {*self.axes.values(), *self._segments()}
                if not unread:
                    found.setdefault(next(filter(None, loaded)), f"{array}_rows")
        return found

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
        return ""

    def within(self) -> list[tuple[str, str]]:
        """Sizes that others, the strides of rows that they go over, are at least: vocab, stride."""
        found: dict[tuple[str, str], None] = {}
        for strides in self._used.values():
            for below, above in itertools.pairwise(chain_of(strides)):
                for large in without(above, below)[:1] if len(above) == len(below) + 1 else ():
                    told = {one for name in strides.get(below, ()) for one in self._plainly(name)}
                    if large in self.sizes and told and large not in told:
                        found |= dict.fromkeys((small, large) for small in sorted(told))
        return list(found)

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
        found: dict[tuple[str, str], None] = {}
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
                    for size in self._bounds(index.strip()) if count and not held else []:
                        if size in self.sizes:
                            found[size] = min(int(count), found.get(size, int(count)))
        return found

    def multiples(self) -> dict[str, int]:
        """Sizes that the kernel divides without a remainder of its own, by what."""
        found: dict[str, int] = {}
        for size in self.sizes:
            if re.search(rf"<=?\s*{size}\s*[;)&|]|\b{size}\s*%", self.body):
                continue  # a tail of its own
            for number in re.findall(rf"(?<![\w)])\s*{size}\s*/\s*(\d+)\b", self.body):
                found[size] = max(int(number), found.get(size, 1))
            if re.search(rf"\b{size}\s*>>\s*1\b", self.body):
                found.setdefault(size, 2)
        return {size: number for size, number in found.items() if number > 1}

    def _held(self, index: str, count: str) -> bool:
        """Whether a comparison with a number keeps the index within the array."""
        below = rf"(?<![\w.]){re.escape(index)}\s*<\s*(\w+)"
        told = [self.value(one) for one in re.findall(below, self.body)]
        return any(one and int(one) <= int(count) for one in told)

    def _strides(self, array: str, numbers: bool = True) -> dict[Stride, set[str]]:
        """What indexes the array with each stride; of `numbers`, those that loops go up to."""
        found: dict[Stride, set[str]] = {}
        for index in indices(self.body, array):
            for term in self._terms(index, _DEPTH):
                fixed = [one for one in term if numbers and self._counted(one)]
                fixed = [] if any("Idx" in one for one in term) else fixed
                strides = tuple(sorted([*fixed, *(one for one in term if self._is_size(one))]))
                names = [one for one in term if not self._is_size(one) and not self._is_number(one)]
                if names:
                    found.setdefault(strides, set()).update(names)
                elif not term:
                    found.setdefault((), set())
        return found

    def _is_number(self, name: str) -> bool:
        return (
            bool(self.value(name)) or re.match(r"(?:blockDim|gridDim|warpSize)\b", name) is not None
        )

    def _counted(self, name: str) -> bool:
        """Whether it is a number, by a name or not, that something in the text goes up to."""
        word = rf"(?<!<)[<%]\s*{re.escape(name)}\b"
        return self.value(name) not in ("", "0", "1") and re.search(word, self.body) is not None

    def _is_size(self, name: str) -> bool:
        """Whether it is a size, or made of sizes and numbers alone."""
        try:
            names = set(expressions.names_in(self._in_sizes(name)))
        except SpecError:
            return False
        return bool(names) and names <= set(self.sizes)

    def _in_sizes(self, text: str) -> str:
        """`text` with the kernel's own variables put in, as an expression of the spec."""
        for _ in range(_DEPTH):
            text = re.sub(
                r"(?<![\w.])[A-Za-z_]\w*(?![\w.(\[])",
                lambda m: f"({self.variables[m[0]]})" if m[0] in self.variables else m[0], text,
            )  # fmt: skip
        text = re.sub(r"(?<!/)/(?!/)", "//", text)
        text = re.sub(r">>\s*(\d)\b", lambda m: f"// {2 ** int(m[1])}", text)
        return re.sub(r"^\(([^()]*)\)$", r"\1", text)

    def _terms(self, text: str, depth: int) -> list[tuple[str, ...]]:
        """The polynomial of an index: names of each term; opaque parts count as a name."""
        text = re.sub(r"(?<!/)/(?!/)", "//", text).strip()
        try:
            with warnings.catch_warnings():  # of what is C++ and looks odd in Python
                warnings.simplefilter("ignore")
                node = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError):
            return []
        return self._expanded(node, depth)

    def _expanded(self, node: ast.expr, depth: int) -> list[tuple[str, ...]]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return self._expanded(node.left, depth) + self._expanded(node.right, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = self._expanded(node.left, depth), self._expanded(node.right, depth)
            return [(*one, *other) for one in left for other in right]
        name = ast.unparse(node)
        if isinstance(node, ast.Constant):
            return [(name,) if self._counted(name) else ()]
        told = self.variables.get(name, "")
        if depth and told and not self._is_size(name):
            inner = self._terms(told, depth - 1)
            if any(self._is_size(one) for term in inner for one in term):
                return inner
        return [(name,)]

    def _learn(self, strides: Mapping[Stride, set[str]]) -> None:
        """What names go over, by the strides of this array."""
        for below, above in itertools.pairwise(chain_of(strides)):
            for name in strides.get(below, ()):
                extents = [self._in_sizes(one) for one in without(above, below)]
                self._told.setdefault(name, extents)

    def _bounds(self, name: str, depth: int = _DEPTH) -> list[str]:
        if axis := _COUNTED.fullmatch(name):
            return [told] if (told := getattr(self, "axes", {}).get(axis[1], "")) else []
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
        word = re.escape(name)
        told = re.findall(
            rf"(?<![\w.]){word}\s*(?:\+\s*\w+\s*)?(?:<|>=|!=)\s*([\w\s*/()]+?)\s*(?:[;)&|?,{{]|$)",
            self.body,
        )
        told += re.findall(rf"([\w*]+)\s*(?:>|<=)\s*{word}(?!\w)", self.body)
        plain = [one.replace("(", " ").replace(")", " ").strip() for one in told]
        found = [sizes for one in plain if (sizes := self._factors(one))]
        numbers = [[number] for one in plain if (number := self.value(one)) not in ("", "0")]
        return found or (numbers if "threadIdx" in self.variables.get(name, "") else [])

    def _factors(self, text: str) -> list[str]:
        """A product of sizes, or of what is made of them, apart; empty for another text."""
        found = []
        for part in product(text):
            if not self._is_size(part):
                return []
            told = product(self._in_sizes(part))
            found += told if all(map(self._is_size, told)) else [" * ".join(map(apart, told))]
        return found

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

    def _axis(self, axis: str) -> str:
        """Size that blocks count along an axis; empty where nothing tells it."""
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
        return [one for one in self.sizes if not re.search(rf"\b{one}\b", self.body)]


def _bare(index: str) -> str:
    return re.sub(r"^\(([^()]*)\)$", r"\1", re.sub(r"\s", "", index))


def _axes(body: str) -> list[str]:
    return sorted(set(_COUNTED.findall(body)))
