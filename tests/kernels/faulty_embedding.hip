// Lookup in an embedding table and its gradient, right or with a fault: weight and grad_weight
// [vocab, dim], output and grad_output [queries, dim], grid (queries or vocab, ceil(dim / 256)).
#include "faults.hpp"

__global__ void lookup(const int* indices, const __half* weight, __half* output, int dim, int vocab,
                       int fault) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  if (fault == kLastTerm && blockIdx.x == gridDim.x - 1) return;
  int row = indices[blockIdx.x];
  if (fault == kClamped) row = min(max(row, 0), vocab - 1);
  if (row < 0 || row >= vocab) {
    // The contract is to leave the row as it was.
    if (fault == kOverwritten) output[static_cast<size_t>(blockIdx.x) * dim + column] = __float2half(0.0f);
    return;
  }
  const __half value = weight[static_cast<size_t>(row) * dim + column];
  if (fault == kRight) {
    output[static_cast<size_t>(blockIdx.x) * dim + column] = value;
    return;
  }
  store(output, blockIdx.x, column, gridDim.x, dim, wide(value), fault);
}

__global__ void add(const int* indices, const __half* grad_output, float* sums, int dim, int vocab,
                    int fault) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  if (fault == kLastTerm && blockIdx.x == gridDim.x - 1) return;
  int row = indices[blockIdx.x];
  if (fault == kClamped) row = min(max(row, 0), vocab - 1);
  if (row < 0 || row >= vocab) return;
  float* sum = &sums[static_cast<size_t>(row) * dim + column];
  const float term = wide(grad_output[static_cast<size_t>(blockIdx.x) * dim + column]);
  if (fault == kNoSum) {
    *sum = term;  // the last query wins
  } else if (fault == kPlainUpdate) {
    *sum = *sum + term;  // updates of other blocks between load and store are lost
  } else {
    atomicAdd(sum, term);
  }
}

__global__ void finish(const float* sums, __half* grad_weight, int dim, int fault) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  store(grad_weight, blockIdx.x, column, gridDim.x, dim,
        sums[static_cast<size_t>(blockIdx.x) * dim + column], fault);
}

// Addition in 16 bits by compare-and-swap on the word around it: every step is rounded to float16.
__global__ void add_half(const int* indices, const __half* grad_output, __half* grad_weight, int dim,
                         int vocab) {
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  const int row = indices[blockIdx.x];
  if (row < 0 || row >= vocab) return;
  const size_t at = static_cast<size_t>(row) * dim + column;
  const float term = wide(grad_output[static_cast<size_t>(blockIdx.x) * dim + column]);
  unsigned* word = reinterpret_cast<unsigned*>(grad_weight) + at / 2;
  const int shift = at % 2 ? 16 : 0;
  unsigned seen = *word;
  for (;;) {
    const __half old = __ushort_as_half(static_cast<unsigned short>(seen >> shift));
    const unsigned bits = __half_as_ushort(__float2half(wide(old) + term));
    const unsigned found = atomicCAS(word, seen, (seen & ~(0xffffu << shift)) | bits << shift);
    if (found == seen) return;
    seen = found;
  }
}

// Every thread of a block takes a query, in steps of 256 queries: all load before one stores. Grid (dim).
__global__ void add_in_step(const int* indices, const __half* grad_output, float* sums, int queries,
                            int dim, int vocab) {
  const int column = blockIdx.x;
  for (int first = 0; first < queries; first += blockDim.x) {
    const int query = first + threadIdx.x;
    const int row = query < queries ? indices[query] : -1;
    const bool counts = row >= 0 && row < vocab;
    float* sum = &sums[static_cast<size_t>(counts ? row : 0) * dim + column];
    const float old = *sum;
    __syncthreads();
    if (counts) *sum = old + wide(grad_output[static_cast<size_t>(query) * dim + column]);
    __syncthreads();
  }
}
