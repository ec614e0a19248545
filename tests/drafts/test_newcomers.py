"""Drafts of kernels in the styles that newcomers brought: what their texts tell of sizes and draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import tokitai

ATTENTION = """
#define ROWS 32
#define D 64
__global__ void attend(float* Q, float* K, float* O, int N, int nh, float scale) {
  int t = threadIdx.x;
  int row = blockIdx.x * ROWS + t;
  int off = (blockIdx.z * nh + blockIdx.y) * N * D;
  float q[D], l = 0, m = -1e30f;
  for (int i = 0; i < D; i++) q[i] = row < N ? Q[off + row * D + i] : 0;
  for (int j = 0; j < N; j++) {
    float s = 0;
    for (int i = 0; i < D; i++) s += q[i] * K[off + j * D + i];
    float mn = fmaxf(m, s * scale), a = expf(m - mn), p = expf(s * scale - mn);
    l = l * a + p;
    m = mn;
  }
  if (row < N) for (int i = 0; i < D; i++) O[off + row * D + i] = q[i] / l;
}
"""
OPTIMIZER = """
__global__ void step(float* w, const float* g, float* mom, float* vel, long count, float lr, float beta1,
                     float beta2, float beta1_correction, float beta2_correction, float eps) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= count) return;
  float m = mom[i], v = vel[i];
  m = beta1 * m + (1 - beta1) * g[i];
  v = beta2 * v + (1 - beta2) * g[i] * g[i];
  mom[i] = m;
  vel[i] = v;
  m /= beta1_correction;
  v /= beta2_correction;
  w[i] -= lr * m / (sqrtf(v) + eps);
}
void host(float* w, float* g, float* m, float* v, long n) {
  const int blocks = (int)std::min<int64_t>(((int64_t)n + 127) / 128, 4096);
  step<<<blocks, 128>>>(w, g, m, v, n, 1e-3f, 0.9f, 0.999f, c1(), c2(), 1e-8f);
}
"""
LARGEST = """
__device__ void better(float& v, int& k, float v2, int k2) {
  if (v2 > v || (v2 == v && k2 < k)) { v = v2; k = k2; }
}
__global__ void places(const float* __restrict__ x, int* __restrict__ place, int cols) {
  const float* p = x + (size_t)blockIdx.x * cols;
  float v = -INFINITY;
  int k = 0;
  for (int c = threadIdx.x; c < cols; c += 32) better(v, k, p[c], c);
  if (threadIdx.x == 0) place[blockIdx.x] = k;
}
"""
STRIDED = """
__global__ void copied(const float* x, float* y, int rows, int cols, int ldx, int ldy) {
  int r = blockIdx.x;
  for (int c = threadIdx.x; r < rows && c < cols; c += blockDim.x) y[r * ldy + c] = x[r * ldx + c];
}
"""
CAPPED = """
__global__ void few(const float* x, float* y, int n) {
  float kept[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; ++k) kept[k] = x[k];
  if (i < n) y[i] = kept[i];
}
void host(const float* x, float* y, int n) { few<<<(n + 255) / 256, 256>>>(x, y, n); }
"""
BATCHES = """
int cdiv(int a, int b) { return (a + b - 1) / b; }
__global__ void scaled(const float* x, float* y, int n, int dim, float a) {
  int i = blockIdx.x * 32 + threadIdx.x;
  int off = blockIdx.y * n * dim;
  if (i < n) for (int d = 0; d < dim; d++) y[off + i * dim + d] = a * x[off + i * dim + d];
}
void host(const float* x, float* y, int b, int m, int n, int dim, float a) {
  dim3 grid(GRID);
  scaled<<<grid, 32>>>(x, y, n, dim, a);
}
"""
COMMENTED = """
// x, y are (B, rows, cols)
// grid: (ceil(cols / TILE), B), block: TILE
#define TILE 64
__global__ void raised(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * TILE + threadIdx.x;
  int at = blockIdx.y * rows * cols;
  for (int r = 0; r < rows; r++) if (c < cols) y[at + r * cols + c] = x[at + r * cols + c] + 1;
}
"""
SHARED = """
__global__ void tiled(const float* x, float* y, int n, int k) {
  __shared__ float t[32][33];
  int j = threadIdx.x;
  for (int c = 0; c < 33 && c < k; c++) t[j][c] = x[blockIdx.x * n * k + j * k + c];
  __syncthreads();
  float s = 0;
  for (int c = 0; c < 33 && c < k; c++) s += t[j][c];
  if (j < n) y[blockIdx.x * n + j] = s;
}
"""


def drafted(folder: Path, text: str) -> str:
    source = folder / "kernel.cu"
    source.write_text(f"#include <hip/hip_runtime.h>\n{text}", encoding="utf-8")
    done = tokitai("new", source, "--out", folder)
    assert done.returncode == 0, done.stderr
    return (folder / "spec.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (ATTENTION,
         ["Q: {dtype: float32, shape: [rows, nh, N, 64]}",
          "O: {dtype: float32, shape: [rows, nh, N, 64]}",
          'grid: ["ceil_div(N, 32)", nh, rows]', "block: [32]", "  large:"]),
        (OPTIMIZER,
         ["inputs: {vel: {kind: uniform}}", "beta1_correction: {dtype: float32, value: 0.1}",
          "beta2_correction: {dtype: float32, value: 0.001}",
          'grid: ["min((count + 127) // 128, 4096)"]']),
        (LARGEST, ["  negative:", "  ties:", "cols: 2}"]),
        (STRIDED,
         ["cols: 257, ldx: 264, ldy: 264}", "cols: 512, ldx: 520, ldy: 520}",
          'requires: ["cols <= ldx", "cols <= ldy"]', "    inout:\n      y: {",
          "and that the kernel keeps the elements after its rows"]),
        (CAPPED, ["n: {default: 8, max: 8", "{shape: {n: 8}, why: large sizes}"]),
        (BATCHES.replace("GRID", "(n + 31) / 32, b * m"),
         ["  b: {", "  m: {", "x: {dtype: float32, shape: [b, m, n, dim]}",
          'grid: ["(n + 31) // 32", "b * m"]\n']),
        (BATCHES.replace("GRID", "(n + 31) / 32, 2"),
         ["x: {dtype: float32, shape: [2, n, dim]}", 'grid: ["(n + 31) // 32", 2]\n']),
        (BATCHES.replace("GRID", "tiles(n), b"),
         ["shape: [b, n, dim]", 'grid: ["ceil_div(n, 32)", b]  # guess: x from the kernel\'s code; ']),
        (BATCHES.replace("GRID", "cdiv(n, 32), b"),
         ["shape: [b, n, dim]", 'grid: ["(n + 31) // 32", b]\n']),
        (BATCHES.replace("GRID", "(n + 31) / 32, b, m").replace(
            "blockIdx.y *", "(blockIdx.z * gridDim.y + blockIdx.y) *"), ["shape: [m, b, n, dim]"]),
        (COMMENTED,
         ["x: {dtype: float32, shape: [B, rows, cols]}  # guess: its shape, according to its comment",
          'grid: ["(cols + 63) // 64", B]  # guess: according to its comment',
          "block: [64]  # guess: according to its comment"]),
        (SHARED, ["block: [32]  # guess: from the kernel's code; there is no launch"]),
    ],
    ids=["attention", "optimizer", "largest", "strided", "capped", "batches", "two", "tiles",
         "helper", "axes", "commented", "shared"],
)  # fmt: skip
def test_a_newcomers_kernel_is_drafted(text: str, lines: list[str], tmp_path: Path) -> None:
    spec = drafted(tmp_path, text)
    assert [line for line in lines if line not in spec] == [], spec


def test_an_output_with_padded_rows_verifies_as_its_formula_says(tmp_path: Path) -> None:
    drafted(tmp_path, STRIDED)
    formula = tmp_path / "formula.py"
    lines = formula.read_text("utf-8").splitlines()
    hint = next(line for line in lines if "keeps the elements after its rows: " in line)
    told = hint.partition("rows: ")[2].replace("new", "x[:, :cols]")
    assert told == "np.concatenate([x[:, :cols], y[:, cols:]], axis=1)"
    formula.write_text("\n".join([*lines[:-2], f'    return {{"y": {told}}}', ""]), "utf-8")
    done = tokitai("verify", tmp_path / "spec.yaml", "--suite", "quick", "--device", "cpu",
                   "--out", tmp_path / "out")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
