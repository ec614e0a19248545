"""Functions of the host's that launch kernels, and what their templates are used with."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from tokitai_cli.cpp.declarations import Declaration, Parameter, Struct
from tokitai_cli.cpp.host.host_walk import Handed, template_names
from tokitai_cli.cpp.host.runtime import APIS
from tokitai_cli.cpp.host.spelling import words_of
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import child, first, name_of, named, text_of
from tokitai_cli.cpp.tree import walk as nodes_of

_CALLERS = 3  # functions around the one that launches
_MOST = 200  # functions that are walked
_VALUES = frozenset({"cast_expression", "parenthesized_expression", "pointer_expression"})
_USES = frozenset({"template_type", "template_function"})
_CALLS = frozenset({"call_expression"})
_MAY_HAND_OVER = _CALLS | {"initializer_list", "declaration"}
_EXTENTS = "dim3"


class HostFunction(NamedTuple):
    """A function with the class that it is a member of."""

    declaration: Declaration
    owner: Struct | None

    @property
    def template(self) -> tuple[Parameter, ...]:
        """Parameters of the templates that it stands in, its own last."""
        own = self.declaration.template
        return own if self.owner is None else (*self.owner.declaration.template, *own)


class HostFunctions:
    """Functions of a program's host.

    launching: those that launch. callers: those that call such, the outermost first. sites: calls that
    launch, each with its function. handed: names of variables that kernels are handed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._every = list(_host_functions(program))
        self._calls = {
            id(one.declaration): _called(program, one.declaration) for one in self._every
        }
        marks = {"<<<", *APIS}
        direct = [one for one in self._every if self._calls[id(one.declaration)] & marks]
        self.launching = direct[:_MOST]
        self.callers = self._around(direct)
        self.sites = _sites(program, direct)
        self.handed = _handed(program, [node for _, node in self.sites])

    def instance(
        self, function: HostFunction, bound: Mapping[int, Mapping[str, str]]
    ) -> dict[str, str]:
        """What parameters of the templates around a function stand for, by calls or by its first use.

        bound: by calls that were seen.
        """
        declaration, owner = function
        found = dict(bound.get(declaration.node.start_byte, {}))
        outside = [declaration.name, owner.name] if owner is not None else [declaration.name]
        templates = [declaration.template]
        templates += (
            [owner.declaration.template or declaration.template] if owner is not None else []
        )
        for name, template in zip(outside, templates, strict=True):
            given = next(iter(self._uses.get(name, ())), ())
            for parameter, told in zip(template, given, strict=False):
                found.setdefault(parameter.name, told)
        return found

    def _around(self, direct: Sequence[HostFunction]) -> list[HostFunction]:
        found: list[HostFunction] = []
        known = {id(one.declaration) for one in direct}
        names = {one.declaration.name for one in direct if one.declaration.name}
        for _ in range(_CALLERS if names else 0):
            more = [one for one in self._every if id(one.declaration) not in known
                    and self._calls[id(one.declaration)] & names]  # fmt: skip
            if not more or len(known) + len(more) > _MOST:
                break
            found = more + found
            known |= {id(one.declaration) for one in more}
            names = {one.declaration.name for one in more if one.declaration.name}
        own = {one.declaration.name for one in direct}
        return found + [one for one in direct if self._calls[id(one.declaration)] & own]

    @functools.cached_property
    def _uses(self) -> dict[str, list[tuple[str, ...]]]:
        """Arguments that templates are used with, those of other templates' parameters left out."""
        inner, found = template_names(self.program), dict[str, list[tuple[str, ...]]]()
        for node in self.program.nodes(_USES) if inner else ():
            told = name_of(node)
            if told.arguments and not any(words_of(one) & inner for one in told.arguments):
                found.setdefault(told.last, []).append(told.arguments)
        return found


def _host_functions(program: Program) -> Iterator[HostFunction]:
    members: set[int] = set()
    for struct in program.structs.values():
        for methods in struct.methods.values():
            for one in methods:
                if one.body is not None and one.kind == "function":
                    members.add(one.node.start_byte)
                    yield HostFunction(one, struct)
    for one in program.declarations:
        if one.kind == "function" and one.body is not None and one.node.start_byte not in members:
            yield HostFunction(one, None)


def _called(program: Program, function: Declaration) -> set[str]:
    text = function.node.text or b""
    if b"(" not in text:
        return set()
    found = {"<<<"} if b"<<<" in text else set[str]()
    for one in program.nodes(_CALLS, function.node):
        callee = child(one, "function")
        if callee is not None and callee.type == "field_expression":
            callee = child(callee, "field")
        found.add(name_of(callee).last or text_of(callee))
    return found


def _sites(
    program: Program, launching: Sequence[HostFunction]
) -> list[tuple[HostFunction | None, Node]]:
    """Calls that launch, in the order of the text."""
    data = program.root.text or b""
    if b"<<<" not in data and not any(one.encode() in data for one in APIS):
        return []
    found = []
    for node in program.nodes(_CALLS):
        by_syntax = any(one.type == "kernel_call_syntax" for one in node.named_children)
        if by_syntax or text_of(child(node, "function")) in APIS:
            around = (one for one in launching if one.declaration.node.start_byte <= node.start_byte
                      and node.end_byte <= one.declaration.node.end_byte)  # fmt: skip
            found.append((next(around, None), node))
    return found


def _handed(program: Program, sites: Sequence[Node]) -> Handed:
    """Names of variables that are arguments of launches, and those in their extents."""
    arguments: set[str] = set()
    extents: set[str] = set()
    for site in sites:
        for one in named(child(site, "arguments")):
            arguments |= _variable(one)
        extents |= _names(first(site, "kernel_call_syntax"))
    for node in program.nodes(_MAY_HAND_OVER) if sites else ():
        if node.type == "initializer_list":
            for one in named(node):
                arguments |= _variable(one) if one.type == "pointer_expression" else set()
        declared = node.type == "declaration" and text_of(child(node, "type")) == _EXTENTS
        if declared or (
            node.type == "call_expression" and text_of(child(node, "function")) == _EXTENTS
        ):
            extents |= _names(node)
    return Handed(arguments, extents)


def _variable(node: Node) -> set[str]:
    while node.type in _VALUES and named(node):
        node = named(node)[-1]
    return {text_of(node)} if node.type == "identifier" else set()


def _names(node: Node | None) -> set[str]:
    every = nodes_of(node) if node is not None else ()
    return {text_of(one) for one in every if one.type in {"identifier", "type_identifier"}}
