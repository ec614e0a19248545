"""What a source declares for the device: dynamic shared arrays, shared classes, constants, textures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import tree_sitter_cuda
from tree_sitter import Language, Node, Query, QueryCursor

from tokitai_cli.cpp.declarations import marks_of
from tokitai_cli.cpp.dialect import readable
from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.tree import Declarator, child, declarator_of, parse, text_of
from tokitai_cli.cpp.whole import Program

_MARKS = Query(Language(tree_sitter_cuda.language()), "(type_qualifier) @mark")
_TEXTURES = Query(
    Language(tree_sitter_cuda.language()),
    "(declaration type: (template_type name: (type_identifier) @used))"
    "(class_specifier name: (type_identifier) @own)(struct_specifier name: (type_identifier) @own)",
)
_DECLARATIONS = frozenset({"declaration", "field_declaration"})
_OF_C = frozenset({"primitive_type", "sized_type_specifier"})
_UNNAMED = "_GLOBAL__N_1"  # a namespace without a name


class DeviceMemory(NamedTuple):
    """What a source declares."""

    #: Linker names of all `extern __shared__` arrays, sorted.
    dynamic_shared: list[str]
    #: Whether other shared memory may hold classes (structs, __half, template parameters).
    shared_classes: bool
    #: Names of the `__constant__` variables, sorted.
    constants: list[str]
    #: Whether it declares `texture<...>`, of CUDA before version 12, and no class of that name.
    texture_references: bool


def memory_of(programs: Iterable[Program]) -> DeviceMemory:
    """What the sources of programs declare, those that they are joined with left out."""
    return _memory_below([one.trees[0].root for one in programs])


def memory_in(text: str) -> DeviceMemory:
    """What a text declares, whichever branch of its conditions a compiler takes."""
    return _memory_below([parse(readable(text.encode()))])


def _memory_below(roots: Sequence[Node]) -> DeviceMemory:
    shared = [one for root in roots for one in _marked(root, "__shared__")]
    constants = [one for root in roots for one in _marked(root, "__constant__")]
    return DeviceMemory(
        sorted({_linked(one, told.name) for one in shared if _is_dynamic(one)
                for told in _declared(one) if told.extents}),
        any(map(_holds_class, shared)),
        sorted({text_of(told.name) for one in constants for told in _declared(one)}),
        any(map(_has_texture_references, roots)),
    )  # fmt: skip


def _has_texture_references(root: Node) -> bool:
    found = QueryCursor(_TEXTURES).captures(root)
    named = {
        kind: [one for one in nodes if one.text == b"texture"] for kind, nodes in found.items()
    }
    return bool(named.get("used")) and not named.get("own")


def declares_dynamic(parts: Iterable[Part]) -> bool:
    """Whether one of the parts declares `extern __shared__ T name[]`."""
    shared = (one for one in parts if "__shared__" in one.words)
    return any(_is_dynamic(place) for one in shared for place in _marked(one.node, "__shared__"))


def _marked(root: Node, mark: str) -> Iterator[Node]:
    """What a mark stands in: declarations, and other nodes where the parser could not read it."""
    for one in QueryCursor(_MARKS).captures(root).get("mark", ()):
        if one.text == mark.encode() and one.parent is not None:
            yield one.parent


def _is_dynamic(place: Node) -> bool:
    return "extern" in marks_of(place)


def _declared(place: Node) -> Iterator[Declarator]:
    told = map(declarator_of, place.children_by_field_name("declarator"))
    return (one for one in told if one.name is not None)


def _holds_class(place: Node) -> bool:
    if place.type not in _DECLARATIONS:
        return True
    kind = child(place, "type")
    return not _is_dynamic(place) and (kind is None or kind.type not in _OF_C)


def _linked(place: Node, name: Node | None) -> str:
    """A variable's name for the linker, mangled as the Itanium C++ ABI has it (section 5.1.2).

    The plain name in the global namespace, else _ZN <length name>... E; compilers name a namespace
    without a name _GLOBAL__N_1.
    """
    spaces = _spaces(place)
    if not spaces:
        return text_of(name)
    return "_ZN" + "".join(f"{len(word)}{word}" for word in [*spaces, text_of(name)]) + "E"


def _spaces(node: Node) -> list[str]:
    """Namespaces that a node stands in, the outermost first."""
    found: list[str] = []
    around = node.parent
    while around is not None:
        if around.type == "namespace_definition":
            name = text_of(child(around, "name"))
            found[:0] = [one.strip() for one in name.split("::")] if name else [_UNNAMED]
        around = around.parent
    return found
