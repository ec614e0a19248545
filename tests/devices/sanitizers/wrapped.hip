// Kernels with one fault each where `wrong` is true, as faults.hip: a 32-bit index that wraps around.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 1 64
KERNEL read_wrapped(const float* x, float* y, float* ws, const int* k, int n) {
  const unsigned t = threadIdx.x;
  y[t] = x[wrong && t < 3 ? t - 3 : t];  // <- out-of-bounds
}

// 1 64
KERNEL write_wrapped(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[wrong && t == 5 ? t - (1ll << 32) : t] = x[t];  // <- out-of-bounds
}
