"""A program's declarations by scope, found in the tree of its preprocessed unit."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from tree_sitter import Node

from tokitai_cli.cpp.declarations import (
    Declaration,
    Parameter,
    Struct,
    marks_of,
    parameters_of,
    template_parameters,
)
from tokitai_cli.cpp.dialect import readable
from tokitai_cli.cpp.preprocessed_unit import Unit
from tokitai_cli.cpp.structs import alias_of, member_class, read_struct
from tokitai_cli.cpp.tree import (
    TYPE_SPECIFIERS,
    child,
    declarator_of,
    is_function,
    name_of,
    named,
    parse,
    text_of,
    walk,
)

_HEADERS_OF_20 = frozenset(
    {"concepts", "ranges", "span", "bit", "numbers", "compare", "source_location"}
)
_OF_20 = frozenset({"requires_clause", "requires_expression"})
_WORDS_OF_20 = (b"consteval", b"constinit", b"requires")
_ASKED_FOR = frozenset(
    {"call_expression", "initializer_list", "declaration", "template_type", "template_function"}
)
_Context = tuple[tuple[str, ...], Node | None, tuple[Parameter, ...]]


class Program:
    """All that a unit declares, by name.

    declarations: in the order of the text. kernels: those with a body. structs, aliases: by the last
    part of their names, of several the first; classes has all of a name.
    unread: parts that the parser could not read. concepts: definitions by name.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.root = parse(readable(unit.text))
        self.declarations: list[Declaration] = []
        self.by_name: dict[str, list[Declaration]] = {}
        self.structs: dict[str, Struct] = {}
        self.classes: dict[str, list[Struct]] = {}
        self.aliases: dict[str, str] = {}
        self.unread: list[Node] = []
        self.concepts: dict[str, Node] = {}
        if self.root.type == "ERROR":
            self.unread.append(self.root)
        self._collect(self.root, ((), None, ()))
        for one in self.declarations:
            self.by_name.setdefault(one.name, []).append(one)
        self._join_members()
        self._join_instances()

    @property
    def kernels(self) -> list[Declaration]:
        """Functions with `__global__` and a body."""
        return [one for one in self.declarations if one.kind == "kernel"]

    def unlisted(self) -> list[tuple[Node, str]]:
        """Definitions of kernels that the parser could not read: where, and a name if there is one."""
        found = []
        known = {one.node.start_byte for one in self.declarations}
        for error in self.unread:
            for node in walk(error):
                mark = next((one for one in node.children if one.type == "__global__"), None)
                if mark is None or node.start_byte in known:
                    continue
                text = self.unit.text[mark.end_byte :].split(b";", 1)[0]
                declarator = next((one for one in walk(node) if one.type == "function_declarator"
                                   and one.start_byte > mark.start_byte), None)  # fmt: skip
                if b"{" in text:
                    found.append((mark, name_of(declarator_of(declarator).name).last))
        return found

    def functions(self, name: str, count: int | None = None) -> list[Declaration]:
        """Functions of that name with a body that can be called with `count` arguments."""
        found = [
            one for one in self.by_name.get(name, ())
            if one.kind in {"function", "kernel"} and one.body is not None
        ]  # fmt: skip
        return [one for one in found if count is None or takes(one, count)]

    @property
    def modern(self) -> bool:
        """Whether it asks for C++20: by concepts, by functions for the compiler alone, or by headers."""
        if self.concepts or any(name[1:-1] in _HEADERS_OF_20 for _, _, name in self.unit.missing):
            return True
        return any(map(self._speaks_of, _WORDS_OF_20))

    def _speaks_of(self, word: bytes) -> bool:
        """Whether a word stands somewhere as one of the language's, and not in a comment."""
        at = self.unit.text.find(word)
        while at >= 0:
            node = self.root.named_descendant_for_byte_range(at, at + len(word))
            begins = node is not None and node.start_byte == at
            if node is not None and begins and (node.type in _OF_20 or node.text == word):
                return True
            at = self.unit.text.find(word, at + 1)
        return False

    def nodes(self, types: Collection[str], within: Node | None = None) -> list[Node]:
        """Nodes of some of the types in `_ASKED_FOR`, in the order of the text.

        within: a node below which they are to stand, itself among them.
        """
        starts, every = self._nodes
        if within is not None:
            first = bisect.bisect_left(starts, within.start_byte)
            last = bisect.bisect_left(starts, within.end_byte)
            every = [one for one in every[first:last] if one.end_byte <= within.end_byte]
        return [one for one in every if one.type in types]

    @functools.cached_property
    def _nodes(self) -> tuple[list[int], list[Node]]:
        """Nodes that are asked for by their types, and where each begins: one walk for all who ask."""
        found = [one for one in walk(self.root) if one.type in _ASKED_FOR]
        return [one.start_byte for one in found], found

    def place(self, node: Node) -> tuple[Path, int]:
        """File and line of a node."""
        origin = self.unit.origin(node.start_byte)
        return Path(origin.file), origin.line

    def _collect(self, node: Node, context: _Context) -> None:
        for one in node.named_children:
            read = _READERS.get(one.type)
            if read is not None:
                read(self, one, context)
            elif one.type in TYPE_SPECIFIERS:
                self._type(one, context)
            elif one.type == "declaration_list" or one.type.startswith("preproc_"):
                self._collect(one, (context[0], None, ()))

    def _add(
        self, kind: str, name: str, node: Node, context: _Context, own: tuple[Parameter, ...] = ()
    ) -> Declaration:
        scope, outer, template = context
        new = Declaration(kind, name, scope, node, outer or node, template, own, [])
        self.declarations.append(new)
        return new

    def _namespace(self, node: Node, context: _Context) -> None:
        body = child(node, "body")
        own = tuple(text_of(child(node, "name")).split("::"))
        if body is not None:
            self._collect(body, ((*context[0], *own), None, ()))

    def _linkage(self, node: Node, context: _Context) -> None:
        body = child(node, "body")
        listed = body is not None and body.type == "declaration_list"
        self._collect(body if body is not None and listed else node, context)

    def _template(self, node: Node, context: _Context) -> None:
        scope, outer, template = context
        self._collect(
            node, (scope, outer or node, (*template, *template_parameters(node, self.concepts)))
        )

    def _error(self, node: Node, context: _Context) -> None:
        self.unread.append(node)
        self._collect(node, (context[0], None, ()))

    def _function(self, node: Node, context: _Context) -> None:
        kind = "kernel" if "__global__" in marks_of(node) else "function"
        name = name_of(declarator_of(child(node, "declarator")).name)
        if kind == "kernel" and not name.last:
            self.unread.append(node)
        scope, outer, template = context
        spaces = () if name.scopes and name.scopes[-1] in self.structs else name.scopes
        self._add(kind, name.last, node, ((*scope, *spaces), outer, template), parameters_of(node))

    def _instance(self, node: Node, context: _Context) -> None:
        declarator = child(node, "declarator")
        if declarator is not None:
            name = name_of(declarator_of(declarator).name)
            given = tuple(Parameter("", one) for one in name.arguments or ())
            scope, outer, _ = context
            self._add("instance", name.last, node, (scope, outer, given), parameters_of(node))

    def _alias(self, node: Node, context: _Context) -> None:
        names = dict(alias_of(node))
        for one in named(node):
            if one.type in TYPE_SPECIFIERS and child(one, "body") is not None:
                self._type(one, context, next(iter(names), ""))
        for name, told in names.items():
            self.aliases.setdefault(name, told)
            self._add("alias", name, node, context)

    def _variables(self, node: Node, context: _Context) -> None:
        for one in named(node):
            if one.type in TYPE_SPECIFIERS and child(one, "body") is not None:
                self._type(one, context)
        for declarator in node.children_by_field_name("declarator"):
            inner = (
                child(declarator, "declarator") if declarator.type == "init_declarator" else None
            )
            name = name_of(declarator_of(inner or declarator).name).last
            kind = "prototype" if is_function(inner or declarator) else "variable"
            if name:
                self._add(kind, name, node, context)

    def _using(self, node: Node, context: _Context) -> None:
        self._add("using", text_of(node), node, context)

    def _concept(self, node: Node, context: _Context) -> None:
        del context
        self.concepts[text_of(child(node, "name"))] = node

    def _type(self, node: Node, context: _Context, name: str = "") -> None:
        own = name_of(child(node, "name")).last or name
        body = child(node, "body")
        declaration = self._add("forward" if body is None else "type", own, node, context)
        if body is None:
            return
        if node.type == "enum_specifier":
            for one in walk(body):
                if one.type == "enumerator":
                    self._add("enumerator", text_of(child(one, "name")), node, context)
            return
        struct = read_struct(node, own, declaration)
        for inner in named(body):
            nested = child(inner, "type") if inner.type == "field_declaration" else inner
            if nested is not None and nested.type in TYPE_SPECIFIERS:
                told = member_class(own, inner)
                self._type(nested, (context[0], context[1] or node, ()), told)
        self.structs.setdefault(own, struct)
        self.classes.setdefault(own, []).append(struct)

    def _join_members(self) -> None:
        """A member that is defined outside of its class belongs to the class."""
        for one in self.declarations:
            declarator = child(one.node, "declarator") if one.kind == "function" else None
            name = declarator_of(declarator).name
            if name is None or name.type != "qualified_identifier":
                continue
            struct = self.structs.get(name_of(child(name, "scope")).last)
            if struct is not None:
                struct.methods.setdefault(one.name, []).append(one)

    def _join_instances(self) -> None:
        for one in self.declarations:
            for kernel in self.by_name.get(one.name, ()) if one.kind == "instance" else ():
                if kernel.kind == "kernel" and len(kernel.parameters) == len(one.parameters):
                    kernel.instances.append(tuple(given.type for given in one.template))


def takes(function: Declaration, count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    own = function.parameters
    if any(one.pack for one in own):
        return count >= len(own) - 1
    return len(own) == count or (len(own) > count and bool(own[count].default))


_READERS: Mapping[str, Callable[[Program, Node, _Context], None]] = {
    "namespace_definition": Program._namespace,
    "linkage_specification": Program._linkage,
    "template_declaration": Program._template,
    "ERROR": Program._error,
    "function_definition": Program._function,
    "template_instantiation": Program._instance,
    "alias_declaration": Program._alias,
    "type_definition": Program._alias,
    "declaration": Program._variables,
    "field_declaration": Program._variables,
    "concept_definition": Program._concept,
    "using_declaration": Program._using,
    "namespace_alias_definition": Program._using,
}
