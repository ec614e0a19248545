"""An instruction as llvm-objdump-19 spells it (with --mattr=+real-true16), without comments."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tokitai_cli.devices.amdgpu.isa.control_text import control, immediate, indexed
from tokitai_cli.devices.amdgpu.isa.decode import FLOAT8, UNKNOWN
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import Row, Slot, by_name
from tokitai_cli.devices.amdgpu.isa.operand_reader import FLOATS as VALUES

FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494")
INLINE = {
    bits: {
        int.from_bytes(struct.pack(kind, value), "little"): text
        for value, text in zip(VALUES, FLOATS, strict=True)
    }
    for bits, kind in ((16, "<e"), (32, "<f"))
}
SPECIAL = {
    235: "src_shared_base", 236: "src_shared_limit", 237: "src_private_base",
    238: "src_private_limit", 239: "src_pops_exiting_wave_id", 251: "src_vccz", 252: "src_execz",
    254: "src_lds_direct",
}  # fmt: skip
PARTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
FLAGS = ("gds", "glc", "sc0", "slc", "nt", "dlc", "scc", "sc1", "tfe", "lds")
OMOD = ("", " mul:2", " mul:4", " div:2")
WHOLE_WAVE = {
    0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1",
    0x142: "row_bcast:15", 0x143: "row_bcast:31",
}  # fmt: skip


def text(instruction: Instruction) -> str:
    """The instruction's mnemonic, operands and modifiers."""
    if instruction.encoding == UNKNOWN:
        word = instruction.modifiers["word"]
        return f".long {word:#010x}" if instruction.size == 4 else f".byte {word:#x}"
    if instruction.x is not None and instruction.y is not None:
        return f"{_plain(instruction.x, 'VOPD')} :: {_plain(instruction.y, 'VOPDY')}"
    return _plain(instruction, instruction.encoding)


def _plain(one: Instruction, encoding: str) -> str:
    row = by_name(one.family)[encoding, one.name.replace("v_mfma_scale_", "v_mfma_")]
    words = control(one, row) if encoding == "SOPP" else _operands(one, row)
    tail = "".join(_modifiers(one, row))
    return one.name + one.suffix + (f" {', '.join(words)}" if words else "") + tail


def _operands(one: Instruction, row: Row) -> list[str]:
    # Of v_cmpx the last is exec, which is not spelled.
    operands = [*(one.dst[:-1] if one.name.startswith("v_cmpx") else one.dst), *one.src]
    if one.encoding == "SMEM" and operands:
        return _scalar_address(one, operands)
    # Where the fields decide what operands there are, none of them has a half.
    slots = row.slots if len(row.slots) == len(operands) else [Slot("")] * len(operands)
    memory = one.encoding in {"GLOBAL", "SCRATCH", "MUBUF"}
    words = [
        "off"
        if memory and operand.kind == "null" and slot.field != "O"
        else immediate(one, operand.value, row)
        if operand.kind == "simm"
        else _operand(operand, slot, row)
        for operand, slot in zip(operands, slots, strict=True)
    ]
    extended, first = one.modifiers.get("sext", 0), len(words) - len(one.src)
    for bit, at in enumerate(range(first, len(words))):
        words[at] = f"sext({words[at]})" if extended >> bit & 1 else words[at]
    return words


def _scalar_address(one: Instruction, operands: list[Operand]) -> list[str]:
    """Operands of SMEM, whose offset is a register, a number or both."""
    *first, register = [_register(operand) for operand in operands]
    offset = one.modifiers.get("offset")
    if offset is None:
        return [*first, register]
    number = f"{'-' if offset < 0 else ''}{abs(offset):#x}"
    return [*first, number if register == "null" else f"{register} offset:{number}"]


def _operand(operand: Operand, slot: Slot, row: Row) -> str:
    if operand.kind in {"int", "float", "literal"}:
        word = _constant(operand, slot, row)
        if operand.abs:
            return f"{'-' if operand.neg else ''}|{word}|"
        return f"neg({word})" if operand.neg else word
    word = _register(operand)
    if operand.half is not None and slot.half == "t":
        word += ".h" if operand.half and not row.op_sel else ".l"  # else op_sel tells it
    elif operand.half and not row.op_sel:  # llvm-19 has no spelling for it
        word += ".h"
    word = f"|{word}|" if operand.abs else word
    return f"-{word}" if operand.neg else word


def _register(operand: Operand) -> str:
    kind, first, count = operand.kind, operand.index, operand.count
    if kind in {"v", "a", "s", "ttmp"}:
        return f"{kind}{first}" if count == 1 else f"{kind}[{first}:{first + count - 1}]"
    if kind in {"vcc", "exec", "flat_scratch", "xnack_mask"}:
        return kind if count == 2 else f"{kind}_{'hi' if first else 'lo'}"
    if kind == "special":
        return SPECIAL[first]
    if kind in {"simm", "gpr_idx"}:
        return indexed(operand) if kind == "gpr_idx" else str(operand.value)
    return {"scc": "src_scc", "int": "0"}.get(kind, kind)


def _constant(operand: Operand, slot: Slot, row: Row) -> str:
    number = operand.index
    if operand.kind == "int":
        return str(number - 128 if number <= 192 else 192 - number)
    if operand.kind == "literal":
        return _literal(operand.value, slot, row)
    if slot.constant == "i":
        return f"{operand.value:#x}"
    packed = row.name.startswith(("v_pk", "v_mfma", "v_smfmac")) and "f64" not in row.name
    if slot.count >= 2 and number == 248 and not packed:
        return "0.15915494309189532"
    return FLOATS[number - 240]


def _literal(value: int, slot: Slot, row: Row) -> str:
    """A literal, which is spelled like an inline constant where it could be one."""
    if slot.count == 2:
        if "f64" in row.name:
            return f"{value >> 32:#x}"
        value &= 0xFFFFFFFF
        return str(value) if value <= 64 else f"{value:#x}"
    bits = 16 if slot.constant else 32
    value &= (1 << bits) - 1
    signed = value - (value >> bits - 1 << bits)
    if slot.field == "L" and row.name != "s_setreg_imm32_b32":
        return f"{value:#x}"
    if -16 <= signed <= 64:
        return str(signed)
    inline = {} if slot.constant == "i" else INLINE[bits]
    return inline.get(value, f"{value:#x}")


def _modifiers(one: Instruction, row: Row) -> Iterator[str]:
    put = one.modifiers
    if one.encoding == "MUBUF":
        yield from (f" {flag}" for flag in ("idxen", "offen") if flag in put)
    for name in ("offset0", "offset1", "offset"):
        if put.get(name) and one.encoding != "SMEM":
            swizzle = one.name == "ds_swizzle_b32"
            yield f" {name}:{_swizzle(put[name]) if swizzle else put[name]}"
    yield from (f" {flag}" for flag in FLAGS if flag in put)
    if put.get("bitop3"):
        yield f" bitop3:{put['bitop3']:#x}"
    yield from _selections(one, row)
    if "clamp" in put:
        yield " clamp"
    yield OMOD[put.get("omod", 0)]
    yield from _parts(one)
    signs = "blgp" in put and one.name.endswith("_f64")  # which stand there on gfx940 and later
    yield from (f" {name}:{put[name]}" for name in ("cbsz", "abid") if name in put)
    if signs:
        yield f" neg:[{','.join(str(put['blgp'] >> bit & 1) for bit in range(3))}]"
    elif "blgp" in put:
        yield f" blgp:{put['blgp']}"
    if "dpp8" in put:
        yield f" dpp8:[{','.join(str(lane) for lane in put['dpp8'])}]"
    if "dpp_ctrl" in put:
        yield f" {_control_of_dpp(put['dpp_ctrl'], one.family)}"
        yield f" row_mask:{put['row_mask']:#x} bank_mask:{put['bank_mask']:#x}"
    yield from (f" {flag}:1" for flag in ("bound_ctrl", "fi") if flag in put)


def _parts(one: Instruction) -> Iterator[str]:
    """What SDWA selects."""
    put = one.modifiers
    if "src0_sel" not in put:
        return
    if "dst_sel" in put and not FLOAT8.search(one.name):  # those of float8 take whole registers
        yield f" dst_sel:{PARTS[put['dst_sel']]} dst_unused:{UNUSED[put['dst_unused']]}"
    yield f" src0_sel:{PARTS[put['src0_sel']]}"
    if one.encoding != "VOP1":
        yield f" src1_sel:{PARTS[put['src1_sel']]}"


def _swizzle(offset: int) -> str:
    """The pattern that ds_swizzle's offset stands for."""
    if offset >> 8 == 0x80:
        return f"swizzle(QUAD_PERM,{','.join(str(offset >> 2 * lane & 3) for lane in range(4))})"
    if offset >> 15:
        return str(offset)
    keep, fix, flip = offset & 31, offset >> 5 & 31, offset >> 10
    if keep == 31 and not fix and flip:
        if flip & flip - 1 == 0:
            return f"swizzle(SWAP,{flip})"
        if flip & flip + 1 == 0:
            return f"swizzle(REVERSE,{flip + 1})"
    group = 32 - keep
    if group > 1 and group & group - 1 == 0 and fix < group and not flip:
        return f"swizzle(BROADCAST,{group},{fix})"
    zero, one = fix ^ flip, (keep | fix) ^ flip
    mask = "".join(
        {(0, 0): "0", (1, 1): "1", (0, 1): "p", (1, 0): "i"}[zero >> bit & 1, one >> bit & 1]
        for bit in (4, 3, 2, 1, 0)
    )
    return f'swizzle(BITMASK_PERM,"{mask}")'


def _selections(one: Instruction, row: Row) -> Iterator[str]:
    put = one.modifiers
    if one.encoding == "VOP3P":
        count = len(one.src)
        mixed = one.name.startswith("v_fma_mix")
        usual = {"op_sel": 0, "op_sel_hi": 0 if mixed else (1 << count) - 1}
    elif one.name.startswith("v_mfma_scale"):
        count, usual = 3, {"op_sel": 0, "op_sel_hi": 7}
    elif one.encoding == "VOP3" and row.op_sel:
        count, usual = row.op_sel, {"op_sel": 0}
    else:
        return
    for name in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi"):
        bits = put.get(name, usual.get(name, 0)) & (1 << count) - 1
        if bits != usual.get(name, 0):
            # The last of VOP3's is the destination, which has the fourth bit.
            order = [*range(count - 1), 3] if one.encoding == "VOP3" else range(count)
            yield f" {name}:[{','.join(str(put[name] >> bit & 1) for bit in order)}]"


def _control_of_dpp(control: int, family: str) -> str:
    if control < 0x100:
        return f"quad_perm:[{','.join(str(control >> shift & 3) for shift in (0, 2, 4, 6))}]"
    if control in {0x140, 0x141}:
        return "row_half_mirror" if control & 1 else "row_mirror"
    names = {
        0x10: "row_shl",
        0x11: "row_shr",
        0x12: "row_ror",
        0x15: "row_share" if family == "gfx11" else "row_newbcast",
        0x16: "row_xmask",
    }
    if family == "gfx9" and control in WHOLE_WAVE:
        return WHOLE_WAVE[control]
    name = names.get(control >> 4)
    return f"{name}:{control & 15}" if name else "/* Invalid dpp_ctrl value */"
