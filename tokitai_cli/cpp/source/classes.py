"""Classes of a program by name, with what their templates' parameters stand for."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.declarations import Struct, template_parameters
from tokitai_cli.cpp.lexing import put_in
from tokitai_cli.cpp.program import Program as Tree
from tokitai_cli.cpp.tree import parsed_name
from tokitai_cli.cpp.whole import Program


class TemplateParameter(msgspec.Struct, frozen=True):
    """One parameter of a template: `type` is empty for types, else that of the value."""

    name: str
    type: str
    default: str
    #: The concept that a type has to be of; empty for none.
    concept: str = ""


class KnownClass(NamedTuple):
    """A class of a program, and what its template's parameters stand for."""

    struct: Struct
    bound: dict[str, str]
    tree: Tree


def class_of(program: Program, name: str) -> KnownClass | None:
    """The class that a name means; None where it is not known, or an argument of its template."""
    told = parsed_name(name)
    given = list(told.arguments or ())
    for tree in program.trees:
        known = tree.classes.get(told.last, ())
        special = [one for one in known if one.arguments == tuple(given)]
        primary = [one for one in known if one.arguments is None]
        for struct in (*special, *primary, *known)[:1]:
            bound = _bound(tree, struct, [] if special and given else given)
            return KnownClass(struct, bound, tree) if bound is not None else None
    return None


def _bound(tree: Tree, struct: Struct, given: list[str]) -> dict[str, str] | None:
    """What the parameters of a class's template stand for; None where one is not known."""
    own = struct.declaration
    told: dict[int, str] = {}
    for one in tree.by_name.get(own.name, ()):
        if one.kind in {"type", "forward"}:  # a declaration in front may say the default
            told |= {at: other.default for at, other in enumerate(one.template) if other.default}
    told |= dict(enumerate(given))
    names = [one.name for one in own.template]
    bound = {one: told[at] for at, one in enumerate(names) if at in told}
    return bound if len(bound) == len(names) else None


def member_type(program: Program, name: str) -> str:
    """The type that `Class<...>::member` stands for; empty where the text does not say it."""
    whole, _, member = name.rpartition("::")
    found = class_of(program, whole) if whole else None
    if found is None or member in found.bound:
        return ""
    return aliases_in(found.struct, found.bound).get(member, "")


def aliases_in(struct: Struct, bound: dict[str, str]) -> dict[str, str]:
    """The class's own aliases and the parameters of its template, with what they stand for."""
    put = dict(bound)
    for name, told in struct.aliases.items():
        put[name] = put_in(told, put)
    return put


def template_of(program: Program, node: Node) -> list[TemplateParameter]:
    """Parameters of the template that a declaration is of; none of another."""
    outer = node.parent
    if outer is None or outer.type != "template_declaration":
        return []
    concepts = {name for tree in program.trees for name in tree.concepts}
    return [
        TemplateParameter(
            one.name, "" if one.type == "type" else one.type, one.default, one.concept
        )
        for one in template_parameters(outer, concepts)
    ]
