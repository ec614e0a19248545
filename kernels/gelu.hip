// GELU in its two forms, and the gradients: one thread an element, blocks of 256 threads.
#include "storage.hpp"

constexpr float kRootTwoOverPi = 0.7978845608028654f;
constexpr float kCubic = 0.044715f;
constexpr float kRootHalf = 0.7071067811865476f;
constexpr float kOneOverRootTwoPi = 0.3989422804014327f;

__device__ inline float inner(float x) {
  return tanhf(kRootTwoOverPi * (x + kCubic * x * x * x));
}

// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
template <typename T>
__global__ void gelu_tanh(const T* input, T* output, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = load(input, i);
  store(output, i, 0.5f * x * (1.0f + inner(x)));
}

// grad_x = grad_y dy/dx of the same y.
template <typename T>
__global__ void gelu_tanh_grad(const T* grad_output, const T* input, T* grad_input, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = load(input, i);
  const float t = inner(x);
  const float steepness = kRootTwoOverPi * (1.0f + 3.0f * kCubic * x * x);
  const float slope = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * steepness;
  store(grad_input, i, load(grad_output, i) * slope);
}

// y = x/2 (1 + erf(x / sqrt(2)))
template <typename T>
__global__ void gelu_erf(const T* input, T* output, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = load(input, i);
  store(output, i, 0.5f * x * (1.0f + erff(x * kRootHalf)));
}

// grad_x = grad_y (P(x) + x p(x)) with the normal distribution's P and its density p.
template <typename T>
__global__ void gelu_erf_grad(const T* grad_output, const T* input, T* grad_input, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = load(input, i);
  const float below = 0.5f * (1.0f + erff(x * kRootHalf));
  const float density = kOneOverRootTwoPi * expf(-0.5f * x * x);
  store(grad_input, i, load(grad_output, i) * (below + x * density));
}
