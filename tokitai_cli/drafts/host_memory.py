"""A draft at its host's sizes, with the launch and the arrays that the host makes.

A draft's grid fits every size, and its arrays are large enough for what the kernel reaches, its faults
included. The host's own numbers are neither.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.cpp.host.launch import Launch
from tokitai_cli.drafts.leaves import LaunchArguments
from tokitai_cli.drafts.model import ArrayDraft, Guess, LaunchDraft, ParamDraft, SpecDraft

_MOST = 1 << 28  # elements of an array that is run


def numbers_of(launch: Launch | None, leaves: LaunchArguments) -> dict[str, Fraction]:
    """Numbers that the host hands over, by the names of the spec."""
    if launch is None:
        return {}
    pairs = zip(leaves.args, launch.numbers.arguments, strict=False)
    known = {one.name: number for one, number in pairs if number is not None and not one.pointers}
    paths = {one.name: leaves.paths.get(one.name, "") for one in leaves.found if not one.pointers}
    fields = launch.numbers.fields
    return {name: fields[path] for name, path in paths.items() if path in fields} | known


def allocated_for(launch: Launch | None, leaves: LaunchArguments) -> dict[str, int]:
    """Bytes that the host allocates for arrays, where it says them as numbers."""
    pairs = zip(leaves.args, launch.numbers.allocated if launch else (), strict=False)
    return {one.name: size for one, size in pairs if size is not None}


def at_host(draft: SpecDraft, launch: Launch | None, leaves: LaunchArguments) -> SpecDraft:
    """The draft at the host's sizes; as it is where one of them is not known."""
    if launch is None or launch.commented or len(launch.arguments) != len(leaves.args):
        return draft
    counted = zip(launch.counted, launch.numbers.grid, strict=False)
    known = {name: number for name, number in counted if name and number is not None}
    known |= {name: int(one) for name, one in numbers_of(launch, leaves).items()
              if one.denominator == 1}  # fmt: skip
    sizes = {name: known.get(name) for name in draft.params}
    if not all(value is not None and _takes(draft.params[name], value)
               for name, value in sizes.items()):  # fmt: skip
        return draft
    params = {
        name: msgspec.structs.replace(one, default=sizes[name], why="")
        for name, one in draft.params.items()
    }
    allocated = allocated_for(launch, leaves)
    arrays = {name: _kept(one, allocated.get(name)) for name, one in draft.arrays.items()}
    started = _started(draft.launch, launch)
    return msgspec.structs.replace(draft, params=params, arrays=arrays, launch=started)


def _started(draft: LaunchDraft, launch: Launch) -> LaunchDraft:
    """The launch with grid and block as the host starts them, where all their extents are known."""
    for key in ("grid", "block"):
        extents = getattr(launch.numbers, key)
        if extents and all(one is not None and one > 0 for one in extents):
            draft = msgspec.structs.replace(draft, **{key: Guess([*extents])})
    return draft


def _takes(param: ParamDraft, value: int) -> bool:
    return param.fitting(value) == value and value >= (1 if param.min is None else param.min)


def _kept(one: ArrayDraft, size: int | None) -> ArrayDraft:
    """The array as the host allocates it, where that is one size in bytes."""
    if size is None or one.rows or one.structs or one.symbol:
        return one
    elements = size // (numpy_dtype(one.dtype).itemsize * max(one.inner, 1))
    if not 0 < elements <= _MOST:
        return one
    return msgspec.structs.replace(one, extents=(elements,), why="", room="", strides=())
