// Layer normalisation and its gradients, right or with a fault. `output` counts the outputs: a fault
// of the store is a fault of that one alone.
#include "faults.hpp"

constexpr int kMostThreads = 1024;

__device__ inline int in(int fault, int output, int one) { return output == one ? fault : kRight; }

// Outputs: y [rows, cols], mean [rows], rstd [rows]; grid (rows).
template <class T>
__global__ void layernorm_fwd(const T* input, const __half* gamma, const __half* beta, __half* y,
                              float* mean_out, float* rstd_out, int cols, float eps, int fault,
                              int output) {
  __shared__ float partial[kMostThreads];
  const int row = blockIdx.x, rows = gridDim.x, step = blockDim.x;
  const T* x = input + static_cast<size_t>(row) * cols;
  float sum = 0.0f, squares = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) {
    if (fault == kLastTerm && j == cols - 1) continue;
    sum += wide(x[j]);
    if (fault == kOnePass) squares += wide(x[j]) * wide(x[j]);
  }
  float mean = block_sum(sum, partial, fault) / cols;
  if (fault == kNoSum) mean = 0.0f;
  if (fault != kOnePass) {
    for (int j = threadIdx.x; j < cols; j += step) {
      if (fault == kLastSquare && j == cols - 1) continue;
      const float difference = wide(x[j]) - mean;
      squares += difference * difference;
    }
  }
  float variance = block_sum(squares, partial, fault);
  if (fault == kHalfSum) {  // one float16 accumulator, column by column
    variance = 0.0f;
    for (int j = 0; j < cols; ++j)
      variance = rounded(variance + rounded((wide(x[j]) - mean) * (wide(x[j]) - mean)));
  }
  variance /= fault == kUnbiased ? cols - 1 : cols;
  if (fault == kOnePass) variance -= mean * mean;
  if (fault == kFixedEps) eps = 1e-5f;
  const float rstd = rsqrtf(fault == kNoEps ? variance : variance + eps);
  if (threadIdx.x == 0) {
    store(mean_out, 0, row, 1, rows, mean, in(fault, output, 1));
    store(rstd_out, 0, row, 1, rows, rstd, in(fault, output, 2));
  }
  for (int j = threadIdx.x; j < cols; j += step) {
    const float value = (wide(x[j]) - mean) * rstd * wide(gamma[j]) + wide(beta[j]);
    store(y, row, j, rows, cols, value, in(fault, output, 0));
  }
}

// The same by Welford's updates: each thread its columns in turn, then in pairs.
__global__ void layernorm_welford(const __half* input, const __half* gamma, const __half* beta,
                                  __half* y, float* mean_out, float* rstd_out, int cols, float eps,
                                  int fault, int output) {
  __shared__ float means[kMostThreads], squares[kMostThreads], counts[kMostThreads];
  const int row = blockIdx.x, rows = gridDim.x, step = blockDim.x, thread = threadIdx.x;
  const __half* x = input + static_cast<size_t>(row) * cols;
  float mean = 0.0f, square = 0.0f, count = 0.0f;
  for (int j = thread; j < cols; j += step) {
    if (fault == kLastTerm && j == cols - 1) continue;
    count += 1.0f;
    const float delta = wide(x[j]) - mean;
    mean += delta / count;
    square += delta * (wide(x[j]) - mean);
  }
  means[thread] = mean, squares[thread] = square, counts[thread] = count;
  __syncthreads();
  for (int half = step / 2; half > 0; half /= 2) {
    if (thread < half) {
      const float a = counts[thread], b = counts[thread + half], both = a + b;
      const float delta = means[thread + half] - means[thread];
      if (b > 0.0f) {
        means[thread] += delta * (b / both);
        squares[thread] += squares[thread + half];
        if (fault != kNoMerge) squares[thread] += delta * delta * (a * b / both);
        counts[thread] = both;
      }
    }
    __syncthreads();
  }
  mean = means[0];
  const float rstd = rsqrtf(squares[0] / (fault == kUnbiased ? cols - 1 : cols) + eps);
  if (thread == 0) {
    store(mean_out, 0, row, 1, rows, mean, in(fault, output, 1));
    store(rstd_out, 0, row, 1, rows, rstd, in(fault, output, 2));
  }
  for (int j = thread; j < cols; j += step) {
    const float value = (wide(x[j]) - mean) * rstd * wide(gamma[j]) + wide(beta[j]);
    store(y, row, j, rows, cols, value, in(fault, output, 0));
  }
}

// Output 0: grad_x [rows, cols]; grid (rows).
__global__ void layernorm_bwd_rows(const __half* grad_y, const __half* input, const __half* gamma,
                                   const float* means, const float* rstds, __half* grad_x, int cols,
                                   int fault, int output) {
  __shared__ float partial[kMostThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const int step = blockDim.x;
  fault = in(fault, output, 0);
  const bool half = fault == kHalfStatistics;
  const float mean = half ? rounded(means[blockIdx.x]) : means[blockIdx.x];
  const float rstd = half ? rounded(rstds[blockIdx.x]) : rstds[blockIdx.x];
  float sum = 0.0f, projected = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) {
    const float d = wide(grad_y[start + j]) * wide(gamma[j]);
    if (fault != kLastTerm || j < cols - 1) sum += d;
    if (fault != kLastSquare || j < cols - 1)
      projected += d * ((wide(input[start + j]) - mean) * rstd);
  }
  sum = block_sum(sum, partial, fault);
  projected = block_sum(projected, partial, fault);
  if (fault == kNoSum) sum = 0.0f;
  if (fault == kNoProjection) projected = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) {
    const float d = wide(grad_y[start + j]) * wide(gamma[j]);
    const float normalised = (wide(input[start + j]) - mean) * rstd;
    store(grad_x, blockIdx.x, j, gridDim.x, cols,
          rstd / cols * (cols * d - sum - normalised * projected), fault);
  }
}

// Outputs 1 and 2: grad_gamma [cols], grad_beta [cols]; grid (cols).
__global__ void layernorm_bwd_columns(const __half* grad_y, const __half* input, const float* means,
                                      const float* rstds, __half* grad_gamma, __half* grad_beta,
                                      int rows, int cols, int fault, int output) {
  __shared__ float partial[kMostThreads];
  const int column = blockIdx.x;
  const int of_gamma = in(fault, output, 1), of_beta = in(fault, output, 2);
  const int gamma_terms = of_gamma == kLastTerm ? rows - 1 : rows;
  const int beta_terms = of_beta == kLastTerm ? rows - 1 : rows;
  float gamma_sum = 0.0f, beta_sum = 0.0f;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    const size_t at = static_cast<size_t>(i) * cols + column;
    const float gradient = wide(grad_y[at]);
    if (i < gamma_terms) gamma_sum += (wide(input[at]) - means[i]) * rstds[i] * gradient;
    if (i < beta_terms) beta_sum += gradient;
  }
  gamma_sum = block_sum(gamma_sum, partial, of_gamma);
  beta_sum = block_sum(beta_sum, partial, of_beta);
  if (of_beta == kHalfSum) {  // one float16 accumulator, row by row
    beta_sum = 0.0f;
    for (int i = 0; i < rows; ++i)
      beta_sum = rounded(beta_sum + wide(grad_y[static_cast<size_t>(i) * cols + column]));
  }
  if (threadIdx.x == 0) {
    store(grad_gamma, 0, column, 1, cols, gamma_sum, of_gamma);
    store(grad_beta, 0, column, 1, cols, beta_sum, of_beta);
  }
}
