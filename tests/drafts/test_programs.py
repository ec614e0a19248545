"""Kernels whose types, extents and template arguments a program tells elsewhere: their drafts build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli import spec
from tokitai_cli.build import build
from tokitai_cli.core.model.buffers import symbols_of
from tokitai_cli.core.model.device import WARP_SIZES, DeviceOptions
from tokitai_cli.core.model.harness import HarnessRequest, KernelEntry, kernel_entry
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.drafts.search import drafts_of, write_drafts
from tokitai_cli.spec.reader.gaps import GAP

CONSTANTS = """\
#define DOUBLED(n) ((n < 8) ? 16 : 2 * (n))
enum Corner { LOW, HIGH = 4, CORNERS };
struct Step { int at; float by; };
typedef struct { Step steps[CORNERS]; } Steps;
const int width = 1 << 5;
const int rows = DOUBLED(width), columns = width / 4;
__device__ int table[rows * columns];
constexpr int padded(int n, int by) { return (n + by - 1) / by * by; }
__device__ unsigned long long sums[padded(33, width)][(1 + 1)];
__device__ float low[rows > 100 ? 1 : columns];
__shared__ extern int scratch[];
#define START(kernel, grid, block, shared) { kernel<<<grid, block, shared>>>(); sync(); }
__global__ void clear() { if (threadIdx.x < columns) low[threadIdx.x] = 0; }
__global__ void sum() { scratch[threadIdx.x] = table[threadIdx.x]; table[0] = scratch[1]; }
__global__ void walk(Steps every, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = every.steps[HIGH].by;
}
__global__ void add(const int* x) { atomicAdd(&sums[x[threadIdx.x] % 33][1], 1ull); }
int main() {
  START(clear, columns, width, 0);
  START(sum, columns / 4, width, width * sizeof(int));
}
"""
MEMBERS = """\
#include <utility>
#include <vector>
template <typename Real, typename Ordinal> struct Grid {
  typedef Real real;
  using ordinal = Ordinal;
  std::vector<Real> values;
};
template <int THREADS_, typename T_> struct Shape {
  using element = T_;
  static constexpr int THREADS = THREADS_;
};
template <typename T> class Interval {
 public:
  __device__ T const &lower() const { return low_; }
 private:
  T low_, high_;
};
typedef double number;
template <typename G> __global__ void scale(const typename G::ordinal* at, typename G::real* y,
                                            typename G::real by) {
  y[threadIdx.x] = by * at[threadIdx.x];
}
template <typename Shape> __global__ void shaped(const float* x, float* y) {
  constexpr int threads = Shape::THREADS;
  typename Shape::element value = x[threadIdx.x % threads];
  y[threadIdx.x] = value;
}
template <typename T> __global__ void inside(Interval<T> range, T* y) {
  y[threadIdx.x] = range.lower();
}
__global__ void seeded(std::pair<unsigned, float> key, float* y) {
  y[threadIdx.x] = key.first * key.second;
}
template <int N, typename T> void start(const T* x) {
  using Traits = Shape<N, T>;
  shaped<Traits><<<1, Traits::THREADS>>>(x, y);
}
template <typename G> void scaled(G& grid) { scale<G><<<1, 64>>>(at, y, 2); }
int main() {
  start<64, float>(d_x);
  inside<number><<<1, 64>>>(range, y);
}
"""
ENUMS = """\
#include <hipcub/hipcub.hpp>
namespace deep { template <typename T> __global__ void put(T* y); }
enum class Way { UP = 2, DOWN };
template <Way way> __global__ void go(float* y) { y[threadIdx.x] = way == Way::UP ? 1 : 2; }
template <int N, hipcub::BlockScanAlgorithm HOW> __global__ void scan(int* y) {
  using Scan = hipcub::BlockScan<int, N, HOW>;
  __shared__ typename Scan::TempStorage storage;
  Scan(storage).InclusiveSum(y[threadIdx.x], y[threadIdx.x]);
}
template <typename T> __global__ void deep::put(T* y) { y[threadIdx.x] = 1; }
template <int N, hipcub::BlockScanAlgorithm HOW> void start() { scan<N, HOW><<<1, N>>>(y); }
int main() { start<64, hipcub::BLOCK_SCAN_RAKING>(); }
"""
GUESSES = """\
#include <hip/hip_fp16.h>
#include <hipcub/hipcub.hpp>
#include <type_traits>
struct Nibble { unsigned char both; };
struct Difference { template <typename T> __device__ T operator()(T& a, T& b) { return a - b; } };
template <typename T> __device__ float to_float(T x);
template <> __device__ inline float to_float(__half x) { return __half2float(x); }
template <> __device__ inline float to_float(short x) { return x; }
__device__ inline int decode(uchar4 pixel) { return pixel.x; }
__device__ inline int decode(uint2 pixel) { return pixel.y; }
template <typename KeyT> struct Keys {
  static_assert(std::is_same<KeyT, unsigned>::value || std::is_same<KeyT, long>::value, "");
  static __device__ KeyT empty() { return 0; }
};
template <typename T> __global__ void special(const T* x, float* y) {
  y[threadIdx.x] = to_float(x[threadIdx.x]);
}
template <typename KeyT> __global__ void keyed(KeyT* y) { y[threadIdx.x] = Keys<KeyT>::empty(); }
template <typename T> __global__ void packed(const unsigned char* x, T* y) {
  T bits = x[threadIdx.x];
  bits <<= 3;
  y[threadIdx.x] = bits;
}
template <typename P, int N> __global__ void pixels(const P* x, int* y) {
  P pixel = x[threadIdx.x];
  y[threadIdx.x] = decode(pixel) + N;
}
__global__ void nibbles(const Nibble* x, int* y) { y[threadIdx.x] = x[threadIdx.x].both; }
__global__ void steps(int* y) {
  using Steps = hipcub::BlockAdjacentDifference<int, 64>;
  __shared__ typename Steps::TempStorage storage;
  int value[1] = {y[threadIdx.x]};
  Steps(storage).SubtractLeft(value, value, Difference());
  y[threadIdx.x] = value[0];
}
struct pair { int left, right; };
template <typename T, int N> struct PackedTensorAccessor32 { int rank; T* data_; };
__global__ void own(pair p, PackedTensorAccessor32<float, 2> x) { x.data_[threadIdx.x] = p.left; }
constexpr int lanes() { return 3; }
template <int lanes> __global__ void wide(int* y) { y[threadIdx.x] = lanes; }
template <int lanes> struct Runner { void run() { wide<lanes><<<1, 64>>>(y); } };
int main() { steps<<<1, 64>>>(y); }
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (CONSTANTS, {
            "clear": ["low: {dtype: float32, shape: [8]", 'block: [32]'],
            "sum": ["table: {dtype: int32, shape: [512]", 'shared: 128'],
            "add": ["sums: {dtype: uint64, shape: [64, 2]"],
            "walk": ["by: every_steps_by}, {at:"],
        }),
        (MEMBERS, {
            "scale": ['kernel: "scale<Grid<float, int>>"  # guess', "at: {dtype: int32",
                      "y: {dtype: float32"],
            "shaped": ['kernel: "shaped<Shape<64, float>>"'],
            "inside": ['kernel: "inside<number>"', "low_: range_low", 'flags: ["-fno-access-control"]'],
            "seeded": ["key: {first: key_first, second: key_second}", "dtype: float32, value: 0.5"],
        }),
        (ENUMS, {
            "go": ['kernel: "go<Way::UP>"  # guess: what way stands for'],
            "scan": ["scan<64, hipcub::BLOCK_SCAN_RAKING>"],
            "put": ['kernel: "deep::put<float>"'],
        }),
        (GUESSES, {
            "special": ['kernel: "special<__half>"  # guess: what T stands for'],
            "keyed": ['kernel: "keyed<unsigned>"'],
            "packed": ['kernel: "packed<unsigned>"'],
            "pixels": ['kernel: "pixels<uchar4, 4>"'],
            "nibbles": ["x: {dtype: uint8"],
            "steps": ["block: [64]"],
            "own": ["p: {left: p_left, right: p_right}", "x: {rank: x_rank, data_: x_data}"],
            "wide": ['kernel: "wide<4>"  # guess'],
        }),
    ],
    ids=["constants", "members", "enums", "guesses"],
)  # fmt: skip
def test_drafts_of_such_programs_build(
    text: str, told: dict[str, list[str]], tmp_path: Path
) -> None:
    (tmp_path / "k.hip").write_text("#include <hip/hip_runtime.h>\n" + text)
    found = drafts_of(tmp_path / "k.hip", place=tmp_path / "spec")
    assert not isinstance(found, Unread)
    assert {one.kernel.name: one.reasons for one in found[0]} == dict.fromkeys(told, ())
    drafted = {one.kernel.name: one.spec for one in found[0]}
    missed = [line for name, lines in told.items() for line in lines if line not in drafted[name]]
    assert missed == []
    entries: list[KernelEntry] = []
    symbols: dict[str, str] = {}
    flags: dict[str, None] = {}
    for path in write_drafts(found[0], tmp_path):
        for file in (path, path.parent / "formula.py"):
            file.write_text(file.read_text().replace(GAP, "#"))
        (variant,) = spec.load(path).spec.variants.values()
        entries.append(kernel_entry(variant, variant.launches[0], WARP_SIZES[0]))
        symbols |= {name: buffer.dtype for name, buffer in symbols_of(variant).items()}
        flags |= dict.fromkeys(variant.flags)
    request = HarnessRequest(tmp_path / "k.hip", tuple(entries), tuple(symbols.items()))
    assert build(request, CpuDevice().recipe(DeviceOptions(), {}, tuple(flags))).path.exists()
