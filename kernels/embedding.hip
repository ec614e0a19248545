// Lookup of rows in an embedding table, and the gradient with respect to that table.
//
// All matrices are row-major and contiguous: weight and its gradient [vocab, dim], output and its
// gradient [queries, dim]. One thread per element; launch with blocks of 256 threads along a row and
// a grid of (rows, ceil(dim / 256)). An index outside [0, vocab) names no row: the forward pass
// leaves that row of the output as it was, the backward pass adds nothing.
#include "storage.hpp"

// output[i,:] = weight[indices[i],:]; grid (queries, ceil(dim / 256)).
template <typename T>
__device__ inline void lookup(const int* indices, const T* weight, T* output, int dim, int vocab) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  const int row = indices[blockIdx.x];
  if (row < 0 || row >= vocab) return;
  output[static_cast<size_t>(blockIdx.x) * dim + column] =
      weight[static_cast<size_t>(row) * dim + column];
}

// sums[indices[i],:] += grad_output[i,:] in single precision, in the order in which the atomic
// additions arrive; sums starts as zero. Grid (queries, ceil(dim / 256)).
template <typename T>
__device__ inline void add_rows(const int* indices, const T* grad_output, float* sums, int dim,
                                int vocab) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  const int row = indices[blockIdx.x];
  if (row < 0 || row >= vocab) return;
  atomicAdd(&sums[static_cast<size_t>(row) * dim + column],
            load(grad_output, static_cast<size_t>(blockIdx.x) * dim + column));
}

// grad_weight = sums, rounded once; a launch of its own, after every addition is done.
// Grid (vocab, ceil(dim / 256)).
template <typename T>
__device__ inline void round_sums(const float* sums, T* grad_weight, int dim) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  const size_t at = static_cast<size_t>(blockIdx.x) * dim + column;
  store(grad_weight, at, sums[at]);
}

__global__ void embedding_lookup_fwd_fp16_kernel(const int* indices, const __half* weight,
                                                 __half* output, int dim, int vocab) {
  lookup(indices, weight, output, dim, vocab);
}
__global__ void embedding_lookup_fwd_bf16_kernel(const int* indices, const hip_bfloat16* weight,
                                                 hip_bfloat16* output, int dim, int vocab) {
  lookup(indices, weight, output, dim, vocab);
}
__global__ void embedding_bw_fp16_kernel(const int* indices, const __half* grad_output, float* sums,
                                         int dim, int vocab) {
  add_rows(indices, grad_output, sums, dim, vocab);
}
__global__ void embedding_bw_bf16_kernel(const int* indices, const hip_bfloat16* grad_output,
                                         float* sums, int dim, int vocab) {
  add_rows(indices, grad_output, sums, dim, vocab);
}
__global__ void embedding_bw_round_kernel(const float* sums, __half* grad_weight, int dim) {
  round_sums(sums, grad_weight, dim);
}
__global__ void embedding_bw_round_bf16_kernel(const float* sums, hip_bfloat16* grad_weight,
                                               int dim) {
  round_sums(sums, grad_weight, dim);
}
