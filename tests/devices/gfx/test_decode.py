"""The decoder against llvm-mc-19, and its table against what LLVM tells."""

from __future__ import annotations

import itertools
import random
import re
import shutil
from pathlib import Path

import pytest

from bench import gfx_table
from tests.devices.gfx import compilers
from tests.devices.gfx.test_wheel import told_by_llvm
from tokitai_cli.core import resources
from tokitai_cli.core.errors import CodeError
from tokitai_cli.devices.amdgpu.binary.objects import read_code_object
from tokitai_cli.devices.amdgpu.isa.assembly_text import text
from tokitai_cli.devices.amdgpu.isa.decode import decode
from tokitai_cli.devices.amdgpu.isa.families import Family
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import Row, family, rows

needs_llvm = pytest.mark.skipif(shutil.which("llvm-mc-19") is None, reason="no llvm-mc-19 on PATH")
KERNELS = resources.kernels_dir()
SCALAR_SOURCES = (4, 8, 106, 124, 126, 128, 192, 193, 208, 240, 242, 248, 255)
# Fields that are there, or not, whatever the instruction is.
FLAGS = {
    *("K", "offset", "offset0", "offset1", "glc", "slc", "dlc", "scc", "offen", "idxen", "sve"),
    *("acc", "acc_cd", "cbsz", "abid", "blgp", "imm", "soe", "lds"),
}


def one(*words: int, arch: str = "gfx1101") -> Instruction:
    return next(decode(b"".join(word.to_bytes(4, "little") for word in words), 0x1000, arch))


def test_an_instruction_is_told_with_its_operands_and_modifiers() -> None:
    load = one(0xDC52E010, 0x09280504)
    assert (load.name, load.encoding, load.size, load.address) == (
        "global_load_b32",
        "GLOBAL",
        8,
        0x1000,
    )
    assert load.dst == (Operand("v", 9),)
    assert load.src == (Operand("v", 4), Operand("s", 40, 2))
    assert load.modifiers == {"glc": True, "slc": True, "dlc": True, "offset": 16}
    assert text(load) == "global_load_b32 v9, v4, s[40:41] offset:16 glc slc dlc"


def test_a_half_of_a_register_is_told() -> None:
    move = one(0x7F143900 | 30)  # v_mov_b16 into 138: the high half of 10
    assert move.dst == (Operand("v", 10, half=1),)
    assert move.src == (Operand("v", 30, half=0),)
    most = one(0xD5394B04, 0x02020904)  # v_max_f16 with op_sel: [1, 0, 1]
    assert (most.dst[0].half, [operand.half for operand in most.src]) == (1, [1, 0])
    convert = one(0x7E1C17B8)  # llvm-19 has no spelling for this half
    assert convert.src == (Operand("v", 56, half=1),)
    assert text(convert) == "v_cvt_f32_f16_e32 v14, v56.h"


def test_bits_that_a_copy_of_an_accumulator_does_not_have_are_not_spelled() -> None:
    """Compilers leave abid's highest one set in v_accvgpr_*, as llvm-objdump shows."""
    copy = one(0xD3D84017, 0x18000101, arch="gfx90a")
    assert text(copy) == "v_accvgpr_read_b32 v23, a1"


def test_a_branch_tells_where_it_goes() -> None:
    assert one(0xBFA0FFFF).modifiers == {"simm16": 0xFFFF, "target": 0x1000}
    assert one(0xBFA50021).modifiers["target"] == 0x1000 + 4 + 0x21 * 4


def test_both_halves_of_a_dual_instruction_are_told() -> None:
    dual = one(0xC8C60732, 0x0A34A15B)
    assert dual.x is not None
    assert dual.y is not None
    assert text(dual) == f"{text(dual.x)} :: {text(dual.y)}"
    assert (dual.x.name, dual.y.name) == ("v_dual_mul_f32", "v_dual_mul_f32")


def test_constants_have_the_bits_of_their_width() -> None:
    assert one(0x061464F2).src[0] == Operand("float", 242, value=0x3F800000)
    assert one(0x641464F2).src[0] == Operand("float", 242, value=0x3C00)
    assert one(0x4A1464C1).src[0] == Operand("int", 193, value=0xFFFFFFFF)
    assert one(0x4A1464FF, 0x12345678).src[0] == Operand("literal", 255, value=0x12345678)


def test_what_is_no_instruction_is_unknown_and_never_skipped() -> None:
    code = bytes.fromhex("ffffffff 02")
    found = list(decode(code, 0, "gfx1101"))
    assert [(item.encoding, item.size, item.name) for item in found] == [
        ("unknown", 4, ""),
        ("unknown", 1, ""),
    ]
    assert [text(item) for item in found] == [".long 0xffffffff", ".byte 0x2"]


def test_another_processor_is_refused_by_name() -> None:
    with pytest.raises(CodeError, match="gfx950 cannot be decoded"):
        next(decode(b"", 0, "gfx950"))


def random_fields(of: Family, name: str, row: Row, rng: random.Random) -> dict[str, int]:
    """Fields of the instruction as a compiler may fill them."""
    fields, layout = {}, of.layouts[name]
    slots = {slot.field: slot for slot in row.slots}
    for field, (_, bits) in layout.fields.items():
        slot = slots.get(field)
        if field in FLAGS:
            fields[field] = rng.getrandbits(bits) if slots and rng.random() < 0.5 else 0
        elif slot is None or field == "L":
            continue
        elif bits == 9:
            fields[field] = rng.choice([256 + rng.randrange(128), rng.choice(SCALAR_SOURCES)])
        elif bits == 8 and field in "ABC" and name.startswith("SO"):
            fields[field] = rng.choice(SCALAR_SOURCES)
        elif slot.scalar or bits == 7:
            fields[field] = rng.randrange(0, 100, 4)
        else:
            fields[field] = rng.randrange(120 if bits == 8 else 25) & (-2 if field == "P" else -1)
    if "G" in layout.fields and (name == "FLAT" or rng.random() < 0.5):
        fields["G"] = of.off
    if (
        name == "VOP3"
        and re.search(r"_(add|mul|fma|max3)_f32", row.name)
        and "S" not in slots
        and rng.random() < 0.5
    ):
        sources = sum(field in slots for field in "ABC")
        fields |= {"neg": rng.getrandbits(sources), "clamp": rng.getrandbits(1)}
    if name == "VOP3P" and "fma_mix" not in row.name:
        fields |= {"op_sel_hi": 3, "op_sel_hi2": 1} if "C" in slots else {"op_sel_hi": 3}
    return fields


@needs_llvm
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx90a", "gfx942"])
def test_random_instructions_read_as_llvm_reads_them(arch: str) -> None:
    rng, of = random.Random(arch), family(arch)
    probes = [
        gfx_table.probe(of.layouts[name], opcode, random_fields(of, name, row, rng))
        for name in of.layouts
        for opcode, row in rows(arch).get(name, {}).items()
        if row.name != "s_version"  # spelled by names of processors
        for _ in range(6)
    ]
    read_alike(probes, arch, len(probes) // 2)


def read_alike(probes: list[bytes], arch: str, least: int) -> None:
    """Hold what the decoder says of instructions against llvm-mc-19, of at least so many."""
    told = gfx_table.disassembled(probes, arch)
    pairs = [
        (code.hex(), want, text(next(decode(code, 0, arch))))
        for code, want in zip(probes, told, strict=True)
        if want and "/*" not in want
    ]
    assert len(pairs) > least
    assert [pair for pair in pairs if pair[1] != pair[2]] == []


@needs_llvm
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_parts_and_lanes_that_gfx9_selects_read_as_llvm_reads_them(arch: str) -> None:
    """SDWA and DPP, of every instruction that may have them."""
    rng, of = random.Random(arch), family(arch)
    probes = []
    for name in ("VOP1", "VOP2", "VOPC"):
        for (opcode, row), kind in itertools.product(rows(arch)[name].items(), (249, 250) * 4):
            fields = random_fields(of, name, row, rng) | {"A": kind}
            word = selected_parts(name, row, rng) if kind == 249 else selected_lanes(row, rng)
            code = of.layouts[name].encoded(opcode, fields) | word << 32
            probes.append(code.to_bytes(8, "little"))
    read_alike(probes, arch, len(probes) // 3)


CONTROLS = (0xE4, 0x1B, 0x101, 0x11F, 0x12F, 0x130, 0x138, 0x140, 0x141, 0x142, 0x143, 0x15F)


def signed(row: Row) -> bool:
    """Whether its sources are floats, which have signs of their own."""
    return bool(re.search(r"_f(16|32)", row.name)) and not re.search(r"ldexp|dot|class", row.name)


def selected_lanes(row: Row, rng: random.Random) -> int:
    signs = rng.getrandbits(4) if signed(row) else 0
    if not any(slot.field == "B" for slot in row.slots):
        signs &= 3
    control = rng.choice(CONTROLS)
    return rng.getrandbits(8) | control << 8 | signs << 20 | rng.getrandbits(8) << 24


def selected_parts(name: str, row: Row, rng: random.Random) -> int:
    word = rng.getrandbits(8) | rng.randrange(7) << 16
    signs = rng.getrandbits(2) << 1 if signed(row) else rng.getrandbits(1)
    word |= signs << 19
    if any(slot.field == "B" for slot in row.slots):
        word |= signs << 27 | rng.randrange(7) << 24
    if name == "VOPC":
        return word | (0x80 | rng.randrange(0, 100, 2)) * rng.getrandbits(1) << 8
    return word | rng.randrange(7) << 8 | rng.randrange(3) << 11


@pytest.mark.skipif(shutil.which("llvm-objdump-19") is None, reason="no llvm-objdump-19 on PATH")
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("source", ["embedding", "layernorm", "gemm_bw"])
def test_compiled_kernels_of_gfx9_read_as_llvm_reads_them(
    arch: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = compilers.toolchain("clang", monkeypatch)
    data = compilers.code_object(chain, KERNELS / f"{source}.hip", tmp_path, arch)
    told = told_by_llvm(data, tmp_path, arch)
    read = [
        (told.get(each.address, ""), text(each))
        for kernel in read_code_object(data).kernels
        for each in decode(kernel.code, kernel.address, arch)
    ]
    assert len(read) > 200
    assert [pair for pair in read if pair[0] != pair[1]] == []


@needs_llvm
@pytest.mark.slow
def test_the_table_is_the_one_that_the_assemblers_tell() -> None:
    pytest.importorskip("ziglang")
    kept = gfx_table.TABLE
    assert kept.read_text(encoding="utf-8") == gfx_table.table()
