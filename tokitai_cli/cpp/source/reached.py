"""What a kernel reaches by name: its body, the functions that it may call, and shared arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.source.signatures import Kernel
from tokitai_cli.cpp.tree import child, declarator_of, name_of, text_of, walk
from tokitai_cli.cpp.whole import Program, remembered

_TYPED = frozenset(
    {"declaration", "parameter_declaration", "optional_parameter_declaration", "type_descriptor"}
)


def reached(program: Program, kernel: Kernel) -> list[Part]:
    """The kernel's part of its unit, then all that it reaches."""
    own = _kernels(program).get((kernel.name, kernel.file, kernel.line))
    return [*_closure(own, _by_name(program))]


@remembered
def _kernels(program: Program) -> dict[tuple[str, Path, int], Part]:
    """Parts of kernels by their names and places."""
    found: dict[tuple[str, Path, int], Part] = {}
    for one in program.sources:
        for part in (part for part in one.parts if part.kernel):
            for name in part.names:
                found.setdefault((name, one.file(part.begin), one.line(part.begin)), part)
    return found


@remembered
def _by_name(program: Program) -> dict[str, list[Part]]:
    """Functions, and what declares shared arrays outside of functions, by name."""
    found: dict[str, list[Part]] = {}
    for part in (part for pieces in program.pieces.values() for part in pieces):
        mentions = part.kind in {"variable", "class"} and "__shared__" in part.words
        is_shared = mentions and (part.kind == "class" or "__shared__" in part.marks)
        if is_shared or (part.kind == "function" and not part.kernel):
            for name in part.names:
                found.setdefault(name, []).append(part)
    return found


def _closure(own: Part | None, parts: Mapping[str, list[Part]]) -> Iterator[Part]:
    known: set[str] = set()
    waiting = [own] if own is not None else []
    while waiting:
        part = waiting.pop()
        yield part
        new = (part.words & parts.keys()) - known
        known |= new
        waiting += [one for name in sorted(new) for one in parts[name]]


def pointed_types(parts: Iterable[Part]) -> set[str]:
    """Names of the types that pointers lead to in the parts; of a kernel in its body."""
    found: set[str] = set()
    for part in parts:
        top = child(part.node, "body") if part.kernel else part.node
        for node in walk(top) if top is not None else ():
            declarators = node.children_by_field_name("declarator") if node.type in _TYPED else ()
            if any(declarator_of(one).pointers for one in declarators):
                found.add(name_of(child(node, "type")).last)
    return found


def indexes_others(part: Part, pointer: str) -> bool:
    """Whether a kernel speaks of what lies behind the first element of a pointer."""
    return any(
        node.type == "subscript_expression"
        and text_of(child(node, "argument")) == pointer
        and text_of(child(node, "indices")).strip("[] ") != "0"
        for node in walk(part.node)
    )
