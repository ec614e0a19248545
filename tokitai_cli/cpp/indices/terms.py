"""Indices of a kernel's text taken apart as polynomials of its sizes and constants.

Of `(head * seq + query) * dim + d` the strides are `seq * dim`, `dim` and 1.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.indices.kernel_text import defined, indices, scoped, without_pointers
from tokitai_cli.cpp.indices.strides import Stride, apart, product

DEPTH = 4  # of definitions put in


class Terms:
    """A kernel's body, and what its expressions are made of.

    body: with arrays and sizes by the names that they have in the spec. constants: values of names that
    are no sizes; passed: what the host passes for names that are products of sizes. Attributes: these,
    `body` with pointers made from arrays (`row = x + i * n`) put in, `variables` and what they begin
    with.
    """

    def __init__(
        self,
        body: str,
        arrays: Sequence[str],
        sizes: Sequence[str],
        constants: Mapping[str, str],
        passed: Mapping[str, str],
    ) -> None:
        self.sizes = list(sizes)
        self.arrays, self.constants = arrays, constants
        self.body = scoped(without_pointers(body, arrays))
        self.variables = dict(defined(self.body)) | dict(passed)
        self._orders: dict[Stride, list[str]] = {}

    def value(self, name: str) -> str:
        """Number that a constant stands for; empty where it is none."""
        for _ in range(DEPTH):
            if name.isdigit():
                return name
            name = self.constants.get(name, "").strip("() ")
        return ""

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
        for _ in range(DEPTH):
            text = re.sub(
                r"(?<![\w.])[A-Za-z_]\w*(?![\w.(\[])",
                lambda m: f"({self.variables[m[0]]})" if m[0] in self.variables else m[0], text,
            )  # fmt: skip
        text = re.sub(r"(?<!/)/(?!/)", "//", text)
        text = re.sub(r">>\s*(\d)\b", lambda m: f"// {2 ** int(m[1])}", text)
        own = {*self.sizes}  # a constant of that name is another
        text = re.sub(
            r"(?<![\w.])[A-Za-z_]\w*(?![\w.(\[])",
            lambda m: m[0] if m[0] in own else self.value(m[0]) or m[0], text,
        )  # fmt: skip
        return re.sub(r"^\(([^()]*)\)$", r"\1", text)

    def _factors(self, text: str) -> list[str]:
        """A product of sizes, or of what is made of them, apart; empty for another text."""
        found = []
        for part in product(text):
            if not self._is_size(part):
                return []
            told = product(self._in_sizes(part))
            found += told if all(map(self._is_size, told)) else [" * ".join(map(apart, told))]
        return found

    def _parts(self, size: str) -> list[str]:
        """Factors of a size, in the order in which the source has them."""
        parts = self._factors(size)
        if len(parts) > 1:
            self._orders[tuple(sorted(parts))] = parts
        return parts

    def _strides(self, array: str, numbers: bool = True) -> dict[Stride, set[str]]:
        """What indexes the array with each stride; of `numbers`, those that loops go up to.

        What a block's place is multiplied with is an extent of the block, but beside sizes where another
        index has it as its stride.
        """
        found: dict[Stride, set[str]] = {}
        terms = [one for index in indices(self.body, array) for one in self._terms(index, DEPTH)]
        placed = [any("Idx" in one for one in term) for term in terms]
        inner = {one for term, of_block in zip(terms, placed, strict=True) for one in term
                 if not of_block}  # fmt: skip
        for term, of_block in zip(terms, placed, strict=True):
            fixed = [one for one in term if numbers and self._counted(one)]
            parts = [part for one in term if self._is_size(one) for part in self._parts(one)]
            if of_block:
                fixed = [one for one in fixed if parts and one in inner]
            strides = tuple(sorted([*fixed, *parts]))
            names = [one for one in term if not self._is_size(one) and not self._is_number(one)]
            if names:
                found.setdefault(strides, set()).update(names)
            elif not term:
                found.setdefault((), set())
        return found

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
        counter = re.search(
            rf"\bfor\s*\([^;]*\b{re.escape(name)}\s*=[^;]*;[^;]*\b{re.escape(name)}\b", self.body
        )
        if depth and told and not self._is_size(name) and not counter:
            inner = self._terms(told, depth - 1)
            if any(self._is_size(one) for term in inner for one in term):
                return inner
        return [(name,)]
