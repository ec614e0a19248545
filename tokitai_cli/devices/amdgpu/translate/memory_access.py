"""C++ of loads, stores and atomic operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate import operands
from tokitai_cli.devices.amdgpu.translate.gfx9 import FORGETS, canonical
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


def _is_buffer(one: Instruction) -> bool:
    return one.encoding == "MUBUF"


def _passing(one: Instruction, *flags: str) -> str:
    """Template argument of an access past the caches of a block, as volatile ones of a program are."""
    passes = _is_buffer(one) or _space(one) in ("Global", "Flat")
    return ", true" if passes and not {*flags}.isdisjoint(one.modifiers) else ""


def _described(one: Instruction, operands: Sequence[Operand]) -> str:
    """Where each lane accesses the memory of a buffer descriptor: register, descriptor, offset."""
    register, descriptor, offset = operands
    modifiers = one.modifiers
    if modifiers.get("tfe"):
        raise RefusedError("with tfe")
    both = [row(register)] if register.kind == "v" else []
    if register.count == 2:
        both.append(f"w.v[{register.index + 1}].lane")
    index = both.pop(0) if modifiers.get("idxen") else "nullptr"
    offsets = both.pop(0) if modifiers.get("offen") else "nullptr"
    constant = modifiers.get("offset", 0)
    return f"Described({_descriptor(descriptor)}, {offsets}, {index}, {scalar(offset, 32)}, {constant}u)"


def _descriptor(operand: Operand) -> str:
    if operand.kind not in ("s", "vcc"):
        raise RefusedError(f"of a descriptor in {operand.kind}")
    first = operand.index if operand.kind == "s" else operands.VCC + operand.index
    return f"Descriptor(w.s + {first})"


def _load(one: Instruction, entry: Entry) -> Translated:
    what, place = entry.code.split(",")
    if _is_buffer(one):
        kinds = f"{what}, {place}{_passing(one, 'glc')}"
        to, address = row(one.dst[0]), _described(one, one.src)
        call = f"load_described<{kinds}>(w, {one.address:#x}, {to}, {address});"
        return Translated(call + _forgotten(one, place), places=(one.address,))
    if one.dst[0].half == 1 and place == "whole":
        raise RefusedError("into a high half")
    kinds = f"{_space(one)}, {what}, {place}{_passing(one, 'glc')}"
    call = f"load<{kinds}>(w, {one.address:#x}, {row(one.dst[0])}, {_address(one)});"
    return Translated(call + _forgotten(one, place), places=(one.address,))


def _forgotten(one: Instruction, place: str) -> str:
    """Statement for the half beside one that was loaded, where it does not stay."""
    if FORGETS not in one.modifiers:
        return ""
    return f" forget_half<{16 if place == 'lower' else 0}>(w, {one.dst[0].index});"


def _into_lds(one: Instruction, entry: Entry) -> Translated:
    offset = one.modifiers.get("offset", 0)
    address = _described(one, one.src) if _is_buffer(one) else _address(one)
    described = "_described" if _is_buffer(one) else ""
    call = f"load_lds{described}<{entry.code}>(w, {one.address:#x}, {address}, {offset});"
    return Translated(call, places=(one.address,))


def _transposed(one: Instruction, entry: Entry) -> Translated:
    call = (
        f"load_transposed<{entry.code}>(w, {one.address:#x}, {row(one.dst[0])}, {_address(one)});"
    )
    return Translated(call, places=(one.address,))


def _store(one: Instruction, entry: Entry) -> Translated:
    size, shift = entry.code.split(",")
    if _is_buffer(one):
        data, *rest = one.src
        kinds = f"{size}, {shift}{_passing(one, 'glc', 'dlc')}"
        address = _described(one, rest)
        call = f"store_described<{kinds}>(w, {one.address:#x}, {address}, V{{{row(data)}}});"
        return Translated(call, places=(one.address,))
    data = one.src[1]
    shift = "16" if data.half == 1 else shift
    kinds = f"{_space(one)}, {size}, {shift}{_passing(one, 'glc', 'dlc')}"
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
    data = row(one.src[0 if _is_buffer(one) else 1])
    return _updated(one, made, f"*data = {data}", code)


def _cmpswap(one: Instruction, entry: Entry) -> Translated:
    made = _c_type(entry.dst[0])
    dwords = 2 if made == "u64" else 1
    data = row(one.src[0 if _is_buffer(one) else 1])
    # Of LDS the second operand is what is compared with, elsewhere the upper half of one.
    in_lds = one.encoding == "DS"
    compared = row(one.src[2]) if in_lds else f"{data} + wave_size * {dwords}"
    code = f"return old == from_lane<{made}>(compared, l) ? from_lane<{made}>(data, l) : old;"
    return _updated(one, made, f"*data = {data}, *compared = {compared}", code)


def _updated(one: Instruction, made: str, operands: str, code: str) -> Translated:
    """An atomic operation on values of the C type `made`; `code` returns the new one of lane l."""
    to = row(one.dst[0]) if one.dst else "nullptr"
    if _is_buffer(one):
        data, *rest = one.src
        call = (
            f"{{ const u32 {operands}; atomic_described<{made}>(w, {one.address:#x}, {to}, "
            f"{_described(one, rest)}, data, {data.count}, [=]({made} old, u32 l) {{ {code} }}); }}"
        )
        return Translated(call, places=(one.address,))
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
        if (
            match := re.match(
                r"(?:global|flat|buffer)_(?:load|store|atomic)\w*_[a-z]+(\d+)$", canonical(one).name
            )
        )
    ]
    return min((*sizes, 4)).bit_length() - 1


def _c_type(kind: str) -> str:
    return {"f32": "float", "f64": "double"}.get(kind, "u32" if kind.startswith("pair_") else kind)


def _smem(one: Instruction, entry: Entry) -> Translated:
    to = one.dst[0]
    if to.kind not in ("s", "vcc"):
        raise RefusedError(f"into {to.kind}")
    first = to.index if to.kind == "s" else operands.VCC + to.index
    described = one.name.startswith("s_buffer_")
    address = f"u64(i64({one.modifiers.get('offset', 0)}))"
    if not described:
        address = f"{scalar(one.src[0], 64)} + {address}"
    for further in one.src[1:]:
        if further.kind not in ("null", "int", "literal", "simm"):
            address += f" + {scalar(further, 32)}"
    call = f"load_scalars(w, {one.address:#x}, {first}, {address}, {entry.code});"
    if described:
        base = _descriptor(one.src[0])
        call = f"load_scalars_described(w, {one.address:#x}, {first}, {base}, {address}, {entry.code});"
    return Translated(call, places=(one.address,))


KINDS: dict[str, Writer] = {
    "load": _load,
    "store": _store,
    "loadlds": _into_lds,
    "loadtransposed": _transposed,
    "load2": _two,
    "store2": _two,
    "atomic": _atomic,
    "cmpswap": _cmpswap,
    "smem": _smem,
}
