"""A unit taken apart: the declarations at namespace level that can be left out one by one."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.declarations import Declaration, marks_of
from tokitai_cli.cpp.elements import is_real
from tokitai_cli.cpp.lexing import names_in
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import (
    TYPE_SPECIFIERS,
    child,
    declarator_of,
    first,
    is_function,
    name_of,
    named,
    text_of,
    walk,
)

#: Words that say that a GPU runs or holds what they stand at.
DEVICE_WORDS = frozenset({"__global__", "__device__", "__constant__", "__managed__", "__shared__"})
_KINDS = {
    "type_definition": "type",
    "alias_declaration": "type",
    "enum_specifier": "type",
    "concept_definition": "type",
    "using_declaration": "using",
    "namespace_alias_definition": "using",
    "template_instantiation": "instantiation",
}
_ON_BOTH = frozenset({"constexpr", "consteval"})
_BINDINGS = {"torch", "at", "pybind11", "py", "nanobind"}
_LARGE = 200  # bytes of what is read within an error


class Cut(NamedTuple):
    """A member of a class, or its body, that no kernel can call; `text` stands for it."""

    begin: int
    end: int
    text: str
    #: The member's, where it has to go in any case.
    name: str
    #: All that would have to be there to build it; where none is the host's, it may stay.
    words: frozenset[str]


class Part(msgspec.Struct):
    """One declaration with all that belongs to it. `begin` to `end` are bytes of the unit."""

    #: Function, prototype, class, variable, type, using, space (`using namespace`), instantiation or
    #: unknown.
    kind: str
    begin: int
    end: int
    #: Where the body of a function begins.
    body: int
    #: Its text without comments and literals, a letter for each byte.
    plain: str
    #: The declaration within `template <...>` and `extern "C"`.
    node: Node
    #: Its namespaces that have a name.
    space: tuple[str, ...]
    #: What it declares.
    names: frozenset[str]
    #: Words in front of the names of its functions and variables.
    marks: frozenset[str]
    words: set[str]
    #: Words in front of a function's body.
    head: set[str]
    #: Members of a class that only the host calls.
    cuts: list[Cut]

    @property
    def kernel(self) -> bool:
        """Whether it is a `__global__` function with a body."""
        return self.kind == "function" and "__global__" in self.marks

    @property
    def function(self) -> bool:
        """Whether it is a function, with or without a body, or a kernel."""
        return self.kind in {"function", "prototype"}

    @property
    def device(self) -> bool:
        """Whether a GPU can run it."""
        return bool(self.marks & (DEVICE_WORDS | _ON_BOTH))


def parts_of(program: Program, plain: str) -> list[Part]:
    """All parts of a unit, in order. plain: its text without comments and literals, a byte a letter."""
    known = sorted(program.declarations, key=lambda one: one.node.start_byte)
    starts = [one.node.start_byte for one in known]
    found = []
    for node, space in _nodes(program.root, ()):
        after = node.next_sibling
        end = after.end_byte if after is not None and after.type == ";" else node.end_byte
        here = slice(bisect.bisect_left(starts, node.start_byte), bisect.bisect_left(starts, end))
        found.append(_part(node, end, space, known[here], plain))
    return found


def _nodes(node: Node, space: tuple[str, ...]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    for one in node.named_children:
        if one.type in {"comment", "string_literal", "namespace_identifier"}:
            continue
        body = child(one, "body")
        listed = body is not None and body.type == "declaration_list"
        if one.type in {"namespace_definition", "linkage_specification"} and listed:
            assert body is not None
            yield from _nodes(body, (*space, *names_in(text_of(child(one, "name")))))
        elif one.type == "declaration_list" or (one.type == "ERROR" and _holds_much(one)):
            yield from _nodes(one, space)
        elif not one.type.startswith("preproc_"):
            yield one, space


def _holds_much(error: Node) -> bool:
    return any(one.end_byte - one.start_byte > _LARGE for one in error.named_children)


def _part(
    node: Node, end: int, space: tuple[str, ...], declared: list[Declaration], plain: str
) -> Part:
    begin, core = node.start_byte, _core(node)
    kind = _kind(core)
    held = [one for one in declared if one.kind in {"kernel", "function", "prototype", "variable"}]
    marks = [marks_of(one.node) for one in held if kind != "class"]
    front = end
    if kind == "function" and (body := child(core, "body")) is not None:
        lists = [one for one in core.children if one.type == "field_initializer_list"]
        front = lists[0].start_byte if lists else body.start_byte
    return Part(
        kind,
        begin,
        end,
        front,
        plain[begin:end],
        core,
        space,
        frozenset(_names(core, declared)),
        frozenset(word for words in marks for word in words),
        set(names_in(plain[begin:end])),
        set(names_in(plain[begin:front])),
        list(_cuts(core, plain)) if kind == "class" else [],
    )


def _kind(node: Node) -> str:
    classes = TYPE_SPECIFIERS - {"enum_specifier"}
    if node.type == "function_definition":
        return "function"
    if node.type in classes or (
        node.type in {"declaration", "type_definition"}
        and any(one.type in classes and child(one, "body") is not None for one in node.children)
    ):
        return "class"
    if node.type == "declaration":
        declarators = node.children_by_field_name("declarator")
        return "prototype" if declarators and all(map(is_function, declarators)) else "variable"
    if node.type == "using_declaration" and any(one.type == "namespace" for one in node.children):
        return "space"
    return _KINDS.get(node.type, "unknown")


def _core(node: Node) -> Node:
    """The declaration within `template <...>` or `extern "C"`."""
    while node.type in {"template_declaration", "linkage_specification"} and named(node):
        node = named(node)[-1]
    return node


def _names(core: Node, declared: list[Declaration]) -> Iterator[str]:
    for one in declared:
        if one.name and one.kind not in {"using", "instance"}:
            yield one.name
        name = declarator_of(child(one.node, "declarator")).name
        if name is not None and name.type == "qualified_identifier":
            yield from (scope.partition("<")[0] for scope in name_of(name).scopes)
    if core.type == "using_declaration":
        yield from (name_of(one).last for one in named(core)[-1:])
    elif core.type in {"namespace_alias_definition", "concept_definition"}:
        yield text_of(child(core, "name"))
    for declarator in core.children_by_field_name("declarator"):
        if last := name_of(declarator_of(declarator).name).last:
            yield last


def _cuts(node: Node, plain: str) -> Iterator[Cut]:
    """Members of a class that only the host can call: what may be left out of each.

    A constructor, destructor, operator or virtual function may only lose its body.
    """
    body = child(node, "body")
    for one in node.children if body is None else ():
        if one.type in TYPE_SPECIFIERS:
            yield from _cuts(one, plain)
    for member in body.named_children if body is not None else ():
        core = _core(member)
        function = any(map(is_function, core.children_by_field_name("declarator")))
        if core.type in TYPE_SPECIFIERS or (core.type == "field_declaration" and not function):
            yield from _constant(core)
            yield from _cuts(core, plain)
            continue
        if core.type == "friend_declaration":
            yield from _friend(member, core, plain)
        elif marks_of(core) & (DEVICE_WORDS | _ON_BOTH):
            continue
        elif _of_bindings(core):
            words = frozenset(names_in(plain[member.start_byte : member.end_byte]))
            yield Cut(member.start_byte, member.end_byte, "", "binding", words)
        elif core.type == "function_definition":
            yield from _member(member, core, plain)


def _constant(member: Node) -> Iterator[Cut]:
    """`const` of a static member of reals with a value, which nvcc takes and C++ calls `constexpr`."""
    marks = marks_of(member)
    real = is_real(text_of(child(member, "type")))
    if real and {"static", "const"} <= marks and child(member, "default_value") is not None:
        for one in member.children:
            if one.type == "type_qualifier" and text_of(one) == "const":
                yield Cut(one.start_byte, one.end_byte, "constexpr", "a constant", frozenset())


def _of_bindings(core: Node) -> bool:
    """Whether a function speaks of types of libraries that bind programs to other languages."""
    told = [child(core, "type"), first(child(core, "declarator"), "parameter_list")]
    named_scopes = (
        name_of(one).scopes
        for node in told
        if node is not None
        for one in walk(node)
        if one.type == "qualified_identifier"
    )
    return any(scopes and scopes[0] in _BINDINGS for scopes in named_scopes)


def _friend(member: Node, core: Node, plain: str) -> Iterator[Cut]:
    """A friend that is defined in the class: no kernel can call it, and its types may be the host's."""
    for one in core.named_children:
        words = frozenset(names_in(plain[member.start_byte : member.end_byte]))
        if one.type == "function_definition" and not words & (DEVICE_WORDS | _ON_BOTH):
            yield Cut(member.start_byte, member.end_byte, "", "friend", words)


def _member(member: Node, core: Node, plain: str) -> Iterator[Cut]:
    inner = child(core, "body")
    if inner is None:
        return
    head = plain[member.start_byte : inner.start_byte]
    words = frozenset(names_in(plain[member.start_byte : member.end_byte]))
    special = bool({"operator", "virtual", "override"} & {*names_in(head)})
    if child(core, "type") is not None and not special:
        name = name_of(declarator_of(child(core, "declarator")).name).last or "?"
        yield Cut(member.start_byte, member.end_byte, "", name, words)
        return
    lists = [one for one in core.children if one.type == "field_initializer_list"]
    start = lists[0].start_byte if lists else inner.start_byte
    # No kernel can call a constructor of the host, and its body may call what is not there.
    plainly = special or "~" in head or "()" in "".join(head.split())
    yield Cut(
        start,
        member.end_byte,
        "{}" if "~" in head else ";",
        "" if plainly else "constructor",
        words,
    )
