"""Syntax trees of CUDA and HIP sources, and what is asked of every node."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_cuda.language()))
TYPE_SPECIFIERS = frozenset(
    {"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"}
)
_NAMES = frozenset(
    {"identifier", "field_identifier", "type_identifier", "qualified_identifier"}
    | {"template_function", "operator_name", "destructor_name", "operator_cast"}
)
_POINTERS = frozenset({"pointer_declarator", "abstract_pointer_declarator"})
_REFERENCES = frozenset({"reference_declarator", "abstract_reference_declarator"})
_TEMPLATED = frozenset({"template_function", "template_type", "template_method"})


def parse(data: bytes) -> Node:
    """The root of the tree of a text; what cannot be read are nodes of type ERROR."""
    return _PARSER.parse(data).root_node


def parsed_arguments(text: str) -> list[Node]:
    """The arguments of a call, as the text between its parentheses gives them; none of other text."""
    root = parse(f"int f() {{ g({text}); }}".encode())
    found = first(root, "argument_list")
    return named(found) if found is not None and not root.has_error else []


def parsed_expression(text: str) -> Node | None:
    """The tree of an expression; None where the text is none."""
    found = parsed_arguments(text)
    return found[0] if len(found) == 1 else None


def parsed_type(text: str) -> Node | None:
    """The tree of a type's name; None where the text is none."""
    root = parse(f"{text} v;".encode())
    return child(next(iter(root.named_children), None), "type") if not root.has_error else None


def text_of(node: Node | None) -> str:
    """A node's text on one line; empty for None."""
    return " ".join((node.text or b"").decode(errors="replace").split()) if node is not None else ""


def child(node: Node | None, name: str) -> Node | None:
    """The child in a field of the grammar's; None where there is none."""
    return node.child_by_field_name(name) if node is not None else None


def named(node: Node | None) -> list[Node]:
    """Named children without comments."""
    return [one for one in node.named_children if one.type != "comment"] if node is not None else []


def walk(node: Node) -> Iterator[Node]:
    """The node and all named nodes below it, in the order of the text."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(here.named_children))


def first(node: Node | None, *types: str) -> Node | None:
    """The first node of one of the types, the node itself or one below it."""
    return (
        next((one for one in walk(node) if one.type in types), None) if node is not None else None
    )


class Declarator(NamedTuple):
    """What a declarator declares: `(*rows)[3]` is a pointer `rows` with an inner extent."""

    #: The node of its name; None for an unnamed parameter.
    name: Node | None
    #: How many `*` stand before it.
    pointers: int
    #: Whether it is a reference.
    reference: bool
    #: Extents between brackets, the outermost first; None for `[]`.
    extents: tuple[Node | None, ...]
    #: Whether its elements are pointers, `*rows[3]`, and not `(*rows)[3]`.
    of_pointers: bool = False


def declarator_of(node: Node | None) -> Declarator:
    """Take a declarator apart."""
    pointers, reference, extents = 0, False, list[Node | None]()
    of_pointers = False
    while node is not None and node.type not in _NAMES:
        pointers += node.type in _POINTERS
        reference = reference or node.type in _REFERENCES
        if node.type in {"array_declarator", "abstract_array_declarator"}:
            extents.insert(0, child(node, "size"))
            of_pointers = of_pointers or pointers > 0
        inner = child(node, "declarator")
        if inner is None:
            parts = (one for one in reversed(named(node))
                     if one.type in _NAMES or one.type.endswith("declarator"))  # fmt: skip
            inner = next(parts, None)
        node = inner
    return Declarator(node, pointers, reference, tuple(extents), of_pointers)


def is_function(declarator: Node | None) -> bool:
    """Whether a declarator declares a function, a pointer to one not."""
    while declarator is not None and declarator.type in _POINTERS | _REFERENCES:
        declarator = child(declarator, "declarator") or next(
            iter(reversed(named(declarator))), None
        )
    if declarator is None or declarator.type != "function_declarator":
        return False
    inner = child(declarator, "declarator")
    return inner is not None and inner.type != "parenthesized_declarator"


class Name(NamedTuple):
    """A name without its scopes: `ns::k<float, 3>` is `k` with two arguments."""

    last: str
    #: Template arguments as text; None where none are given.
    arguments: tuple[str, ...] | None
    #: What stands before it, scope by scope.
    scopes: tuple[str, ...] = ()


def name_of(node: Node | None) -> Name:
    """Last part and template arguments of a name, and its scopes."""
    scopes: list[str] = []
    while node is not None and node.type in {"qualified_identifier", "dependent_name"}:
        scope = child(node, "scope")
        if scope is not None:
            scopes.append(text_of(scope))
        node = child(node, "name") or next(iter(reversed(named(node))), None)
    if node is None:
        return Name("", None, tuple(scopes))
    if node.type in _TEMPLATED:
        given = tuple(text_of(one) for one in named(child(node, "arguments")))
        return Name(text_of(child(node, "name")), given, tuple(scopes))
    return Name(text_of(node).removeprefix("template ").strip(), None, tuple(scopes))


@functools.lru_cache(maxsize=1 << 12)
def parsed_name(text: str) -> Name:
    """A name, or a type's, as `text` spells it; one without a last part where it spells none."""
    root = parse(f"{text} v;".encode())
    declaration = next(iter(root.named_children), None)
    plain = child(declaration, "declarator")
    kind = child(declaration, "type")
    if root.has_error or kind is None or plain is None or plain.type != "identifier":
        return Name("", None)
    return name_of(child(kind, "name") if kind.type in TYPE_SPECIFIERS else kind)
