"""Macros that a program's build defines and its text does not: extents that nothing declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import tree_sitter_cuda
from tree_sitter import Language, Node, Query, QueryCursor

from tokitai_cli.cpp.declarations import marks_of
from tokitai_cli.cpp.lexing import directive_in
from tokitai_cli.cpp.tree import child, text_of, walk
from tokitai_cli.cpp.whole import Program, Source

_LIKELY, _LIKELY_SIDE = "64", "16"  # of an extent, and of one that an array has twice
_LANGUAGE = Language(tree_sitter_cuda.language())
_EXTENTS = Query(_LANGUAGE, "(array_declarator size: (_) @size)")
_NAMES = Query(_LANGUAGE, "(identifier) @name")
_BUILTIN = frozenset({"warpSize"})
_DECLARING = frozenset(
    {"init_declarator", "declaration", "enumerator", "parameter_declaration", "pointer_declarator"}
    | {"optional_parameter_declaration", "reference_declarator", "array_declarator"}
    | {"function_declarator", "structured_binding_declarator", "for_range_loop"}
)


def build_macros(program: Program) -> dict[str, str]:
    """Values for names that extents of device code are made of, and that nothing declares.

    A definition in a branch that is not taken says the value; otherwise it is a guess.
    """
    found: dict[str, str] = {}
    for source in program.sources:
        asked = {name: size for size in _extents(source) for name in _names_in(size)}
        known = _BUILTIN | source.tree.by_name.keys() | program.macros.keys()
        unknown = asked.keys() - known
        unknown -= _declared(source, unknown) if unknown else set()
        for name in sorted(unknown):
            found.setdefault(name, _dark_value(source, name) or _likely(name, asked[name]))
    return found


def _extents(source: Source) -> Iterator[Node]:
    """Extents of arrays that functions for the device declare."""
    device: dict[int, bool] = {}
    for node in QueryCursor(_EXTENTS).captures(source.tree.root).get("size", ()):
        if node.type == "number_literal":
            continue
        around = node.parent
        while around is not None and around.type != "function_definition":
            around = around.parent
        if around is None:
            continue
        if around.id not in device:
            device[around.id] = bool({"__global__", "__device__"} & marks_of(around))
        if device[around.id]:
            yield node


def _names_in(size: Node) -> Iterator[str]:
    for one in walk(size):
        around = one.parent.type if one.parent is not None else ""
        if one.type == "identifier" and around not in {"qualified_identifier", "call_expression"}:
            yield text_of(one)


def _declared(source: Source, names: set[str]) -> set[str]:
    """Those of the names that something in the source declares."""
    found = set()
    for one in QueryCursor(_NAMES).captures(source.tree.root).get("name", ()):
        name = (one.text or b"").decode(errors="replace")
        around = one.parent
        declares = around is not None and around.type in _DECLARING
        if (
            name in names
            and declares
            and one not in (child(around, "size"), child(around, "value"))
        ):
            found.add(name)
    return found


def _dark_value(source: Source, name: str) -> str:
    """What a definition in a branch of the preprocessor that is not taken says; empty for none."""
    for text in source.unit.looked_for.values():
        for line in (text or "").splitlines() if name in (text or "") else ():
            directive, told = directive_in(line)
            words = told.split() if directive == "define" else []
            if words[:1] == [name] and len(words) > 1:
                return words[1]
    return ""


def _likely(name: str, size: Node) -> str:
    """A number for an extent, so that blocks and shared memory have room for it."""
    declarator = size.parent
    inner = child(declarator, "declarator")
    around = declarator.parent if declarator is not None else None
    beside = [one for one in (inner, around) if one is not None and one.type == "array_declarator"]
    twice = any(name in text_of(child(one, "size")) for one in beside)
    return _LIKELY_SIDE if twice else _LIKELY


def as_flags(defines: Mapping[str, str]) -> list[str]:
    """The definitions as a compiler's command line has them."""
    return [f"-D{name}" + f"={value}" * bool(value) for name, value in defines.items()]
