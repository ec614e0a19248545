// Right kernels over the libraries' primitives, of several blocks: no sanitizer has a finding.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

namespace cg = cooperative_groups;

__global__ void summed(const float* x, float* y, int n) {
  using Reduce = hipcub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 64) sum += x[blockIdx.x * n + i];
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

__global__ void largest(const float* x, float* y, int n) {
  using Reduce = hipcub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 64) most = fmaxf(most, x[blockIdx.x * n + i]);
  most = Reduce(storage).Reduce(most, hipcub::Max());
  if (threadIdx.x == 0) y[blockIdx.x] = most;
}

__global__ void scanned(const int* x, int* y, int n) {
  using Scan = hipcub::BlockScan<int, 64>;
  __shared__ typename Scan::TempStorage storage;
  int value = int(threadIdx.x) < n ? x[blockIdx.x * n + threadIdx.x] : 0;
  Scan(storage).InclusiveSum(value, value);
  if (int(threadIdx.x) < n) y[blockIdx.x * n + threadIdx.x] = value;
}

__global__ void grouped(const float* x, float* y, int n) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  float most = -INFINITY;
  for (int i = tile.thread_rank(); i < n; i += 32) most = fmaxf(most, x[blockIdx.x * n + i]);
  most = cg::reduce(tile, most, cg::greater<float>());
  if (threadIdx.x == 0) y[blockIdx.x] = most;
}

__device__ void better(float& v, int& k, float v2, int k2) {
  if (v2 > v || (v2 == v && k2 < k)) v = v2, k = k2;
}
__global__ void place(const float* x, int* y, int n) {
  __shared__ float values[2];
  __shared__ int places[2];
  float v = -INFINITY;
  int k = 0x7fffffff;
  for (int i = threadIdx.x; i < n; i += 64) better(v, k, x[blockIdx.x * n + i], i);
  for (int lanes = 16; lanes; lanes /= 2) {
    const float v2 = __shfl_down(v, lanes, 32);
    const int k2 = __shfl_down(k, lanes, 32);
    better(v, k, v2, k2);
  }
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = v, places[threadIdx.x / 32] = k;
  __syncthreads();
  if (threadIdx.x) return;
  better(v, k, values[1], places[1]);
  y[blockIdx.x] = k;
}
