// Small kernels of no shipped op, right or with a fault: what a block shares, waves, special values,
// reads outside.
#include "faults.hpp"

// y[r] = sum of row r of x [rows, 64] by shuffles within waves; grid (rows), block (64). With
// kShortShuffle a wave is taken to have 32 lanes.
__global__ void wave_sums(const float* x, float* y, int fault) {
  __shared__ float partial[64];
  const int thread = threadIdx.x;
  float value = x[static_cast<size_t>(blockIdx.x) * blockDim.x + thread];
  const int first = fault == kShortShuffle ? 16 : warpSize / 2;
  for (int offset = first; offset > 0; offset /= 2) value += __shfl_down(value, offset);
  if (thread % warpSize == 0) partial[thread / warpSize] = value;
  __syncthreads();
  if (thread != 0) return;
  float total = 0.0f;
  for (unsigned wave = 0; wave < blockDim.x / warpSize; ++wave) total += partial[wave];
  y[blockIdx.x] = total;
}

// Rows times their first value, two values a thread; a row of an odd length ends in the middle of a pair.
__global__ void paired_rows(const float* x, float* y, int rows, int columns, int fault) {
  const int row = blockIdx.x, end = (fault == kIntoNextRow ? rows : row + 1) * columns;
  for (int c = 2 * threadIdx.x; c < columns; c += 2 * blockDim.x)
    for (int i = row * columns + c; i < row * columns + c + 2 && i < end; ++i)
      y[i] = x[i] * x[row * columns];
}

// The least of n numbers; one block.
__global__ void least(const unsigned* x, unsigned* y, int n, int fault) {
  if (threadIdx.x == 0 && fault != kUnset) *y = 0xffffffffu;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicMin(y, x[i]);
}

// y[r,:] = x[r,:] * x[r,0] for x [rows, 64], four rows per block through one shared factor; grid
// (rows / 4), block (64).
__global__ void scaled_rows(const float* x, float* y, int fault) {
  __shared__ float factor;
  for (int i = 0; i < 4; ++i) {
    const size_t start = (static_cast<size_t>(blockIdx.x) * 4 + i) * blockDim.x;
    if (threadIdx.x == 0) factor = x[start];
    __syncthreads();
    y[start + threadIdx.x] = x[start + threadIdx.x] * factor;
    if (fault != kNoBarrier) __syncthreads();
  }
}

// counts[b] = how often b occurs in x, 16 bins; one block.
__global__ void histogram(const int* x, int* counts, int n, int fault) {
  __shared__ int bins[16];
  if (fault != kUncleared && threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&bins[x[i]], 1);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x] = bins[threadIdx.x];
}

// y[r] = largest of row r of x [rows, columns], NaN where one is; one thread a row.
__global__ void row_max(const float* x, float* y, int rows, int columns, int fault) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float most = fault == kDropsNan ? -INFINITY : x[static_cast<size_t>(row) * columns];
  for (int j = 0; j < columns; ++j) {
    const float value = x[static_cast<size_t>(row) * columns + j];
    if (fault == kDropsNan)
      most = fmaxf(most, value);
    else if (value > most || value != value)
      most = value;
    if (most != most) break;
  }
  y[row] = most;
}

// y[c] = sum of column c of x [rows, columns]; one thread a column.
__global__ void column_sum(const __half* x, __half* y, int rows, int columns, int fault) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = 0.0f;
  for (int i = 0; i < rows; ++i) {
    sum += wide(x[static_cast<size_t>(i) * columns + column]);
    if (fault == kHalfSum) sum = rounded(sum);
  }
  y[column] = __float2half(sum);
}

// y[i] = x[i+1] - x[i] with x[n] taken as 0; kTail reads what lies behind x instead.
__global__ void differences(const float* x, float* y, int n, int fault) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float next = i + 1 < n || fault == kTail ? x[i + 1] : 0.0f;
  y[i] = next - x[i];
}

// y = x, and a read `beyond` elements behind that changes nothing, as a launch to warm up makes it
// whose extent is larger than the array.
__global__ void warmed_up(const float* x, float* y, int n, int beyond) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float other = *static_cast<const volatile float*>(&x[i + beyond]);
  y[i] = other == 12345.678f ? other : x[i];
}
