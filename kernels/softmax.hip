// Softmax of each row of a matrix, and its vector-Jacobian product.
//
// Matrices are row-major and contiguous, [rows, cols] with cols >= 1. One block of 256 threads per
// row: launch with grid (rows) and block (256). Thread t takes the columns t, t + 256, ... in turn;
// the 256 partial results are then combined pairwise in shared memory, so the order of every sum
// depends on the number of columns alone, and not on the size of a wave.
#include "storage.hpp"

constexpr int kSoftmaxThreads = 256;

// output[i,j] = exp(input[i,j] - max) / sum over k of exp(input[i,k] - max). The exponentials stay in
// single precision; they are computed twice rather than stored.
template <typename T>
__device__ inline void softmax_fwd(const T* input, T* output, int cols) {
  __shared__ float partial[kSoftmaxThreads];
  const T* x = input + static_cast<size_t>(blockIdx.x) * cols;
  T* y = output + static_cast<size_t>(blockIdx.x) * cols;
  float largest = load(x, 0);
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    largest = fmaxf(largest, load(x, j));
  largest = block_max(largest, partial);
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    sum += expf(load(x, j) - largest);
  sum = block_sum(sum, partial);
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    store(y, j, expf(load(x, j) - largest) / sum);
}

// grad_input[i,j] = softmax[i,j] (grad_output[i,j] - sum over k of grad_output[i,k] softmax[i,k]).
template <typename T>
__device__ inline void grad_loss_wrt_logits(const T* grad_output, const T* softmax, T* grad_input,
                                            int cols) {
  __shared__ float partial[kSoftmaxThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    sum += load(grad_output, start + j) * load(softmax, start + j);
  sum = block_sum(sum, partial);
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    store(grad_input, start + j, load(softmax, start + j) * (load(grad_output, start + j) - sum));
}

__global__ void softmax_fwd_fp16_f32_kernel(const __half* input, __half* output, int cols) {
  softmax_fwd(input, output, cols);
}
__global__ void softmax_fwd_bf16_f32_kernel(const hip_bfloat16* input, hip_bfloat16* output,
                                            int cols) {
  softmax_fwd(input, output, cols);
}
__global__ void grad_loss_wrt_logits_fp16_f32_kernel(const __half* grad_output,
                                                     const __half* softmax, __half* grad_input,
                                                     int cols) {
  grad_loss_wrt_logits(grad_output, softmax, grad_input, cols);
}
__global__ void grad_loss_wrt_logits_bf16_f32_kernel(const hip_bfloat16* grad_output,
                                                     const hip_bfloat16* softmax,
                                                     hip_bfloat16* grad_input, int cols) {
  grad_loss_wrt_logits(grad_output, softmax, grad_input, cols);
}
