#include <hip/hip_runtime.h>

__global__ void sums(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < cols; ++i) sum += x[row * cols + i];
  y[row] = sum;
}
