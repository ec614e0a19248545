// Names of the faults, as kernels get them for their last arguments, and the store that has those
// that any kernel can have. What each of them is stands in tests/fault_table.py.
#pragma once

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

enum Fault {
  kRight,
  kZeros,
  kWrongSign,
  kRolledRow,
  kSkippedColumn,
  kZeroColumn,
  kHalved,
  kLastTerm,
  kLastSquare,
  kNoSum,
  kNoProjection,
  kNoEps,
  kNoShift,
  kOnePass,
  kUnbiased,
  kHalfSum,
  kHalfExponentials,
  kHalfStatistics,
  kPadded,
  kTail,
  kDropsNan,
  kNineRows,
  kNoBarrier,
  kClamped,
  kOverwritten,
  kPlainUpdate,
  kUncleared,
  kShortShuffle,
  kShortMax,
  kHalfPartial,
  kIntoNextRow,
  kFixedEps,
  kNoMerge,
  kUnset,
};

__device__ inline float wide(__half value) { return __half2float(value); }
__device__ inline float wide(float value) { return value; }
__device__ inline void narrow(__half* to, float value) { *to = __float2half(value); }
__device__ inline void narrow(float* to, float value) { *to = value; }
// The float16 number that is nearest to `value`.
__device__ inline float rounded(float value) { return __half2float(__float2half(value)); }

// y[row,column] = value, the right one, for y [rows, columns], with the fault.
template <class T>
__device__ inline void store(T* y, int row, int column, int rows, int columns, float value,
                             int fault) {
  if (fault == kSkippedColumn && column == columns - 1) return;
  if (fault == kZeros || (fault == kZeroColumn && column == columns - 1)) value = 0.0f;
  if (fault == kNineRows && row % 7 == 0 && row < 63) value = 0.0f;
  if (fault == kWrongSign) value = -value;
  if (fault == kHalved) value *= 0.5f;
  if (fault == kRolledRow && row == rows - 1) column = (column + 1) % columns;
  narrow(&y[static_cast<size_t>(row) * columns + column], value);
}

// Sum over a block whose size is a power of two; every thread gets it. With kNoBarrier a fast thread
// of the next call overwrites the total before a slow one has read it.
__device__ inline float block_sum(float value, float* partial, int fault) {
  const int thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  const float total = partial[0];
  if (fault != kNoBarrier) __syncthreads();
  return total;
}
