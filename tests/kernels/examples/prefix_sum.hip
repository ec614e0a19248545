// Inclusive prefix sum in three launches: within blocks, over the blocks' sums, and their addition.
#include <hip/hip_runtime.h>

__device__ int scan_of_warp(int value) {
  const int lane = threadIdx.x % warpSize;
  for (int offset = 1; offset < warpSize; offset *= 2) {
    const int before = __shfl_up(value, offset);
    if (lane >= offset) value += before;
  }
  return value;
}

// Inclusive scan over a block of at most 1024 threads; all of them call it.
__device__ int scan_of_block(int value) {
  __shared__ int warp_sums[32];
  const int warp = threadIdx.x / warpSize, warps = (blockDim.x + warpSize - 1) / warpSize;
  value = scan_of_warp(value);
  if (int(threadIdx.x) % warpSize == warpSize - 1 || threadIdx.x == blockDim.x - 1)
    warp_sums[warp] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < warps; ++i) warp_sums[i] += warp_sums[i - 1];
  __syncthreads();
  return warp == 0 ? value : value + warp_sums[warp - 1];
}

__global__ void scan_blocks(const int* in, int* out, int* sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int value = scan_of_block(i < n ? in[i] : 0);
  if (i < n) out[i] = value;
  if (threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = value;
}

__global__ void scan_sums(int* sums, int blocks) {
  const int value = scan_of_block(int(threadIdx.x) < blocks ? sums[threadIdx.x] : 0);
  if (int(threadIdx.x) < blocks) sums[threadIdx.x] = value;
}

__global__ void add_sums(int* out, const int* sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}
