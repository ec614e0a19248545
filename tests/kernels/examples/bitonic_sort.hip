// Bitonic sort of a power of two of values: in shared memory within a block, and one launch for
// each step that compares across blocks.
#include <hip/hip_runtime.h>

// Sorts each block's 2 * blockDim.x values, alternately up and down.
__global__ void bitonic_sort_blocks(unsigned* values) {
  extern __shared__ unsigned bitonic_tile[];
  const unsigned size = 2 * blockDim.x, first = blockIdx.x * size, t = threadIdx.x;
  bitonic_tile[t] = values[first + t];
  bitonic_tile[t + blockDim.x] = values[first + t + blockDim.x];
  for (unsigned length = 2; length <= size; length *= 2)
    for (unsigned stride = length / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const unsigned low = 2 * t - (t & (stride - 1)), high = low + stride;
      const bool up = ((first + low) & length) == 0;
      const unsigned a = bitonic_tile[low], b = bitonic_tile[high];
      bitonic_tile[low] = up ? min(a, b) : max(a, b);
      bitonic_tile[high] = up ? max(a, b) : min(a, b);
    }
  __syncthreads();
  values[first + t] = bitonic_tile[t];
  values[first + t + blockDim.x] = bitonic_tile[t + blockDim.x];
}

// One step over the whole array: half as many threads as values.
__global__ void bitonic_step(unsigned* values, unsigned length, unsigned stride) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned low = 2 * t - (t & (stride - 1)), high = low + stride;
  const bool up = (low & length) == 0;
  const unsigned a = values[low], b = values[high];
  if ((a > b) == up) {
    values[low] = b;
    values[high] = a;
  }
}
