// Softmax of rows and its gradient, right or with a fault; one block of 256 threads per row.
#include "faults.hpp"

constexpr int kThreads = 256;

__device__ inline float block_max(float value, float* partial) {
  const int thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] = fmaxf(partial[thread], partial[thread + half]);
    __syncthreads();
  }
  const float largest = partial[0];
  __syncthreads();
  return largest;
}

__global__ void softmax_fwd(const __half* input, __half* output, int cols, int fault) {
  __shared__ float whole[kThreads];
  __shared__ float half_of_it[kThreads / 2];
  float* partial = fault == kHalfPartial ? half_of_it : whole;
  const __half* x = input + static_cast<size_t>(blockIdx.x) * cols;
  // kPadded: threads without a column take part with a logit of 0.
  const int padded = fault == kPadded ? (cols + kThreads - 1) / kThreads * kThreads : cols;
  int terms = padded;
  if (fault == kLastTerm) terms -= 1;
  if (fault == kTail && terms > 4) terms -= terms % 4;  // four at a time, the rest forgotten
  float largest = fault == kPadded ? 0.0f : wide(x[0]);
  for (int j = threadIdx.x; j < cols; j += kThreads) {
    if (fault == kShortMax && threadIdx.x >= 32) break;  // only the first 32 threads look
    largest = fmaxf(largest, wide(x[j]));
  }
  largest = fault == kNoShift ? 0.0f : block_max(largest, partial);
  float sum = 0.0f;
  for (int j = threadIdx.x; j < terms; j += kThreads) {
    const float logit = j < cols ? wide(x[j]) : 0.0f;
    if (fault == kDropsNan && logit != logit) continue;
    const float exponential = expf(logit - largest);
    sum += fault == kHalfExponentials ? rounded(exponential) : exponential;
  }
  sum = block_sum(sum, partial, fault);
  if (fault == kHalfSum) {  // one float16 accumulator, column by column
    sum = 0.0f;
    for (int j = 0; j < cols; ++j) sum = rounded(sum + rounded(expf(wide(x[j]) - largest)));
  }
  if (fault == kNoSum) sum = 1.0f;
  for (int j = threadIdx.x; j < cols; j += kThreads) {
    float exponential = expf(wide(x[j]) - largest);
    if (fault == kHalfExponentials) exponential = rounded(exponential);
    store(output, blockIdx.x, j, gridDim.x, cols, exponential / sum, fault);
  }
}

__global__ void softmax_grad(const __half* grad_output, const __half* softmax, __half* grad_input,
                             int cols, int fault) {
  __shared__ float partial[kThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const int terms = fault == kLastTerm ? cols - 1 : cols;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < terms; j += kThreads)
    sum += wide(grad_output[start + j]) * wide(softmax[start + j]);
  sum = block_sum(sum, partial, fault);
  if (fault == kNoSum) sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kThreads) {
    const float value = wide(softmax[start + j]) * (wide(grad_output[start + j]) - sum);
    store(grad_input, blockIdx.x, j, gridDim.x, cols, value, fault);
  }
}
