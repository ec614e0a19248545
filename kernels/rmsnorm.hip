// RMS normalisation of each row of a matrix, and its gradients.
//
// Matrices are row-major and contiguous, [rows, cols]; weight has one entry per column, rstd one per row.
// Every sum runs over one block of 256 threads: thread t takes the terms t, t + 256, ... in turn, and the
// 256 partial sums are then combined pairwise.
#include "storage.hpp"

constexpr int kThreads = 256;

// y = x rstd weight with rstd = 1 / sqrt(mean(x^2) + eps), which is stored. Grid (rows).
template <typename T>
__global__ void rmsnorm_fwd(const T* input, const T* weight, T* output, float* rstd_out, int cols,
                            float eps) {
  __shared__ float partial[kThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float squares = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kThreads) {
    const float x = load(input, start + j);
    squares += x * x;
  }
  const float rstd = rsqrtf(block_sum(squares, partial) / cols + eps);
  if (threadIdx.x == 0) rstd_out[blockIdx.x] = rstd;
  for (int j = threadIdx.x; j < cols; j += kThreads)
    store(output, start + j, load(input, start + j) * rstd * load(weight, j));
}

// grad_x = rstd (d - xhat mean(d xhat)) with xhat = x rstd and d = grad_y weight. Grid (rows).
template <typename T>
__global__ void rmsnorm_bwd_input(const T* grad_output, const T* input, const T* weight,
                                  const float* rstd, T* grad_input, int cols) {
  __shared__ float partial[kThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const float row_rstd = rstd[blockIdx.x];
  float projected = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kThreads)
    projected += load(grad_output, start + j) * load(weight, j) * (load(input, start + j) * row_rstd);
  const float mean = block_sum(projected, partial) / cols;
  for (int j = threadIdx.x; j < cols; j += kThreads) {
    const float d = load(grad_output, start + j) * load(weight, j);
    store(grad_input, start + j, row_rstd * (d - load(input, start + j) * row_rstd * mean));
  }
}

// grad_weight[j] = sum over rows of grad_y xhat; one block per column, no atomic additions. Grid (cols).
template <typename T>
__global__ void rmsnorm_bwd_weight(const T* grad_output, const T* input, const float* rstd,
                                   T* grad_weight, int rows, int cols) {
  __shared__ float partial[kThreads];
  const int column = blockIdx.x;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < rows; i += kThreads) {
    const size_t at = static_cast<size_t>(i) * cols + column;
    sum += load(grad_output, at) * (load(input, at) * rstd[i]);
  }
  sum = block_sum(sum, partial);
  if (threadIdx.x == 0) store(grad_weight, column, sum);
}
