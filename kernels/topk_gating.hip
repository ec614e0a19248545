// Gating of a mixture of experts: the k largest logits of each token, and the softmax of these k.
//
// Logits are [tokens, experts], row-major and contiguous; weights and chosen are [tokens, k], the largest
// first, k <= experts. Of equal logits the one of the lower expert comes first. No logit may be NaN. One
// wave's worth of 64 threads per token, grid (tokens).
#include "storage.hpp"

constexpr int kThreads = 64;
constexpr int kMost = 16;

// The pair that comes first: the larger value, or the lower index.
__device__ inline bool goes_before(float value, int index, float other, int other_index) {
  return value > other || (value == other && index < other_index);
}

template <typename T>
__global__ void topk_gating(const T* logits, float* weights, int* chosen, int experts, int k) {
  __shared__ float values[kThreads];
  __shared__ int indices[kThreads];
  const T* x = logits + static_cast<size_t>(blockIdx.x) * experts;
  __shared__ float top[kMost];
  float last = INFINITY;  // what was chosen last: all that follow come behind it
  int last_index = -1;
  for (int rank = 0; rank < k; ++rank) {
    float best = -INFINITY;
    int best_index = experts;
    for (int e = threadIdx.x; e < experts; e += kThreads) {
      const float value = load(x, e);
      if (goes_before(last, last_index, value, e) && goes_before(value, e, best, best_index)) {
        best = value;
        best_index = e;
      }
    }
    values[threadIdx.x] = best;
    indices[threadIdx.x] = best_index;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      const int other = threadIdx.x + half;
      if (threadIdx.x < half && goes_before(values[other], indices[other], values[threadIdx.x],
                                            indices[threadIdx.x])) {
        values[threadIdx.x] = values[other];
        indices[threadIdx.x] = indices[other];
      }
      __syncthreads();
    }
    last = values[0];
    last_index = indices[0];
    if (threadIdx.x == 0) {
      top[rank] = last;
      chosen[static_cast<size_t>(blockIdx.x) * k + rank] = last_index;
    }
    __syncthreads();  // nobody overwrites the winner before everybody has read it
  }
  float sum = 0.0f;
  for (int rank = 0; rank < k; ++rank) sum += expf(top[rank] - top[0]);
  for (int rank = threadIdx.x; rank < k; rank += kThreads)
    weights[static_cast<size_t>(blockIdx.x) * k + rank] = expf(top[rank] - top[0]) / sum;
}
