// Layer normalisation of each row of a matrix, and its gradients.
//
// Matrices are row-major and contiguous, [rows, cols]; gamma and beta have one entry per column,
// mean and rstd one per row. Every sum runs over one block of B threads, B a power of two of at most
// 1024: thread t takes the terms t, t + B, ... in turn, and the B partial sums are then combined
// pairwise in shared memory. The order of a sum thus depends on its length and on B alone, and not
// on the size of a wave.
#include "storage.hpp"

constexpr int kLayernormThreads = 1024;

// y = (x - mean) rstd gamma + beta with rstd = 1 / sqrt(variance + eps). The variance is biased and
// taken in a second pass, from differences to the mean. Grid (rows), block (B).
template <typename T>
__device__ inline void layernorm_fwd(const T* input, const T* gamma, const T* beta, T* output,
                                     float* mean_out, float* rstd_out, int cols, float eps) {
  __shared__ float partial[kLayernormThreads];
  const T* x = input + static_cast<size_t>(blockIdx.x) * cols;
  T* y = output + static_cast<size_t>(blockIdx.x) * cols;
  const int step = blockDim.x;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) sum += load(x, j);
  const float mean = block_sum(sum, partial) / cols;
  float squares = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) {
    const float difference = load(x, j) - mean;
    squares += difference * difference;
  }
  const float variance = block_sum(squares, partial) / cols;
  const float rstd = rsqrtf(variance + eps);
  if (threadIdx.x == 0) {
    mean_out[blockIdx.x] = mean;
    rstd_out[blockIdx.x] = rstd;
  }
  for (int j = threadIdx.x; j < cols; j += step) {
    const float normalised = (load(x, j) - mean) * rstd;
    store(y, j, normalised * load(gamma, j) + load(beta, j));
  }
}

// grad_x = rstd / cols (cols d - sum d - xhat sum(d xhat)) with xhat = (x - mean) rstd and
// d = grad_y gamma, both sums along the row. Grid (rows), block (B).
template <typename T>
__device__ inline void layernorm_bw(const T* grad_output, const T* input, const T* gamma,
                                    const float* mean, const float* rstd, T* grad_input, int cols) {
  __shared__ float partial[kLayernormThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const float row_mean = mean[blockIdx.x];
  const float row_rstd = rstd[blockIdx.x];
  const int step = blockDim.x;
  float sum = 0.0f;
  float projected = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) {
    const float d = load(grad_output, start + j) * load(gamma, j);
    sum += d;
    projected += d * ((load(input, start + j) - row_mean) * row_rstd);
  }
  sum = block_sum(sum, partial);
  projected = block_sum(projected, partial);
  for (int j = threadIdx.x; j < cols; j += step) {
    const float d = load(grad_output, start + j) * load(gamma, j);
    const float normalised = (load(input, start + j) - row_mean) * row_rstd;
    store(grad_input, start + j, row_rstd / cols * (cols * d - sum - normalised * projected));
  }
}

// grad_gamma[j] = sum over rows of xhat grad_y, grad_beta[j] = sum over rows of grad_y: one block per
// column, no atomic additions. Grid (cols), block (B).
template <typename T>
__device__ inline void layernorm_bw_grad(const T* grad_output, const T* input, const float* mean,
                                         const float* rstd, T* grad_gamma, T* grad_beta, int rows,
                                         int cols) {
  __shared__ float partial[kLayernormThreads];
  const int column = blockIdx.x;
  float gamma_sum = 0.0f;
  float beta_sum = 0.0f;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    const size_t at = static_cast<size_t>(i) * cols + column;
    const float gradient = load(grad_output, at);
    gamma_sum += (load(input, at) - mean[i]) * rstd[i] * gradient;
    beta_sum += gradient;
  }
  gamma_sum = block_sum(gamma_sum, partial);
  beta_sum = block_sum(beta_sum, partial);
  if (threadIdx.x == 0) {
    store(grad_gamma, column, gamma_sum);
    store(grad_beta, column, beta_sum);
  }
}

__global__ void layernorm_fwd_fp16_f32_kernel(const __half* input, const __half* gamma,
                                              const __half* beta, __half* output, float* mean_out,
                                              float* rstd_out, int cols, float eps) {
  layernorm_fwd(input, gamma, beta, output, mean_out, rstd_out, cols, eps);
}
__global__ void layernorm_fwd_bf16_f32_kernel(const hip_bfloat16* input,
                                              const hip_bfloat16* gamma, const hip_bfloat16* beta,
                                              hip_bfloat16* output, float* mean_out,
                                              float* rstd_out, int cols, float eps) {
  layernorm_fwd(input, gamma, beta, output, mean_out, rstd_out, cols, eps);
}
__global__ void layernorm_bw_fp16_f32_kernel(const __half* grad_output, const __half* input,
                                             const __half* gamma, const float* mean,
                                             const float* rstd, __half* grad_input, int cols) {
  layernorm_bw(grad_output, input, gamma, mean, rstd, grad_input, cols);
}
__global__ void layernorm_bw_bf16_f32_kernel(const hip_bfloat16* grad_output,
                                             const hip_bfloat16* input, const hip_bfloat16* gamma,
                                             const float* mean, const float* rstd,
                                             hip_bfloat16* grad_input, int cols) {
  layernorm_bw(grad_output, input, gamma, mean, rstd, grad_input, cols);
}
__global__ void layernorm_bw_grad_kernel(const __half* grad_output, const __half* input,
                                         const float* mean, const float* rstd, __half* grad_gamma,
                                         __half* grad_beta, int rows, int cols) {
  layernorm_bw_grad(grad_output, input, mean, rstd, grad_gamma, grad_beta, rows, cols);
}
__global__ void layernorm_bw_grad_bf16_kernel(const hip_bfloat16* grad_output,
                                              const hip_bfloat16* input, const float* mean,
                                              const float* rstd, hip_bfloat16* grad_gamma,
                                              hip_bfloat16* grad_beta, int rows, int cols) {
  layernorm_bw_grad(grad_output, input, mean, rstd, grad_gamma, grad_beta, rows, cols);
}
