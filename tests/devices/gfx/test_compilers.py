"""What the device headers make of HIP sources, by every compiler that is here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.gfx.compilers import COMPILERS, code_object, toolchain
from tokitai_cli.core import resources

KERNELS = sorted(resources.kernels_dir().glob("*.hip"))
# e_flags of a code object: the number of its processor.
# https://llvm.org/docs/AMDGPUUsage.html#amdgpu-elf-header-e-flags-table-v3-onwards
MACHINES = {
    "gfx942": 0x4C,
    "gfx90a": 0x3F,
    "gfx1100": 0x41,
    "gfx1101": 0x46,
    "gfx1102": 0x47,
    "gfx1151": 0x4A,
}
ALL_HEADERS = "".join(
    f"#include <hip/{path.name}>\n"
    for path in sorted((resources.kernels_dir() / "host" / "hip").glob("*.h"))
)
EVERYTHING = (
    ALL_HEADERS
    + """
#include <cmath>
#include <algorithm>
#include <cub/cub.cuh>
#include <hiprand/hiprand_kernel.h>
#include <rocprim/rocprim.hpp>
static_assert(__HIP_PLATFORM_AMD__ && HIP_VERSION > 60000000 && __HIP_DEVICE_COMPILE__, "of AMD's");
struct Scale { float by; int n[2]; };
extern __shared__ float dynamic[];
template <class T, int n>
__global__ void __launch_bounds__(256) all_of_it(Scale s, const float* x, T* y, int* counts) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = std::exp(x[i]) + tanhf(x[i]) + std::erf(x[i]) + std::pow(x[i], s.by) + sinf(x[i]);
  v += std::max(x[i], __shfl_down_sync(~0ull, v, 1)) + __expf(v) + rsqrtf(v) + std::sqrt(v);
  dynamic[threadIdx.x] = std::isnan(v) ? 0.0f : v;
  __syncthreads();
  y[i] = T(dynamic[threadIdx.x ^ 1] + n + float(__hip_bfloat16(v)) + s.n[1]);
  if (__syncthreads_count(v > 0) > 3) atomicAdd(counts, __popcll(__ballot(v > 1)));
  assert(gridDim.y == 1 && (float2(1, 2) * 2.0f).y == 4);
}
namespace cg = cooperative_groups;
__global__ void libraries(const float* x, float* y, int n) {
  using Reduce = hipcub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float v = Reduce(storage).Sum(x[threadIdx.x]);
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  for (int step = 8; step; step /= 2) v += tile.shfl_down(v, step);
  hiprandStatePhilox4_32_10_t state;
  hiprand_init(1, threadIdx.x, 0, &state);
  y[threadIdx.x] = v * hiprand_uniform(&state);
}
template __global__ void all_of_it<__half, 3>(Scale, const float*, __half*, int*);
"""
)


@pytest.mark.parametrize("name", COMPILERS)
def test_same_source_gives_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = toolchain(name, monkeypatch)
    found = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        found.add(code_object(chain, KERNELS[0], folder))
    assert len(found) == 1
    assert found.pop()[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.parametrize(
    "arch", [pytest.param(a, marks=pytest.mark.slow if a != "gfx1101" else ()) for a in MACHINES]
)
def test_every_header_compiles_for_every_architecture(
    name: str, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "all.hip"
    source.write_text(EVERYTHING)
    code = code_object(toolchain(name, monkeypatch), source, tmp_path, arch)
    assert code[48] == MACHINES[arch]
    assert b"all_of_it" in code


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILERS)
def test_shipped_kernels_compile(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = toolchain(name, monkeypatch)
    for source in KERNELS:
        code_object(chain, source, tmp_path)
