// SiLU and its gated form (SwiGLU's pointwise part): one thread an element, blocks of 256 threads.
#include "storage.hpp"

__device__ inline float silu_of(float x) { return x / (1.0f + expf(-x)); }

// y = x sigmoid(x)
template <typename T>
__global__ void silu(const T* input, T* output, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) store(output, i, silu_of(load(input, i)));
}

// y[r,c] = silu(x[r,c]) x[r,cols + c]: the gate is the first half of a row of x [rows, 2 cols], what it
// lets through the second. Grid (ceil(cols / 256), rows).
template <typename T>
__global__ void silu_gated(const T* input, T* output, int cols) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= cols) return;
  const size_t row = blockIdx.y;
  const T* x = input + 2 * row * cols;
  store(output, row * cols + column, silu_of(load(x, column)) * load(x, cols + column));
}
