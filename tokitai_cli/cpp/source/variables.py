"""Variables of a program that kernels reach by name: `__device__` and `__constant__` ones."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.declarations import marks_of, parameter_in
from tokitai_cli.cpp.source.signatures import Parameter, bindable
from tokitai_cli.cpp.source.types import known_types
from tokitai_cli.cpp.tree import is_function
from tokitai_cli.cpp.whole import Program

_MARKS = {"__device__", "__constant__", "__managed__"}


class Variable(msgspec.Struct, frozen=True):
    """A variable without an initial value: its elements as a parameter's would be, and its extents."""

    element: Parameter
    #: None for one that no text decides.
    extents: tuple[int | None, ...]
    #: Its namespaces.
    space: tuple[str, ...]
    #: `__constant__`.
    constant: bool

    @property
    def qualified(self) -> str:
        """Its name with its namespaces."""
        return "::".join([*self.space, self.element.name])


def variables_of(program: Program) -> list[Variable]:
    """All of a program, those of a type that no text decides left out."""
    types = known_types(program, guess=True)
    found = []
    for tree in program.trees:
        for one in tree.declarations:
            marks = marks_of(one.node) if one.kind == "variable" else frozenset()
            if not marks & _MARKS or "extern" in marks:
                continue
            for declarator in _plain(one.node):
                told = parameter_in(one.node, declarator)
                element = bindable(msgspec.structs.replace(told, extents=()), types)
                known = element.dtypes and element.kind in {"scalar", "struct"}
                if told.name == one.name and known:
                    extents = tuple(constant(each, {}, None, tree) for each in told.extents)
                    found.append(Variable(element, extents, one.space, "__constant__" in marks))
    return found


def _plain(node: Node) -> Iterator[Node]:
    """Declarators of a declaration without an initial value."""
    for one in node.children_by_field_name("declarator"):
        if one.type != "init_declarator" and not is_function(one):
            yield one
