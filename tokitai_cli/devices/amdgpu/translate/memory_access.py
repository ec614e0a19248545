"""C++ of loads, stores and atomic operations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate import operands
from tokitai_cli.devices.amdgpu.translate.operands import (
    RefusedError,
    Translated,
    Writer,
    row,
    scalar,
)
from tokitai_cli.devices.amdgpu.translate.semantics import Entry


def _space(one: Instruction) -> str:
    return {"ds": "Lds", "global": "Global", "flat": "Flat", "scratch": "Scratch"}[
        one.name.partition("_")[0]
    ]


def _address(one: Instruction, offset: int | None = None) -> str:
    """Where each lane accesses memory."""
    space, first, saddr = _space(one), one.src[0], one.src[-1]
    offset = one.modifiers.get("offset", 0) if offset is None else offset
    if one.modifiers.get("gds"):
        raise RefusedError("of GDS")
    if space == "Lds":
        return f"Ranged{{{row(first)}, {offset}u}}"
    based = saddr.kind != "null" and (space == "Scratch" or len(one.src) > 1)
    if space == "Scratch":
        base = (
            f"{scalar(saddr, 32)} + {offset & 0xFFFFFFFF:#x}u"
            if based
            else f"{offset & 0xFFFFFFFF:#x}u"
        )
        return (
            f"Uniform{{u32({base})}}" if first.kind == "null" else f"Narrow{{{row(first)}, {base}}}"
        )
    if space == "Flat" or not based:
        return f"Wide{{{row(first)}, {offset}}}"
    base = f"{scalar(saddr, 64)} + u64(i64({offset}))"
    return f"Uniform{{{base}}}" if first.kind == "null" else f"Based{{{base}, {row(first)}}}"


def _load(one: Instruction, entry: Entry) -> Translated:
    what, place = entry.code.split(",")
    if one.dst[0].half == 1 and place == "whole":
        raise RefusedError("into a high half")
    kinds = f"{_space(one)}, {what}, {place}"
    if one.modifiers.get("glc") and _space(one) in ("Global", "Flat"):
        kinds += ", true"
    call = f"load<{kinds}>(w, {one.address:#x}, {row(one.dst[0])}, {_address(one)});"
    return Translated(call, places=(one.address,))


def _store(one: Instruction, entry: Entry) -> Translated:
    size, shift = entry.code.split(",")
    data = one.src[1]
    shift = "16" if data.half == 1 else shift
    kinds = f"{_space(one)}, {size}, {shift}"
    if _space(one) in ("Global", "Flat") and not {"glc", "dlc"}.isdisjoint(one.modifiers):
        kinds += ", true"
    call = f"store<{kinds}>(w, {one.address:#x}, {_address(one)}, V{{{row(data)}}});"
    return Translated(call, places=(one.address,))


def _two(one: Instruction, entry: Entry) -> Translated:
    dwords, scale = (int(word) for word in entry.code.split(","))
    calls = []
    for index, key in enumerate(("offset0", "offset1")):
        address = _address(one, one.modifiers.get(key, 0) * scale)
        if entry.kind == "load2":
            to = f"w.v[{one.dst[0].index + index * dwords}].lane"
            # The address may be overwritten by the first of both.
            address = address.replace(row(one.src[0]), "w.temporary(2)")
            calls.append(f"load<Lds, B{32 * dwords}, whole>(w, {one.address:#x}, {to}, {address});")
        else:
            data = row(one.src[1 + index])
            calls.append(
                f"store<Lds, {4 * dwords}, 0>(w, {one.address:#x}, {address}, V{{{data}}});"
            )
    if entry.kind == "load2":
        calls.insert(0, f"memcpy(w.temporary(2), {row(one.src[0])}, sizeof(Row));")
    return Translated("{ " + " ".join(calls) + " }", places=(one.address,))


def _atomic(one: Instruction, entry: Entry) -> Translated:
    made = _c_type(entry.dst[0])
    code = f"(void)old; const {made} a = from_lane<{made}>(data, l); return {made}({entry.code});"
    return _updated(one, made, f"*data = {row(one.src[1])}", code)


def _cmpswap(one: Instruction, entry: Entry) -> Translated:
    made = _c_type(entry.dst[0])
    dwords = 2 if made == "u64" else 1
    data = row(one.src[1])
    # Of LDS the second operand is what is compared with, elsewhere the upper half of one.
    compared = row(one.src[2]) if _space(one) == "Lds" else f"{data} + {32 * dwords}"
    code = f"return old == from_lane<{made}>(compared, l) ? from_lane<{made}>(data, l) : old;"
    return _updated(one, made, f"*data = {data}, *compared = {compared}", code)


def _updated(one: Instruction, made: str, operands: str, code: str) -> Translated:
    """An atomic operation on values of the C type `made`; `code` returns the new one of lane l."""
    to = row(one.dst[0]) if one.dst else "nullptr"
    call = (
        f"{{ const u32 {operands}; atomic<{_space(one)}, {made}>(w, {one.address:#x}, {to}, "
        f"{_address(one)}, [=]({made} old, u32 l) {{ {code} }}); }}"
    )
    return Translated(call, places=(one.address,))


def word_shift(instructions: Iterable[Instruction]) -> int:
    """The smallest access of global memory among them, as a power of two, 4 bytes at most."""
    sizes = [
        int(match[1]) // 8
        for one in instructions
        if (match := re.match(r"(?:global|flat)_(?:load|store|atomic)\w*_[a-z]+(\d+)$", one.name))
    ]
    return min((*sizes, 4)).bit_length() - 1


def _c_type(kind: str) -> str:
    return {"f32": "float"}.get(kind, kind)


def _smem(one: Instruction, entry: Entry) -> Translated:
    to = one.dst[0]
    if to.kind not in ("s", "vcc"):
        raise RefusedError(f"into {to.kind}")
    first = to.index if to.kind == "s" else operands.VCC + to.index
    address = f"{scalar(one.src[0], 64)} + u64(i64({one.modifiers.get('offset', 0)}))"
    for further in one.src[1:]:
        if further.kind not in ("null", "int", "literal", "simm"):
            address += f" + {scalar(further, 32)}"
    call = f"load_scalars(w, {one.address:#x}, {first}, {address}, {entry.code});"
    return Translated(call, places=(one.address,))


KINDS: dict[str, Writer] = {
    "load": _load,
    "store": _store,
    "load2": _two,
    "store2": _two,
    "atomic": _atomic,
    "cmpswap": _cmpswap,
    "smem": _smem,
}
