"""Types as they are written: their parts, and names put in."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tree_sitter import Node

from tokitai_cli.cpp.elements import dtypes_of
from tokitai_cli.cpp.tree import (
    Name,
    child,
    first,
    name_of,
    named,
    parse,
    parsed_expression,
    text_of,
    walk,
)

_NAMES = frozenset({"identifier", "type_identifier", "namespace_identifier"})
_DROPPED = frozenset(
    {"const", "volatile", "typename", "struct", "class", "__restrict__", "&", "&&"}
)


def plain(spelled: str) -> str:
    """A type without qualifiers and references: `float**` of `const float *const *&`."""
    words = spelled.replace("&", " & ").replace("*", " * ").split()
    return " ".join(one for one in words if one not in _DROPPED).replace(" *", "*")


@functools.lru_cache(maxsize=1 << 12)
def parts(spelled: str) -> Name:
    """Name and template arguments of a type without its pointers."""
    node = _type_node(spelled.rstrip("* "))
    return name_of(node) if node is not None else Name(spelled, None)


@functools.lru_cache(maxsize=1 << 12)
def words_of(spelled: str) -> frozenset[str]:
    """Names in a type or an expression, members of scopes left out."""
    root = _parsed(spelled)
    return frozenset(text_of(one) for one in _names(root)) if root is not None else frozenset()


def with_names(spelled: str, meaning: Mapping[str, str]) -> str:
    """A type or an expression with names that stand for others put in."""
    root = _parsed(spelled) if meaning.keys() & words_of(spelled) else None
    if root is None:
        return spelled
    data, front = _FRONT.encode() + spelled.encode(), len(_FRONT)
    for node in reversed(_names(root)):
        if (new := meaning.get(text_of(node))) is not None:
            data = data[: node.start_byte] + new.encode() + data[node.end_byte :]
    return " ".join(data[front:].decode().split())


_FRONT, _END = "using t = q<", ">;"  # both a type and an expression can stand there


def _parsed(spelled: str) -> Node | None:
    root = parse(f"{_FRONT}{spelled}{_END}".encode())
    return None if root.has_error else root


def _type_node(spelled: str) -> Node | None:
    root = parse(f"using t = {spelled};".encode())
    return child(child(first(root, "alias_declaration"), "type"), "type")


def _names(root: Node) -> list[Node]:
    """Nodes of names that are no member of a scope, in the order of the text."""
    found = []
    for node in walk(root):
        outer = node.parent
        scoped = outer is not None and outer.type in {"qualified_identifier", "dependent_name"}
        member = scoped and node == child(outer, "name")
        if node.type in _NAMES and node.start_byte >= len(_FRONT) and not member:
            found.append(node)
    return found


def element_of(spelled: str) -> str:
    """What a pointer leads to, or a container holds; empty for another type."""
    bare = plain(spelled)
    if bare.endswith("*"):
        return bare[:-1].rstrip()
    arguments = parts(bare).arguments
    return plain(arguments[0]) if arguments else ""


def called_in(spelled: str) -> set[str]:
    """Names of functions that an expression calls."""
    root = _parsed(spelled)
    calls = [one for one in walk(root) if one.type == "call_expression"] if root is not None else []
    return {name_of(child(one, "function")).last for one in calls}


def is_plain(spelled: str) -> bool:
    """Whether a template's argument is a number, or a type of numbers or a pointer to them."""
    node = parsed_expression(spelled)
    while node is not None and node.type == "unary_expression":
        node = child(node, "argument")
    if node is not None and node.type in {"number_literal", "true", "false"}:
        return True
    if node is not None and node.type == "call_expression":  # `int(n)`: as its arguments are
        given = [child(node, "function"), *named(child(node, "arguments"))]
        return len(given) > 1 and all(is_plain(text_of(one)) for one in given)
    told = parts(plain(spelled).removesuffix("*"))
    return told.scopes in {(), ("std",)} and not told.arguments and bool(dtypes_of(told.last))
