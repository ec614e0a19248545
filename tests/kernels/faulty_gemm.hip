// Both products of the backward pass of C[m,n] = A[m,k] B[k,n], right or with a fault. The result has
// one thread an element, in blocks of 16 x 16.
#include "faults.hpp"

// Sum of left[j * left_step] * right[j * right_step] over j < terms, in index order.
__device__ inline float dot(const __half* left, size_t left_step, const __half* right,
                            size_t right_step, int terms, int fault) {
  if (fault == kLastTerm) terms -= 1;
  if (fault == kTail && terms > 256) terms -= terms % 256;  // the last, partial tile of 256
  float sum = 0.0f;
  for (int j = 0; j < terms; ++j) {
    sum = fmaf(wide(left[j * left_step]), wide(right[j * right_step]), sum);
    if (fault == kHalfSum) sum = rounded(sum);
  }
  return sum;
}

__global__ void grad_a(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k,
                       int fault) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= m || column >= k) return;
  const float sum = dot(grad_c + static_cast<size_t>(row) * n, 1,
                        b + static_cast<size_t>(column) * n, 1, n, fault);
  store(grad_a, row, column, m, k, sum, fault);
}

__global__ void grad_b(const __half* grad_c, const __half* a, __half* grad_b, int m, int n, int k,
                       int fault) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= k || column >= n) return;
  const float sum = dot(a + row, k, grad_c + column, n, m, fault);
  store(grad_b, row, column, k, n, sum, fault);
}
