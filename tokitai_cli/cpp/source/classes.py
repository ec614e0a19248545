"""Classes of a program by name, with what their templates' parameters stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.cpp.declarations import template_parameters
from tokitai_cli.cpp.source.macro_text import split

if TYPE_CHECKING:
    from tree_sitter import Node

    from tokitai_cli.cpp.whole import Program

ALIAS = re.compile(r"using\s+(\w+)\s*=([^;]+);|typedef\s+([\w:<>, *]+?)\s+(\w+)\s*;")


class TemplateParameter(msgspec.Struct, frozen=True):
    """One parameter of a template: `type` is empty for types, else that of the value."""

    name: str
    type: str
    default: str


def class_of(program: Program, name: str) -> tuple[Node, str, dict[str, str]] | None:
    """The class, its file's text, and what its template's parameters stand for; None if not known."""
    plain, _, given = name.removesuffix(">").partition("<")
    defaults: dict[int, str] = {}
    found = None
    for path, pieces in program.pieces.items():
        for piece in pieces:
            if piece.kind == "class" and plain.strip().rpartition("::")[2] in piece.names:
                text = program.texts[path].parsed
                formal = list(template_of(piece.node))
                defaults |= {at: one.default for at, one in enumerate(formal) if one.default}
                if found is None and "{" in text[piece.begin : piece.end]:
                    found = piece.node, text, [one.name for one in formal]
    if found is None:
        return None
    node, text, names = found
    told = {**defaults, **dict(enumerate(split(given)))}
    bound = {one: told[at] for at, one in enumerate(names) if at in told}
    return (node, text, bound) if len(bound) == len(names) else None


def member_type(program: Program, name: str) -> str:
    """The type that `Class<...>::member` stands for; empty where the text does not say it."""
    whole, _, member = name.rpartition("::")
    found = class_of(program, whole) if whole else None
    if found is None:
        return ""
    node, text, bound = found
    put = dict(bound)
    for alias in ALIAS.finditer(text[node.start_byte : node.end_byte]):
        put[alias[1] or alias[4]] = put_in(alias[2] or alias[3], put).strip()
    return put[member] if member in put and member not in bound else ""


def put_in(text: str, names: Mapping[str, str]) -> str:
    """`text` with what names stand for, those behind `::` left alone."""
    return re.sub(r"(?<!:)\b[A-Za-z_]\w*", lambda m: names.get(m[0], m[0]), text)


def template_of(node: Node) -> Iterator[TemplateParameter]:
    """Parameters of the template that a declaration is of; none of another."""
    outer = node.parent
    if outer is None or outer.type != "template_declaration":
        return
    for one in template_parameters(outer):
        kind = "" if one.type == "type" else one.type
        yield TemplateParameter(one.name, kind, one.default)
