// A header alone, as projects ship their kernels; ties go to the lower index.
#pragma once
#include <hip/hip_runtime.h>
#include <cfloat>
#include <limits>

namespace sampling {

struct Best {
  float value;
  int index;
};

__device__ inline Best better(Best a, Best b) {
  if (a.value != b.value) return a.value > b.value ? a : b;
  return a.index < b.index ? a : b;
}

template <int Threads = 256>
__global__ void argmax(const float* logits, int* out, int vocab) {
  __shared__ Best shared[Threads];
  Best mine{-FLT_MAX, std::numeric_limits<int>::max()};
  for (int i = threadIdx.x; i < vocab; i += Threads) mine = better(mine, Best{logits[blockIdx.x * vocab + i], i});
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = Threads / 2; half > 0; half >>= 1) {
    if (threadIdx.x < half) shared[threadIdx.x] = better(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = shared[0].index;
}

inline hipError_t argmax_async(const float* logits, int* out, int rows, int vocab, hipStream_t stream) {
  argmax<><<<rows, 256, 0, stream>>>(logits, out, vocab);
  return hipGetLastError();
}

}  // namespace sampling
