// Gradients of C[m,n] = A[m,k] B[k,n] from grad_C: one thread per element of the result.
//
// All matrices are row-major and contiguous. Each sum runs in index order in one float and is rounded
// to the storage type once, at the end. Launch with blocks of 16 x 16 threads; blockIdx.x counts
// tiles along the rows of the result, blockIdx.y along its columns, and threadIdx.x walks along a
// row, so that neighbouring lanes store to neighbouring addresses.
#include "storage.hpp"

// grad_A[m,k] = sum over n of grad_C[m,n] * B[k,n]; grid (ceil(m/16), ceil(k/16)).
template <typename T>
__device__ inline void grad_of_a(const T* grad_c, const T* b, T* grad_a, int m, int n, int k) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= m || column >= k) return;
  const T* grad_c_row = grad_c + static_cast<size_t>(row) * n;
  const T* b_row = b + static_cast<size_t>(column) * n;
  float sum = 0.0f;
  for (int j = 0; j < n; ++j)
    sum = fmaf(load(grad_c_row, j), load(b_row, j), sum);
  store(grad_a, static_cast<size_t>(row) * k + column, sum);
}

// grad_B[k,n] = sum over m of A[m,k] * grad_C[m,n]; grid (ceil(k/16), ceil(n/16)).
template <typename T>
__device__ inline void grad_of_b(const T* grad_c, const T* a, T* grad_b, int m, int n, int k) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= k || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < m; ++i)
    sum = fmaf(load(a, static_cast<size_t>(i) * k + row),
               load(grad_c, static_cast<size_t>(i) * n + column), sum);
  store(grad_b, static_cast<size_t>(row) * n + column, sum);
}

__global__ void gemm_bw_grad_a_fp16_f32_kernel(const __half* grad_c,
                                               const __half* b, __half* grad_a,
                                               int m, int n, int k) {
  grad_of_a(grad_c, b, grad_a, m, n, k);
}
__global__ void gemm_bw_grad_a_bf16_f32_kernel(const hip_bfloat16* grad_c,
                                               const hip_bfloat16* b, hip_bfloat16* grad_a,
                                               int m, int n, int k) {
  grad_of_a(grad_c, b, grad_a, m, n, k);
}
__global__ void gemm_bw_grad_b_fp16_f32_kernel(const __half* grad_c,
                                               const __half* a, __half* grad_b,
                                               int m, int n, int k) {
  grad_of_b(grad_c, a, grad_b, m, n, k);
}
__global__ void gemm_bw_grad_b_bf16_f32_kernel(const hip_bfloat16* grad_c,
                                               const hip_bfloat16* a, hip_bfloat16* grad_b,
                                               int m, int n, int k) {
  grad_of_b(grad_c, a, grad_b, m, n, k);
}
