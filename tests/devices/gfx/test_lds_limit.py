"""How much local data share a block may have: 160 KiB on gfx950, 64 KiB on the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu import gfx_compiler

SOURCE = """
#include <hip/hip_runtime.h>
extern "C" __global__ void reversed(const float* x, float* y, int n) {
  extern __shared__ float row[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = x[blockIdx.x * n + i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = row[n - 1 - i];
}
"""
FORMULA = """
def reversed_rows(params, inputs, scalars):
    return {"y": inputs["x"][:, ::-1]}
"""
SPEC = """
schema: tokitai/spec/v1
op: reversed
title: rows reversed in local data share
params: {rows: {default: 2}, n: {default: 25600}}
profiles: {normal: {draw: normal}}
variants:
  one:
    source: source.hip
    inputs:
      x: {dtype: float32, shape: [rows, n]}
    outputs:
      y: {dtype: float32, shape: [rows, n]}
    launches:
      - kernel: reversed
        grid: [rows]
        block: [256]
        shared: "4 * n"
        args: [x, y, n]
    oracle: {formula: "formula.py:reversed_rows"}
    checks:
      - {metric: exact, output: y, why: copies}
"""
# Bytes of a row that is too long, by architecture.
LIMITS = {"gfx942": 64 << 10, "gfx950": 160 << 10}


@pytest.mark.slow
@pytest.mark.parametrize("arch", LIMITS)
def test_a_block_has_the_local_data_share_of_its_architecture(arch: str, tmp_path: Path) -> None:
    if gfx_compiler.toolchain(arch) is None:
        pytest.skip(gfx_compiler.missing(arch)[0])
    (tmp_path / "source.hip").write_text(SOURCE)
    (tmp_path / "formula.py").write_text(FORMULA)
    (tmp_path / "spec.yaml").write_text(SPEC)
    most = LIMITS[arch] // 4
    for n in {25600, most, most + 1}:
        shapes = {"rows": (2,), "n": (n,)}
        (case,) = run(
            tmp_path / "spec.yaml", tmp_path / str(n), device="gfx", arch=arch, shapes=shapes
        ).cases
        if n <= most:
            assert case.verdict is Verdict.VERIFIED, case.reason
        else:
            assert case.verdict is Verdict.CRASHED, case.reason
            assert f"{4 * n} bytes of dynamic shared memory" in case.reason
            assert f"the limit is {LIMITS[arch]}" in case.reason
