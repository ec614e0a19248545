"""A file's declarations at namespace level, as tree-sitter reads them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.cpp.source.blanking import DEVICE_WORDS, SourceText, blank_qualifiers, words_in

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_SCOPES = {"namespace_definition", "linkage_specification", "declaration_list", "ERROR"}
_CLASSES = {"class_specifier", "struct_specifier", "union_specifier"}
_DECLARED = {
    "identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name",
    "operator_cast", "namespace_identifier", "literal_operator",
}  # fmt: skip


class RemovableMember(msgspec.Struct, frozen=True):
    """A member of a class, or its body, that no kernel can call; `text` stands for it."""

    begin: int
    end: int
    text: str
    #: The member's, where it has to go in any case.
    name: str
    #: Those that would have to be there to build it; where they name nothing of the host's, it may
    #: stay.
    words: set[str]


class Declaration(msgspec.Struct):
    """One declaration. `begin` to `end` are offsets into its file."""

    #: Function, prototype, class, variable, type, using, space (`using namespace`), assertion,
    #: instantiation, call (of a macro) or unknown.
    kind: str
    begin: int
    end: int
    body: int
    #: What it declares.
    names: frozenset[str]
    #: Qualifiers in front of the body.
    marks: frozenset[str]
    #: All of its words.
    words: set[str]
    #: Words in front of a function's body.
    head: set[str]
    #: Members of a class that only the host calls.
    holes: list[RemovableMember]
    space: tuple[str, ...]
    node: Node

    def without(self, host: set[str], plain: str) -> None:
        """Keep those holes that have to be: whole members, and bodies that use names of the `host`'s."""
        if self.holes:
            self.holes = [one for one in self.holes if one.name or one.words & host]
            parts, at = [], self.begin
            for one in self.holes:
                parts.append(plain[at : one.begin])
                at = one.end
            self.words = words_in(" ".join([*parts, plain[at : self.end]]))

    @property
    def kernel(self) -> bool:
        """Whether it is a `__global__` function with a body."""
        return self.kind == "function" and "__global__" in self.marks

    @property
    def device(self) -> bool:
        """Whether a GPU can run it."""
        return bool(self.marks & DEVICE_WORDS) or "constexpr" in self.marks


@functools.cache
def parser() -> Parser:
    """C++ parser, made once."""
    import tree_sitter
    import tree_sitter_cpp

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def pieces_of(source: SourceText) -> list[Declaration]:
    """All declarations at namespace level, in order."""
    tree = parser().parse(source.parsed.encode("ascii"))
    found = list(_Reader(source).read(tree.root_node, ()))
    for begin, end in source.calls:
        if not any(piece.begin <= begin < piece.end for piece in found):
            found.append(_call(source, begin, end, tree.root_node))
    return sorted(found, key=lambda piece: piece.begin)


def syntax_of(source: SourceText, piece: Declaration) -> tuple[Node, int]:
    """Syntax of a declaration, of a function that of its body, and what to add to its offsets."""
    if piece.kind != "function":
        return piece.node, 0
    front = "void f() "
    body = blank_qualifiers(source.plain[piece.body : piece.end])
    tree = parser().parse((front + body).encode("ascii", "replace"))
    return tree.root_node, piece.body - len(front)


def _call(source: SourceText, begin: int, end: int, node: Node) -> Declaration:
    words = words_in(source.plain[begin:end])
    none = frozenset[str]()
    return Declaration("call", begin, end, end, none, none, words, words, [], (), node)


class _Reader:
    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._marks = sorted(source.marks, key=lambda mark: mark.begin)
        self._done = 0  # end of the last declaration

    def read(self, scope: Node, space: tuple[str, ...]) -> Iterator[Declaration]:
        for node in scope.named_children:
            kind = node.type
            if kind in {"comment", "string_literal", "namespace_identifier", ";"}:
                continue
            if kind in _SCOPES:
                yield from self._scope(node, space)
            else:
                yield self._piece(node, space)

    def _scope(self, node: Node, space: tuple[str, ...]) -> Iterator[Declaration]:
        inner, name = node, node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if node.type == "ERROR":
            if not any(child.end_byte - child.start_byte > 200 for child in node.named_children):
                yield self._piece(node, space)
                return
        elif body is not None:
            inner = body
            if body.type != "declaration_list":
                yield self._piece(body, space, start=node.start_byte)
                return
            self._done = max(self._done, body.start_byte + 1)
        if name is not None and name.text:
            space = (*space, *re.findall(r"\w+", name.text.decode()))
        yield from self.read(inner, space)
        self._done = max(self._done, node.end_byte)

    def _piece(self, node: Node, space: tuple[str, ...], start: int | None = None) -> Declaration:
        begin = node.start_byte if start is None else start
        end = node.end_byte
        after = node.next_sibling
        if after is not None and after.type == ";":
            end = after.end_byte
        core = _core(node)
        kind = _kind(core)
        body = core.child_by_field_name("body") if kind == "function" else None
        stop = end if body is None else body.start_byte
        if body is not None:
            lists = [one for one in core.children if one.type == "field_initializer_list"]
            stop = lists[0].start_byte if lists else stop
        own = [mark for mark in self._marks if self._done <= mark.begin < stop]
        self._done = max(self._done, end)
        inside = kind == "class"  # marks of members are not those of the class
        words = {word for mark in own if not inside or mark.begin < begin for word in mark.words}
        if own:
            begin = min(begin, own[0].begin)
        text = self._source.plain
        if re.search(r"\bconstexpr\b|\bconsteval\b", text[begin:stop]) and kind != "class":
            words.add("constexpr")
        holes = list(_host_members(core, self._source)) if kind == "class" else []
        names = frozenset(_names(core, kind))
        return Declaration(
            kind, begin, end, stop, names, frozenset(words), words_in(text[begin:end]),
            words_in(text[begin:stop]), holes, space, core,
        )  # fmt: skip


def _core(node: Node) -> Node:
    """The declaration within `template<...>`."""
    while node.type == "template_declaration" and node.named_children:
        node = node.named_children[-1]
    return node


def _kind(node: Node) -> str:
    kind = node.type
    if kind == "function_definition":
        return "function"
    if kind in _CLASSES or (
        kind in {"declaration", "type_definition"}
        and any(
            child.type in _CLASSES and child.child_by_field_name("body") for child in node.children
        )
    ):
        return "class"
    if kind == "declaration":
        declarators = node.children_by_field_name("declarator")
        is_prototype = bool(declarators) and all(map(is_function, declarators))
        return "prototype" if is_prototype else "variable"
    if kind in {"type_definition", "alias_declaration", "enum_specifier", "concept_definition"}:
        return "type"
    if kind == "using_declaration" and any(child.type == "namespace" for child in node.children):
        return "space"
    if kind in {"using_declaration", "namespace_alias_definition"}:
        return "using"
    if kind == "template_instantiation":
        return "instantiation"
    if kind == "expression_statement":
        return "call"
    return "assertion" if kind == "static_assert_declaration" else "unknown"


def is_function(node: Node) -> bool:
    """Whether a declarator is a function's."""
    while node.type in {"pointer_declarator", "reference_declarator"} and node.named_children:
        node = node.named_children[-1]
    return node.type == "function_declarator"


def _names(node: Node, kind: str) -> Iterator[str]:
    """What a declaration declares; the enumerators of an enum are among it."""
    if kind == "using":  # `using a::b;` declares b, `namespace a = b::c;` a
        yield from re.findall(r"\w+", (node.text or b"").decode().partition("=")[0])[-1:]
        return
    if node.type == "enum_specifier" or (kind == "type" and node.type == "type_definition"):
        yield from words_in((node.text or b"").decode()) if _holds_enum(node) else ()
    name = node.child_by_field_name("name")
    if name is not None:
        yield from leaf(name)
    for child in node.children:
        if child.type in {*_CLASSES, "enum_specifier"}:
            inner = child.child_by_field_name("name")
            yield from leaf(inner) if inner is not None else ()
            if child.type == "enum_specifier":
                yield from words_in((child.text or b"").decode())
    for declarator in node.children_by_field_name("declarator"):
        yield from leaf(declarator)


def _holds_enum(node: Node) -> bool:
    return node.type == "enum_specifier" or any(c.type == "enum_specifier" for c in node.children)


def leaf(node: Node) -> Iterator[str]:
    """Name at the bottom of a declarator, of `Scope::name` both."""
    if node.type in _DECLARED:
        yield (node.text or b"").decode()
    elif node.type == "qualified_identifier":
        for child in node.named_children:
            yield from leaf(child)
    elif node.type in {"template_function", "template_type"}:
        name = node.child_by_field_name("name")
        yield from leaf(name) if name is not None else ()
    else:
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in {"parenthesized_declarator", "reference_declarator"}:
            inner = node.named_children[-1] if node.named_children else None
        yield from leaf(inner) if inner is not None else ()


def _host_members(node: Node, source: SourceText) -> Iterator[RemovableMember]:
    """Members of a class that only the host can call: what may be left out of each.

    A constructor, destructor, operator or virtual function may only lose its body.
    """
    body = node.child_by_field_name("body")
    for child in node.children if body is None else ():
        if child.type in _CLASSES:
            yield from _host_members(child, source)
    last = body.start_byte + 1 if body is not None else 0
    for member in body.named_children if body is not None else ():
        core = _core(member)
        marks = {w for m in source.marks if last <= m.begin < core.end_byte for w in m.words}
        last = member.end_byte
        if core.type in _CLASSES or core.type == "field_declaration":
            yield from _host_members(core, source)
        elif core.type == "function_definition" and not marks & DEVICE_WORDS:
            yield from _host_member(member, core, source)
        elif core.type == "friend_declaration" and not marks & DEVICE_WORDS:
            yield from _host_friend(member, core, source)


def _host_friend(member: Node, core: Node, source: SourceText) -> Iterator[RemovableMember]:
    """A friend that is defined in the class: no kernel can call it, and its types may be the host's."""
    text = source.plain[member.start_byte : member.end_byte]
    for one in core.named_children:
        if one.type == "function_definition" and not re.search(r"\bconstexpr\b", text):
            name = next(_names(one, "function"), "friend")
            yield RemovableMember(member.start_byte, member.end_byte, "", name, words_in(text))


def _host_member(member: Node, core: Node, source: SourceText) -> Iterator[RemovableMember]:
    inner = core.child_by_field_name("body")
    if inner is None:
        return
    head = source.plain[member.start_byte : inner.start_byte]
    if re.search(r"\bconstexpr\b", head):
        return
    words = words_in(source.plain[member.start_byte : member.end_byte])
    special = re.search(r"\b(?:operator|virtual|override)\b", head)
    if core.child_by_field_name("type") is not None and not special:
        name = next(_names(core, "function"), "?")
        yield RemovableMember(member.start_byte, member.end_byte, "", name, words)
    else:
        lists = [one for one in core.children if one.type == "field_initializer_list"]
        start = lists[0].start_byte if lists else inner.start_byte
        # No kernel can call a constructor of the host, and its body may call what is not there.
        name = "" if special or re.search(r"~|\(\s*\)", head) else "constructor"
        yield RemovableMember(start, member.end_byte, "{}" if "~" in head else ";", name, words)
