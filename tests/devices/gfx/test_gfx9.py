"""Instructions of MI200 and MI300 in waves of 64 lanes: what is refused, lanes, parts of registers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.devices.gfx.gfx9_reference import GFX9, NAMES, PICKING
from tests.devices.gfx.machine import program, run, state_of
from tokitai_cli.devices.amdgpu.isa.decode import OCP, decode
from tokitai_cli.devices.amdgpu.isa.families import GFX9 as FAMILY
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import by_name, rows
from tokitai_cli.devices.amdgpu.translate import refused
from tokitai_cli.devices.amdgpu.translate.mode import Mode

LANES = 64
STATE = state_of(LANES)
ALL = 2**64 - 1
TO, FROM, OTHER = 0, 4, 6
STOPPED = 3  # State::stopped of kernels/gfx/run/wave.hpp
LANE = np.arange(LANES)


def of(name: str, dst: Operand, *src: Operand, **modifiers: Any) -> Instruction:
    encoding = next(encoding for encoding, known in by_name("gfx9") if known == name)
    return Instruction(0, 8, name, encoding, (dst,), src, modifiers, family="gfx9")


def v(index: int, count: int = 1) -> Operand:
    return Operand("v", index, count)


def after(code: list[Instruction], row: Any, mask: int = ALL) -> Any:
    """States after each instruction by itself: `row` in v4, lanes' numbers in v6, 7 in v0."""
    states = np.zeros(len(code), STATE)
    states["case"] = np.arange(len(code))
    states["exec"] = mask
    states["v"][:, TO], states["v"][:, FROM], states["v"][:, OTHER] = 7, row, LANE
    return run(program(code, lanes=LANES), states)


def encoded(encoding: str, opcode: int) -> Instruction:
    """An instruction of that opcode on registers that all have."""
    layout = FAMILY.layouts[encoding]
    word = layout.encoded(
        opcode, {name: 256 for name in "ABC" if layout.fields.get(name, (0, 0))[1] > 8}
    )
    (made,) = decode(word.to_bytes(layout.size, "little"), 0, "gfx942")
    return made


def test_what_has_no_reference_is_refused_by_its_name() -> None:
    division = {name for name in NAMES if name.startswith("v_div_")}
    told = []
    for encoding in ("VOP3", "VOP3P"):
        for opcode, row in rows("gfx942")[encoding].items():
            if row.name in {*GFX9, *division, PICKING, "v_nop", "v_mov_b32"} or "lane" in row.name:
                continue
            names = refused([encoded(encoding, opcode)])
            if not names or not names[0].startswith(row.name):
                told.append((row.name, names))
    assert not told
    assert len(GFX9) > 350


DPP = {
    "wave_shl": (0x130, LANE + 1),
    "wave_rol": (0x134, (LANE + 1) % 64),
    "wave_shr": (0x138, LANE - 1),
    "wave_ror": (0x13C, (LANE - 1) % 64),
    "row_bcast:15": (0x142, (LANE & ~15) - 1),
    "row_bcast:31": (0x143, np.where(LANE < 32, -1, 31)),
    "row_newbcast:3": (0x153, (LANE & ~15) + 3),
    "row_shr:1": (0x111, np.where(LANE % 16 < 1, -1, LANE - 1)),
    "row_mirror": (0x140, LANE ^ 15),
    "quad_perm": (0x1B, LANE ^ 3),
}


@pytest.mark.parametrize("bound", [False, True])
def test_dpp_moves_lanes_of_a_whole_wave(bound: bool) -> None:
    row = np.arange(1000, 1064)
    put: dict[str, Any] = {"bound_ctrl": True} if bound else {}
    code = [
        of("v_mov_b32", v(TO), v(FROM), dpp_ctrl=control, row_mask=15, bank_mask=15, **put)
        for control, _ in DPP.values()
    ]
    inactive = 37
    states = after(code, row, ALL ^ 1 << inactive)
    for (name, (_, source)), state in zip(DPP.items(), states, strict=True):
        known = (source >= 0) & (source < LANES) & (source != inactive)
        want = np.where(known, row[source % LANES], 0 if bound else 7)
        want[inactive] = 7
        assert np.array_equal(state["v"][TO], want), name


@pytest.mark.parametrize(
    ("name", "made", "most"),
    [
        ("v_cvt_pk_fp8_f32", ml_dtypes.float8_e4m3fnuz, 240.0),
        ("v_cvt_pk_bf8_f32", ml_dtypes.float8_e5m2fnuz, 57344.0),
        ("v_cvt_pk_fp8_f32_ocp", ml_dtypes.float8_e4m3fn, 448.0),
        ("v_cvt_scalef32_pk_bf8_f32", ml_dtypes.float8_e5m2, 57344.0),
    ],
)
def test_conversions_to_float8_saturate_where_the_mode_says_so(
    name: str, made: type, most: float
) -> None:
    scale = (Operand("float", 242),) if "scale" in name else ()
    ocp = {OCP: True} if "_ocp" in name else {}
    one = of(name.removesuffix("_ocp"), v(TO), v(FROM), v(OTHER), *scale, **ocp)
    states = np.zeros(2, STATE)
    states["exec"] = ALL ^ 1
    row = np.linspace(-1.5 * most, 1.5 * most, LANES, dtype=np.float32)
    row[1:3] = np.nan, most
    states["v"][:, FROM], states["v"][:, OTHER] = row.view(np.uint32), row[::-1].view(np.uint32)
    infinity = np.float32(np.inf).view(np.uint32)
    states["v"][0, FROM, 0] = infinity  # not active
    states["v"][1, OTHER, 9] = infinity
    known, infinite = run(program([one], Mode(fp16_overflow=1), LANES), states)
    want: Any = np.stack(
        [np.clip(each, -most, most).astype(made) for each in (row, row[::-1])], axis=1
    )
    got = known["v"][TO].astype(np.uint16).view(made).reshape(LANES, 2)
    assert np.array_equal(got[1:].astype(np.float32), want[1:].astype(np.float32), equal_nan=True)
    assert known["state"] != STOPPED
    # What becomes of an infinity is stated for OCP's alone.
    assert (infinite["state"] == STOPPED) == made.__name__.endswith("fnuz")
    if infinite["state"] != STOPPED:
        assert infinite["v"][TO][9] >> 8 & 255 == np.array(most).astype(made).view(np.uint8)


def test_masks_of_rows_have_four_bits() -> None:
    control = {"dpp_ctrl": 0x142, "bank_mask": 15}
    code = [of("v_mov_b32", v(TO), v(FROM), row_mask=0xA, **control)]
    (state,) = after(code, np.arange(1000, 1064))
    want = np.where(LANE // 16 % 2 == 1, 1000 + (LANE & ~15) - 1, 7)
    assert np.array_equal(state["v"][TO], want)


def test_lanes_read_any_of_64() -> None:
    picks = np.random.default_rng(2).integers(0, 256, LANES)
    row = np.arange(1000, 1064)
    s = Operand("s", 50)
    high = Operand("int", 128 + 41, value=41)
    permuted = np.zeros(LANES, np.int64)
    for source in range(LANES):
        permuted[picks[source] // 4 % LANES] = LANE[source]
    code = [
        of("v_readlane_b32", s, v(FROM), high),
        of("v_readfirstlane_b32", s, v(FROM)),
        of("v_writelane_b32", v(TO), high, high),
        of("ds_bpermute_b32", v(TO), v(FROM), v(OTHER)),
        of("ds_permute_b32", v(TO), v(FROM), v(OTHER)),
        of("ds_swizzle_b32", v(TO), v(OTHER), offset=0x041F),
        of("ds_swizzle_b32", v(TO), v(OTHER), offset=0xC000 | 3 << 5),
    ]
    read, first, written, back, forth, swapped, rotated = after(code, row)
    assert (read["s"][50], first["s"][50]) == (row[41], row[0])
    assert np.array_equal(written["v"][TO], np.where(LANE == 41, 41, 7))
    assert np.array_equal(swapped["v"][TO], LANE ^ 1)
    assert np.array_equal(rotated["v"][TO], (LANE & 32) | (LANE + 3) % 32)
    back, forth = after(code[3:5], picks)
    assert np.array_equal(back["v"][TO], picks // 4 % LANES)
    assert np.array_equal(forth["v"][TO], permuted)


# What SDWA's numbers select.
SELECTED = [(0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32)]


def part_of(row: Any, selection: int, extended: bool) -> Any:
    shift, bits = SELECTED[selection]
    part = row >> shift & (1 << bits) - 1
    return np.where(part >> bits - 1 == 1, part - (1 << bits), part) if extended else part


def test_parts_of_registers_are_selected() -> None:
    random = np.random.default_rng(3)
    row = random.integers(0, 2**32, LANES)
    cases, code = [], []
    for source in range(7):
        for extended in (False, True):
            for dst in range(7):
                for unused in range(3):
                    cases.append((source, extended, dst, unused))
                    put = {"dst_sel": dst, "dst_unused": unused, "src0_sel": source, "src1_sel": 6}
                    put |= {"sext": 1} if extended else {}
                    code.append(of("v_add_u32", v(TO), v(FROM), v(OTHER), **put))
    mask = int(random.integers(0, 2**63))
    active = np.array([mask >> lane & 1 for lane in range(LANES)]) == 1
    for (source, extended, dst, unused), state in zip(cases, after(code, row, mask), strict=True):
        shift, bits = SELECTED[dst]
        made = (part_of(row, source, extended) + LANE) % 2**bits
        want = made << shift
        if unused == 1:
            want += np.where(made >> bits - 1 == 1, -1 << (shift + bits), 0)
        elif unused == 2:
            want |= 7 & ~((1 << bits) - 1 << shift)
        want = np.where(active, want % 2**32, 7)
        assert np.array_equal(state["v"][TO], want), (source, extended, dst, unused)


def test_halves_of_floats_are_selected_with_signs() -> None:
    halves = np.random.default_rng(5).normal(0, 4, (LANES, 2)).astype(np.float16)
    row = halves.view(np.uint32)[:, 0]
    put = {"dst_sel": 5, "dst_unused": 2, "src0_sel": 5, "src1_sel": 4}
    negated = Operand("v", FROM, neg=True)
    (state,) = after([of("v_add_f16", v(TO), negated, v(FROM), **put)], row)
    want = (halves[:, 0] - halves[:, 1]).astype(np.float16).view(np.uint16).astype(np.uint32)
    assert np.array_equal(state["v"][TO], want << 16 | 7)


def test_registers_of_pairs_are_picked() -> None:
    pair = Operand("v", FROM, 2)
    code = [
        of(PICKING, Operand("v", TO, 2), pair, Operand("v", OTHER, 2), op_sel=picks, op_sel_hi=3)
        for picks in range(4)
    ]
    states = np.zeros(4, STATE)
    states["case"], states["exec"] = np.arange(4), ALL
    for register in range(4, 8):
        states["v"][:, register] = 1000 * register + LANE
    for picks, state in enumerate(run(program(code, lanes=LANES), states)):
        assert np.array_equal(state["v"][TO], 1000 * (FROM + (picks & 1)) + LANE)
        assert np.array_equal(state["v"][TO + 1], 1000 * (OTHER + (picks >> 1)) + LANE)


def test_accumulation_registers_are_others() -> None:
    """Of one program: what is written to a5 is not in v5, and comes back."""
    a, five = Operand("a", 5), v(5)
    there = Instruction(0, 8, "v_accvgpr_write_b32", "MAI", (a,), (v(FROM),), {}, family="gfx9")
    back = Instruction(0, 8, "v_accvgpr_read_b32", "MAI", (v(TO),), (a,), {}, family="gfx9")
    states = np.zeros(1, STATE)
    states["exec"] = ALL
    states["v"][:, FROM], states["v"][:, 5] = LANE, 9
    (state,) = run(program([[there, back]], lanes=LANES), states)
    assert np.array_equal(state["v"][TO], LANE)
    assert (state["v"][five.index] == 9).all()


def test_moves_find_registers_by_an_index() -> None:
    def index(mode: int) -> Instruction:
        given = (Operand("s", 40), Operand("gpr_idx", value=mode))
        return Instruction(0, 4, "s_set_gpr_idx_on", "SOPC", (), given, family="gfx9")

    off = Instruction(0, 4, "s_set_gpr_idx_off", "SOPP", family="gfx9")
    read = [index(1), of("v_mov_b32", v(TO), v(FROM)), off, of("v_mov_b32", v(20), v(FROM))]
    wrote = [index(8), of("v_mov_b32", v(TO), v(FROM)), off]
    states = np.zeros(2, STATE)
    states["case"], states["exec"], states["s"][:, 40] = np.arange(2), ALL, 0xABC00003
    for register in range(8):
        states["v"][:, register] = 1000 * register + LANE
    found, put = run(program([read, wrote], lanes=LANES), states)
    assert np.array_equal(found["v"][TO], 1000 * (FROM + 3) + LANE)
    assert np.array_equal(found["v"][20], 1000 * FROM + LANE)
    assert np.array_equal(put["v"][TO + 3], 1000 * FROM + LANE)
    assert np.array_equal(put["v"][TO], LANE)
    assert refused([index(1), of("v_add_u32", v(TO), v(FROM), v(OTHER)), off]) == (
        "v_add_u32 behind s_set_gpr_idx_on",
    )


def test_an_inline_float_beside_pairs_of_halves_is_refused() -> None:
    one = Operand("float", 242, value=0x3F800000)
    name = "v_dot2c_f32_f16"
    assert refused([of(name, v(TO), one, v(FROM))]) == (name,)
    assert not refused([of(name, v(TO), v(OTHER), v(FROM))])
