// Softmax with one thread per row, right or with a fault that the outputs of a single run may hide.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

enum Fault { kNone, kNoShift, kFirstTwice, kTrap, kPastEnd, kZeros };

__global__ void softmax_rows(const __half* input, __half* output, int rows, int cols, int fault) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const __half* x = input + static_cast<size_t>(row) * cols;
  __half* y = output + static_cast<size_t>(row) * cols;
  float largest = __half2float(x[0]);
  for (int j = 1; j < cols; ++j) largest = fmaxf(largest, __half2float(x[j]));
  if (fault == kTrap && largest > 500.0f) __builtin_trap();
  if (fault == kPastEnd && largest > 500.0f) output[static_cast<size_t>(rows) * cols] = x[0];
  if (fault == kNoShift) largest = 0.0f;  // right as long as no exponential overflows
  float sum = 0.0f;
  for (int j = 0; j < cols; ++j) sum += expf(__half2float(x[j]) - largest);
  if (fault == kFirstTwice) sum += expf(__half2float(x[0]) - largest);
  for (int j = 0; j < cols; ++j) {
    const float value = fault == kZeros ? 0.0f : expf(__half2float(x[j]) - largest) / sum;
    y[j] = __float2half(value);
  }
}
