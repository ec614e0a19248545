"""Textures at namespace scope, and how a program's host says that textures are sampled."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.declarations import parameter_in
from tokitai_cli.cpp.structs import texture_of
from tokitai_cli.cpp.tree import child, first, text_of
from tokitai_cli.cpp.tree import walk as nodes_of
from tokitai_cli.cpp.whole import Program, remembered

_MODES = {"Linear": "linear", "Point": "point", "Clamp": "clamp", "Border": "border",
          "Wrap": "wrap", "Mirror": "mirror",
          "NormalizedFloat": "normalized-float", "ElementType": "element"}  # fmt: skip
_FIELDS = {"filterMode": "filter", "addressMode": "address", "readMode": "read",
           "normalized": "normalized", "normalizedCoords": "normalized"}  # fmt: skip


class TextureReference(msgspec.Struct, frozen=True):
    """`texture<float4, 2, cudaReadModeNormalizedFloat> name;`."""

    name: str
    #: With its namespaces.
    qualified: str
    #: Of a texel in memory.
    type: str
    as_float: bool


def texture_references(program: Program) -> list[TextureReference]:
    """All of a program."""
    found = []
    for tree in program.trees:
        for one in tree.declarations:
            told = text_of(child(one.node, "type")) if one.kind == "variable" else ""
            kind, rest = texture_of(told)
            for declarator in one.node.children_by_field_name("declarator") if kind else ():
                if parameter_in(one.node, declarator).name == one.name:
                    qualified = "::".join([*one.space, one.name])
                    as_float = any("NormalizedFloat" in mode for mode in rest)
                    found.append(TextureReference(one.name, qualified, kind, as_float))
    return found


@remembered
def sampling_of(program: Program) -> dict[str, dict[str, str | bool]]:
    """What the host assigns to fields of textures and their descriptions, by the names of these.

    The settings have a spec's keys and values; of several assignments the last one holds.
    """
    found: dict[str, dict[str, str | bool]] = {}
    for tree in program.trees:
        for name, field, value in _assigned(tree.root):
            known = found.setdefault(name, {})
            if _FIELDS[field] == "normalized":
                known["normalized"] = value in {"1", "true"}
            else:
                mode = next((one for end, one in _MODES.items() if value.endswith(end)), "")
                known |= {_FIELDS[field]: mode} if mode else {}
    return found


def _assigned(root: Node) -> Iterator[tuple[str, str, str]]:
    for node in nodes_of(root):
        target = child(node, "left") if node.type == "assignment_expression" else None
        field = first(target, "field_expression")
        name = text_of(child(field, "field")) if field is not None else ""
        if name in _FIELDS:
            yield text_of(child(field, "argument")), name, text_of(child(node, "right"))
