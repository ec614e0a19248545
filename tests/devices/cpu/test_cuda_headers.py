"""CUDA's C++ headers on the cpu device: right kernels are verified, and each has a wrong twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compilers import has_sanitizers
from tests.runs import evidence_in, run, tokitai_here
from tokitai_cli.core.model.evidence import CaseRecord

KERNELS = """#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/functional>
#include <cuda/pipeline>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <cuda_pipeline.h>
#define AT int i = blockIdx.x * blockDim.x + threadIdx.x
namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace {
template <class Op>
__device__ float folded(float a, float b, Op op) { return op(a, b); }
struct Room {
  __device__ float* get() {
    extern __shared__ float room[];
    return room;
  }
};
}

template <bool RIGHT>
__global__ void functors(const float* x, float* y, int n) {
  AT;
  const float most = RIGHT ? cuda::maximum<>{}(x[i % n], 0.0f) : cuda::minimum<>{}(x[i % n], 0.0f);
  const float least = cuda::minimum<float>{}(x[i % n], 0.0f);
  const float one = cuda::std::numeric_limits<int>::max() > 9;
  if (i < n) y[i] = folded(most, least, cuda::std::plus<>{}) * one;
}
template <bool RIGHT>
__global__ void counts(const float* x, float* y, int n) {
  __shared__ int seen;
  AT;
  if (threadIdx.x == 0) seen = 0;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> total(seen);
  if (RIGHT) total.fetch_add(2, cuda::std::memory_order_relaxed), --total;
  else seen = seen + 1 - (threadIdx.x == 0);
  __syncthreads();
  if (i < n) y[i] = seen == int(blockDim.x) && total.load() == seen ? x[i] : 0;
}
template <bool RIGHT>
__global__ void turned(const float* x, float* y, int n) {
  __shared__ Barrier bar;
  __shared__ float s[64];
  AT;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    s[63 - threadIdx.x] = i < n ? x[i] * (1 << k) : 0;
    Barrier::arrival_token token = bar.arrive();
    if (RIGHT || k < 2) bar.wait(std::move(token));
    const float v = s[threadIdx.x];
    bar.arrive_and_wait();
    s[threadIdx.x] = v;
    bar.arrive_and_wait();
    if (i < n) y[i] = s[63 - threadIdx.x] / (1 << k);
  }
}
template <bool RIGHT>
__global__ void stuck(const float* x, float* y, int n) {
  __shared__ Barrier bar;
  AT;
  if (threadIdx.x == 0) init(&bar, blockDim.x + !RIGHT);
  __syncthreads();
  bar.arrive_and_wait();
  if (i < n) y[i] = x[i];
}
template <bool RIGHT>
__global__ void copied(const float* x, float* y, int n) {
  __shared__ float s[2][64];
  AT;
  for (int k = 0; k < 2; k++) {
    if (i < n) __pipeline_memcpy_async(&s[k][threadIdx.x], &x[i], 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(RIGHT ? 0 : 1);
  if (i < n) y[i] = s[1][threadIdx.x];
}
template <bool RIGHT>
__global__ void grouped(const float* x, float* y, int n) {
  __shared__ float s[64];
  auto block = cg::this_thread_block();
  const int base = blockIdx.x * blockDim.x, count = min(int(blockDim.x), n - base), t = threadIdx.x;
  cg::memcpy_async(block, s, x + base, sizeof(float) * count);
  if (RIGHT) cg::wait(block);
  else __syncthreads();
  if (t < count) y[base + t] = s[t];
}
template <bool RIGHT>
__global__ void bound(const float* x, float* y, int n) {
  __shared__ Barrier bar;
  __shared__ float s[64];
  auto block = cg::this_thread_block();
  const int base = blockIdx.x * blockDim.x, count = min(int(blockDim.x), n - base), t = threadIdx.x;
  if (t == 0) init(&bar, blockDim.x);
  block.sync();
  cuda::memcpy_async(block, s, x + base, sizeof(float) * count, bar);
  if (RIGHT) bar.arrive_and_wait();
  if (t < count) y[base + t] = s[t];
}
template <bool RIGHT>
__global__ void staged(const float* x, float* y, int n) {
  __shared__ float s[64];
  auto pipe = cuda::make_pipeline();
  AT;
  pipe.producer_acquire();
  if (i < n) cuda::memcpy_async(&s[threadIdx.x], &x[i], sizeof(float), pipe);
  pipe.producer_commit();
  if (RIGHT) pipe.consumer_wait();
  if (i < n) y[i] = s[threadIdx.x];
  pipe.consumer_release();
}
template <bool RIGHT>
__global__ void assembled(const float* x, float* y, int n) {
  AT;
  float v;
  if (i >= n) return;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
  if (RIGHT) asm("{ .reg .f32 t; add.f32 t, %0, %0; sub.f32 %0, t, %0; }" : "+f"(v));
  else asm("add.f32 %0, %0, %0;" : "+f"(v));
  y[i] = v;
}
template <bool RIGHT>
__global__ void block_stages(const float* x, float* y, int n) {
  __shared__ float s[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const int base = blockIdx.x * blockDim.x, count = min(int(blockDim.x), n - base), t = threadIdx.x;
  for (int filled = 0, k = 0; k < 5; k++) {
    for (; filled < 5 && filled < k + 2; filled++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[filled % 2], x + base, sizeof(float) * count, pipe);
      pipe.producer_commit();
    }
    if (RIGHT || k < 4) pipe.consumer_wait();
    const float v = s[k % 2][count - 1 - min(t, count - 1)];
    block.sync();
    if (t < count) s[k % 2][count - 1 - t] = -1;
    pipe.consumer_release();
    if (t < count) y[base + count - 1 - t] = v;
  }
}
template <bool RIGHT>
__global__ void roles(const float* x, float* y, int n) {
  __shared__ float s[2][32];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  const bool produces = threadIdx.x < 32;
  const auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  const int t = threadIdx.x % 32;
  for (int k = 0; k < 2; k++) {
    const int i = blockIdx.x * 64 + k * 32 + t;
    if (produces) {
      pipe.producer_acquire();
      if (i < n) cuda::memcpy_async(&s[k][31 - t], &x[i], sizeof(float), pipe);
      pipe.producer_commit();
    } else {
      if (RIGHT) pipe.consumer_wait();
      if (i < n) y[i] = s[k][31 - t];
      pipe.consumer_release();
    }
  }
}
template <bool RIGHT>
__global__ void elements(const float* x, float* y, int n) {
  __shared__ float s[2][64];
  auto block = cg::this_thread_block();
  const int base = blockIdx.x * blockDim.x, t = threadIdx.x;
  for (int k = 0; k < 2; k++) cg::memcpy_async(block, s[k], 64, x + base, n - base);
  cg::wait_prior<RIGHT ? 0 : 1>(block);
  if (base + t < n) y[base + t] = s[1][t];
}
template <bool RIGHT>
__global__ void assembled_copies(const float* x, float* y, int n) {
  __shared__ float s[2][64];
  AT;
  const int bytes = i < n ? 4 : 0;
  for (int k = 0; k < 2; k++) {
    const unsigned to = __cvta_generic_to_shared(&s[k][threadIdx.x]);
    const float* from = x + min(i, n - 1);
    if (k == 0)
      asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;"
                   ::"r"(to), "l"(from), "n"(4), "r"(bytes) : "memory");
    else
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0;\\n"
                   "@p cp.async.ca.shared.global [%1], [%2], 4; }" ::"r"(bytes), "r"(to), "l"(from));
    asm volatile("cp.async.commit_group;" ::);
  }
  asm volatile("cp.async.wait_group %0;" ::"n"(RIGHT ? 0 : 1));
  if (i < n) y[i] = s[1][threadIdx.x];
  else if (s[0][threadIdx.x] != 0) y[0] = 9;
}
template <bool RIGHT>
__global__ void roomy(const float* x, float* y, int n) {
  float* s = Room().get();
  AT;
  s[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = s[RIGHT ? threadIdx.x : 0];
}
"""
NAMES = (
    "functors",
    "counts",
    "turned",
    "stuck",
    "copied",
    "grouped",
    "bound",
    "staged",
    "block_stages",
    "roles",
    "elements",
    "roomy",
    "assembled",
    "assembled_copies",
)
WATCHED = {
    "counts-true": "verified", "counts-false": "refuted", "turned-true": "verified",
    "block_stages-true": "verified", "roles-true": "verified", "roles-false": "refuted",
    "assembled_copies-true": "verified",
}  # fmt: skip
VARIANT = """  NAME-WORD:
    source: k.cu
    inputs:
      x: {dtype: float32, shape: [n]}
    outputs:
      y: {dtype: float32, shape: [n]}
    launches:
      - {kernel: "NAME<WORD>", grid: ["ceil_div(n, 64)"], block: [64], shared: 256, args: [x, y, n]}
    oracle: {formula: "f.py:f"}
    checks: [{metric: bound}]
"""
HEAD = (
    "schema: tokitai/spec/v1\nop: headers\ntitle: copies\nparams:\n  n: {default: 150}\nvariants:\n"
)


def written(folder: Path) -> Path:
    """A spec with a right and a wrong variant of each kernel."""
    (folder / "k.cu").write_text(KERNELS, "utf-8")
    text = 'def f(params, inputs, scalars):\n    return {"y": inputs["x"]}\n'
    (folder / "f.py").write_text(text, "utf-8")
    variants = [
        VARIANT.replace("NAME", name).replace("WORD", word)
        for name in NAMES
        for word in ("true", "false")
    ]
    spec = folder / "spec.yaml"
    spec.write_text(HEAD + "".join(variants) + "profiles:\n  normal: {}\n", "utf-8")
    return spec


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaseRecord]:
    folder = tmp_path_factory.mktemp("headers")
    return {case.variant: case for case in run(written(folder), folder / "out", repeat=4).cases}


@pytest.mark.parametrize("name", NAMES)
def test_the_right_kernel_is_verified_and_the_wrong_one_is_not(
    cases: dict[str, CaseRecord], name: str
) -> None:
    right, wrong = cases[f"{name}-true"], cases[f"{name}-false"]
    assert right.verdict == "verified", right.reason
    assert wrong.verdict == ("crashed" if name in {"stuck", "turned"} else "refuted"), wrong.reason


def test_a_phase_that_never_ends_is_told(cases: dict[str, CaseRecord]) -> None:
    assert (
        "64 of 64 (threads 0-63) wait in a cuda::barrier at ./k.cu:" in cases["stuck-false"].reason
    )


@pytest.mark.slow
@pytest.mark.skipif(not has_sanitizers("g++"), reason="g++ has no sanitizers here")
def test_what_they_order_is_no_race(tmp_path: Path) -> None:
    spec, out = written(tmp_path), tmp_path / "out"
    words = [word for name in WATCHED for word in ("--variant", name)]
    done = tokitai_here("sanitize", spec, "--device", "cpu", "--out", out, *words)
    cases = evidence_in(out, "headers-sanitize")["cases"]
    assert {one["variant"]: one["verdict"] for one in cases} == WATCHED, done.stdout
