"""Which float mode each instruction meets, and what a mode changes that is not modelled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate.mode import FIELDS, USUAL, Mode
from tokitai_cli.devices.amdgpu.translate.operands import RefusedError
from tokitai_cli.devices.amdgpu.translate.semantics import Entry, entry_of

_ROUNDING = ("to nearest even", "up", "down", "to zero")
_MODE_REGISTER = 1


def check(entry: Entry, mode: Mode, clamp: bool) -> None:
    """Raise RefusedError for an instruction that a mode changes in a way that is not modelled."""
    if mode == USUAL:
        return
    for kind in entry.dst:
        if rounding := mode.round_of(kind):
            raise RefusedError(f"rounded {_ROUNDING[rounding]}")
    if entry.name in ("v_cvt_pk_f16_f32", "v_cvt_pk_bf16_f32") and (
        mode.round_32 or mode.round_16_64 or mode.fp16_overflow or mode.denorm_16_64 != 3
    ):
        raise RefusedError("in this float mode")
    kinds = {*entry.dst, *entry.src}
    if clamp and not mode.dx10_clamp:
        raise RefusedError("with clamp in a mode that keeps NaN")
    if entry.approximate and mode.fp16_overflow and "f16" in kinds:
        raise RefusedError("in this float mode")
    mixed = bool(kinds & {"mix", "pair_f16", "pair_bf16"})
    if mixed and (mode.denorm_16_64 != 3 or mode.fp16_overflow or "mix" not in kinds):
        raise RefusedError("in this float mode")


def modes(
    instructions: Sequence[Instruction], entries: Iterable[int], first: Mode
) -> Mapping[int, Mode]:
    """The mode of each instruction, by its address. entries: of the kernel and of what it calls.

    Raises RefusedError where it depends on the way that a wave came.
    """
    by_address = {one.address: one for one in instructions}
    if not any(_sets(one) for one in instructions):
        return dict.fromkeys(by_address, first)
    found: dict[int, Mode] = {}
    waiting = [(at, first) for at in entries]
    while waiting:
        at, mode = waiting.pop()
        one = by_address.get(at)
        if one is None:
            continue
        if at in found:
            if found[at] != mode:
                raise RefusedError("a float mode that depends on the way of a wave")
            continue
        found[at] = mode
        entry = entry_of(one.name)
        kind = entry.kind if entry else ""
        if kind in {"call", "jump"} and mode != first:
            raise RefusedError("a call in another float mode")
        if kind == "mode":
            with contextlib.suppress(RefusedError):  # where it is translated, that is told
                mode = after(one, mode)
        if kind == "branch":
            waiting.append((one.modifiers["target"], mode))
        if kind not in {"end", "trap", "jump"} and one.name != "s_branch":
            waiting.append((at + one.size, mode))
    return found


def _sets(one: Instruction) -> bool:
    entry = entry_of(one.name)
    return entry is not None and entry.kind == "mode"


def after(instruction: Instruction, mode: Mode) -> Mode:
    """The mode behind an instruction that sets it. Raises RefusedError."""
    number = instruction.modifiers["simm16"]
    if instruction.name in ("s_round_mode", "s_denorm_mode"):
        shift = 0 if instruction.name == "s_round_mode" else 4
        return _with(mode, (number & 15) << shift, 15 << shift)
    register, offset, size = number & 63, number >> 6 & 31, (number >> 11) + 1
    if register != _MODE_REGISTER or instruction.src[-1].kind not in ("literal", "int"):
        raise RefusedError("of another register than MODE, or not of a constant")
    mask = (1 << size) - 1
    return _with(mode, (instruction.src[-1].value & mask) << offset, mask << offset)


def _with(mode: Mode, value: int, mask: int) -> Mode:
    """The mode with these bits of the register."""
    made = {}
    for name, shift, bits in FIELDS:
        field = mask >> shift & (1 << bits) - 1
        made[name] = getattr(mode, name) & ~field | value >> shift & field
        value &= ~(((1 << bits) - 1) << shift)
    if value:
        raise RefusedError("of other bits of MODE")
    return Mode(**made)
