"""Memory instructions of gfx9 by their own names and encodings, with operands of every kind.

What each does is said by the evaluation of test_memory.py, which was written for the names of gfx11;
`called` says which of them is meant, from the descriptions of both manuals.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.devices.gfx import test_memory
from tests.devices.gfx.compilers import toolchain
from tests.devices.gfx.machine import MEMORY, program, run, state_of
from tests.devices.gfx.test_memory import AT, DATA, OTHER, TO, changed
from tests.runs import run as run_spec
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu.isa.decode import Decoder, decode
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import Row, family, rows
from tokitai_cli.devices.amdgpu.translate import refused
from tokitai_cli.devices.amdgpu.translate.gfx9 import canonical
from tokitai_cli.devices.amdgpu.translate.translation import statement

LANES = 64
ARCHES = ("gfx90a", "gfx942", "gfx950")
ENCODINGS = ("DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF")
SIZES = {
    "ubyte": "u8", "sbyte": "i8", "ushort": "u16", "sshort": "i16", "dword": "b32",
    "dwordx2": "b64", "dwordx3": "b96", "dwordx4": "b128", "byte": "b8", "short": "b16",
}  # fmt: skip
VERBS = {"smin": "min_i", "umin": "min_u", "smax": "max_i", "umax": "max_u"}
BITS = ("and", "or", "xor", "swap", "cmpswap")
#: Further registers: a scalar base, and where accumulation registers of data begin.
BASE = 20
STOPPED = 3
# Of one program.
PART = 120


def called(name: str) -> str | None:
    """The instruction of gfx11 that is meant; None of one without an evaluation there."""
    space, _, rest = name.partition("_")
    if space == "ds":
        return called_in_lds(rest)
    verb, _, what = rest.partition("_")
    if verb in ("load", "store"):
        half = next((end for end in ("_d16_hi", "_d16") if what.endswith(end)), "")
        size = what.removesuffix(half)
        if size not in SIZES:
            return None
        return f"{space}_{verb}{half}_{SIZES[size]}"
    if verb != "atomic":
        return None
    if what.startswith("pk_add") or what[-4:] in ("_f32", "_f64"):
        return name
    wide = "64" if what.endswith("_x2") else "32"
    what = what.removesuffix("_x2")
    if what in BITS:
        return f"{space}_atomic_{what}_b{wide}"
    return f"{space}_atomic_{VERBS.get(what, what + '_u')}{wide}"


def called_in_lds(rest: str) -> str | None:
    """The same of LDS."""
    words = rest.split("_")
    if words[0] in ("read", "write") and words[1][0] in "biu" and "tr" not in words:
        return f"ds_{'load' if words[0] == 'read' else 'store'}_{'_'.join(words[1:])}"
    for verb, meant in (("read", "load"), ("write", "store")):
        if words[0] == f"{verb}2":
            return f"ds_{meant}_2addr_{words[1]}"
        if words[0] == f"{verb}2st64":
            return f"ds_{meant}_2addr_stride64_{words[1]}"
    if words[0] in ("cmpst", "wrxchg"):
        return "_".join(("ds", {"cmpst": "cmpstore", "wrxchg": "storexchg"}[words[0]], *words[1:]))
    if rest.startswith("pk_add") or words[0] in test_memory.ATOMIC:
        return f"ds_{rest}"
    return None


# What gfx9 has and the table has not: by name, or by its beginning, of which refusals name each.
REFUSED = (
    *("ds_mskor", "ds_wrap", "ds_condxchg", "ds_rsub", "ds_wrxchg2", "ds_append", "ds_consume"),
    *("ds_gws", "ds_ordered", "ds_nop", "ds_read_addtid", "ds_write_addtid", "ds_cmpst_f"),
    *("ds_cmpst_rtn_f", "ds_read_b96_tr", "scratch_load_lds", "buffer_store_lds"),
    *("global_load_lds", "buffer_load_format", "buffer_store_format", "ds_min_src", "ds_add_src"),
)
# Tested elsewhere, or without an effect on memory.
OTHERS = (
    *("ds_permute", "ds_bpermute", "ds_swizzle", "ds_read_b64_tr", "buffer_wb", "buffer_inv"),
    *("global_load_lds_dword",),
)


def kinds_of(arch: str, encoding: str, row: Row) -> list[dict[str, int]]:
    """Fields of each kind of operands that an instruction has, beside its registers."""
    layout, off = family(arch).layouts[encoding], family(arch).off
    kinds = {
        "DS": [{"offset0": 0, "offset1": 1} if row.two else {"offset0": 16}],
        "FLAT": [{"offset": 16}],
        "GLOBAL": [{"offset": 16, "G": BASE}, {"offset": 16, "G": off}],
        "SCRATCH": [{"offset": 16, "G": off, "sve": int(arch != "gfx90a")}],
        "MUBUF": [{"offset": 16, "R": BASE // 4, "O": 128, "offen": 1}],
    }[encoding]
    if "atomic" in row.name and encoding != "DS":
        kinds = [{**one, "glc": glc} for one in kinds for glc in (0, 1)]
    if "acc" in layout.fields and {slot.field for slot in row.slots} & {"X", "Y", "D"}:
        kinds += [{**kinds[-1], "acc": 1}]
    return kinds


def encodings(arch: str) -> list[tuple[str, int, str, dict[str, int]]]:
    """Encoding, opcode, name and fields of every instruction with each kind of operands."""
    found = []
    for encoding in ENCODINGS:
        for opcode, row in rows(arch)[encoding].items():
            put = {"A": AT, "X": DATA, "Y": OTHER, "D": TO}
            if row.name.startswith("ds_cmpst"):  # what is compared with comes first
                put |= {"X": OTHER, "Y": DATA}
            if row.name.startswith("buffer_load"):
                put |= {"X": TO}
            known = family(arch).layouts[encoding].fields
            plain = {name: value for name, value in put.items() if name in known}
            found += [
                (encoding, opcode, row.name, {**plain, **one})
                for one in kinds_of(arch, encoding, row)
            ]
    return found


def decoded(arch: str, encoding: str, opcode: int, fields: dict[str, int]) -> Instruction:
    word = family(arch).layouts[encoding].encoded(opcode, fields)
    return next(decode(word.to_bytes(8, "little"), 0, arch))


@pytest.mark.parametrize("arch", ARCHES)
def test_each_is_evaluated_or_refused_by_its_name(arch: str) -> None:
    told = []
    for encoding, opcode, name, fields in encodings(arch):
        if not name.startswith(REFUSED) or name.startswith(OTHERS):
            continue
        names = refused([decoded(arch, encoding, opcode, fields)])
        if not names or not names[0].startswith(name):
            told.append((name, names))
    assert not told


def cases(arch: str) -> list[tuple[str, Instruction, dict[str, int]]]:
    """What is meant, the instruction, and its fields."""
    made = []
    for encoding, opcode, name, fields in encodings(arch):
        if name.startswith((*REFUSED, *OTHERS)):
            continue
        meant = called(name)
        assert meant is not None, name
        made.append((meant, decoded(arch, encoding, opcode, fields), fields))
    return made


def step(name: str, dst: tuple[Operand, ...], *src: Operand) -> Instruction:
    return Instruction(0, 8, name, "MAI" if "accvgpr" in name else "VOP3", dst, src, family="gfx9")


def v(index: int) -> Operand:
    return Operand("v", index)


VCC = Operand("vcc", 0, 2)
#: Adds the base to the address in v[AT:AT + 1], by way of v[HIGH].
HIGH = 13
BASED = [
    step("v_mov_b32", (v(AT + 1),), Operand("int", 128)),
    step("v_mov_b32", (v(HIGH),), Operand("s", BASE + 1)),
    step("v_add_co_u32", (v(AT), VCC), Operand("s", BASE), v(AT)),
    step("v_addc_co_u32", (v(AT + 1), VCC), v(AT + 1), v(HIGH), VCC),
]
#: Registers of data, which are copied to accumulation registers of the same numbers and back.
COPIED = (*range(TO, TO + 4), *range(DATA, OTHER + 2))


def steps(one: Instruction, fields: dict[str, int], off: int) -> list[Instruction]:
    """The instruction with what it stands on."""
    made = [one]
    if one.encoding == "GLOBAL" and fields["G"] == off:
        made = [*BASED, *made]
    if fields.get("acc"):
        there = [step("v_accvgpr_write_b32", (Operand("a", at),), v(at)) for at in COPIED]
        back = [step("v_accvgpr_read_b32", (v(at),), Operand("a", at)) for at in COPIED]
        made = [*there, *made, *back]
    return made


@pytest.mark.parametrize(
    ("arch", "stride"),
    [("gfx942", 7), *(pytest.param(arch, 1, marks=pytest.mark.slow) for arch in ARCHES)],
)
def test_memory_instructions_do_what_the_manual_says(arch: str, stride: int) -> None:
    found = cases(arch)[::stride]
    assert len(found) > 250 // stride
    names = [meant for meant, _, _ in found]
    before = test_memory.states(names, lanes=LANES)
    want = changed(before, names, [bool(one.dst) for _, one, _ in found], lanes=LANES)
    for first, state in zip(before, want, strict=True):
        if found[state["case"]][1].encoding == "MUBUF" and "atomic" in names[state["case"]]:
            returned_in_data(first, state, sum(to.count for to in found[state["case"]][1].dst))
    off = family(arch).off
    code = [steps(one, fields, off) for _, one, fields in found]
    after = np.concatenate(
        [
            run(program(code[start : start + PART], lanes=LANES), part_of(before, start))
            for start in range(0, len(code), PART)
        ]
    )
    told = []
    for first, second in zip(after, want, strict=True):
        name, _, fields = found[second["case"]]
        kept = [at for at in range(len(first["v"])) if at not in (AT, AT + 1, HIGH)]
        for part in ("v", "memory", "exec"):
            got, wanted = (
                each[part][kept] if part == "v" else each[part] for each in (first, second)
            )
            if not np.array_equal(got, wanted):
                where = np.argwhere(got != wanted)[:2].tolist() if part != "exec" else ""
                told.append(f"{name} {fields}: {part} differs at {where}")
        if first["found"]:
            told.append(f"{name} {fields}: {first['found']} findings")
    assert not told, f"{len(told)}\n" + "\n".join(told[:40])


def returned_in_data(before: Any, state: Any, returns: int) -> None:
    """What a buffer's atomic operation returns is where its data were."""
    active = np.uint64(before["exec"]) >> np.arange(LANES, dtype=np.uint64) & 1 == 1
    for at in range(returns):
        state["v"][DATA + at] = np.where(active, state["v"][TO + at], before["v"][DATA + at])
        state["v"][TO + at] = before["v"][TO + at]


def part_of(before: Any, start: int) -> Any:
    """States of one program, numbered as its instructions are."""
    part = before[(before["case"] >= start) & (before["case"] < start + PART)].copy()
    part["case"] -= start
    return part


def lds_of(code: list[Instruction], mask: int = 2**64 - 1) -> tuple[Any, Any]:
    """States before and after each: v4 has 8 times the lane's number, M0 is 1024, memory is random."""
    states = np.zeros(len(code), state_of(LANES))
    states["case"], states["exec"] = np.arange(len(code)), mask
    states["v"][:, AT] = 8 * np.arange(LANES)
    states["s"][:, 125], states["s"][:, 22] = 1024, MEMORY
    states["memory"] = np.random.default_rng(9).integers(0, 256, states["memory"].shape)
    return states, run(program(code, lanes=LANES), states)


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_a_matrix_is_transposed_on_its_way_out_of_lds(bits: int) -> None:
    """16 lanes hold one, a row in 16 / (64 / bits) lanes; a lane gets a column of it."""
    name = f"ds_read_b64_tr_b{bits}"
    one = Instruction(0, 8, name, "DS", (Operand("v", TO, 2),), (v(AT),), {}, family="gfx9")
    before, (after,) = lds_of([one])
    words = before[0]["memory"][: 8 * LANES].view("<u8").reshape(4, 16)
    for group in range(4):
        parts = [int(word) >> bits * at & (1 << bits) - 1
                 for word in words[group] for at in range(64 // bits)]  # fmt: skip
        columns = np.array(parts, object).reshape(64 // bits, 16).T
        for lane, column in enumerate(columns):
            got = (
                int(after["v"][TO][16 * group + lane])
                | int(after["v"][TO + 1][16 * group + lane]) << 32
            )
            assert got == sum(part << bits * at for at, part in enumerate(column)), (group, lane)
    assert run_stops(one)


def run_stops(one: Instruction) -> bool:
    """Whether it ends a wave of which some lanes are not active."""
    _, (after,) = lds_of([one], mask=2**64 - 2)
    return int(after["state"]) == STOPPED


@pytest.mark.parametrize("size", [1, 3, 4])
def test_loads_into_lds_lie_side_by_side(size: int) -> None:
    mask = 0xF0F0_FFFF_FFFF_FFF1
    name = "dword" if size == 1 else f"dwordx{size}"
    plain = Instruction(
        0, 8, f"global_load_lds_{name}", "GLOBAL", (), (v(AT), Operand("s", BASE, 2)),
        {"offset": 16}, family="gfx9",
    )  # fmt: skip
    described = Instruction(
        0, 8, f"buffer_load_{name}", "MUBUF", (),
        (v(AT), Operand("s", BASE, 4), Operand("int", 128)),
        {"offset": 16, "offen": True, "lds": True}, family="gfx9",
    )  # fmt: skip
    before, after = lds_of([plain, described], mask)
    for first, last in zip(before, after, strict=True):
        want = first["memory"].copy()
        for lane in range(LANES):
            if mask >> lane & 1:
                at = 1024 + 16 + 4 * size * lane
                want[at : at + 4 * size] = first["memory"][16 + 8 * lane :][: 4 * size]
        assert np.array_equal(last["memory"], want)


@pytest.mark.parametrize("rows_of", [16, 32])
def test_rows_of_two_registers_are_exchanged(rows_of: int) -> None:
    name = f"v_permlane{rows_of}_swap_b32"
    one = Instruction(0, 8, name, "VOP3", (v(AT),), (v(DATA),), {}, family="gfx9")
    before, (after,) = lds_of([one])
    odd = np.arange(LANES) & rows_of != 0
    first, second = before[0]["v"][AT], before[0]["v"][DATA]
    assert np.array_equal(after["v"][AT], np.where(odd, np.roll(second, rows_of), first))
    assert np.array_equal(after["v"][DATA], np.where(odd, second, np.roll(first, -rows_of)))
    assert run_stops(one)


HALF = """
#include <hip/hip_runtime.h>
extern "C" __global__ void half(const unsigned short* x, unsigned* y) {
  unsigned made;
  asm volatile("v_mov_b32 %0, 0\\n\\tglobal_load_short_d16 %0, %1, off\\n\\ts_waitcnt vmcnt(0)"
               : "=&v"(made) : "v"(x + threadIdx.x));
  y[threadIdx.x] = made PICKED;
}
"""
SPEC = """
schema: tokitai/spec/v1
op: halves
title: half a register
params: {n: {default: 64}}
profiles: {normal: {draw: uniform}}
variants:
  one:
    source: half.hip
    inputs: {x: {dtype: uint16, shape: [n]}}
    outputs: {y: {dtype: uint32, shape: [n]}}
    launches: [{kernel: half, grid: [1], block: [64], args: [x, y]}]
    oracle: {formula: "formula.py:same"}
    checks: [{metric: exact, why: a copy}]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("picked", "verdict"), [("& 0xffff", Verdict.VERIFIED), ("", Verdict.REFUTED)]
)
def test_nothing_is_known_of_the_half_beside_one_that_is_loaded(
    picked: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    (tmp_path / "half.hip").write_text(HALF.replace("PICKED", picked))
    (tmp_path / "formula.py").write_text(
        "def same(params, inputs, scalars):\n    return {'y': inputs['x'].astype('uint32')}\n"
    )
    (tmp_path / "spec.yaml").write_text(SPEC)
    (case,) = run_spec(tmp_path / "spec.yaml", tmp_path, device="gfx", arch="gfx90a").cases
    assert case.verdict is verdict, case.reason


@pytest.mark.parametrize("without", [False, True])
def test_without_ecc_a_load_of_half_a_register_keeps_the_other(without: bool) -> None:
    word = family("gfx90a").layouts["GLOBAL"].encoded(36, {"A": AT, "G": BASE, "D": TO})
    one = Decoder("gfx90a", without_ecc=without).at(word.to_bytes(8, "little"), 0, 0)
    assert one.name == "global_load_short_d16"
    assert ("forget_half" in statement(canonical(one)).text) is not without
