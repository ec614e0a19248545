"""Drafts follow what a program's host says: types, structs, launches; what it leaves out is a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli import spec
from tokitai_cli.build import build
from tokitai_cli.core.model.device import WARP_SIZES, DeviceOptions
from tokitai_cli.core.model.harness import HarnessRequest, kernel_entry
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.drafts.search import drafts_of, write_drafts
from tokitai_cli.spec.reader.gaps import GAP

PROGRAM = """\
#include <hip/hip_runtime.h>
struct Shape { using index_t = int; index_t rows; };
template <typename T, int N> struct View : Shape { T* data; float weights[N]; const T* parts[2]; };
typedef struct { int n; double at[2]; } *Bag;
struct Times { template <class T> __device__ T operator()(T a, T b) const { return a * b; } };
constexpr int TILE = 64;
__device__ inline int place(int row, int col, int cols) { return row * cols + col; }

template <typename T> __global__ void view(View<T, 3> v, int n) {
  if (threadIdx.x < n) v.data[threadIdx.x] = v.parts[0][0] + v.weights[1] * v.rows;
}
__global__ void bag(const Bag b, double* y) { y[threadIdx.x] = b->at[0]; }
__global__ void typed(const real* x, real* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[0]; }
template <typename T, typename F> __global__ void fold(const T* x, T* y, F op, int n) {
  y[0] = op(x[0], x[n - 1]);
}
template <typename F> __global__ void named(float* y, F op, int n) { y[n - 1] = op(1.f, 2.f); }
template <int part> __global__ void tiles(int* y, int n) {
  auto tile = cooperative_groups::tiled_partition<part>(cooperative_groups::this_thread_block());
  if (threadIdx.x < n) y[threadIdx.x] = tile.thread_rank();
}
template <typename I> __global__ void gather(const I* at, const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[at[threadIdx.x]];
}
__global__ void grid(const float* x, float* y, int n, int m) {
  extern __shared__ float part[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + m;
}
__global__ void __launch_bounds__(TILE) bounded(float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 1;
}
__global__ void lanes(float* y, int n) {
  int i = threadIdx.y * warpSize + threadIdx.x;
  if (i < n) y[i] = 1;
}
__global__ void fixed(float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < 4096 * TILE) y[i] = 1;
}
__global__ void indexed(float* y, int rows, int cols) {
  int row = blockIdx.x, col = threadIdx.x;
  if (col < cols && row < rows) y[place(row, col + 1, cols)] = 1;
}
__global__ void plane(double y[][4][5], int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i][threadIdx.x % 4][3] = 1;
}
__global__ void divided(const int* by, int* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = n / by[threadIdx.x];
}
__global__ void rows(const int* start, float* y, int n) {
  int from = start[threadIdx.x], to = start[(threadIdx.x + 1)];
  for (int i = from; i < to; ++i) if (threadIdx.x < n) y[i] = 1;
}
__global__ void tile(const float* x, float* y, int n) {
  int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
void start(int high) { tile<<<(n + 32 * high - 1) / (32 * high), dim3(32, high)>>>(d_x, d_y, n); }
int main() {
  int warp, half;
  hipDeviceGetAttribute(&warp, hipDeviceAttributeWarpSize, 0);
  View<double, 3> v;
  view<<<1, 64>>>(v, n);
  auto op = [] __device__(unsigned a, unsigned b) { return a; };
  fold<<<1, 64>>>(d_x, d_y, op, n);
  named<<<1, 64>>>(d_y, Times(), n);
  int threads = warp * 2;
  half = (n > m) ? m : n;
  int blocks = (n + threads - 1) / threads + (n % 2 ? 1 : 0);
  grid<<<blocks, dim3(threads), (half << 2) * sizeof(float)>>>(d_x, d_y, n, m);
  fixed<<<dim3(32768, 2), 64>>>(d_y);
}
"""


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("view", ['kernel: "view<double>"', "rows: v_rows", "weights: [v_weights, v_weights, v_weights]",
                  "parts: [v_parts_0, v_parts_1]", "v_data: {dtype: float64"]),
        ("bag", ["b: {dtype: uint8, shape: [", "24]}"]),
        ("typed", ["x: {dtype: float64", 'flags: ["-Dreal=double"]']),
        ("fold", ["fold<float, std::plus<>>", "# guess: what T, F stand for", "op_: {}"]),
        ("named", ['kernel: "named<Times>"', "op_: {}"]),
        ("tiles", ['kernel: "tiles<32>"  # guess: what part stands for']),
        ("gather", ['kernel: "gather<int>"  # guess: what I stands for']),
        ("grid", ['+ (n + 1) // 2 - n // 2"]', 'block: ["2 * warp_size"]', "16 * min(m, n)"]),
        ("bounded", ["block: [64]  # guess:"]),
        ("lanes", ["block: [warp_size, 8]  # guess:"]),
        ("fixed", ["grid: [8, 2]  # guess: the host has 32768, 2"]),
        ("tile", ['grid: ["(n + 32 * 8 - 1) // (32 * 8)"]  # guess: the value of the host',
                  "block: [32, 8]  # guess:"]),
        ("indexed", ['shape: ["rows + 1", cols]']),
        ("plane", ["y: {dtype: float64, shape: ["]),
        ("divided", ["by: {kind: uniform, lo: 1, hi: n}"]),
        ("rows", ["start: {kind: offsets, end: n}"]),
    ],
)  # fmt: skip
def test_a_draft_follows_the_program(kernel: str, told: list[str], tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(PROGRAM)
    found = drafts_of(tmp_path / "k.cu", defines={"real": "double", "__HIP_PLATFORM_AMD__": ""})
    assert not isinstance(found, Unread)
    (draft,) = (one for one in found[0] if one.kernel.name == kernel)
    assert not draft.reasons
    assert [one for one in told if one not in draft.spec] == []
    assert "__HIP_PLATFORM_AMD__" not in draft.spec
    (tmp_path / "spec.yaml").write_text(draft.spec.replace(GAP, "#"))
    (tmp_path / "formula.py").write_text(draft.formula.replace(GAP, "#"))
    assert spec.load(tmp_path / "spec.yaml").spec.variants["main"].launches


SIGNATURES = """\
\ufeff#include <hip/hip_runtime.h>
typedef enum { A, C, G } base;
typedef struct Node Node;
struct Node { int value; float weight; };
typedef struct { double at[3]; } *Place;
struct Held { float* __restrict__ to; int n; };
__global__ void coded(const base* s, int* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = s[0]; }
__global__ void held(Held h) { if (threadIdx.x < h.n) h.to[threadIdx.x] = 1; }
__global__ void nodes(Node* all, int n) { if (threadIdx.x < n) all[threadIdx.x].value = n; }
__global__ void rows(float y[][4], int n) { if (threadIdx.x < n) y[threadIdx.x][3] = 1; }
__global__ void placed(const Place p, double* y, int n) { if (threadIdx.x < n) y[0] = p->at[1]; }
void host() { rows<<<1, 64>>>(y, 3); rows (y, 3); placed (p, y, 3); }
"""


def test_enums_typedefs_and_arrays_of_arrays_build(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SIGNATURES, "utf-8")
    found = drafts_of(tmp_path / "k.cu", place=tmp_path / "spec")
    assert not isinstance(found, Unread)
    assert [one.kernel.name for one in found[0] if one.reasons] == []
    entries = []
    for path in write_drafts(found[0], tmp_path):
        for file in (path, path.parent / "formula.py"):
            file.write_text(file.read_text("utf-8").replace(GAP, "#"), "utf-8")
        (variant,) = spec.load(path).spec.variants.values()
        entries.append(kernel_entry(variant, variant.launches[0], WARP_SIZES[0]))
    request = HarnessRequest(tmp_path / "k.cu", tuple(entries), ())
    assert build(request, CpuDevice().recipe(DeviceOptions(), {}, ())).path.exists()


@pytest.mark.parametrize(
    "made",
    [
        "P p{x, nullptr, y, n};",
        "P p = {.x = x, .bias = nullptr, .y = y, .n = n};",
        "P p; p.x = x; p.bias = NULL; p.y = y; p.n = n;",
    ],
)
def test_fields_are_what_the_host_puts_into_them(tmp_path: Path, made: str) -> None:
    (tmp_path / "k.hip").write_text(
        "#include <hip/hip_runtime.h>\n"
        "struct P { const float* x; const float* bias; float* y; int n; };\n"
        "__global__ void add(P p) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < p.n) p.y[i] = p.x[i] + (p.bias ? p.bias[i] : 0.f); }\n"
        f"void host(const float* x, float* y, int n) {{ {made} add<<<(n + 63) / 64, 64>>>(p); }}\n",
        encoding="utf-8",
    )
    found = drafts_of(tmp_path / "k.hip", room=False)
    assert isinstance(found, tuple)
    model = found[0][0].model
    assert model is not None
    assert model.structs["p"].value == {"x": "p_x", "bias": None, "y": "p_y", "n": "p_n"}
    assert "p_bias" not in model.arrays
    assert model.launch.grid.value == ["(p_n + 63) // 64"]
    assert not model.launch.grid.why


def test_a_function_may_be_an_argument_of_a_template(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(
        "#include <hip/hip_runtime.h>\n"
        "template <typename T> __device__ T halved(const T& v) { return v / T(2); }\n"
        "template <typename T, T (*EACH)(const T&)>\n"
        "__global__ void mapped(const T* x, T* y, int n) {\n"
        "  if (threadIdx.x < n) y[threadIdx.x] = EACH(x[0]); }\n"
        "void host(float* x, float* y, int n) { mapped<float, halved<float>><<<1, 64>>>(x, y, n); }\n",
        encoding="utf-8",
    )
    found = drafts_of(tmp_path / "k.hip")
    assert isinstance(found, tuple)
    assert [one.instance for one in found[0]] == ["mapped<float, halved<float>>"]


def test_a_template_of_classes_is_no_type_by_itself(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(
        "#include <hip/hip_runtime.h>\n#include <vector>\n"
        "template <typename D> struct Blob { const D* in() const; D* out(); };\n"
        "template <typename D> __global__ void scaled(const D* x, D* y, int n, const D by) {\n"
        "  if (threadIdx.x < n) y[threadIdx.x] = by * x[threadIdx.x]; }\n"
        "template <typename D> void host(const std::vector<Blob<D>*>& top, int n, D by) {\n"
        "  scaled<<<1, 64>>>(top[0]->in(), top[0]->out(), n, -by); }\n",
        encoding="utf-8",
    )
    found = drafts_of(tmp_path / "k.hip")
    assert isinstance(found, tuple)
    assert [(one.instance, one.reasons) for one in found[0]] == [("scaled<float>", ())]
