"""The decoder against llvm-mc, and its table against what LLVM tells."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import gfx_table
from tests.devices.gfx import compilers
from tests.devices.gfx.test_wheel import told_by_llvm
from tokitai_cli.core import elf, resources
from tokitai_cli.core.errors import CodeError
from tokitai_cli.devices.amdgpu.binary.objects import read_code_object
from tokitai_cli.devices.amdgpu.isa.assembly_text import text
from tokitai_cli.devices.amdgpu.isa.decode import decode
from tokitai_cli.devices.amdgpu.isa.families import Family
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import Row, family, rows


def needs(*arches: str) -> None:
    """Skip where an llvm-mc that is asked for one of them is not there."""
    for name in {gfx_table.assembler(arch) for arch in arches}:
        if shutil.which(name) is None:
            pytest.skip(f"no {name} on PATH")


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
    with pytest.raises(CodeError, match="gfx1200 cannot be decoded"):
        next(decode(b"", 0, "gfx1200"))


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
            # On gfx9 no literal stands behind what has 8 bytes, though LLVM 22 reads one.
            known = SCALAR_SOURCES[: -1 if of.name == "gfx9" and layout.size == 8 else None]
            fields[field] = rng.choice([256 + rng.randrange(128), rng.choice(known)])
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


PROCESSORS = ["gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx90a", "gfx942", "gfx950"]


@pytest.mark.parametrize("arch", PROCESSORS)
def test_random_instructions_read_as_llvm_reads_them(arch: str) -> None:
    probes = random_instructions(arch)
    read_alike(probes, arch, len(probes) // 2)


def random_instructions(arch: str) -> list[bytes]:
    """Some of every opcode."""
    rng, of = random.Random(arch), family(arch)
    return [
        gfx_table.probe(of.layouts[name], opcode, random_fields(of, name, row, rng))
        for name in of.layouts
        for opcode, row in rows(arch).get(name, {}).items()
        if row.name != "s_version"  # spelled by names of processors
        # LLVM 22 names registers of hardware that LLVM 19 spells by their numbers.
        and not (arch == "gfx950" and "etreg" in row.name)
        for _ in range(6)
    ]


def test_a_newer_assembler_takes_the_texts_of_gfx950_for_the_same(tmp_path: Path) -> None:
    """Pip's ziglang has LLVM 22; what a text is assembled to reads as that text again."""
    pytest.importorskip("ziglang")
    texts = [text(next(decode(code, 0, "gfx950"))) for code in random_instructions("gfx950")[::6]]
    texts = [one for one in texts if "/*" not in one and not one.startswith(".")]
    source, made = tmp_path / "code.s", tmp_path / "code.o"

    def assembled(lines: list[str]) -> set[int]:
        """Numbers of lines that are refused."""
        source.write_text("".join(f"{line}\n" for line in lines))
        words = ("-triple", "amdgcn-amd-amdhsa", "-target-cpu", "gfx950", "-filetype", "obj")
        done = subprocess.run(
            [sys.executable, "-m", "ziglang", "clang", "-cc1as", *words, "-o", made, source],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return {int(number) - 1 for number in re.findall(r"\.s:(\d+):\d+: error", done.stderr)}

    bad = assembled(texts)
    good = [line for at, line in enumerate(texts) if at not in bad]
    assert not assembled(good)
    # Fields that were drawn at random may say what no assembler writes.
    assert len(good) > 0.7 * len(texts), [texts[at] for at in sorted(bad)]
    (code,) = elf.sections(made.read_bytes(), ".text")
    assert [text(one) for one in decode(code, 0, "gfx950")] == good


def test_scales_of_a_matrix_product_are_of_it() -> None:
    """Assembled by llvm-mc-22."""
    scaled = one(0xD3AC0800, 0x10023318, 0xD3AD0900, 0x04521904, arch="gfx950")
    assert scaled.size == 16
    assert text(scaled) == (
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[20:23], v24, v25 "
        "op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:1"
    )
    alone = one(0xD3AC0800, 0x10023318, 0xBF800000, arch="gfx950")
    assert (alone.name, alone.size) == ("v_mfma_ld_scale_b32", 8)


def test_no_literal_stands_behind_eight_bytes_of_gfx9() -> None:
    """As ISA and LLVM 19 have it; LLVM 22's disassembler reads one."""
    add = (0xD1010000, 0x000200FF, 0x3F801234)  # v_add_f32_e64 v0, literal, s0
    assert one(*add, arch="gfx942").encoding == "unknown"


def test_what_llvm_assembles_for_gfx950_is_told() -> None:
    """Encodings by llvm-mc-22."""
    for words, want in (
        ((0xD2340400, 0xFC0E0501), "v_bitop3_b32 v0, v1, v2, v3 bitop3:0xe7"),
        ((0xD2334C00, 0xFC0E0501), "v_bitop3_b16 v0, v1, v2, v3 bitop3:0xe7 op_sel:[1,0,0,1]"),
        ((0xD1991001, 0x00000102), "v_permlane16_swap_b32_e64 v1, v2 bound_ctrl:1"),
        ((0xD3AD0400, 0x9C020100), "v_mfma_f32_16x16x128_f8f6f4 v[0:3], a[0:3], a[0:3], v[0:3] "
         "cbsz:4 blgp:4"),
    ):  # fmt: skip
        assert text(one(*words, arch="gfx950")) == want


def read_alike(probes: list[bytes], arch: str, least: int) -> None:
    """Hold what the decoder says of instructions against llvm-mc, of at least so many."""
    needs(arch)
    told = gfx_table.disassembled(probes, arch)
    pairs = [
        (code.hex(), want, text(next(decode(code, 0, arch))))
        for code, want in zip(probes, told, strict=True)
        if want and "/*" not in want
    ]
    assert len(pairs) > least
    assert [pair for pair in pairs if pair[1] != pair[2]] == []


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_parts_and_lanes_that_gfx9_selects_read_as_llvm_reads_them(arch: str) -> None:
    """SDWA and DPP, of every instruction that may have them."""
    rng, of = random.Random(arch), family(arch)
    probes = []
    for name in ("VOP1", "VOP2", "VOPC"):
        for (opcode, row), kind in itertools.product(rows(arch)[name].items(), (249, 250) * 4):
            if row.name == "v_nop":
                continue
            fields = random_fields(of, name, row, rng) | {"A": kind}
            word = selected_parts(name, row, rng) if kind == 249 else selected_lanes(row, rng)
            code = of.layouts[name].encoded(opcode, fields) | word << 32
            probes.append(code.to_bytes(8, "little"))
    read_alike(probes, arch, len(probes) // 3)


CONTROLS = (0xE4, 0x1B, 0x101, 0x11F, 0x12F, 0x130, 0x138, 0x140, 0x141, 0x142, 0x143, 0x15F)


def signed(row: Row) -> bool:
    """Whether its sources are floats, which have signs of their own."""
    return bool(re.search(r"_f(16|32)", row.name)) and not re.search(
        r"ldexp|dot|class|pk_fmac", row.name
    )


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


@pytest.mark.slow
@pytest.mark.parametrize("name", gfx_table.ASKED)
def test_the_table_is_the_one_that_the_assemblers_tell(name: str) -> None:
    pytest.importorskip("ziglang")
    needs(*gfx_table.ASKED[name].arches)
    assert "".join(gfx_table.parts(name)) in gfx_table.TABLE.read_text(encoding="utf-8")
