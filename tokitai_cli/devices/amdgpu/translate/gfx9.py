"""Instructions of gfx9 (MI200 to MI350) as those of gfx11 that do the same: names, operands, modifiers.

What gfx11 does not have keeps its name and has entries of its own (gfx9_table.py). Accumulation
registers become vector registers from 256 on, as in the runtime's wave (kernels/gfx/run/wave.hpp).
Sources: the chapters "Instructions" of AMD's "CDNA4" (MI350, 2025), "CDNA3" (MI300, 2024) and "CDNA2"
(MI200, 2022) Instruction Set Architecture; LLVM, User Guide for AMDGPU Backend, memory models of gfx90a
and gfx942.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from tokitai_cli.devices.amdgpu.isa.decode import KEEPS_HALF, OCP
from tokitai_cli.devices.amdgpu.isa.families import GFX9
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import by_name

_ACCUMULATION = 256
# A modifier that says that a result of 16 bits leaves zeros in the upper half of its register.
ZEROES = "zeroes_upper"
_SIZES = {
    "dword": "b32",
    "dwordx2": "b64",
    "dwordx3": "b96",
    "dwordx4": "b128",
    "dwordx8": "b256",
    "dwordx16": "b512",
    "byte": "b8",
    "short": "b16",
    "ubyte": "u8",
    "sbyte": "i8",
    "ushort": "u16",
    "sshort": "i16",
}
_HALVES = {"ubyte": "u8", "sbyte": "i8", "short": "b16"}
# Operations on memory: what gfx11 calls them, and the letter of their type.
_ATOMICS = {
    "add": ("add", "u"),
    "sub": ("sub", "u"),
    "inc": ("inc", "u"),
    "dec": ("dec", "u"),
    "smin": ("min", "i"),
    "umin": ("min", "u"),
    "smax": ("max", "i"),
    "umax": ("max", "u"),
    **{name: (name, "b") for name in ("and", "or", "xor", "swap", "cmpswap")},
}
# Pattern of a whole name, and the name in gfx11.
_NAMES = (
    (r"ds_read2st64_(b\d+)", r"ds_load_2addr_stride64_\1"),
    (r"ds_read2_(b\d+)", r"ds_load_2addr_\1"),
    (r"ds_write2st64_(b\d+)", r"ds_store_2addr_stride64_\1"),
    (r"ds_write2_(b\d+)", r"ds_store_2addr_\1"),
    (r"ds_read_([biu]\d+)", r"ds_load_\1"),
    (r"ds_write_(b\d+(?:_d16_hi)?)", r"ds_store_\1"),
    (r"ds_wrxchg_rtn_(b\d+)", r"ds_storexchg_rtn_\1"),
    (r"ds_cmpst_(rtn_)?(b\d+)", r"ds_cmpstore_\1\2"),
    (r"s_(and|or)n2_(b\d+)", r"s_\1_not1_\2"),
    (r"s_(and|or)n1_(saveexec|wrexec)_b64", r"s_\1_not0_\2_b64"),
    (r"s_(and|or)n2_(saveexec|wrexec)_b64", r"s_\1_not1_\2_b64"),
    (r"s_ff1_i32_(b\d+)", r"s_ctz_i32_\1"),
    (r"s_flbit_i32_b(\d+)", r"s_clz_i32_u\1"),
    (r"s_flbit_i32", "s_cls_i32"),
    (r"v_(add|sub|subrev)_u32", r"v_\1_nc_u32"),
    (r"v_(add|sub)_(u16|i16|i32)", r"v_\1_nc_\2"),
    (r"v_(add|sub)[cb](rev)?_co_u32", r"v_\1\2_co_ci_u32"),
    (r"v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"),
    (r"v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"),
    (r"v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"),
    (r"v_ffbh_u32", "v_clz_i32_u32"),
    (r"v_ffbl_b32", "v_ctz_i32_b32"),
    (r"v_ffbh_i32", "v_cls_i32"),
    (r"v_(mad|fma|div_fixup)_legacy_([iu]16|f16)", r"v_\1_\2"),
    (r"v_mul_legacy_f32", "v_mul_dx9_zero_f32"),
    (r"v_dot2c_f32_f16", "v_dot2acc_f32_f16"),
    (r"v_(cmpx?)_tru_(f\d+)", r"v_\1_t_\2"),
    (r"v_accvgpr_(?:read|write|mov)_b32", "v_mov_b32"),
)
# Loads of halves, which on processors with SRAM-ECC do not keep the other half.
_D16 = re.compile(r"(global|flat|scratch|buffer|ds)_(?:load|read)_([a-z0-9]+)_d16(_hi)?")
# A modifier of such a load: what the other half holds is not known.
FORGETS = "forgets_half"
# Behind the name of a conversion where float8 are OCP's.
OCP_NAME = "_ocp"
_FLOAT8 = re.compile(r"v_cvt_(?:pk_)?(?:f32_(?:fp8|bf8)|(?:fp8|bf8)_f32)")
# Conversions whose last source is a scale; with 1.0 they are those without one.
_SCALED, _INLINE_1 = "v_cvt_scalef32_pk_", 242
# What makes others' writes visible, with the scopes that its flags say.
_INVALIDATES = {"buffer_wbinvl1", "buffer_wbinvl1_vol"}
_WRITES_BACK = {"buffer_wbl2", "buffer_invl2", "s_dcache_wb", "s_dcache_wb_vol", "s_dcache_inv_vol"}


# Operands that s_set_gpr_idx_on adds an index to, and what a move of such a register is on gfx11.
_INDEXED = {1: "v_movrels_b32", 8: "v_movreld_b32"}
_SET_INDEX, _END_INDEX = "s_set_gpr_idx_on", "s_set_gpr_idx_off"


def canonicals(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Instructions in the order of their addresses, as gfx11 has them.

    Behind s_set_gpr_idx_on moves find one register by the index, until s_set_gpr_idx_off; what stands
    there beside moves keeps a name that is not known.
    """
    made: list[Instruction] = []
    mode = 0
    for one in map(canonical, instructions):
        if one.spelled == _SET_INDEX:
            mode = one.src[-1].value
        elif one.spelled == _END_INDEX:
            mode = 0
        elif mode:
            one = msgspec.structs.replace(one, name=_with_index(one, mode))  # noqa: PLW2901
        made.append(one)
    return made


def _with_index(one: Instruction, mode: int) -> str:
    found = (*one.dst, *one.src)[:: 1 if mode == 1 else -1][-1]
    plain = one.name == "v_mov_b32" and not one.modifiers.keys() - {ZEROES}
    if plain and mode in _INDEXED and found.kind == "v" and found.index < _ACCUMULATION:
        return _INDEXED[mode]
    return f"{one.spelled} behind {_SET_INDEX}"


def canonical(instruction: Instruction) -> Instruction:
    """The instruction as gfx11 has it; itself where it is of gfx11."""
    if instruction.family != GFX9.name or instruction.spelled or not instruction.name:
        return instruction
    modifiers = _modifiers(instruction)
    name = instruction.name if _stays(instruction) else _name(instruction.name)
    if modifiers.get("lds") or "_load_lds_" in name:
        name = _into_lds(instruction.name)
    if instruction.name == _END_INDEX:
        name = "s_nop"
    if instruction.name == "buffer_inv":
        name = "buffer_gl1_inv" if modifiers.get("sc1") else "buffer_gl0_inv"
    if OCP in modifiers and _FLOAT8.fullmatch(name):
        name += OCP_NAME
    src = [_operand(one) for one in instruction.src]
    if name.startswith(_SCALED):
        scale = src.pop()
        name += "" if (scale.kind, scale.index) == ("float", _INLINE_1) else " with a scale"
    if "bitop3" in modifiers:
        src.append(Operand("simm", value=modifiers["bitop3"]))
    if name.startswith("ds_cmpstore_"):  # the value that is compared with comes first
        src[1], src[2] = src[2], src[1]
    return msgspec.structs.replace(
        instruction,
        name=name,
        spelled=instruction.name,
        dst=tuple(_operand(one) for one in instruction.dst),
        src=tuple(src),
        modifiers=modifiers,
    )


def _stays(one: Instruction) -> bool:
    """Whether it is in a form that gfx11's instruction of that meaning has not.

    An inline float beside pairs of float16 is one in half a register.
    """
    return one.name == "v_dot2c_f32_f16" and any(x.kind == "float" for x in one.src)


def _into_lds(name: str) -> str:
    """Of a load into LDS, which has a name of its own on gfx942 alone; its own where it is not known."""
    match = re.fullmatch(r"(global|buffer)_load_(?:lds_)?(dword(?:x[34])?)", name)
    return f"{match[1]}_load_lds_{_SIZES[match[2]]}" if match else name


@functools.cache
def _name(name: str) -> str:
    if match := _D16.fullmatch(name):
        space, size, high = match.groups(default="")
        lds = space == "ds"
        return f"ds_load_{size}_d16{high}" if lds else f"{space}_load_d16{high}_{_HALVES[size]}"
    if name in _INVALIDATES:
        return "buffer_gl1_inv"
    if name in _WRITES_BACK:
        return "s_nop"
    if match := re.fullmatch(r"(\w+)_(load|store)_([a-z]+(?:x\d+)?)(_d16_hi)?", name):
        space, verb, size, high = match.groups()
        if size in _SIZES:
            return f"{space}_{verb}{high or ''}_{_SIZES[size]}"
    match = re.fullmatch(r"(global|flat|buffer)_atomic_([a-z]+)(_x2)?", name)
    if match and match[2] in _ATOMICS:
        called, letter = _ATOMICS[match[2]]
        return f"{match[1]}_atomic_{called}_{letter}{64 if match[3] else 32}"
    for pattern, made in _NAMES:
        if match := re.fullmatch(pattern, name):
            return match.expand(made)
    return name


def _operand(operand: Operand) -> Operand:
    replace = msgspec.structs.replace
    if operand.kind == "a":
        return replace(operand, kind="v", index=operand.index + _ACCUMULATION)
    if operand.kind in ("flat_scratch", "xnack_mask"):
        first = 102 if operand.kind == "flat_scratch" else 104
        return replace(operand, kind="s", index=operand.index + first)
    return operand


def _modifiers(one: Instruction) -> dict[str, Any]:
    """Modifiers: the bits that say that an access passes caches, and what becomes of upper halves."""
    put = dict(one.modifiers)
    if put.get("sc0") or (put.get("sc1") and "atomic" not in one.name):
        put["glc"] = True
    if _D16.fullmatch(one.name) and KEEPS_HALF not in put:
        put[FORGETS] = True
    if one.encoding in ("VOP1", "VOP2", "VOP3") and _zeroes(one.encoding, one.name):
        put[ZEROES] = True
    return put


@functools.cache
def _zeroes(encoding: str, name: str) -> bool:
    """Whether a result of 16 bits leaves zeros above it: where op_sel does not say which half it takes.

    Source: LLVM, GCNSubtarget::zeroesHigh16BitsOfDest.
    """
    return not by_name(GFX9.name)[encoding, name].op_sel
