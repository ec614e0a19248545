"""Fetches from textures: reads of arrays whose extents a kernel's text does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Node

from tokitai_cli.cpp.body.symbolic_values import Cell, Fetch, Pointer, Returned
from tokitai_cli.cpp.elements import spelled
from tokitai_cli.cpp.structs import TEXTURE_OBJECTS, resolved, texture_of
from tokitai_cli.cpp.tree import child, name_of

if TYPE_CHECKING:
    from tokitai_cli.cpp.body.walk import Walk

_AXES = {
    "tex1Dfetch": 1, "tex1D": 1, "tex1DLod": 1, "tex2D": 2, "tex2DLod": 2,
    "tex2DLayered": 3, "tex3D": 3, "tex3DLod": 3,
}  # fmt: skip


def fetched(walk: Walk, name: str, given: list[Node], node: Node) -> Returned | None:
    """What a fetch gives, by a texture object or by one at namespace scope; None for another call."""
    if name not in _AXES:
        return None
    told = [_texture(walk, one) for one in given[:2]]
    at = next((index for index, one in enumerate(told) if one is not None), None)
    if at is None:
        return None
    texture = told[at]
    assert texture is not None
    arguments = name_of(child(node, "function")).arguments or ()
    kind = arguments[0] if arguments else texture_of(walk.facts.arrays[texture.array])[0]
    if kind:
        kind = resolved(walk.program, walk.types.get(kind, kind))
        walk.facts.fetches.setdefault(texture.array, Fetch(spelled(kind), _AXES[name]))
        walk.facts.arrays[texture.array] = kind
    values = [walk.evaluate(one) for one in given[at + 1 :]]
    whole = name == "tex1Dfetch" and values
    offset = walk.number(values[0]) if whole else walk.fresh("texel")
    value = walk.touch(Pointer(texture.array, texture.offset + offset), "read", node)
    if at:  # the texel is laid behind the first argument
        target = walk.evaluate(given[0])
        if isinstance(target, Cell | Pointer):
            walk.save(target, value, "write", node)
        return Returned()
    return Returned(value)


def _texture(walk: Walk, node: Node) -> Pointer | None:
    """The texture that an argument names."""
    if node.type not in {"identifier", "qualified_identifier", "field_expression"}:
        return None
    place = walk.place(node)
    value = place if isinstance(place, Pointer) else walk.evaluate(node)
    if not isinstance(value, Pointer) or value.array not in walk.facts.arrays:
        return None
    known = value.array in walk.facts.fetches or walk.facts.arrays[value.array] in TEXTURE_OBJECTS
    return value if known or texture_of(walk.facts.arrays[value.array])[0] else None
