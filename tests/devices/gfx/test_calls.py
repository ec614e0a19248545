"""Functions that were not inlined, as without optimisation, and memory of a thread's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.gfx.compilers import toolchain
from tests.devices.gfx.test_approximation import SPEC
from tests.runs import run
from tokitai_cli.core.model.verdict import Verdict

SOURCE = """
#include <hip/hip_runtime.h>
__device__ __attribute__((noinline)) float twice(const float* held, int i) { return 2.0f * held[i & 7]; }
__device__ __attribute__((noinline)) float sum(float a, int i) {
  float held[8];
  for (int j = 0; j < 8; j++) held[j] = a + j;
  return twice(held, i) + a;
}
__global__ void inverse(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sum(x[i], i);
}
"""
ORACLE = """
import numpy as np
def inverse(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    y = 2 * (x + np.arange(x.size) % 8) + x
    return {"y": {"reference": y, "error": 4e-6 + 0 * y}}
"""


@pytest.mark.parametrize("flag", ["-O0", "-O3"])
def test_calls_and_local_arrays_are_executed(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    (tmp_path / "source.hip").write_text(SOURCE)
    (tmp_path / "oracle.py").write_text(ORACLE)
    spec = SPEC.replace(
        "    source: source.hip\n", f"    source: source.hip\n    flags: [{flag}]\n"
    )
    (tmp_path / "spec.yaml").write_text(spec)
    (case,) = run(tmp_path / "spec.yaml", tmp_path, device="gfx").cases
    assert case.verdict is Verdict.VERIFIED, (case.reason, case.findings)
