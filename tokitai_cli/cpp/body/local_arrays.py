"""Arrays that a function declares: their extents, and what they begin with."""

from __future__ import annotations

from tree_sitter import Node

from tokitai_cli.cpp.body.initialisers import initial
from tokitai_cli.cpp.body.polynomial import Polynomial, constant
from tokitai_cli.cpp.body.symbolic_values import Cell, LocalArray, Pointer, Value
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.structs import resolved
from tokitai_cli.cpp.tree import Declarator, named, text_of


def declare_array(
    walk: Walk, own: Declarator, value: Node | None, type_text: str, shared: bool
) -> None:
    """An array of the function's own: not an argument, but what is put into it may be one.

    A list of addresses by `void*` is what the runtime takes a launch's arguments in, and changes none.
    """
    name = text_of(own.name)
    counts = tuple(walk.number(walk.evaluate(one)) for one in own.extents if one is not None)
    kind = resolved(walk.program, type_text) if not own.of_pointers else ""
    one = LocalArray(kind, counts if own.extents[0] is not None else None, shared)
    array = walk.facts.declare(name, one)
    begins = []
    values: list[Value] = []
    for part in _parts(value):
        new = initial(walk, part)
        if not (isinstance(new, Cell) and type_text == "void"):
            walk.escape(new, f"is put into the array {name}")
        values.append(new)
        begins.append(new if isinstance(new, Polynomial) else walk.fresh("?"))
    if value is not None and not walk.dry:
        whole = ((number, ()) for number in (*begins, constant(0)))  # 0 is the rest
        walk.facts.stored.setdefault(array, []).extend(whole)
    sizes = walk.row_sizes(tuple(text_of(extent) for extent in own.extents[1:]))
    walk.lists[array] = tuple(values)
    walk.declare(name, Pointer(array, constant(0), 1, sizes), type_text + "*" * len(own.extents))


def _parts(value: Node | None) -> list[Node]:
    """What stands in a list, and in the lists within it."""
    if value is None or value.type != "initializer_list":
        return [] if value is None else [value]
    return [inner for one in named(value) for inner in _parts(one)]
