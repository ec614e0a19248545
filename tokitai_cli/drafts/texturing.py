"""Textures of a draft: arrays that they read, and how they are sampled as far as the host says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.cpp.body.symbolic_values import Fetch
from tokitai_cli.cpp.source.signatures import parameter_of
from tokitai_cli.cpp.source.textures import TextureReference, sampling_of, texture_references
from tokitai_cli.cpp.source.types import known_types
from tokitai_cli.cpp.whole import Program
from tokitai_cli.drafts.model import Flow, Guess

if TYPE_CHECKING:
    from tokitai_cli.drafts.known_facts import Known
    from tokitai_cli.drafts.leaves import LaunchArguments

# What sizes along x, y and z are called.
_ALONG = (
    frozenset({"w", "width", "cols", "ncols", "nx", "dimx", "sizex", "imagew", "imgwidth"}),
    frozenset({"h", "height", "rows", "nrows", "ny", "dimy", "sizey", "imageh", "imgheight"}),
    frozenset({"d", "depth", "slices", "nz", "dimz", "sizez", "layers"}),
)
_ENDINGS = ("width", "height", "depth")
_WHY = "its array's shape, and how the host has it sampled"


class TextureLeaf(msgspec.Struct, frozen=True):
    """A texture that a kernel fetches from: the array that it reads, and by how many coordinates."""

    array: str
    axes: int
    #: What the source calls it, at namespace scope; empty for an argument.
    reference: str = ""
    as_float: bool = False


def add_textures(leaves: LaunchArguments, program: Program, fetches: Mapping[str, Fetch]) -> None:
    """Arrays of the textures that the kernel fetches from; others among its arguments are null."""
    known = {one.name: one for one in texture_references(program)} if fetches else {}
    for name in [*leaves.texture_arguments, *known]:
        fetch = fetches.get(leaves.paths.get(name, name))
        if fetch is not None:
            _add(leaves, program, name, fetch, known.get(name))


def _add(
    leaves: LaunchArguments,
    program: Program,
    name: str,
    fetch: Fetch,
    reference: TextureReference | None,
) -> None:
    path = leaves.paths.get(name, name)
    settings = sampling_of(program)
    as_float = reference.as_float if reference is not None else _reads_floats(settings)
    kind = reference.type if reference is not None else fetch.type
    kind = _bytes_of(kind) if as_float and reference is None else kind
    told = parameter_of(f"const {kind}* p", "p", known_types(program, guess=True))
    texture = leaves.unique(name) if reference is not None else name
    if not told.dtypes or told.kind != "array":
        leaves.reasons.append(f"`{name}` is a texture of {kind or 'elements that are not known'}")
        return
    array = leaves.add_array(told, f"{texture}_texels", path)
    qualified = reference.qualified if reference is not None else ""
    leaves.textures[texture] = TextureLeaf(array, fetch.axes, qualified, as_float)


def _reads_floats(settings: Mapping[str, Mapping[str, Flow]]) -> bool:
    return any(one.get("read") == "normalized-float" for one in settings.values())


def _bytes_of(kind: str) -> str:
    """What floats between 0 and 1 are made of."""
    lanes = kind.removeprefix("float")
    return f"uchar{lanes}" if lanes else "unsigned char"


def texture_extents(known: Known) -> dict[str, list[str]]:
    """Extents of the arrays of textures that several coordinates lead into; some are new sizes."""
    found: dict[str, list[str]] = {}
    for name, one in known.leaves.textures.items():
        if one.axes > 1:
            found[one.array] = [_size_along(known, name, axis) for axis in range(one.axes)][::-1]
    return found


def _size_along(known: Known, texture: str, axis: int) -> str:
    words = _ALONG[axis]
    for one in known.sizes:
        if one.name.lower().replace("_", "") in words:
            return one.name
    return known.add_size(f"{texture}_{_ENDINGS[axis]}", last=True)


def textures_of(leaves: LaunchArguments, program: Program) -> dict[str, Guess[Flow]]:
    """What the spec says of each texture."""
    settings = sampling_of(program) if leaves.textures else {}
    names = {one.name for one in texture_references(program)} if settings else set[str]()
    described = [told for name, told in settings.items() if name not in names]
    found: dict[str, Guess[Flow]] = {}
    for name, one in leaves.textures.items():
        last = one.reference.rpartition("::")[2]
        told: dict[str, Flow] = {"array": one.array}
        channels = leaves.inner.get(one.array, 1)
        told |= {"channels": channels} if channels > 1 else {}
        given = settings.get(last, {}) if one.reference else (described or [{}])[-1]
        told |= _sampling(given, one)
        told |= {"reference": one.reference} if one.reference not in {"", name} else {}
        found[name] = Guess(told, _WHY)
    return found


def _sampling(given: Mapping[str, Flow], one: TextureLeaf) -> dict[str, Flow]:
    """Settings that are not the default, as far as they can be meant together."""
    told: dict[str, Flow] = {}
    if given.get("filter") == "linear":
        told["filter"] = "linear"
    address = given.get("address", "clamp")
    if address != "clamp" and (given.get("normalized") or address == "border"):
        told["address"] = address
    if given.get("normalized"):
        told["normalized"] = True
    if one.as_float:
        told["read"] = "normalized-float"
    return told
