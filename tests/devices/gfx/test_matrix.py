"""Products of matrices against numpy: the lanes' layout, signs, halves, and sums in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.devices.gfx.machine import STATE, program, run
from tokitai_cli.devices.amdgpu.isa.decode import decode
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate import refused

D, A, B, C = 0, 8, 16, 24
FLOATS = {
    "f32_16x16x16_f16": ("f32", "f16"),
    "f32_16x16x16_bf16": ("f32", "bf16"),
    "f16_16x16x16_f16": ("f16", "f16"),
    "bf16_16x16x16_bf16": ("bf16", "bf16"),
}
INTEGERS = {"i32_16x16x16_iu8": 8, "i32_16x16x16_iu4": 4}


def bits_of(values: Any, kind: str) -> Any:
    if kind == "f32":
        return values.astype(np.float32).view(np.uint32)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)
    word = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((word + 0x7FFF + (word >> 16 & 1)) >> 16).astype(np.uint32)


def value_of(bits: Any, kind: str) -> Any:
    if kind == "f32":
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if kind == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def rows_in_lanes(elements: Any, bits: int) -> Any:
    """Registers of a matrix whose row each of lanes 0 to 15 has, and lanes 16 to 31 once more."""
    width = 32 // bits
    parts = elements.astype(np.uint64).reshape(16, 16 // width, width)
    words = sum(parts[:, :, at] << np.uint64(bits * at) for at in range(width))
    return np.concatenate([words, words]).T.astype(np.uint32)


def result_in_lanes(matrix: Any) -> Any:
    """Registers of a result: two rows each."""
    return matrix.reshape(8, 32)


def wmma(name: str, *, c: Operand | None = None, **modifiers: Any) -> Instruction:
    count = {"8": 4, "4": 2}.get(name[-1], 8) if "iu" in name else 8
    src = (Operand("v", A, count), Operand("v", B, count), c or Operand("v", C, 8))
    put = {"op_sel": 0, "op_sel_hi": 7, **modifiers}
    return Instruction(0, 8, f"v_wmma_{name}", "VOP3P", (Operand("v", D, 8),), src, put)


def state(a: Any, b: Any, c: Any) -> Any:
    made = np.zeros(1, STATE)
    made["exec"] = 0xFFFFFFFF
    made["v"][0, D : D + 8] = 0x12345678
    made["v"][0, A : A + len(a)] = a
    made["v"][0, B : B + len(b)] = b
    made["v"][0, C : C + 8] = c
    return made


def executed(one: Instruction, before: Any, nearby: int = 0) -> Any:
    (after,) = run(program([one]), before, nearby)
    assert after["state"] == 0
    return after["v"][D : D + 8]


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_multiplied_and_added(name: str, half: int) -> None:
    """Whole numbers, of which every sum is exact; other halves of registers stay."""
    made, kind = FLOATS[name]
    if made == "f32" and half:
        pytest.skip("its accumulator has no halves")
    random = np.random.default_rng(2)
    a, b = (random.integers(-3, 4, (16, 16)) for _ in range(2))
    c = random.integers(-9, 10, (16, 16))
    held = bits_of(c.astype(float), made) << (16 * half)
    other = np.uint32(0 if made == "f32" else 0xABCD << (16 - 16 * half))
    before = state(
        rows_in_lanes(bits_of(a.astype(float), kind), 16),
        rows_in_lanes(bits_of(b.T.astype(float), kind), 16),
        result_in_lanes(held) | other,
    )
    want = bits_of((a @ b + c).astype(float), made) << (16 * half)
    for nearby in range(4):
        got = executed(wmma(name, op_sel=4 * half), before, nearby)
        kept = np.uint32(0) if made == "f32" else np.uint32(0x12345678 & 0xFFFF << (16 - 16 * half))
        assert np.array_equal(got, result_in_lanes(want) | kept), (nearby, name)


@pytest.mark.parametrize("name", FLOATS)
def test_sums_vary_within_their_roundings(name: str) -> None:
    made, kind = FLOATS[name]
    random = np.random.default_rng(3)
    words = [bits_of(random.normal(0, 1, (16, 16)), kind) for _ in range(2)]
    c = bits_of(random.normal(0, 1, (16, 16)), made)
    before = state(rows_in_lanes(words[0], 16), rows_in_lanes(words[1], 16), result_in_lanes(c))
    a, b = (value_of(one, kind) for one in words)
    exact = a @ b.T + value_of(c, made)
    size = np.abs(a) @ np.abs(b.T) + np.abs(value_of(c, made))
    seen = []
    for nearby in range(3):
        got = executed(wmma(name), before, nearby).reshape(16, 16)
        got = got if made == "f32" else got & 0xFFFF
        value = value_of(got, made)
        last = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}[made]
        assert (np.abs(value - exact) <= 17 * 2.0**-23 * size + last * np.abs(exact)).all()
        seen.append(got)
    nominal, up, down = seen
    assert np.array_equal(nominal, bits_of(exact, made) if made != "bf16" else nominal)
    assert (nominal != down).any()
    assert made != "f32" or (nominal != up).any()


@pytest.mark.parametrize("signs", range(4))
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_multiplied_and_added(name: str, signs: int) -> None:
    bits = INTEGERS[name]
    random = np.random.default_rng(4)
    a, b = (random.integers(0, 1 << bits, (16, 16)) for _ in range(2))
    c = random.integers(-(2**31), 2**31, (16, 16))
    x, y = (
        np.where(one >> (bits - 1), one - (1 << bits), one) if signs >> at & 1 else one
        for at, one in enumerate((a, b))
    )
    before = state(
        rows_in_lanes(a, bits), rows_in_lanes(b.T, bits), result_in_lanes(c & 0xFFFFFFFF)
    )
    whole = x @ y + c
    got = executed(wmma(name, neg_lo=signs), before)
    assert np.array_equal(got, result_in_lanes(whole & 0xFFFFFFFF))
    got = executed(wmma(name, neg_lo=signs, clamp=True), before)
    limited = np.clip(whole, -(2**31), 2**31 - 1)
    assert np.array_equal(got, result_in_lanes(limited & 0xFFFFFFFF))


def test_a_constant_is_added_in_every_place() -> None:
    one = wmma("f32_16x16x16_f16", c=Operand("float", 242, value=0x3F800000))
    got = executed(one, state(np.zeros((8, 32)), np.zeros((8, 32)), 7))
    assert (got.view(np.float32) == 1).all()


def test_copies_that_differ_and_lanes_that_are_off_end_the_wave() -> None:
    one = wmma("f32_16x16x16_f16")
    before = state(np.zeros((8, 32)), np.zeros((8, 32)), 0)
    off, differs = before.copy(), before.copy()
    off["exec"] = 0xFFFFFFFE
    differs["v"][0, A + 3, 20] = 1
    for given, state_after in ((before, 0), (off, 3), (differs, 3)):
        (after,) = run(program([one]), given)
        assert after["state"] == state_after


def test_the_encoding_is_read() -> None:
    # v_wmma_f16_16x16x16_f16 v[24:31], v[8:15], v[16:23], v[24:31] op_sel:[0,0,1], by llvm-mc-19.
    data = bytes.fromhex("186042cc0821621c")
    (one,) = decode(data, 0, "gfx1100")
    assert one.name == "v_wmma_f16_16x16x16_f16"
    assert [operand.count for operand in (*one.dst, *one.src)] == [8] * 4
    assert not refused([one], [0])
