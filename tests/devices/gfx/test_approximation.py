"""Instructions that the hardware approximates: other results in their error, and a verdict over all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.gfx.compilers import toolchain
from tests.runs import run
from tokitai_cli import judge
from tokitai_cli.core.model.verdict import Verdict

SOURCE = """
#include <hip/hip_runtime.h>
__global__ void inverse(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __builtin_amdgcn_rcpf(x[i]);
}
"""
SPEC = """
schema: tokitai/spec/v1
op: inverse
title: One over x
params: {n: {default: 64}}
variants:
  main:
    source: source.hip
    inputs: {x: {dtype: float32, shape: [n]}}
    outputs: {y: {dtype: float32, shape: [n]}}
    launches: [{kernel: inverse, grid: [2], block: [32], args: [x, y, n]}]
    oracle: oracle.py:inverse
    checks: [{metric: bound, why: a division}]
profiles: {normal: {draw: {kind: uniform, lo: 1.0, hi: 2.0}}}
"""
ORACLE = """
import numpy as np
def inverse(params, inputs, scalars):
    y = 1 / inputs["x"].astype(np.float64)
    return {"y": {"reference": y, "error": ULPS * 2.0 ** -24 + 0 * y}}
"""


@pytest.mark.parametrize(("ulps", "verdict"), [(3, Verdict.VERIFIED), (0.5, Verdict.REFUTED)])
def test_a_verdict_holds_over_all_approximations(
    ulps: float, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    (tmp_path / "source.hip").write_text(SOURCE)
    (tmp_path / "oracle.py").write_text(ORACLE.replace("ULPS", str(ulps)))
    (tmp_path / "spec.yaml").write_text(SPEC)
    (case,) = run(tmp_path / "spec.yaml", tmp_path, device="gfx").cases
    assert case.verdict is verdict, case.reason
    told = {one.name: one for one in case.properties}
    assert list(told) == [f"the judgement with {name}" for name in judge.APPROXIMATIONS], (
        case.reason
    )
    up, down, flushed = told.values()
    assert (up.value, down.value, flushed.value) == (1.0, 1.0, 0.0)
    assert flushed.passed
    assert up.passed == (verdict is Verdict.VERIFIED)
    if verdict is Verdict.REFUTED:
        assert case.reason.startswith("with approximate instructions an ulp up: y[")
