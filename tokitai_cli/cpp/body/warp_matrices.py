"""Matrices of a warp, nvcuda::wmma: tiles that are read from arrays and written to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Node

from tokitai_cli.cpp.body.operators import combined
from tokitai_cli.cpp.body.polynomial import constant
from tokitai_cli.cpp.body.symbolic_values import Guard, Returned

if TYPE_CHECKING:
    from tokitai_cli.cpp.body.walk import Walk

_KINDS = {"load_matrix_sync": ("read", 1), "store_matrix_sync": ("write", 0)}
_TILE = 16  # rows and columns of a tile, of the usual shape


def tile_moved(walk: Walk, name: str, given: list[Node], node: Node) -> Returned | None:
    """A tile of `_TILE` rows, a leading dimension apart; None for another function."""
    kind, at = _KINDS.get(name, ("", 0))
    if not kind or len(given) < 3:
        return None
    values = [walk.evaluate(one) for one in given]
    pointer = walk.moved(values[at], constant(0))
    stride = walk.number(values[2])
    if pointer is not None:
        walk.touch(pointer, kind, node, units=stride * constant(_TILE - 1) + constant(_TILE))
    if stride.number is None:  # rows begin at multiples of 16 bytes
        rest = walk.number(combined(walk, "%", stride, constant(_TILE)))
        walk.facts.asserted.append(Guard(rest, "==", constant(0)))
    return Returned()
