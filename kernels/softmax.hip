// Softmax of each row of a matrix, and its vector-Jacobian product.
//
// Matrices are row-major and contiguous, [rows, cols] with cols >= 1. One block of 256 threads per
// row: launch with grid (rows) and block (256). Thread t takes the columns t, t + 256, ... in turn;
// the 256 partial results are then combined pairwise in shared memory, so the order of every sum
// depends on the number of columns alone, and not on the size of a wave.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

constexpr int kSoftmaxThreads = 256;

// Sum over the block; every thread gets it. `partial` may be used again at once.
__device__ inline float softmax_block_sum(float value, float* partial) {
  const int thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (int half = kSoftmaxThreads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  const float total = partial[0];
  __syncthreads();  // nobody overwrites the total before everybody has read it
  return total;
}

// Largest value in the block, as `softmax_block_sum`. NaN loses against a number; it comes back with
// the exponentials, which are NaN in its place and make the row's sum NaN.
__device__ inline float softmax_block_max(float value, float* partial) {
  const int thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (int half = kSoftmaxThreads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] = fmaxf(partial[thread], partial[thread + half]);
    __syncthreads();
  }
  const float largest = partial[0];
  __syncthreads();  // as above
  return largest;
}

// output[i,j] = exp(input[i,j] - max) / sum over k of exp(input[i,k] - max). The exponentials stay in
// single precision; they are computed twice rather than stored.
__global__ void softmax_fwd_fp16_f32_kernel(const __half* input, __half* output, int cols) {
  __shared__ float partial[kSoftmaxThreads];
  const __half* x = input + static_cast<size_t>(blockIdx.x) * cols;
  __half* y = output + static_cast<size_t>(blockIdx.x) * cols;
  float largest = __half2float(x[0]);
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    largest = fmaxf(largest, __half2float(x[j]));
  largest = softmax_block_max(largest, partial);
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    sum += expf(__half2float(x[j]) - largest);
  sum = softmax_block_sum(sum, partial);
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    y[j] = __float2half(expf(__half2float(x[j]) - largest) / sum);
}

// grad_input[i,j] = softmax[i,j] (grad_output[i,j] - sum over k of grad_output[i,k] softmax[i,k]).
__global__ void grad_loss_wrt_logits_fp16_f32_kernel(const __half* grad_output,
                                                     const __half* softmax, __half* grad_input,
                                                     int cols) {
  __shared__ float partial[kSoftmaxThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    sum += __half2float(grad_output[start + j]) * __half2float(softmax[start + j]);
  sum = softmax_block_sum(sum, partial);
  for (int j = threadIdx.x; j < cols; j += kSoftmaxThreads)
    grad_input[start + j] = __float2half(__half2float(softmax[start + j]) *
                                         (__half2float(grad_output[start + j]) - sum));
}
