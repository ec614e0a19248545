"""Float modes: denormals that are flushed, IEEE's minimum, overflow of float16; and what sets them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.devices.gfx.machine import STATE, program, run
from tests.devices.gfx.reference import FLOATS, FORMATS, REFERENCE
from tests.devices.gfx.test_semantics import WIDTH, _Case, bits_of, drawn, same, typed
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate.mode import USUAL, Mode
from tokitai_cli.devices.amdgpu.translate.mode_flow import modes
from tokitai_cli.devices.amdgpu.translate.operands import RefusedError
from tokitai_cli.devices.amdgpu.translate.translation import refused

FLUSHED = Mode(denorm_32=0), Mode(denorm_16_64=0), Mode(denorm_32=1), Mode(denorm_32=2)
# What takes and gives floats of one type, so that flushing is the whole of the difference.
NAMES = ("v_add_{}", "v_mul_{}", "v_fma_{}", "v_min_{}", "v_max_{}", "v_rndne_{}", "v_pk_add_{}")


def flush(values: Any, kind: str, kept: int) -> Any:
    if kept or kind not in FLOATS:
        return values
    return np.where(np.abs(values) < 2.0 ** FORMATS[kind][1], values * 0, values)


def tiny(random: np.random.Generator, kind: str, count: int) -> Any:
    """Bits of numbers about the least normal one, and others."""
    bits = drawn(random, kind, count)
    mantissa, _, _ = FORMATS[kind]
    pick = random.integers(0, 2, count) == 0
    sign = random.integers(0, 2, count).astype(np.uint64) << np.uint64(WIDTH.get(kind, 32) - 1)
    small = random.integers(0, 2 << mantissa, count).astype(np.uint64)
    return np.where(pick, small | sign, bits)


@pytest.mark.parametrize("mode", FLUSHED)
def test_denormals_are_flushed_where_the_mode_says_so(mode: Mode) -> None:
    names = sorted(
        name for kind in FLOATS for pattern in NAMES if (name := pattern.format(kind)) in REFERENCE
    )
    cases = [_Case(name, number) for number, name in enumerate(names)]
    made = program([one.instruction for one in cases], mode)
    random = np.random.default_rng(3)
    before = np.concatenate([one.states() for one in cases])
    before["exec"] = 0xFFFFFFFF
    for at in (4, 6, 8, 10):
        for state in before:
            kind = cases[state["case"]].dst[0].removeprefix("pk_")
            bits = tiny(random, kind, 32)
            state["v"][at] = bits & np.uint64(0xFFFFFFFF)
            state["v"][at + 1] = bits >> np.uint64(32)
    after = run(made, before)
    flushed = 0
    for first, last in zip(before, after, strict=True):
        one = cases[first["case"]]
        kind = one.dst[0].removeprefix("pk_")
        kept = mode.denorm_32 if kind == "f32" else mode.denorm_16_64
        mask = np.uint64(0xFFFF if kind == "f16" else (1 << WIDTH.get(kind, 32)) - 1)
        given = [typed(one.bits(first, at) & mask, kind) for at in range(len(one.src))]
        want = one.function(*(flush(each, kind, kept & 1) for each in given))
        want = typed(bits_of(want, kind), kind)
        want = typed(bits_of(flush(want, kind, kept & 2), kind), kind)
        rows = last["v"].astype(np.uint64)
        got = rows[0] | (rows[1] << np.uint64(32) if kind == "f64" else np.uint64(0))
        good = same(got & mask, bits_of(want, kind), kind)
        assert good.all(), (one.name, [each[~good][:2] for each in given], want[~good][:2])
        plain = one.function(*given)
        flushed += int((np.asarray(plain, np.float64) != np.asarray(want, np.float64)).sum())
    assert flushed


def test_minimum_of_a_signalling_nan_without_ieee_is_the_number() -> None:
    signalling, two = 0x7FA00000, 0x40000000
    one = Instruction(
        0, 8, "v_min_f32", "VOP3", (Operand("v", 0),), (Operand("v", 4), Operand("v", 6))
    )
    before = np.zeros(1, STATE)
    before["exec"] = 0xFFFFFFFF
    before["v"][:, 4], before["v"][:, 6] = signalling, two
    assert (run(program([one]), before)["v"][0, 0] == 0x7FE00000).all()
    assert (run(program([one], Mode(ieee=0)), before)["v"][0, 0] == two).all()


def test_an_overflow_of_float16_is_the_greatest_number_where_the_mode_says_so() -> None:
    one = Instruction(0, 8, "v_cvt_f16_f32", "VOP3", (Operand("v", 0, 1, 0),), (Operand("v", 4),))
    before = np.zeros(1, STATE)
    before["exec"] = 0xFFFFFFFF
    row = np.array([1e6, -1e6, np.inf, -np.inf, 65519, 2] + [0] * 26, np.float32)
    before["v"][:, 4] = row.view(np.uint32)
    for mode, most in ((USUAL, np.inf), (Mode(fp16_overflow=1), 65504)):
        got = run(program([one], mode), before)["v"][0, 0].astype(np.uint16).view(np.float16)
        assert got[:6].tolist() == [most, -most, np.inf, -np.inf, 65504, 2], mode


def code(*lines: tuple[str, dict[str, Any]]) -> list[Instruction]:
    return [
        Instruction(4 * at, 4, name, "SOPP", (), (Operand("literal", value=1),), modifiers)
        for at, (name, modifiers) in enumerate(lines)
    ]


# MODE from bit 23 on, one bit: FP16_OVFL.
OVERFLOW = 1 | 23 << 6


def test_a_mode_holds_from_the_instruction_that_sets_it() -> None:
    lines = code(
        ("s_denorm_mode", {"simm16": 12}),
        ("s_nop", {}),
        ("s_setreg_imm32_b32", {"simm16": OVERFLOW}),
        ("s_round_mode", {"simm16": 1}),
        ("s_endpgm", {}),
    )
    met = modes(lines, [0], USUAL)
    flushed = Mode(denorm_32=0)
    assert [met[4 * at] for at in range(5)] == [
        USUAL,
        flushed,
        flushed,
        Mode(denorm_32=0, fp16_overflow=1),
        Mode(denorm_32=0, fp16_overflow=1, round_32=1),
    ]


def test_a_mode_that_depends_on_the_way_of_a_wave_is_refused() -> None:
    lines = code(
        ("s_cbranch_scc0", {"target": 8}), ("s_denorm_mode", {"simm16": 0}), ("s_endpgm", {})
    )
    with pytest.raises(RefusedError, match="depends on the way"):
        modes(lines, [0], USUAL)


@pytest.mark.parametrize(
    ("number", "says"), [(2, "another register"), (1 | 27 << 6, "other bits of MODE")]
)
def test_what_is_no_float_mode_is_refused(number: int, says: str) -> None:
    (one,) = code(("s_setreg_imm32_b32", {"simm16": number}))
    assert [says in word for word in refused([one], [0])] == [True]


def test_rounding_to_another_side_is_refused_for_floats_alone() -> None:
    def named(name: str) -> Instruction:
        return Instruction(
            0, 8, name, "VOP3", (Operand("v", 0),), (Operand("v", 1), Operand("v", 2))
        )

    up = Mode(round_32=1, denorm_32=0)
    assert refused([named("v_add_f32")], [0], up) == ("v_add_f32 rounded up",)
    assert refused([named("v_add_nc_u32")], [0], up) == ()
