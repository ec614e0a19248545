"""Products and quotients in indices, and the strides that products of sizes are."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping

from tokitai_cli.cpp.source.macros import closing

Stride = tuple[str, ...]


def product(text: str) -> list[str]:
    """Factors of a product, each without parentheses around it."""
    text = text.strip()
    while text.startswith("(") and closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    depth, parts = 0, [""]
    for mark in text:
        depth += (mark == "(") - (mark == ")")
        if mark == "*" and not depth:
            parts.append("")
        else:
            parts[-1] += mark
        if mark in "+-/%<>?" and not depth:
            return [text]
    return [text] if len(parts) == 1 else [one for part in parts for one in product(part)]


def apart(text: str) -> str:
    """As a factor of a product."""
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def quotient(text: str) -> tuple[str, str, str] | None:
    """Both sides of a division or a remainder, and which of them it is; None for another text."""
    try:
        node = ast.parse(re.sub(r"(?<!/)/(?!/)", "//", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, MemoryError):
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
        sign = "%" if isinstance(node.op, ast.Mod) else "/"
        return ast.unparse(node.left), sign, ast.unparse(node.right)
    return None


def chain_of(strides: Mapping[Stride, set[str]]) -> list[Stride]:
    """Strides from the last axis to the first, each a factor of the next; empty where they are not."""
    chain = sorted(strides, key=lambda one: (len(one), one))
    if chain and chain[0]:
        chain.insert(0, ())
    nested = all(set(a) <= set(b) and len(a) < len(b) for a, b in itertools.pairwise(chain))
    return chain if nested and chain and chain[-1] in strides else []


def without(above: Stride, below: Stride) -> list[str]:
    """Factors of a stride that the one below it lacks."""
    rest = list(above)
    for one in below:
        rest.remove(one)
    return rest
