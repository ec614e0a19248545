// Gradients of C[m,n] = A[m,k] B[k,n] from grad_C: one thread per element of the result.
//
// All matrices are row-major and contiguous. Each sum runs in index order in one float and is rounded
// to half precision once, at the end. Launch with blocks of 16 x 16 threads; blockIdx.x counts
// tiles along the rows of the result, blockIdx.y along its columns, and threadIdx.x walks along a
// row, so that neighbouring lanes store to neighbouring addresses.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

// grad_A[m,k] = sum over n of grad_C[m,n] * B[k,n]; grid (ceil(m/16), ceil(k/16)).
__global__ void gemm_bw_grad_a_fp16_f32_kernel(const __half* grad_c, const __half* b,
                                               __half* grad_a, int m, int n, int k) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= m || column >= k) return;
  const __half* grad_c_row = grad_c + static_cast<size_t>(row) * n;
  const __half* b_row = b + static_cast<size_t>(column) * n;
  float sum = 0.0f;
  for (int j = 0; j < n; ++j)
    sum = fmaf(__half2float(grad_c_row[j]), __half2float(b_row[j]), sum);
  grad_a[static_cast<size_t>(row) * k + column] = __float2half(sum);
}

// grad_B[k,n] = sum over m of A[m,k] * grad_C[m,n]; grid (ceil(k/16), ceil(n/16)).
__global__ void gemm_bw_grad_b_fp16_f32_kernel(const __half* grad_c, const __half* a,
                                               __half* grad_b, int m, int n, int k) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= k || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < m; ++i)
    sum = fmaf(__half2float(a[static_cast<size_t>(i) * k + row]),
               __half2float(grad_c[static_cast<size_t>(i) * n + column]), sum);
  grad_b[static_cast<size_t>(row) * n + column] = __float2half(sum);
}
