"""Drafts are given sizes and room that their kernels end within."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tokitai_cli import spec
from tokitai_cli.drafts.search import drafts_of
from tokitai_cli.drafts.writing import new
from tokitai_cli.spec.reader.gaps import GAP

KERNELS = """\
#define TILE 64
struct Edge { int to; float weight; };
__global__ void tile(const float* x, float* y, int n) { y[blockIdx.x * TILE * 16 + threadIdx.x] = x[n]; }
__global__ void walk(const Edge* edges, const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = x[edges[i].to];
}
__global__ void inner(float* x, size_t N, size_t rows, size_t cols) {
  for (size_t i = threadIdx.x; i < N - rows * cols; i += blockDim.x) x[i] = 1;
}
__global__ void shared(float* x, int n) {
  extern __shared__ float part[];
  part[threadIdx.x] = x[threadIdx.x % n];
}
__global__ void pick(const float* rand, const float* x, float* y, int n) {
  y[threadIdx.x] = x[(int)(rand[threadIdx.x] * n)];
}
__global__ void large(double* x, int a, int b, int c, int d) {
  for (int i = 0; i < a; ++i) x[(((size_t)threadIdx.x * a + i) * b * c + 1) * d] = 1;
}
void host(float* x, int n, int threads) { shared<<<1, threads, n * sizeof(float)>>>(x, n); }
"""


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("tile", ['y: {dtype: float32, shape: ["1024 * rows"]', "block: [1024]"]),
        ("walk", ["edges: {kind: constant, value: 0}", "y: {dtype: float32, shape: [n]}"]),
        ("shared", ['shared: "4 * n + 16384"  # guess: bytes of shared memory']),
        ("pick", ["rand: {kind: uniform}"]),
    ],
)
def test_room_draws_and_sizes_of_a_draft_are_guesses(
    kernel: str, told: list[str], tmp_path: Path
) -> None:
    (tmp_path / "k.hip").write_text(KERNELS)
    draft, _, _ = new(tmp_path / "k.hip", tmp_path, kernel, "", (), {})
    for one in told:
        (line,) = (line for line in draft.spec.splitlines() if one in line)
        assert "# guess:" in line
    for name in ("spec.yaml", "formula.py"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace(GAP, "#"))
    assert spec.load(tmp_path / "spec.yaml").spec.variants["main"].launches


@pytest.mark.parametrize(
    ("kernel", "told"), [("inner", "N: {default: 280,"), ("large", "a: {default: 48,")]
)
def test_sizes_that_loops_end_at_are_no_guesses(kernel: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(KERNELS)
    draft, _, _ = new(tmp_path / "k.hip", tmp_path, kernel, "", (), {})
    (line,) = (line for line in draft.spec.splitlines() if told in line)
    assert "# guess:" not in line


LAID_OUT = """\
#define ORDER 7
typedef struct { float re, im; } Number;
typedef struct { Number e[3][ORDER + 1]; int next[ORDER]; } Matrix;
__global__ void clear(Matrix* m, int n) { if (threadIdx.x < n) m[threadIdx.x].next[0] = 0; }
__global__ void few(float* y, int n) {
  __shared__ float part[16];
  int id = threadIdx.x;
  part[id] = n;
  y[id] = mixed(part, id);
}
struct Layout { const float* data; long sizes[6]; long strides[6]; int dims; };
__device__ long place(long at, const Layout& of) {
  long found = 0;
  for (int i = of.dims - 1; i >= 0; --i) found += at % of.sizes[i] * of.strides[i], at /= of.sizes[i];
  return found;
}
__global__ void laid(Layout x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x.data[place(threadIdx.x, x)];
}
__device__ float four(const float* x) {
  float4 v = *reinterpret_cast<const float4*>(x);
  return v.x + v.w;
}
__global__ void rows(const float* x, float* y, int n, int m, int stride) {
  if (threadIdx.x < min(n, m)) y[threadIdx.x] = four(x + threadIdx.x * stride);
}
constexpr int SIDE = 4;
__global__ void cubes(const float* x, float* y, int n) {
  __shared__ float held[SIDE + 1][SIDE + 1][SIDE + 1];
  uint tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z;
  uint at = tz * SIDE * SIDE + ty * SIDE + tx;
  held[tx][ty][tz] = x[at];
  if (tx == SIDE - 1 && ty == SIDE - 1 && tz == SIDE - 1) held[tx + 1][ty + 1][tz + 1] = 0;
  y[at] = held[tx][ty][tz];
}
__global__ void counted(const float* x, float* y, int n) {
  __shared__ float part[128];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 128) {
    part[threadIdx.x] = x[i];
    __syncthreads();
    sum += part[127 - threadIdx.x];
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}
__global__ void sworn(const float* x, float* y, int rows, int n) {
  assert(n % (2 * SIDE) == 0);
  assert(n % 3 == 0);
  assert(blockDim.x == 64);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = x[blockIdx.x * n + i];
}
"""


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("sworn", "n: {default: 24, multiple_of: 24"),
        ("sworn", "block: [64]  # guess:"),
        ("clear", f"shape: [n, {3 * 8 * 8 + 7 * 4}]"),
        ("few", "block: [16]  # guess:"),
        ("laid", "x_dims: {default: 6, max: 6"),
        ("rows", "stride: {default: 64,"),
        ("cubes", "block: [4, 4, 4]  # guess:"),
        (
            "counted",
            'n: {default: 128, help: "int n"}  # guess: the kernel has no tail behind multiples of 128',
        ),
    ],
)
def test_layouts_blocks_and_sizes_follow_the_text(kernel: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(LAID_OUT)
    draft, _, _ = new(tmp_path / "k.hip", tmp_path, kernel, "", (), {})
    assert told in draft.spec


def test_find_gives_room_where_new_guesses_a_likely_shape(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text("__global__ void on(float* y, int n) { work(y, n); }\n")
    draft, _, _ = new(tmp_path / "k.hip", tmp_path / "out", "on", "", (), {})
    assert "shape: [n]" in draft.spec
    ((found,), _) = drafts_of(tmp_path / "k.hip")  # type: ignore[misc]
    assert re.search(r'shape: \["\d+ \* n"\]}  # guess: .*large enough', found.spec)
