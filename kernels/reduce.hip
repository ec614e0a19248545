// Sum and largest element of each row of a matrix [rows, cols], row-major and contiguous, and prefix sums
// of each row. One block of 256 threads per row, grid (rows).
#include "storage.hpp"

constexpr int kThreads = 256;

template <typename T>
__global__ void row_sum(const T* input, float* output, int cols) {
  __shared__ float partial[kThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += kThreads) sum += load(input, start + j);
  sum = block_sum(sum, partial);
  if (threadIdx.x == 0) output[blockIdx.x] = sum;
}

// A row with NaN gives NaN.
template <typename T>
__global__ void row_max(const T* input, T* output, int cols) {
  __shared__ float partial[kThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float largest = load(input, start);
  float nan = 0.0f;  // becomes NaN with the first NaN
  for (int j = threadIdx.x; j < cols; j += kThreads) {
    const float x = load(input, start + j);
    largest = fmaxf(largest, x);
    if (x != x) nan = x;
  }
  largest = block_max(largest, partial);
  nan = block_sum(nan, partial);
  if (threadIdx.x == 0) store(output, blockIdx.x, nan != nan ? nan : largest);
}

// Sums of the elements up to each one, with it (inclusive) or without it (exclusive). 256 elements at a
// time: each sum takes in the one 1, 2, 4, ... places in front of it, then what the row had before.
template <typename T, bool inclusive>
__global__ void row_scan(const T* input, float* output, int cols) {
  __shared__ float sums[kThreads];
  const int thread = threadIdx.x;
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float before = 0.0f;
  for (int first = 0; first < cols; first += kThreads) {
    const int j = first + thread;
    sums[thread] = j < cols ? load(input, start + j) : 0.0f;
    __syncthreads();
    for (int reach = 1; reach < kThreads; reach *= 2) {
      const float more = thread >= reach ? sums[thread - reach] : 0.0f;
      __syncthreads();
      sums[thread] += more;
      __syncthreads();
    }
    const float own = inclusive ? sums[thread] : (thread > 0 ? sums[thread - 1] : 0.0f);
    if (j < cols) output[start + j] = before + own;
    before += sums[kThreads - 1];
    __syncthreads();  // nobody loads the next 256 before everybody has read these sums
  }
}
