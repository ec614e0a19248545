"""Headers that CUDA's programs take from elsewhere: those of its samples, and types of cuFFT."""

from __future__ import annotations

from pathlib import Path

from tests.runs import run
from tokitai_cli.core.model.verdict import Verdict

KERNEL = """#include <helper_math.h>
#include <cufft.h>
__global__ void k(const float3* a, const float3* b, const cufftComplex* c, float4* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float3 u = a[i], v = normalize(b[i]);
  const float3 most = fmaxf(clamp(cross(u, v), -1.0f, 1.0f), lerp(u, v, 0.25f));
  const float3 back = reflect(u, v) + make_float3(make_float2(fabs(u)), 2.0f) - make_float3(0.5f);
  const float long_ = length(make_float3(c[i].x, c[i].y, 1));
  const float last = smoothstep(0.0f, 1.0f, u.x) + long_ + dot(most, back);
  y[i] = make_float4(floorf(u) + make_float3(make_int3(1, 2, 3)) + fracf(most), last);
}
"""
ORACLE = """import numpy as np

def k(params, inputs, scalars):
    u, b, c = (inputs[name].astype(np.float64) for name in "abc")
    v = b / np.linalg.norm(b, axis=1, keepdims=True)
    most = np.maximum(np.clip(np.cross(u, v), -1, 1), u + 0.25 * (v - u))
    added = np.column_stack([np.abs(u[:, :2]), np.full(len(u), 2)])
    back = u - 2 * (u * v).sum(1, keepdims=True) * v + added
    x = np.clip(u[:, 0], 0, 1)
    last = x * x * (3 - 2 * x) + np.sqrt((c * c).sum(1) + 1) + (most * (back - 0.5)).sum(1)
    three = np.floor(u) + [1, 2, 3] + most - np.floor(most)
    return {"y": {"reference": np.column_stack([three, last])}}
"""
SPEC = """schema: tokitai/spec/v1
op: k
title: k
params: {n: {default: 500}}
variants:
  main:
    source: k.cu
    inputs:
      a: {dtype: float32, shape: [n, 3]}
      b: {dtype: float32, shape: [n, 3]}
      c: {dtype: float32, shape: [n, 2]}
    outputs: {y: {dtype: float32, shape: [n, 4]}}
    launches: [{kernel: k, grid: ["ceil_div(n, 64)"], block: [64], args: [a, b, c, y, n]}]
    oracle: oracle.py:k
    reduction: none
    checks: [{metric: allclose, abs: 1e-4, rel: 1e-4}]
profiles: {normal: {draw: normal}}
"""


def test_functions_of_vectors_are_those_of_the_samples(tmp_path: Path) -> None:
    for name, text in (("k.cu", KERNEL), ("oracle.py", ORACLE), ("spec.yaml", SPEC)):
        (tmp_path / name).write_text(text)
    (case,) = run(tmp_path / "spec.yaml", tmp_path).cases
    assert (case.verdict, case.reason) == (Verdict.VERIFIED, "")
