"""Products of matrices, and sums over products by `einsum`, as products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokitai_cli.oracles.formula.known import Known, NoRuleError
from tokitai_cli.oracles.formula.products import product
from tokitai_cli.oracles.formula.relations import summed
from tokitai_cli.oracles.formula.tracked import Tracked, track


def matmul(a: Tracked, b: Tracked) -> Tracked:
    """`numpy.matmul`, vectors as numpy takes them."""
    if a.ndim == 0 or b.ndim == 0:
        raise NoRuleError("numpy.matmul of a number: multiply")
    if a.ndim == 1:
        wide = matmul(a.reshape(1, -1), b)
        return wide[..., 0, :] if b.ndim > 1 else wide[..., 0]
    if b.ndim == 1:
        return matmul(a, b.reshape(-1, 1))[..., 0]
    with np.errstate(all="ignore"):
        return Tracked(product(a.parts, b.parts), Known(product_of=(a.parts, b.parts)))


def einsum(text: str, *operands: Any) -> Tracked:
    """`numpy.einsum` of one or two operands; more are rounded by an order that the text does not say."""
    if len(operands) > 2:
        raise NoRuleError(
            "numpy.einsum has a rule for two operands: chain them in the kernel's order"
        )
    arrays = [track(operand) for operand in operands]
    words, out = letters(text, [array.ndim for array in arrays])
    if len(arrays) == 1:
        return _single(arrays[0], words[0], out)
    first, second = words
    arrays[0], first = _without_lonely(arrays[0], first, second + out)
    arrays[1], second = _without_lonely(arrays[1], second, first + out)
    batch = [c for c in first if c in second and c in out]
    inner = [c for c in first if c in second and c not in out]
    left = [c for c in first if c not in second]
    right = [c for c in second if c not in first]
    extents = dict(zip(first, arrays[0].shape, strict=True)) | dict(
        zip(second, arrays[1].shape, strict=True)
    )

    def laid(array: Tracked, word: list[str], *groups: list[str]) -> Tracked:
        order = [word.index(c) for group in groups for c in group]
        shape = [int(np.prod([extents[c] for c in group], dtype=int)) for group in groups]
        lead = [extents[c] for c in groups[0]]
        return array.moved(lambda part: part.transpose(order).reshape(*lead, *shape[1:]))

    wide = matmul(
        laid(arrays[0], first, batch, left, inner), laid(arrays[1], second, batch, inner, right)
    )
    extent = [extents[c] for c in (*batch, *left, *right)]
    order = [(batch + left + right).index(c) for c in out]
    return wide.moved(lambda array: array.reshape(extent).transpose(order))


def letters(text: str, dims: list[int]) -> tuple[list[list[str]], list[str]]:
    """Words of the operands and of the result; an ellipsis becomes letters of its own."""
    given, arrow, result = text.replace(" ", "").partition("->")
    words = given.split(",")
    if len(words) != len(dims):
        raise NoRuleError(f"numpy.einsum({text!r}) names {len(words)} operands, not {len(dims)}")
    spread = max(
        (n - len(w.replace("...", "")) for w, n in zip(words, dims, strict=True) if "..." in w),
        default=0,
    )
    dots = [f"...{i}" for i in range(spread)]

    def expand(word: str, ndim: int | None) -> list[str]:
        head, ellipsis, tail = word.partition("...")
        here = spread if ndim is None else ndim - len(head) - len(tail)
        return [*head, *(dots[spread - here :] if ellipsis else []), *tail]

    lists = [expand(word, ndim) for word, ndim in zip(words, dims, strict=True)]
    for word in lists:
        if len(set(word)) != len(word):
            raise NoRuleError(f"numpy.einsum({text!r}) takes a diagonal, which has no rule")
    if not arrow:
        every = [c for word in lists for c in word]
        once = sorted(c for c in set(every) if every.count(c) == 1 and not c.startswith("..."))
        return lists, dots + once
    return lists, expand(result, None)


def _without_lonely(
    array: Tracked, word: list[str], others: list[str]
) -> tuple[Tracked, list[str]]:
    """Sum over axes that stand in no other operand and not in the result."""
    lonely = tuple(i for i, c in enumerate(word) if c not in others)
    if not lonely:
        return array, word
    return summed(array, lonely, False), [c for c in word if c in others]


def _single(array: Tracked, word: list[str], out: list[str]) -> Tracked:
    array, word = _without_lonely(array, word, out)
    order = [word.index(c) for c in out]
    return array.moved(lambda part: part.transpose(order))
