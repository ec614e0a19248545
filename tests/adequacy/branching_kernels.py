"""Kernels with specs that leave something of them out, and faults that show there alone."""

from __future__ import annotations

from typing import Any

import msgspec

HEAD = "#include <hip/hip_runtime.h>\n"


class Poor(msgspec.Struct, frozen=True):
    """A kernel and its spec, what advice has to say, and a fault that only the advised spec refutes."""

    kernel: str
    fault: tuple[str, str]
    formula: str
    arrays: dict[str, list[str]]
    args: list[Any]
    said: str
    scalars: dict[str, tuple[str, Any]] = {}
    inputs: dict[str, dict[str, Any]] = {}
    grid: str = "ceil_div(n, 64)"
    params: dict[str, int] = {}
    suite: tuple[dict[str, int], ...] = ({"n": 150}, {"n": 65})


ONE = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n"
POOR = {
    "an index that is -1": Poor(
        "constexpr int kNone = -1;\n__global__ void k(const float* x, const int* at, float* y, int n,"
        f" int rows) {{\n  {ONE}  int p = at[i];\n  y[i] = p == kNone ? 0.0f : x[p];\n}}\n",
        ("0.0f", "1.0f"),
        "p = inputs['at']\n    return {'y': np.where(p < 0, 0, inputs['x'][np.maximum(p, 0)])}",
        {"inputs": ["x: float32 rows", "at: int32 n"], "outputs": ["y: float32 n"]},
        ["x", "at", "y", "n", "rows"],
        "at is -1 in no case, and k.hip:7 tests that",
        inputs={"at": {"kind": "index-uniform", "below": "rows"}},
        params={"n": 150, "rows": 9},
        suite=({"n": 150, "rows": 8}, {"n": 65, "rows": 9}),
    ),
    "an index below 0, in a helper": Poor(
        "__device__ bool none(long long s) { return s < 0; }\n__global__ void k(const float* x,"
        f" const long long* at, float* y, int n, int rows) {{\n  {ONE}  long long p = at[i];\n"
        "  if (none(p)) y[i] = 0.f; else y[i] = x[p];\n}\n",
        ("y[i] = 0.f", "y[i] = 2.f"),
        "p = inputs['at']\n    return {'y': np.where(p < 0, 0, inputs['x'][np.maximum(p, 0)])}",
        {"inputs": ["x: float32 rows", "at: int64 n"], "outputs": ["y: float32 n"]},
        ["x", "at", "y", "n", "rows"],
        "at is below 0 in no case, and k.hip:2 tests that",
        inputs={"at": {"kind": "index-uniform", "below": "rows"}},
        params={"n": 150, "rows": 9},
        suite=({"n": 150, "rows": 8}, {"n": 65, "rows": 9}),
    ),
    "a divisor that is 0": Poor(
        f"__global__ void k(const float* x, const float* w, float* y, int n) {{\n  {ONE}"
        "  if (w[i] == 0.0f) y[i] = 0.5f;\n  else y[i] = x[i] / w[i];\n}\n",
        ("0.5f", "0.0f"),
        "w = inputs['w']\n    z = w == 0\n"
        "    return {'y': (1 - z) * inputs['x'] / (w + z) + 0.5 * z}",
        {"inputs": ["x: float32 n", "w: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "w", "y", "n"],
        "w is 0 in no case, and k.hip:5 tests that",
    ),
    "a number that float32 has no next whole number of": Poor(
        f"__global__ void k(const float* x, float* y, int n) {{\n  {ONE}"
        "  if (x[i] > 1e30f) y[i] = 1.0f;\n  else y[i] = x[i];\n}\n",
        ("1.0f", "2.0f"),
        "x = inputs['x']\n    return {'y': np.where(x > np.float32(1e30), 1, x)}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "y", "n"],
        "x is above 1e+30 in no case, and k.hip:5 tests that",
    ),
    "a label that is ignored": Poor(
        f"__global__ void k(const float* x, const int* t, float* y, int n, int skip) {{\n  {ONE}"
        "  if (t[i] == skip) { y[i] = 0.f; return; }\n  y[i] = x[i] * t[i];\n}\n",
        ("y[i] = 0.f", "y[i] = x[i]"),
        "t = inputs['t']\n    return {'y': np.where(t == scalars['skip'], 0, inputs['x'] * t)}",
        {"inputs": ["x: float32 n", "t: int32 n"], "outputs": ["y: float32 n"]},
        ["x", "t", "y", "n", "skip"],
        "t is -100 in no case, and k.hip:5 tests that",
        scalars={"skip": ("int32", -100)},
        inputs={"t": {"kind": "index-uniform", "below": 9}},
    ),
    "a factor that is 0": Poor(
        "__device__ float mixed(float a, float b, float beta) { return beta != 0 ? a + beta * b : a; }\n"
        "__global__ void k(const float* x, const float* w, float* y, float beta, int n) {\n"
        f"  {ONE}  y[i] = mixed(x[i], w[i], beta);\n}}\n",
        (": a;", ": a + b;"),
        "return {'y': inputs['x'] + scalars['beta'] * inputs['w']}",
        {"inputs": ["x: float32 n", "w: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "w", "y", "beta", "n"],
        "beta is 0.5 in every case; k.hip:2 tests 0",
        scalars={"beta": ("float32", 0.5)},
    ),
    "a factor by a param, 0 in no shape": Poor(
        "__global__ void k(const float* x, const float* w, float* y, float beta, int n) {\n"
        f"  {ONE}  y[i] = beta == 0.f ? x[i] : x[i] + beta * w[i];\n}}\n",
        ("? x[i]", "? x[i] + w[i]"),
        "return {'y': inputs['x'] + scalars['beta'] * inputs['w']}",
        {"inputs": ["x: float32 n", "w: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "w", "y", "beta", "n"],
        "beta is 0 in no case, and k.hip:5 tests that",
        scalars={"beta": ("float32", "tenths / 10")},
        params={"n": 150, "tenths": 5},
        suite=({"n": 150}, {"n": 65, "tenths": 7}),
    ),
    "a number that may be negative": Poor(
        f"__global__ void k(const float* x, float* y, int n, int reach) {{\n  {ONE}"
        "  y[i] = reach >= 0 && i > reach ? 0.f : x[i];\n}\n",
        (": x[i]", ": reach < 0 ? 2 * x[i] : x[i]"),
        "r = scalars['reach']\n    i = np.arange(params['n'])\n"
        "    return {'y': inputs['x'] * ((i <= r) if r >= 0 else 1)}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "y", "n", "reach"],
        "reach is 70 in every case; k.hip:5 tests below 0",
        scalars={"reach": ("int32", 70)},
    ),
    "a flag": Poor(
        f"__global__ void k(const float* x, float* y, int n, bool twice) {{\n  {ONE}"
        "  y[i] = twice ? 2 * x[i] : x[i];\n}\n",
        (": x[i]", ": -x[i]"),
        "return {'y': (2 if scalars['twice'] else 1) * inputs['x']}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "y", "n", "twice"],
        "twice is true in every case; k.hip:5 tests 0",
        scalars={"twice": ("bool", True)},
    ),
    "a case of a switch, by a number of the launch": Poor(
        f"__global__ void k(const float* x, float* y, int n, int mode) {{\n  {ONE}  switch (mode) {{\n"
        "    case 1: y[i] = x[i]; break;\n    case 2: y[i] = 3 * x[i]; break;\n  }\n}\n",
        ("3 * x[i]", "x[i] * x[i]"),
        "return {'y': inputs['x'] * (3 if params.get('mode_value', 1) == 2 else 1)}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "y", "n", 1],
        "mode is 2 in no case, and k.hip:7 tests that",
    ),
    "a carry from the third pass on": Poor(
        "__global__ void k(const float* x, float* y, int n) {\n  __shared__ float carry, part[64];\n"
        "  if (threadIdx.x == 0) carry = 0;\n  for (int base = 0; base < n; base += 64) {\n"
        "    int i = base + threadIdx.x;\n    part[threadIdx.x] = i < n ? x[i] : 0.f;\n"
        "    __syncthreads();\n    float sum = carry;\n"
        "    for (int k = 0; k <= threadIdx.x; ++k) sum += part[k];\n    if (i < n) y[i] = sum;\n"
        "    __syncthreads();\n    if (threadIdx.x == 63) carry = sum;\n    __syncthreads();\n  }\n}\n",
        ("carry = sum;", "carry = base < 64 ? sum : sum - part[0];"),
        "return {'y': np.cumsum(inputs['x'])}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "y", "n"],
        "no shape has three passes and a tail of the loop over n by 64, k.hip:5",
        grid="1",
        suite=({"n": 100}, {"n": 65}),
    ),
    "a tail of a derived size": Poor(
        f"__global__ void k(const float* x, float* y, int n) {{\n  {ONE}  y[i] = x[n - 1 - i];\n}}\n",
        ("x[n - 1 - i]", "x[n % 64 ? i : n - 1 - i]"),
        "return {'y': 1 * inputs['x'][::-1]}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "y", "n"],
        "64 divides n in every shape with several blocks",
        grid="blocks",
        suite=({"n": 128}, {"n": 192}),
    ),
    "a mean far from 0": Poor(
        "__global__ void k(const float* x, float* y, int n) {\n"
        "  if (threadIdx.x + blockIdx.x) return;\n  float s = 0, q = 0;\n"
        "  for (int i = 0; i < n; ++i) s += x[i];\n  const float m = s / n;\n"
        "  for (int i = 0; i < n; ++i) q += (x[i] - m) * (x[i] - m);\n  y[0] = q / n;\n}\n",
        ("q += (x[i] - m) * (x[i] - m);\n  y[0] = q / n", "q += x[i] * x[i];\n  y[0] = q / n - m * m"),
        "d = inputs['x'] - inputs['x'].sum() / params['n']\n"
        "    return {'y': (d * d).sum(keepdims=True) / params['n']}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 1"]},
        ["x", "y", "n"],
        "k.hip:7 computes a variance, which cancels if the mean is far from 0",
    ),
    "exponents that are large": Poor(
        f"__global__ void k(const float* x, float* y, int n) {{\n  {ONE}"
        "  float e = expf(2.0f * x[i]);\n  y[i] = 1.0f - 2.0f / (e + 1.0f);\n}\n",
        ("1.0f - 2.0f / (e + 1.0f)", "(e - 1.0f) / (e + 1.0f)"),
        "return {'y': 1 - 2 / (np.exp(2 * inputs['x']) + 1)}",
        {"inputs": ["x: float32 n"], "outputs": ["y: float32 n"]},
        ["x", "y", "n"],
        "k.hip:5 uses exponentials, which become very large or zero at large values",
    ),
}  # fmt: skip
