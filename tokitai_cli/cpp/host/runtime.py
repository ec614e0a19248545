"""Functions of the runtime: those that launch, those that allocate, and those that ask the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import constant, quotient, variable
from tokitai_cli.cpp.body.symbolic_values import Cell, Pointer, Record, Returned, Value
from tokitai_cli.cpp.elements import dtypes_of
from tokitai_cli.cpp.host.host_walk import HostWalk
from tokitai_cli.cpp.host.ratios import as_whole, rounded
from tokitai_cli.cpp.structs import resolved
from tokitai_cli.cpp.tree import child, name_of, named, text_of

#: What the language of sizes calls the threads of a warp.
WARP = "warp_size"
_WARP_QUERIES = frozenset({"hipDeviceAttributeWarpSize", "cudaDevAttrWarpSize"})
_QUERIES = frozenset({"cudaDeviceGetAttribute", "hipDeviceGetAttribute"})
_ALLOCATIONS = frozenset(
    f"{runtime}Malloc{kind}" for runtime in ("cuda", "hip") for kind in ("", "Managed", "Async")
)

#: Functions of libraries that round a quotient up.
_CEILINGS = frozenset({"ceil_div", "ATenCeilDiv"})


class Api(msgspec.Struct, frozen=True):
    """Which arguments of a function of the runtime say what; None for one that does not."""

    kernel: int
    grid: int | None
    block: int | None
    shared: int | None
    #: Where the kernel's own arguments begin.
    given: int | None = None
    #: Which argument is an array of the addresses of the kernel's arguments.
    listed: int | None = None
    #: Which is a struct of the launch's extents.
    configured: int | None = None


APIS: Mapping[str, Api] = {
    "hipLaunchKernelGGL": Api(0, 1, 2, 3, 5),
    "hipLaunchKernelGGLInternal": Api(0, 1, 2, 3, 5),
    **dict.fromkeys(
        ("cudaLaunchKernel", "hipLaunchKernel", "cudaLaunchCooperativeKernel"),
        Api(0, 1, 2, 4, listed=3),
    ),
    "hipLaunchCooperativeKernel": Api(0, 1, 2, 4, listed=3),
    "cudaLaunchKernelEx": Api(1, None, None, None, 2, configured=0),
    "hipLaunchKernelEx": Api(1, None, None, None, 2, configured=0),
}


def configured(walk: HostWalk, api: Api, given: Sequence[Node]) -> list[Value]:
    """Grid, block and shared memory of a call that launches; None for one that is not said."""
    if api.configured is not None:
        whole = walk.evaluate(given[api.configured])
        whole = walk.load(whole) if isinstance(whole, Cell) else whole
        names = ("gridDim", "blockDim", "dynamicSmemBytes")
        return [walk.member(whole, one) if isinstance(whole, Record) else None for one in names]
    places = (api.grid, api.block, api.shared)
    return [
        walk.evaluate(given[at]) if at is not None and at < len(given) else None for at in places
    ]


def listed(walk: HostWalk, node: Node) -> list[tuple[Value, str]]:
    """Values and types behind the addresses in an array, which is how some functions take arguments."""
    whole = walk.evaluate(node)
    found: list[tuple[Value, str]] = []
    for one in walk.lists.get(whole.array, ()) if isinstance(whole, Pointer) else ():
        place = one if isinstance(one, Cell) else None
        kind = walk.kinds.get(place.number, "") if place is not None and not place.path else ""
        found.append((walk.load(place), kind) if place is not None else (None, ""))
    return found


def runtime_call(walk: HostWalk, node: Node) -> Returned | None:
    """A call of a function that the host's side alone knows; None for another."""
    function, given = child(node, "function"), named(child(node, "arguments"))
    name = name_of(function)
    if name.last in _ALLOCATIONS and len(given) > 1:
        _allocate(walk, given)
        return Returned(constant(0))
    if name.last in _QUERIES and len(given) > 1 and text_of(given[1]) in _WARP_QUERIES:
        place = walk.evaluate(given[0])
        if isinstance(place, Cell):
            walk.save(place, variable(WARP), "write", node)
        return Returned(constant(0))
    kind = text_of(function)
    if kind == "static_cast" or name.last == "static_cast":
        kind = (name.arguments or ("",))[0]
    if (
        len(given) == 1
        and dtypes_of(resolved(walk.program, walk.types.get(kind, kind)))
        and "*" not in kind
    ):
        return Returned(walk.converted(walk.evaluate(given[0]), kind))
    if len(given) == 2 and name.last in _CEILINGS and not walk.program.functions(name.last, 2):
        above, below = (walk.number(as_whole(walk.evaluate(one))) for one in given)
        return Returned(quotient(above + below - constant(1), below)) if below else None
    if len(given) == 1 and not walk.program.functions(name.last, 1):
        whole = rounded(name.last, walk.evaluate(given[0])) if name.last else None
        return Returned(whole) if whole is not None else None
    return None


def _allocate(walk: HostWalk, given: Sequence[Node]) -> None:
    """The pointer whose address is given leads to memory of that many bytes."""
    place, size = walk.evaluate(given[0]), walk.evaluate(given[1])
    array = f"memory#{len(walk.sizes)}"
    walk.sizes[array] = walk.expanded(walk.number(as_whole(size)))
    if isinstance(place, Cell):
        walk.save(place, Pointer(array, constant(0)), "write", None)
