// Layer normalisation of each row of a matrix, and its gradients.
//
// Matrices are row-major and contiguous, [rows, cols]; gamma and beta have one entry per column,
// mean and rstd one per row. Every sum runs over one block of B threads, B a power of two of at most
// 1024: thread t takes the terms t, t + B, ... in turn, and the B partial sums are then combined
// pairwise in shared memory. The order of a sum thus depends on its length and on B alone, and not
// on the size of a wave.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

constexpr int kLayernormThreads = 1024;

// Sum over the block; every thread gets it. `partial` may be used again at once.
__device__ inline float layernorm_block_sum(float value, float* partial) {
  const int thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  const float total = partial[0];
  __syncthreads();  // nobody overwrites the total before everybody has read it
  return total;
}

// y = (x - mean) rstd gamma + beta with rstd = 1 / sqrt(variance + eps). The variance is biased and
// taken in a second pass, from differences to the mean. Grid (rows), block (B).
__global__ void layernorm_fwd_fp16_f32_kernel(const __half* input, const __half* gamma,
                                              const __half* beta, __half* output, float* mean_out,
                                              float* rstd_out, int cols, float eps) {
  __shared__ float partial[kLayernormThreads];
  const __half* x = input + static_cast<size_t>(blockIdx.x) * cols;
  __half* y = output + static_cast<size_t>(blockIdx.x) * cols;
  const int step = blockDim.x;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) sum += __half2float(x[j]);
  const float mean = layernorm_block_sum(sum, partial) / cols;
  float squares = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) {
    const float difference = __half2float(x[j]) - mean;
    squares += difference * difference;
  }
  const float variance = layernorm_block_sum(squares, partial) / cols;
  const float rstd = rsqrtf(variance + eps);
  if (threadIdx.x == 0) {
    mean_out[blockIdx.x] = mean;
    rstd_out[blockIdx.x] = rstd;
  }
  for (int j = threadIdx.x; j < cols; j += step) {
    const float normalised = (__half2float(x[j]) - mean) * rstd;
    y[j] = __float2half(normalised * __half2float(gamma[j]) + __half2float(beta[j]));
  }
}

// grad_x = rstd / cols (cols d - sum d - xhat sum(d xhat)) with xhat = (x - mean) rstd and
// d = grad_y gamma, both sums along the row. Grid (rows), block (B).
__global__ void layernorm_bw_fp16_f32_kernel(const __half* grad_output, const __half* input,
                                             const __half* gamma, const float* mean,
                                             const float* rstd, __half* grad_input, int cols) {
  __shared__ float partial[kLayernormThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const float row_mean = mean[blockIdx.x];
  const float row_rstd = rstd[blockIdx.x];
  const int step = blockDim.x;
  float sum = 0.0f;
  float projected = 0.0f;
  for (int j = threadIdx.x; j < cols; j += step) {
    const float d = __half2float(grad_output[start + j]) * __half2float(gamma[j]);
    sum += d;
    projected += d * ((__half2float(input[start + j]) - row_mean) * row_rstd);
  }
  sum = layernorm_block_sum(sum, partial);
  projected = layernorm_block_sum(projected, partial);
  for (int j = threadIdx.x; j < cols; j += step) {
    const float d = __half2float(grad_output[start + j]) * __half2float(gamma[j]);
    const float normalised = (__half2float(input[start + j]) - row_mean) * row_rstd;
    grad_input[start + j] =
        __float2half(row_rstd / cols * (cols * d - sum - normalised * projected));
  }
}

// grad_gamma[j] = sum over rows of xhat grad_y, grad_beta[j] = sum over rows of grad_y: one block per
// column, no atomic additions. Grid (cols), block (B).
__global__ void layernorm_bw_grad_kernel(const __half* grad_output, const __half* input,
                                         const float* mean, const float* rstd, __half* grad_gamma,
                                         __half* grad_beta, int rows, int cols) {
  __shared__ float partial[kLayernormThreads];
  const int column = blockIdx.x;
  float gamma_sum = 0.0f;
  float beta_sum = 0.0f;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    const size_t at = static_cast<size_t>(i) * cols + column;
    const float gradient = __half2float(grad_output[at]);
    gamma_sum += (__half2float(input[at]) - mean[i]) * rstd[i] * gradient;
    beta_sum += gradient;
  }
  gamma_sum = layernorm_block_sum(gamma_sum, partial);
  beta_sum = layernorm_block_sum(beta_sum, partial);
  if (threadIdx.x == 0) {
    grad_gamma[column] = __float2half(gamma_sum);
    grad_beta[column] = __float2half(beta_sum);
  }
}
