// Cross-entropy with ignored labels; the host averages.
#include <hip/hip_runtime.h>
#include <numeric>
#include <vector>
#include <functional>

static constexpr long kIgnore = -100;

__device__ __inline__ float warp_max(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v = fmaxf(v, __shfl_xor(v, mask, 32));
  return v;
}
__device__ __inline__ float warp_sum(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v += __shfl_xor(v, mask, 32);
  return v;
}

__launch_bounds__(32) __global__ void cross_entropy(const float* logits, const int64_t* labels, float* losses, int classes) {
  const float* row = logits + (int64_t)blockIdx.x * classes;
  const int64_t label = labels[blockIdx.x];
  float most = -INFINITY, sum = 0;
  for (int c = threadIdx.x; c < classes; c += 32) most = fmaxf(most, row[c]);
  most = warp_max(most);
  for (int c = threadIdx.x; c < classes; c += 32) sum += expf(row[c] - most);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = label == kIgnore ? 0.f : logf(sum) + most - row[label];
}

double mean_loss(const std::vector<float>& losses, const std::vector<int64_t>& labels) {
  auto counted = [&](size_t i) { return labels[i] != kIgnore; };
  size_t n = 0;
  for (size_t i = 0; i < labels.size(); i++) n += counted(i);
  return std::accumulate(losses.begin(), losses.end(), 0.0) / n;
}
