"""Machine code of a kernel to a C++ function that runs one wave until its next barrier or its end.

A function begins where the wave's pc says; it returns at s_barrier, and now and then from a loop, so
that other waves of the block have their turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tokitai_cli.devices.amdgpu.isa.families import FAMILIES
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate import control, lanes, matrix, memory_access
from tokitai_cli.devices.amdgpu.translate.computed import dual, scalar_value, vector_value
from tokitai_cli.devices.amdgpu.translate.gfx9 import canonicals
from tokitai_cli.devices.amdgpu.translate.mode import USUAL, Mode
from tokitai_cli.devices.amdgpu.translate.mode_flow import after, modes
from tokitai_cli.devices.amdgpu.translate.operands import RefusedError, Translated
from tokitai_cli.devices.amdgpu.translate.regions import Regions
from tokitai_cli.devices.amdgpu.translate.semantics import entry_of

_KINDS = {**control.KINDS, **lanes.KINDS, **memory_access.KINDS, **matrix.KINDS}
_STEERING = {"end", "barrier", "branch", "fence", "trap", "jump", "call", "sendmsg"}


class Body(msgspec.Struct, frozen=True):
    """A translated kernel: the C++ function `run_NAME` with what it stands on, operations by name,
    addresses that findings may name.
    """

    text: str
    operations: Mapping[str, str]
    places: tuple[int, ...]


def refused(
    instructions: Sequence[Instruction], entries: Iterable[int] = (), mode: Mode = USUAL
) -> tuple[str, ...]:
    """Instructions, or forms of them, that cannot be translated: names, in order.

    instructions: those that are reached from the addresses `entries` on. mode: the kernel's.
    """
    found = set()
    instructions = canonicals(instructions)
    try:
        met = modes(instructions, entries, mode)
    except RefusedError as error:
        met, found = {}, {str(error)}
    for instruction in instructions:
        try:
            statement(instruction, met.get(instruction.address, mode))
        except RefusedError as error:
            found.add(str(error))
    return tuple(sorted(found))


def translate(
    instructions: Sequence[Instruction], name: str, entries: Iterable[int], mode: Mode = USUAL
) -> Body:
    """C++ functions of a kernel, whose code and functions begin at `entries`. Raises RefusedError.

    instructions: those that are reached, in the order of their addresses. mode: the float mode at
    each of the entries.
    """
    instructions = canonicals(instructions)
    targets = {one.modifiers["target"] for one in instructions if "target" in one.modifiers}
    known = {one.address for one in instructions}
    if targets - known:
        raise RefusedError("a branch out of the kernel")
    calls = any(_kind(one) == "call" for one in instructions)
    resumed = {*entries} & known
    met = modes(instructions, resumed, mode)
    for one in instructions:
        if _kind(one) in {"barrier", "call"}:
            resumed.add(one.address + one.size)
        elif _kind(one) == "branch" and one.modifiers["target"] <= one.address:
            resumed.add(one.modifiers["target"])
    made: dict[str, str] = {}
    places: list[int] = []
    regions = Regions(name, FAMILIES[instructions[0].family].vectors if instructions else 0)
    lines: list[str] = []
    # Behind a barrier, dropping what the block's caches hold is part of it and no order of itself.
    barred = {one.address + one.size for one in instructions if one.name == "s_barrier"}
    for one in instructions:
        done = statement(one, met[one.address])
        made.update(done.operations)
        places += done.places
        if one.address in targets | resumed:
            lines += [regions.end(), f"L_{one.address:x}:"]
        if _kind(one) == "fence" and one.name == "buffer_gl0_inv" and one.address in barred:
            continue
        if _kind(one) in _STEERING:
            lines += [regions.end(), done.text]
        else:
            lines.append(regions.take(one, done.text))
    dispatch = "".join(f"    case {at:#x}: goto L_{at:x};\n" for at in sorted(resumed))
    body = "\n".join(filter(None, [*lines, regions.end()]))
    text = (
        f"{regions.text()}static void run_{name}(Wave& w) {{\n{'dispatch:' if calls else ''}\n"
        f"  switch (w.pc) {{\n{dispatch}"
        f"    default: return lost(w);\n  }}\n{body}\n  lost(w);\n}}\n"
    )
    return Body(text, made, (*places, *regions.places))


def _kind(instruction: Instruction) -> str:
    entry = entry_of(instruction.name)
    return entry.kind if entry else ""


def statement(instruction: Instruction, mode: Mode = USUAL) -> Translated:
    """Statements of an instruction in a float mode. Raises RefusedError, which names it."""
    try:
        if instruction.x is not None and instruction.y is not None:
            return dual(instruction.x, instruction.y, mode)
        return _single(instruction, mode)
    except RefusedError as error:
        said = str(error).removeprefix(instruction.name).lstrip()
        name = instruction.spelled or instruction.name
        raise RefusedError(f"{name} {said}".rstrip()) from None


def _single(one: Instruction, mode: Mode) -> Translated:
    entry = entry_of(one.name)
    if entry is None:
        raise RefusedError(one.name.removeprefix(one.spelled).lstrip())
    if entry.kind == "value":
        value = vector_value if one.name.startswith("v_") else scalar_value
        return value(one, entry, mode)
    if entry.kind == "mode":
        after(one, mode)
    return _KINDS[entry.kind](one, entry)
