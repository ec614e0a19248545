// C[m,n] = A[m,k] B[k,n] by tiles of 16 x 16 in shared memory, and the same of int8 with scales.
//
// All matrices are row-major and contiguous. Launch with blocks of 16 x 16 threads and a grid of
// (ceil(n/16), ceil(m/16)); threadIdx.x walks along a row of C. Sizes need not be multiples of 16.
#include <stdint.h>

#include "storage.hpp"

constexpr int kTile = 16;

// An element of a matrix [rows, cols], 0 outside of it.
template <typename T>
__device__ inline float element(const T* matrix, int row, int col, int rows, int cols) {
  return row < rows && col < cols ? load(matrix, static_cast<size_t>(row) * cols + col) : 0.0f;
}
__device__ inline int element(const int8_t* matrix, int row, int col, int rows, int cols) {
  return row < rows && col < cols ? matrix[static_cast<size_t>(row) * cols + col] : 0;
}

// The dot product of row `row` of A and column `col` of B, terms in index order, in the type Sum.
template <typename Sum, typename T>
__device__ inline Sum dot(const T* a, const T* b, int row, int col, int m, int n, int k) {
  __shared__ Sum tile_a[kTile][kTile];
  __shared__ Sum tile_b[kTile][kTile];
  Sum sum = 0;
  for (int start = 0; start < k; start += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = element(a, row, start + threadIdx.x, m, k);
    tile_b[threadIdx.y][threadIdx.x] = element(b, start + threadIdx.y, col, k, n);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  return sum;
}

// Accumulates in float and rounds once.
template <typename T>
__global__ void gemm(const T* a, const T* b, T* c, int m, int n, int k) {
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int col = blockIdx.x * kTile + threadIdx.x;
  const float sum = dot<float>(a, b, row, col, m, n, k);
  if (row < m && col < n) store(c, static_cast<size_t>(row) * n + col, sum);
}

// c = scale_a[row] scale_b[col] sum, the sum exact in int32 up to k = 131,071.
__global__ void gemm_int8(const int8_t* a, const int8_t* b, const float* scale_a,
                          const float* scale_b, float* c, int m, int n, int k) {
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int col = blockIdx.x * kTile + threadIdx.x;
  const int sum = dot<int>(a, b, row, col, m, n, k);
  if (row < m && col < n)
    c[static_cast<size_t>(row) * n + col] = static_cast<float>(sum) * (scale_a[row] * scale_b[col]);
}
