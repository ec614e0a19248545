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
from tokitai_cli.errors import SpecError

_COUNTED = re.compile(r"\bblockIdx\s*\.\s*([xyz])")
_TABLES = re.compile(r"voc|entr|max|table|cache|categ|class|emb", re.I)
_TOTALS = re.compile(r"nnz|total|entries|values|edges|tokens|indices|sum", re.I)
_DEPTH = 4  # of definitions put in

Stride = tuple[str, ...]


class Indexing:
    """What the text of a kernel's body says of its arrays and sizes.

    body: with arrays and sizes by the names that they have in the spec. constants: values of names that
    are no sizes. Attributes: these, `body` with pointers made from arrays (`row = x + i * n`) put in.
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
        self._used = {name: self._strides(name) for name in arrays}
        self._told: dict[str, list[str]] = {}
        for strides in self._used.values():
            self._learn(strides)
        self.axes = {axis: self._axis(axis) for axis in _axes(self.body)}

    def add_rows(self, name: str) -> None:
        """A size of the host's alone, which the blocks count that nothing else tells the size of."""
        self.sizes.insert(0, name)
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
        """Extents of the array, by its strides; empty where the text does not say."""
        strides = self._used[array]
        chain = _chain(strides)
        if not chain:
            return []
        inner = [" * ".join(self._in_sizes(one) for one in _without(above, below))
                 for below, above in itertools.pairwise(chain)]  # fmt: skip
        names = sorted(strides[chain[-1]])
        if not names:
            return ["1", *reversed(inner)]  # one place alone
        every = [told for one in names if (told := self._bounds(one))]
        every += [told for one in names for told in self._compared(one)]
        # A transposed copy compares one name with both sizes.
        first = next((one for one in every if one != inner), every[0] if every else [])
        rest = [
            one for one in self._unread() if one not in {*self.axes.values(), *self._segments()}
        ]
        first = first or (rest or self._unread())[:1]
        if array in self._offsets and len(first) == 1:
            first = [f"{first[0]} + 1"]
        return [*first, *reversed(inner)]

    def offsets_to(self, array: str) -> str:
        """What the array's values rise to, where it holds offsets; else empty."""
        return next(iter([*self._segments(), *self.sizes]), "") if array in self._offsets else ""

    def _segments(self) -> list[str]:
        """The size that offsets cut into pieces, which a kernel need not read."""
        found = self._unread() if self._offsets else []
        return ([one for one in found if _TOTALS.search(one)] or found)[-1:]

    def values_below(self, array: str) -> str:
        """What the array's values index, as an extent; empty where the text does not say."""
        for other, strides in self._used.items():
            chain, shape = _chain(strides), self.shape(other)
            for stride, extent in zip(chain, reversed(shape), strict=False):
                for name in strides.get(stride, ()):
                    if self._loaded(name) == array:
                        return extent
        return ""

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
                    for size in self._bounds(index.strip()) if count else []:
                        if size in self.sizes:
                            found[size] = min(int(count), found.get(size, int(count)))
        return found

    def multiples(self) -> dict[str, int]:
        """Sizes that the kernel divides without a remainder of its own, by what."""
        found: dict[str, int] = {}
        for size in self.sizes:
            for number in re.findall(rf"(?<![\w)])\s*{size}\s*/\s*(\d+)\b", self.body):
                found[size] = max(int(number), found.get(size, 1))
            if re.search(rf"\b{size}\s*>>\s*1\b", self.body):
                found.setdefault(size, 2)
        return {size: number for size, number in found.items() if number > 1}

    def _strides(self, array: str) -> dict[Stride, set[str]]:
        """What indexes the array with each stride."""
        found: dict[Stride, set[str]] = {}
        for index in indices(self.body, array):
            for term in self._terms(index, _DEPTH):
                strides = tuple(sorted(one for one in term if self._is_size(one)))
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
        if isinstance(node, ast.Constant):
            return [()]
        name = ast.unparse(node)
        told = self.variables.get(name, "")
        if depth and told and not self._is_size(name):
            inner = self._terms(told, depth - 1)
            if any(self._is_size(one) for term in inner for one in term):
                return inner
        return [(name,)]

    def _learn(self, strides: Mapping[Stride, set[str]]) -> None:
        """What names go over, by the strides of this array."""
        for below, above in itertools.pairwise(_chain(strides)):
            for name in strides.get(below, ()):
                extents = [self._in_sizes(one) for one in _without(above, below)]
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
        if match := re.fullmatch(r"\(?([\w.]+)\)?\s*([/%])\s*\(?([\w* ]+)\)?", made or name):
            outer, over = self._bounds(match[1], depth - 1), self._factors(match[3])
            if match[2] == "%":
                return over
            if over and outer[-len(over) :] == over and len(outer) > len(over):
                return outer[: -len(over)]
        if re.fullmatch(r"[\w.]+", made) and (found := self._bounds(made, depth - 1)):
            return found
        return [found[0]] if (found := self._named_alike(name)) else []

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
        parts = [one.strip() for one in text.split("*")]
        if all(one and self._is_size(one) for one in parts):
            return [self._in_sizes(one) for one in parts]
        return []

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
                return " * ".join(found)
        unread = self._unread()
        if any(self._loaded(one) for told in self._used.values() for one in self._first(told)):
            # Rows of a table, which values of another array name, are counted by no block.
            unread = [one for one in unread if not _TABLES.search(one)]
        return unread[0] if len(unread) == 1 else ""

    def _first(self, strides: Mapping[Stride, set[str]]) -> set[str]:
        """What indexes the first axis, where a comparison does not tell its extent."""
        chain = _chain(strides)
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


def _chain(strides: Mapping[Stride, set[str]]) -> list[Stride]:
    """Strides from the last axis to the first, each a factor of the next; empty where they are not."""
    chain = sorted(strides, key=lambda one: (len(one), one))
    if chain and chain[0]:
        chain.insert(0, ())
    nested = all(set(a) <= set(b) and len(a) < len(b) for a, b in itertools.pairwise(chain))
    return chain if nested and chain and chain[-1] in strides else []


def _without(above: Stride, below: Stride) -> list[str]:
    rest = list(above)
    for one in below:
        rest.remove(one)
    return rest
