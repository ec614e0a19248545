"""C++ of instructions that steer a wave: branches, barriers, calls, EXEC, and those without effect."""

from __future__ import annotations

from tokitai_cli.devices.amdgpu.isa.families import FAMILIES
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate.operands import (
    RefusedError,
    Translated,
    Writer,
    scalar,
    set_scalar,
)
from tokitai_cli.devices.amdgpu.translate.semantics import Entry

# Of s_sendmsg: the host is to look at a buffer, as of a failed assertion or printf; the wave's vector
# registers may be given to others.
_INTERRUPT, _DEALLOC_VGPRS = 1, 3


def _none(one: Instruction, entry: Entry) -> Translated:
    del one, entry
    return Translated(";")


def _end(one: Instruction, entry: Entry) -> Translated:
    del one, entry
    return Translated("{ w.state = State::ended; return; }")


def _barrier(one: Instruction, entry: Entry) -> Translated:
    del entry
    after = one.address + one.size
    return Translated(f"{{ w.pc = {after:#x}; w.state = State::at_barrier; return; }}")


# What a branch looks at beside EXEC: a scalar register by its number (unset.hpp).
_LOOKED_AT = {"w.scc": 128, "w.vcc_mask()": 106}


def _branch(one: Instruction, entry: Entry) -> Translated:
    target = one.modifiers["target"]
    go = f"goto L_{target:x};"
    if target <= one.address:
        go = f"{{ if (!--w.turns) {{ w.pc = {target:#x}; return; }} {go} }}"
    if entry.code == "1":
        return Translated(go)
    scalar = _LOOKED_AT.get(entry.code.lstrip("!"))
    before = "" if scalar is None else f"steer(w, {one.address:#x}, {scalar}); "
    return Translated(f"{before}if ({entry.code}) {go}", places=(one.address,))


def _fence(one: Instruction, entry: Entry) -> Translated:
    del one
    return Translated(entry.code)


def _sendmsg(one: Instruction, entry: Entry) -> Translated:
    del entry
    if one.modifiers.get("simm16", 0) & 0xFF == _INTERRUPT:
        end = f'unmodelled(w, {one.address:#x}, "a message to the host")'
        return Translated(f"return {end};", places=(one.address,))
    if one.modifiers.get("simm16") != _DEALLOC_VGPRS:
        raise RefusedError("of another message than dealloc_vgprs")
    return Translated(";")


def _trap(one: Instruction, entry: Entry) -> Translated:
    del entry
    return Translated(f"return trapped(w, {one.address:#x});", places=(one.address,))


def _with_exec(one: Instruction, entry: Entry) -> tuple[str, int]:
    """EXEC as e, the source as a, and what EXEC is to be; bits of a mask."""
    width = int(one.name.rpartition("_b")[2])
    if width != FAMILIES[one.family].lanes:
        raise RefusedError(f"in waves of {FAMILIES[one.family].lanes} lanes")
    source = scalar(one.src[0], width)
    return f"const LaneMask e = w.exec, a = {source}, made = {entry.code};", width


def _saveexec(one: Instruction, entry: Entry) -> Translated:
    before, width = _with_exec(one, entry)
    save = set_scalar(one.dst[0], "e", width)
    return Translated(f"{{ {before} {save} w.set_exec(made); w.scc = made != 0; }}")


def _wrexec(one: Instruction, entry: Entry) -> Translated:
    before, width = _with_exec(one, entry)
    save = set_scalar(one.dst[0], "made", width)
    return Translated(f"{{ {before} w.set_exec(made); {save} w.scc = made != 0; }}")


def _getpc(one: Instruction, entry: Entry) -> Translated:
    del entry
    value = f"code_at(w, {one.address + one.size:#x})"
    return Translated(set_scalar(one.dst[0], value, 64))


def _jump(one: Instruction, entry: Entry) -> Translated:
    """To an address in a register; a call keeps the one behind it."""
    lines = [f"const u64 to = {scalar(one.src[0], 64)} - code_at(w, 0);"]
    if entry.kind == "call":
        lines.append(set_scalar(one.dst[0], f"code_at(w, {one.address + one.size:#x})", 64))
    lines.append("w.pc = to >> 32 ? ~0u : u32(to); goto dispatch;")
    return Translated(f"{{ {' '.join(lines)} }}")


KINDS: dict[str, Writer] = {
    "none": _none,
    "mode": _none,  # what it sets is known of each instruction (mode_flow.py)
    "end": _end,
    "barrier": _barrier,
    "branch": _branch,
    "fence": _fence,
    "sendmsg": _sendmsg,
    "trap": _trap,
    "saveexec": _saveexec,
    "wrexec": _wrexec,
    "getpc": _getpc,
    "jump": _jump,
    "call": _jump,
}
