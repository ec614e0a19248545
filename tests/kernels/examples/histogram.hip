// Histogram of bytes: each block counts in shared memory and adds its counts to the result.
#include <hip/hip_runtime.h>

__global__ void histogram_of_bytes(const unsigned char* data, unsigned* bins, int n) {
  __shared__ unsigned counts[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (counts[i]) atomicAdd(&bins[i], counts[i]);
}
