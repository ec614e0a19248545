// Sum of an array: each block halves its part in shared memory, the last steps by shuffles, and adds
// what is left to one cell.
#include <hip/hip_runtime.h>

__global__ void reduce_sum(const int* values, int* total, int n) {
  extern __shared__ int reduce_partial[];
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += values[i];
  reduce_partial[t] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half >= warpSize; half /= 2) {
    if (t < half) reduce_partial[t] += reduce_partial[t + half];
    __syncthreads();
  }
  if (t < warpSize) {
    sum = reduce_partial[t];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down(sum, offset);
    if (t == 0) atomicAdd(total, sum);
  }
}
