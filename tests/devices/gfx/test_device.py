"""Whole runs on the gfx device, by each compiler that is here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.gfx.compilers import COMPILERS, toolchain
from tests.runs import KERNELS, derived_spec, run, verdicts
from tokitai_cli import devices
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu import gfx_compiler

SHAPE = {"m": 32, "n": 48, "k": 48}
WRONG = ("transposed", "last_term", "wrong_sign", "zeros")

FORMULA = "def double(params, inputs, scalars):\n    return {'y': 2.0 * inputs['x']}\n"
MATRIX_CORE = """
#include <hip/hip_runtime.h>
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));
__global__ void scaled(const float* x, float* y, int n) {
  half16 a;
  float8 c;
  for (int i = 0; i < 16; i++) a[i] = x[threadIdx.x];
  for (int i = 0; i < 8; i++) c[i] = 0;
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, a, c);
  if (threadIdx.x < n) y[threadIdx.x] = c[0];
}
__global__ void plain(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 2.0f * x[threadIdx.x];
}
"""
SPEC = """
schema: tokitai/spec/v1
op: doubled
title: twice
params: {n: {default: 32}}
variants:
"""
VARIANT = """
  KERNEL:
    source: source.hip
    inputs: {x: {dtype: float32, shape: [n]}}
    outputs: {y: {dtype: float32, shape: [n]}}
    launches: [{kernel: KERNEL, grid: [1], block: [32], args: [x, y, n]}]
    oracle: {formula: "formula.py:double"}
    checks: [{metric: bound, why: a product}]
profiles: {normal: {draw: normal}}
"""


def facts_of(evidence: Evidence) -> dict[str, str]:
    (build,) = evidence.builds.values()
    return {fact.name: fact.value for fact in build.code_object}


@pytest.mark.parametrize("name", COMPILERS)
def test_a_product_is_verified_and_wrong_ones_are_refuted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain(name, monkeypatch)
    right = run("gemm-bw", tmp_path, shapes=SHAPE, device="gfx")
    assert right.verdict is Verdict.VERIFIED, right.reason
    assert "machine-code-executed" in {one.name for one in right.claims if one.supported}
    facts = facts_of(right)
    assert len(facts["code object sha256"]) == 64
    assert "gfx1101" in facts["code object for"]
    assert facts["device functions"].startswith("of tokitai")
    (kernel,) = {
        name.partition(": ")[0] for name in facts if "bf16" not in name and "grad_a" in name
    }
    assert len(facts[f"{kernel}: machine code sha256"]) == 64
    assert int(facts[f"{kernel}: vector registers"]) > 0
    assert facts[f"{kernel}: wave size"] == "32"
    assert "v_fma" in facts[f"{kernel}: rounded once (contracted)"]
    assert "memory" in facts[f"{kernel}: instructions"]
    (build,) = right.builds.values()
    assert "ld.lld" in " ".join(build.command)
    spec = derived_spec(
        tmp_path, "gemm-bw", "grad-a", WRONG, source=KERNELS / "gemm_faults.hip", replay=False
    )
    wrong = run(spec, tmp_path, shapes=SHAPE, device="gfx", profile=["normal"])
    assert set(verdicts(wrong)) == {"refuted"}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_waves_of_64_lanes_are_executed(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    right = run("gemm-bw", tmp_path, shapes=SHAPE, device="gfx", arch=arch)
    assert right.verdict is Verdict.VERIFIED, right.reason
    facts = facts_of(right)
    assert arch in facts["code object for"]
    assert "64" in {value for name, value in facts.items() if name.endswith(": wave size")}
    spec = derived_spec(
        tmp_path, "gemm-bw", "grad-a", WRONG, source=KERNELS / "gemm_faults.hip", replay=False
    )
    wrong = run(spec, tmp_path, shapes=SHAPE, device="gfx", arch=arch, profile=["normal"])
    assert set(verdicts(wrong)) == {"refuted"}


def test_what_is_not_modelled_is_named_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    (tmp_path / "source.hip").write_text(MATRIX_CORE)
    (tmp_path / "formula.py").write_text(FORMULA)
    body, _, tail = VARIANT.partition("profiles")
    both = body.replace("KERNEL", "scaled") + body.replace("KERNEL", "plain")
    (tmp_path / "spec.yaml").write_text(SPEC + both + "profiles" + tail)
    evidence = run(tmp_path / "spec.yaml", tmp_path, device="gfx")
    found = {case.variant: case for case in evidence.cases}
    assert found["plain"].verdict is Verdict.VERIFIED, found["plain"].reason
    assert found["scaled"].verdict is Verdict.NOT_RUN
    assert "a matrix product of some lanes" in found["scaled"].reason


def test_without_a_compiler_for_amd_gpus_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(gfx_compiler.CHOSEN, str(tmp_path / "no-clang"))
    evidence = run("gemm-bw", tmp_path, shapes=SHAPE, device="gfx")
    assert evidence.verdict is Verdict.INADMISSIBLE
    assert "tokitai[gfx]" in evidence.devices["gfx"].hint


@pytest.mark.parametrize("arch", ["gfx906", "gfx1030", "gfx1200"])
def test_other_architectures_are_refused(arch: str) -> None:
    probe = devices.get("gfx").probe(DeviceOptions(arch=arch))
    assert not probe.available
    assert arch in probe.missing
    assert "gfx1101" in probe.hint


ARGUMENTS = """
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
struct Config { float by; int dims[2]; const float* bias; };
__constant__ float table[4];
template <class T>
__global__ void doubled(Config c, const T* x, T* y, double scale, long long n) {
  extern __shared__ float buffer[];
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  buffer[threadIdx.x] = i < n ? float(x[i]) : 0.0f;
  __syncthreads();
  const float v = buffer[threadIdx.x] * c.by * float(scale) + table[i % 4];
  if (i < n) y[i] = T(v + (c.dims[1] == 4 ? 0.0f : 1.0f) + c.bias[i]);
}
int main() { return 0; }  // of the host, and left out
"""
ARGUMENTS_SPEC = """
schema: tokitai/spec/v1
op: doubled
title: twice
params: {n: {default: 100}}
variants:
  main:
    source: source.hip
    inputs: {x: {dtype: float16, shape: [n]}, b: {dtype: float32, shape: [n], draw: constant}}
    symbols: {table: {dtype: float32, shape: [4], draw: {kind: constant, value: -1}}}
    outputs: {y: {dtype: float16, shape: [n]}}
    scalars: {two: {dtype: float64, value: 2.0}, one: {dtype: float32, value: 1.0}}
    structs: {c: {by: one, dims: [3, 4], bias: b}}
    launches:
      - {kernel: "doubled<__half>", grid: [2], block: [64], shared: 256, args: [c, x, y, two, n]}
    oracle: {formula: "formula.py:double"}
    checks: [{metric: bound, why: a product}]
profiles: {normal: {draw: normal}}
"""


def test_structs_symbols_templates_and_dynamic_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    (tmp_path / "source.hip").write_text(ARGUMENTS)
    (tmp_path / "formula.py").write_text(FORMULA)
    (tmp_path / "spec.yaml").write_text(ARGUMENTS_SPEC)
    evidence = run(tmp_path / "spec.yaml", tmp_path, device="gfx")
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
