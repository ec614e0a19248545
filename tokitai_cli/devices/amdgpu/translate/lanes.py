"""C++ of instructions whose lanes read or write other lanes."""

from __future__ import annotations

from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate.operands import (
    M0,
    RefusedError,
    Translated,
    Writer,
    row,
    scalar,
    set_scalar,
    source,
)
from tokitai_cli.devices.amdgpu.translate.semantics import Entry


def _readfirstlane(one: Instruction, entry: Entry) -> Translated:
    del entry
    if one.src[0].kind != "v":
        return Translated(set_scalar(one.dst[0], scalar(one.src[0], 32)))
    return Translated(set_scalar(one.dst[0], f"{row(one.src[0])}[first_lane(w)]"))


def _readlane(one: Instruction, entry: Entry) -> Translated:
    del entry
    lane = f"{scalar(one.src[1], 32)} & (wave_size - 1)"
    return Translated(set_scalar(one.dst[0], f"{row(one.src[0])}[{lane}]"))


def _writelane(one: Instruction, entry: Entry) -> Translated:
    del entry
    lane = f"{row(one.dst[0])}[{scalar(one.src[1], 32)} & (wave_size - 1)]"
    return Translated(f"{lane} = {scalar(one.src[0], 32)};")


def _swap(one: Instruction, entry: Entry) -> Translated:
    del entry
    first, second = row(one.dst[0]), row(one.src[0])
    return Translated(
        f"TOKITAI_LANES {{ const u32 x = {first}[l], y = {second}[l]; "
        f"D{{{first}}}.put(l, w.active.lane[l], y); D{{{second}}}.put(l, w.active.lane[l], x); }}"
    )


def _swap_rows(one: Instruction, entry: Entry) -> Translated:
    registers = f"{row(one.dst[0])}, {row(one.src[0])}"
    call = f"swap_rows<{entry.code}>(w, {one.address:#x}, {registers});"
    return Translated(call, places=(one.address,))


def _movrel(one: Instruction, entry: Entry) -> Translated:
    to, value, after = row(one.dst[0]), source(one.src[0], "u32", {}, 0), ""
    moved = "(({} + w.s[125]) & 255)"
    if entry.name == "v_movreld_b32":
        register = moved.format(one.dst[0].index)
        to = f"w.v[{register}].lane"
        halves = f"half + {register}, w.exec"
        after = f" for (u32 half : {{0u, u32(register_limit)}}) set_half(w.unset, {halves});"
    else:
        value = f"V{{w.v[{moved.format(one.src[0].index)}].lane}}"
    return Translated(
        f"{{ const auto from = {value}; const D to{{{to}}}; "
        f"TOKITAI_LANES to.put(l, w.active.lane[l], from.bits(l));{after} }}"
    )


def _index(one: Instruction, entry: Entry) -> Translated:
    """What moves behind it find a register by: M0 has the index and which operand it is for."""
    del entry
    given, mode = one.src
    value = f"({scalar(given, 32)} & 255) | {mode.value << 12:#x}u"
    return Translated(f"w.s[{M0}] = {value};")


def _permlane(one: Instruction, entry: Entry) -> Translated:
    picks = one.modifiers.get("op_sel", 0)
    other = str(entry.name.startswith("v_permlanex")).lower()
    return Translated(
        f"permlane16(w, D{{{row(one.dst[0])}}}, V{{{row(one.src[0])}}}, {scalar(one.src[1], 32)}, "
        f"{scalar(one.src[2], 32)}, {other}, {picks & 1}, {picks >> 1 & 1});"
    )


def _permute(one: Instruction, entry: Entry) -> Translated:
    offset = one.modifiers.get("offset", 0)
    to, address, data = row(one.dst[0]), row(one.src[0]), row(one.src[1])
    return Translated(f"ds_{entry.kind}(w, D{{{to}}}, {address}, {data}, {offset});")


def _swizzle(one: Instruction, entry: Entry) -> Translated:
    del entry
    pattern = one.modifiers.get("offset", 0)
    if pattern >= 0xE000:
        raise RefusedError("of an FFT")
    return Translated(f"ds_swizzle(w, D{{{row(one.dst[0])}}}, {row(one.src[0])}, {pattern:#x});")


KINDS: dict[str, Writer] = {
    "readfirstlane": _readfirstlane,
    "readlane": _readlane,
    "writelane": _writelane,
    "swap": _swap,
    "swaprows": _swap_rows,
    "movrel": _movrel,
    "index": _index,
    "permlane": _permlane,
    "bpermute": _permute,
    "permute": _permute,
    "swizzle": _swizzle,
}
