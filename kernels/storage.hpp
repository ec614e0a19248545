// What the kernels of many ops share: elements of float, __half or hip_bfloat16 read as float and
// written with one rounding, and sums over a block.
#pragma once

#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

__device__ inline float load(const float* x, size_t i) { return x[i]; }
__device__ inline float load(const __half* x, size_t i) { return __half2float(x[i]); }
__device__ inline float load(const hip_bfloat16* x, size_t i) { return static_cast<float>(x[i]); }
__device__ inline void store(float* y, size_t i, float value) { y[i] = value; }
__device__ inline void store(__half* y, size_t i, float value) { y[i] = __float2half(value); }
__device__ inline void store(hip_bfloat16* y, size_t i, float value) { y[i] = hip_bfloat16(value); }

// Sum over a block of a power of two threads; every thread gets it. `partial` has an element a thread
// and may be used again at once.
__device__ inline float block_sum(float value, float* partial) {
  const unsigned thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  const float total = partial[0];
  __syncthreads();  // nobody overwrites the total before everybody has read it
  return total;
}

// Largest value in the block, as `block_sum`. A number goes before NaN.
__device__ inline float block_max(float value, float* partial) {
  const unsigned thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] = fmaxf(partial[thread], partial[thread + half]);
    __syncthreads();
  }
  const float largest = partial[0];
  __syncthreads();  // nobody overwrites the largest before everybody has read it
  return largest;
}
