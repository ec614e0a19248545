"""Products of matrices of MI200 to MI350 against numpy: the lanes' layout of every form, and sums."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.devices.gfx.compilers import toolchain
from tests.devices.gfx.machine import program, run, state_of
from tests.runs import run as run_spec
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu.isa.decode import decode
from tokitai_cli.devices.amdgpu.isa.families import GFX9
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import rows
from tokitai_cli.devices.amdgpu.translate import refused, table

LANES = 64
STATE = state_of(LANES)
LANE = np.arange(LANES)
D, A, B, C = 0, 32, 40, 48
KINDS: dict[str, Any] = {
    "f32": np.float32,
    "xf32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f64": np.float64,
    "i8": np.int8,
    "fp8": ml_dtypes.float8_e4m3fnuz,
    "bf8": ml_dtypes.float8_e5m2fnuz,
}
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
#: Formats of float8, float6 and float4 by cbsz and blgp, and their bits.
SMALL = {
    0: (ml_dtypes.float8_e4m3fn, 8),
    1: (ml_dtypes.float8_e5m2, 8),
    2: (ml_dtypes.float6_e2m3fn, 6),
    3: (ml_dtypes.float6_e3m2fn, 6),
    4: (ml_dtypes.float4_e2m1fn, 4),
}
ARCHES = ("gfx90a", "gfx942", "gfx950")
NAMES = sorted(name for name, entry in table().items() if entry.kind == "mfma")


class Form:
    """An instruction: its sizes by its name, and where each element lies.

    small: the format of a product of float8, float6 or float4; ocp: whether its float8 are OCP's.
    """

    def __init__(self, name: str, small: int = 0, ocp: bool = False) -> None:
        self.name, self.small = name, small
        self.types = KINDS | (OCP if ocp else {}) | {"f8f6f4": SMALL[small][0]}
        self.modifiers: dict[str, Any] = {"ocp_float8": True} if ocp else {}
        if name.endswith("f8f6f4"):
            self.modifiers = {"cbsz": small, "blgp": small}
        numbers = re.search(r"_(\d+)x(\d+)x(\d+)", name)
        kinds = re.search(
            r"(?:x\d+|\db)_?(xf32|bf16|f16|f32|f64|i8|bf8|fp8|f8f6f4)(?:_(bf8|fp8)|_1k)?$", name
        )
        assert numbers
        assert kinds
        self.rows, self.columns, self.depth = (int(one) for one in numbers.groups())
        self.kinds = kinds[1], kinds[2] if (kinds[2] or "").endswith("8") else kinds[1]
        self.kind = name.split("_")[2]
        self.single = 2 if self.kind == "f64" else 1
        self.count = _encoded(name).dst[0].count
        self.blocks = self.count * LANES // (self.rows * self.columns * self.single)
        self.held = self.rows * self.depth * self.blocks // LANES

    def result(self) -> tuple[Any, Any, Any]:
        """Block, row and column of each register (pairs of them for float64) and lane."""
        item = np.arange(self.count // self.single)[:, None]
        if self.kind == "f64":
            if self.rows == 16:
                return 0 * item * LANE, 4 * item + LANE // 16, LANE % 16 + 0 * item
            return LANE // 4 % 4 + item, LANE // 16 + item, LANE % 4 + item
        if self.rows == 32:
            row = 8 * (item // 4 % 4) + 4 * (LANE // 32) + item % 4
            return item // 16 + 0 * LANE, row, LANE % 32 + 0 * item
        if self.rows == 16:
            return item // 4 + 0 * LANE, 4 * (LANE // 16) + item % 4, LANE % 16 + 0 * item
        return LANE // 4 + 0 * item, item + 0 * LANE, LANE % 4 + 0 * item

    def operand(self) -> tuple[Any, Any, Any]:
        """Block, row of A (column of B) and depth of each element that a lane holds."""
        item = np.arange(self.held)[:, None]
        part = LANE // self.rows
        return (
            part % self.blocks + 0 * item,
            LANE % self.rows + 0 * item,
            (part // self.blocks * self.held + item),
        )

    def registers(self, matrix: Any, kind: str) -> NDArray[np.uint32]:
        """A matrix [block, row, depth] in lanes' registers."""
        elements = np.ascontiguousarray(matrix[self.operand()].astype(self.types[kind]).T)
        data = (
            elements.view(np.uint32) if kind != "f8f6f4" else packed(elements, SMALL[self.small][1])
        )
        return np.ascontiguousarray(data.reshape(LANES, -1).T)

    def accumulator(self, matrix: Any) -> NDArray[np.uint32]:
        """A result [block, row, column] in lanes' registers."""
        made = {"f32": np.float32, "i32": np.int32, "f64": np.float64}[self.kind]
        values = np.ascontiguousarray(matrix[self.result()].astype(made).T)
        return np.ascontiguousarray(values.view(np.uint32).reshape(LANES, -1).T)

    def matrix(self, registers: Any) -> Any:
        """The result that registers hold."""
        made = {"f32": np.float32, "i32": np.int32, "f64": np.float64}[self.kind]
        words = np.ascontiguousarray(registers.T)
        values = words.view(made).T
        out = np.full((self.blocks, self.rows, self.columns), 77, np.float64)
        out[self.result()] = values
        return out

    def instruction(self, **modifiers: Any) -> Instruction:
        size = self.registers(np.zeros((self.blocks, self.rows, self.depth)), self.kinds[0])
        src = (
            Operand("v", A, len(size)),
            Operand("v", B, len(size)),
            Operand("v", C, self.count),
        )
        dst = (Operand("v", D, self.count),)
        modifiers = {**self.modifiers, **modifiers}
        return Instruction(0, 8, self.name, "MAI", dst, src, modifiers, family="gfx9")

    def state(self, a: Any, b: Any, c: Any) -> Any:
        made = np.zeros(1, STATE)
        made["exec"] = 2**64 - 1
        for at, words in (
            (A, self.registers(a, self.kinds[0])),
            (B, self.registers(b.transpose(0, 2, 1), self.kinds[1])),
            (C, self.accumulator(c)),
        ):
            made["v"][0, at : at + len(words)] = words
        return made


def _encoded(name: str) -> Instruction:
    """The instruction of that name on registers from v0 on."""
    for arch in ARCHES:
        for opcode, row in rows(arch)["MAI"].items():
            if row.name == name:
                word = GFX9.layouts["MAI"].encoded(opcode, dict.fromkeys("ABC", 256))
                (made,) = decode(word.to_bytes(8, "little"), 0, arch)
                return made
    raise KeyError(name)


def packed(elements: Any, bits: int) -> NDArray[np.uint32]:
    """Elements of each lane, one behind the other, in words."""
    codes = elements.view(np.uint8)[..., None] >> np.arange(bits) & 1
    flat = codes.reshape(len(elements), -1).astype(np.uint8)
    return np.packbits(flat, axis=1, bitorder="little").view(np.uint32)


def executed(form: Form, before: Any, nearby: int = 0, **modifiers: Any) -> Any:
    made = program([form.instruction(**modifiers)], lanes=LANES)
    (after,) = run(made, before, nearby)
    assert after["state"] == 0
    return form.matrix(after["v"][D : D + form.count])


def drawn(form: Form, random: np.random.Generator, most: int = 3) -> tuple[Any, Any, Any]:
    """Small whole numbers, of which every product and sum is exact in every format."""
    a = random.integers(-most, most + 1, (form.blocks, form.rows, form.depth))
    b = random.integers(-most, most + 1, (form.blocks, form.depth, form.columns))
    c = random.integers(-50, 51, (form.blocks, form.rows, form.columns))
    return a.astype(float), b.astype(float), c.astype(float)


def test_every_form_is_there() -> None:
    named = {
        row.name
        for arch in ARCHES
        for row in rows(arch)["MAI"].values()
        if row.name.startswith("v_mfma")
    }
    assert set(NAMES) == named
    assert len(named) > 60


@pytest.mark.slow
def test_every_form_multiplies_and_adds() -> None:
    forms = [Form(name) for name in NAMES]
    forms += [Form(name, ocp=True) for name in NAMES if "fp8" in name or "bf8" in name]
    forms += [Form(name, small) for name in NAMES if "f8f6f4" in name for small in SMALL]
    made = program([form.instruction() for form in forms], lanes=LANES)
    random = np.random.default_rng(2)
    given = [drawn(form, random) for form in forms]
    states = np.concatenate([form.state(*one) for form, one in zip(forms, given, strict=True)])
    states["case"] = np.arange(len(forms))
    for nearby in range(4):
        for form, (a, b, c), after in zip(forms, given, run(made, states, nearby), strict=True):
            assert after["state"] == 0
            got = form.matrix(after["v"][D : D + form.count])
            assert np.array_equal(got, a @ b + c), (form.name, nearby)


@pytest.mark.parametrize("small", SMALL)
def test_a_product_of_small_floats_multiplies_and_adds(small: int) -> None:
    form = Form("v_mfma_f32_16x16x128_f8f6f4", small)
    a, b, c = drawn(form, np.random.default_rng(small), 2)
    assert np.array_equal(executed(form, form.state(a, b, c)), a @ b + c)


@pytest.mark.parametrize(
    "name",
    ["v_mfma_f32_16x16x16_f16", "v_mfma_f64_4x4x4_4b_f64", "v_mfma_f32_32x32x16_bf16",
     "v_mfma_i32_16x16x64_i8"],
)  # fmt: skip
def test_a_form_multiplies_and_adds(name: str) -> None:
    form = Form(name)
    a, b, c = drawn(form, np.random.default_rng(6))
    assert np.array_equal(executed(form, form.state(a, b, c)), a @ b + c)


@pytest.mark.parametrize("name", ["v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x32_fp8_bf8"])
def test_sums_vary_within_their_roundings(name: str) -> None:
    form = Form(name)
    random = np.random.default_rng(3)
    shape = (form.blocks, form.rows, form.depth)
    a, b = (
        random.normal(0, 1, one).astype(KINDS[kind]).astype(float)
        for one, kind in zip((shape, (shape[0], shape[2], form.columns)), form.kinds, strict=True)
    )
    c = random.normal(0, 1, (form.blocks, form.rows, form.columns)).astype(np.float32)
    exact = a @ b + c
    size = np.abs(a) @ np.abs(b) + np.abs(c)
    seen = [executed(form, form.state(a, b, c), nearby) for nearby in range(3)]
    for value in seen:
        assert (np.abs(value - exact) <= (form.depth + 1) * 2.0**-23 * size).all()
    assert np.array_equal(seen[0], exact.astype(np.float32))
    assert (seen[0] != seen[1]).any()
    assert (seen[0] != seen[2]).any()


def test_one_block_of_a_serves_a_group() -> None:
    form = Form("v_mfma_f32_4x4x4_16b_f16")
    a, b, c = drawn(form, np.random.default_rng(4))
    got = executed(form, form.state(a, b, c), cbsz=2, abid=3)
    served = a[np.arange(16) // 4 * 4 + 3]
    assert np.array_equal(got, served @ b + c)


def test_what_is_not_modelled_is_refused_or_ends_the_wave() -> None:
    form = Form("v_mfma_f32_16x16x16_f16")
    assert "exchanged" in " ".join(refused([form.instruction(blgp=1)]))
    both = Form("v_mfma_f32_16x16x128_f8f6f4").instruction(blgp=4)
    assert refused([both]) == ("v_mfma_f32_16x16x128_f8f6f4 of matrices of two formats",)
    scaled = msgspec.structs.replace(both, name="v_mfma_scale_f32_16x16x128_f8f6f4")
    assert refused([scaled]) == (scaled.name,)
    (sparse,) = {
        row.name
        for row in rows("gfx942")["MAI"].values()
        if row.name == "v_smfmac_f32_16x16x32_f16"
    }
    one = _encoded(sparse)
    assert refused([one]) == (sparse,)
    off = form.state(*drawn(form, np.random.default_rng(5)))
    off["exec"] = 2**64 - 2
    (after,) = run(program([form.instruction()], lanes=LANES), off)
    assert after["state"] == 3


def test_a_constant_is_added_in_every_place() -> None:
    for name, value in (("v_mfma_f32_32x32x8_f16", 0x3F800000), ("v_mfma_f64_16x16x4_f64", 0)):
        form = Form(name)
        zero = [np.zeros_like(one) for one in drawn(form, np.random.default_rng(1))]
        one = form.instruction()
        constant = Operand("float", 242, value=value)
        made = Instruction(0, 8, name, "MAI", one.dst, (*one.src[:2], constant), family="gfx9")
        (after,) = run(program([made], lanes=LANES), form.state(*zero))
        assert (form.matrix(after["v"][D : D + form.count]) == 1).all()


SOURCE = """
#include <hip/hip_runtime.h>
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));
template <bool wrong>
__global__ void tiles(const _Float16* a, const _Float16* b, float* y, int n, int k) {
  const int row = blockIdx.y * 16, column = blockIdx.x * 16, lane = threadIdx.x;
  float4v sum = {0, 0, 0, 0};
  for (int at = 0; at < k; at += 16) {
    half4 x, z;
    for (int i = 0; i < 4; i++) {
      x[i] = a[(row + lane % 16) * k + at + lane / 16 * 4 + i];
      z[i] = b[(at + lane / 16 * 4 + (wrong ? 3 - i : i)) * n + column + lane % 16];
    }
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x, z, sum, 0, 0, 0);
  }
  for (int i = 0; i < 4; i++) y[(row + lane / 16 * 4 + i) * n + column + lane % 16] = sum[i];
}
"""
VARIANT = """
  NAME:
    source: source.hip
    inputs: {a: {dtype: float16, shape: [m, k]}, b: {dtype: float16, shape: [k, n]}}
    outputs: {y: {dtype: float32, shape: [m, n]}}
    launches: [{kernel: tiles<WRONG>, grid: [n // 16, m // 16], block: [64], args: [a, b, y, n, k]}]
    oracle: {formula: "formula.py:product", accumulate: {unit: mfma}}
    checks: [{metric: bound, why: a product}]
"""
FORMULA = "def product(params, inputs, scalars):\n    return {'y': inputs['a'] @ inputs['b']}\n"
SPEC = """
schema: tokitai/spec/v1
op: product
title: a product of matrices
params: {m: {default: 48}, n: {default: 32}, k: {default: 64}}
profiles: {normal: {draw: normal}}
variants:
"""


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_a_kernel_is_judged_by_the_bound_of_its_unit(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    (tmp_path / "source.hip").write_text(SOURCE)
    (tmp_path / "formula.py").write_text(FORMULA)
    both = (("right", "false"), ("wrong", "true"))
    made = [VARIANT.replace("NAME", name).replace("WRONG", flag) for name, flag in both]
    (tmp_path / "spec.yaml").write_text(SPEC + "".join(made))
    evidence = run_spec(tmp_path / "spec.yaml", tmp_path, device="gfx", arch=arch)
    found = {case.variant: case.verdict for case in evidence.cases}
    assert found == {"right": Verdict.VERIFIED, "wrong": Verdict.REFUTED}
