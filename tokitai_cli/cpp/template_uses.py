"""What a kernel's text does with the parameters of its template, and with what is of their types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from tokitai_cli.cpp.declarations import Declaration
from tokitai_cli.cpp.tree import Name, child, declarator_of, first, name_of, named, text_of, walk

_TILES = frozenset({"tiled_partition", "thread_block_tile"})
_TEMPLATED = frozenset({"template_type", "template_function", "template_method"})
_BITS = frozenset({"<<", ">>", "|", "^", "%", "<<=", ">>=", "|=", "&=", "^=", "%="})
_PASSED_ON = frozenset({"argument_list", "call_expression", "parenthesized_expression"})
_WHOLE = frozenset({"int", "unsigned", "long", "size_t", "short"})


class Call(NamedTuple):
    """A call that a kernel makes."""

    name: str
    template: tuple[str, ...]
    #: As they are written.
    arguments: tuple[str, ...]
    #: Whether something is done with what it gives.
    used: bool


class TemplateUses:
    """A kernel's declaration as it is asked for what it does with names."""

    def __init__(self, kernel: Declaration | None) -> None:
        self._nodes = list(walk(kernel.outer)) if kernel is not None else []

    def members_of(self, name: str) -> set[str]:
        """Members that are asked of a parameter: `T::value`."""
        scoped = (
            one for one in self._nodes if one.type in {"qualified_identifier", "dependent_name"}
        )
        found = {name_of(one) for one in scoped if text_of(child(one, "scope")) == name}
        return {one.last for one in found if one.last}

    def locals_of(self, kind: str) -> set[str]:
        """Names of the kernel's variables of a type."""
        found = set()
        for one in self._nodes:
            if one.type == "declaration" and text_of(child(one, "type")) == kind:
                for declarator in one.children_by_field_name("declarator"):
                    inner = child(declarator, "declarator")
                    is_value = declarator.type == "init_declarator"
                    found.add(text_of(declarator_of(inner if is_value else declarator).name))
        return found

    def calls(self) -> Iterator[Call]:
        """All calls of names."""
        for one in self._nodes:
            function = child(one, "function") if one.type == "call_expression" else None
            if function is None or function.type not in {"identifier", "template_function"}:
                continue
            name, outer = name_of(function), one.parent
            given = tuple(text_of(each) for each in named(child(one, "arguments")))
            used = outer is not None and outer.type != "expression_statement"
            yield Call(name.last, name.arguments or (), given, used)

    def compared_with(self, name: str) -> Iterator[str]:
        """Names that a parameter is compared with by `==`: its modes."""
        for one in self._nodes:
            if one.type == "binary_expression" and text_of(child(one, "operator")) == "==":
                right = child(one, "right")
                if text_of(child(one, "left")) == name and right is not None:
                    yield from [text_of(right)] * (right.type == "identifier")

    def is_tile(self, name: str) -> bool:
        """Whether a parameter is the size of a tile of a warp's lanes."""
        return any(
            told.last in _TILES and told.arguments and told.arguments[0] == name
            for told in self._templated()
        )

    def is_argument_of(self, kind: str, name: str) -> bool:
        """Whether a template whose name begins so has a parameter as its argument."""
        return any(
            told.last.startswith(kind) and told.arguments and told.arguments[0] == name
            for told in self._templated()
        )

    def indexes(self, array: str) -> bool:
        """Whether elements of an array are indices, or are kept as whole numbers."""
        return any(
            one.type == "subscript_expression"
            and text_of(child(one, "argument")) == array
            and _is_index(one)
            for one in self._nodes
        )

    def has_bits(self, kind: str) -> bool:
        """Whether the bits of variables of a type are worked on."""
        names = self.locals_of(kind)
        return any(
            text_of(child(one, "operator")) in _BITS and text_of(child(one, "left")) in names
            for one in self._nodes
            if one.type in {"binary_expression", "assignment_expression"}
        )

    def _templated(self) -> Iterator[Name]:
        return (name_of(one) for one in self._nodes if one.type in _TEMPLATED)


def _is_index(element: Node) -> bool:
    node, itself = element, True
    while (outer := node.parent) is not None and not outer.type.endswith("statement"):
        if outer.type == "subscript_argument_list":
            return True
        if outer.type == "init_declarator":
            spelled = text_of(child(outer.parent, "type"))
            return itself and node == child(outer, "value") and bool(_WHOLE & {*spelled.split()})
        itself = itself and outer.type in _PASSED_ON
        node = outer
    return False


def asserted_types(root: Node, name: str) -> list[str]:
    """Types that assertions of a program ask of a name: `is_same<T, half>`."""
    found = []
    for one in walk(root):
        if one.type == "static_assert_declaration":
            for node in walk(one):
                told = name_of(node) if node.type in _TEMPLATED else None
                same = told is not None and told.last in {"is_same", "is_same_v"}
                if told is not None and same and len(told.arguments or ()) == 2:
                    left, right = told.arguments or ("", "")
                    found += [right] if left == name else []
    return found


def enumerator_of(enum: Node) -> str:
    """The first enumerator of an enum."""
    return text_of(child(first(enum, "enumerator"), "name"))


def declared_in(struct: Node) -> set[str]:
    """Names that a class declares."""
    found = set()
    for one in walk(struct):
        if one.type in {"alias_declaration", "enumerator", "struct_specifier", "class_specifier"}:
            found.add(text_of(child(one, "name")))
        elif one.type in {
            "field_declaration",
            "type_definition",
            "function_definition",
            "declaration",
        }:
            for declarator in one.children_by_field_name("declarator"):
                found.add(text_of(declarator_of(declarator).name))
    return found
