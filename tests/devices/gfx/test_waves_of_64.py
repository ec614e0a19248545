"""One kernel with many kinds of instructions of waves of 64, compiled and verified.

DPP, ds_bpermute, readlane, mbcnt, ballots, atomic operations on LDS, roots and divisions in double,
divisions of 64-bit integers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu import gfx_compiler

SOURCE = """
#include <hip/hip_runtime.h>
extern "C" __global__ void mixed(const int* x, const double* d,
                                 const long long* a, const long long* b,
                                 int* sums, int* counts, double* roots,
                                 long long* quotients, int* hist, int n) {
  __shared__ int bins[16];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 63;
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  const int v = i < n ? x[i] : 0;
  int s = v;
  s += __builtin_amdgcn_update_dpp(0, s, 0x111, 15, 15, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x112, 15, 15, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x114, 15, 15, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x118, 15, 15, true);
  s += __builtin_amdgcn_update_dpp(0, s, 0x142, 0xa, 15, false);
  s += __builtin_amdgcn_update_dpp(0, s, 0x143, 0xc, 15, false);
  const int total = __builtin_amdgcn_readlane(s, 63);
  const int other = __builtin_amdgcn_ds_bpermute(4 * (63 - lane), s);
  const unsigned long long odd = __ballot(v & 1);
  const int before = __builtin_amdgcn_mbcnt_hi(
      unsigned(odd >> 32), __builtin_amdgcn_mbcnt_lo(unsigned(odd), 0));
  if (i < n) {
    sums[i] = s + 3 * total + 5 * other;
    counts[i] = before + __popcll(odd) * 100;
    roots[i] = sqrt(1.0 + d[i] * d[i]) / (1.0 + d[i] * d[i]);
    quotients[i] = a[i] / b[i] + 7 * (a[i] % b[i]);
    atomicAdd(&bins[v & 15], 1);
  }
  __syncthreads();
  if (threadIdx.x < 16) hist[blockIdx.x * 16 + threadIdx.x] = bins[threadIdx.x];
}
"""
FORMULA = """
import numpy as np


def mixed(params, inputs, scalars):
    x, n, d = inputs["x"], params["n"], inputs["d"]
    waves = np.zeros(-(-n // 64) * 64, np.int64)
    waves[:n] = x
    waves = waves.reshape(-1, 64)
    s, odd = waves.cumsum(axis=1), waves & 1
    a, b = inputs["a"], inputs["b"]
    sums = s + 3 * s[:, 63:] + 5 * s[:, ::-1]
    counts = odd.cumsum(axis=1) - odd + 100 * odd.sum(axis=1, keepdims=True)
    bins = [np.bincount(x[at:at + 256] & 15, minlength=16) for at in range(0, n, 256)]
    return {
        "sums": sums.ravel()[:n].astype(np.int32),
        "counts": counts.ravel()[:n].astype(np.int32),
        "quotients": a // b + 7 * (a % b),
        "hist": np.concatenate(bins).astype(np.int32),
        "roots": np.sqrt(1.0 + d * d) / (1.0 + d * d),
    }
"""
SPEC = """
schema: tokitai/spec/v1
op: mixed
title: waves of 64
params: {n: {default: 700}}
profiles: {normal: {draw: normal}}
variants:
  one:
    source: source.hip
    inputs:
      x: {dtype: int32, shape: [n], draw: {kind: index-uniform, below: 1000}}
      d: {dtype: float64, shape: [n]}
      a: {dtype: int64, shape: [n], draw: {kind: index-uniform, below: 900000000}}
      b: {dtype: int64, shape: [n], draw: {kind: index-uniform, below: 90000}}
    outputs:
      sums: {dtype: int32, shape: [n]}
      counts: {dtype: int32, shape: [n]}
      roots: {dtype: float64, shape: [n]}
      quotients: {dtype: int64, shape: [n]}
      hist: {dtype: int32, shape: ["16 * ceil_div(n, 256)"]}
    launches:
      - kernel: mixed
        grid: ["ceil_div(n, 256)"]
        block: [256]
        args: [x, d, a, b, sums, counts, roots, quotients, hist, n]
    oracle: {formula: "formula.py:mixed"}
    checks:
      - {metric: bound, output: roots, why: rounding}
      - {metric: exact, output: sums, why: whole numbers}
      - {metric: exact, output: counts, why: whole numbers}
      - {metric: exact, output: quotients, why: whole numbers}
      - {metric: exact, output: hist, why: whole numbers}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "verdict"), [("", Verdict.VERIFIED), ("3 * total", Verdict.REFUTED)]
)
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_a_kernel_of_many_kinds_is_verified(
    arch: str, wrong: str, verdict: Verdict, tmp_path: Path
) -> None:
    if gfx_compiler.toolchain(arch) is None:
        pytest.skip(gfx_compiler.missing(arch)[0])
    source = SOURCE.replace(wrong, "3 * s") if wrong else SOURCE
    (tmp_path / "source.hip").write_text(source)
    (tmp_path / "formula.py").write_text(FORMULA)
    (tmp_path / "spec.yaml").write_text(SPEC)
    (case,) = run(tmp_path / "spec.yaml", tmp_path, device="gfx", arch=arch).cases
    assert case.verdict is verdict, case.reason
