// Kernels that do something wrong beside wrong numbers, one fault each, and their right twins.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

__device__ int element() { return blockIdx.x * blockDim.x + threadIdx.x; }

template <class T>
__global__ void copy(const T* x, T* y, int n) {
  const int i = element();
  if (i < n) y[i] = x[i];
}

// Right, and then one more write, at y[at].
__global__ void pokes_output(const float* x, float* y, int n, int at) {
  const int i = element();
  if (i < n) y[i] = x[i];
  if (i == 77) y[at] = 7.0f;
}

// Right, and then one more write, at x[at].
__global__ void pokes_input(float* x, float* y, int n, int at) {
  const int i = element();
  if (i < n) y[i] = x[i];
  if (i == n - 1) x[at] = 7.0f;
}

// Right, by way of a workspace that it overruns.
__global__ void pokes_workspace(const float* x, float* y, float* work, int n, int at) {
  const int i = element();
  if (i < n) {
    work[i] = x[i];
    y[i] = work[i];
  }
  if (i == 77) work[at] = 7.0f;
}

// Counts in shared memory; where `clears` is 0 the counters start as whatever lies there.
__global__ void static_bins(const int* x, int* counts, int n, int clears) {
  __shared__ int bins[16];
  if (clears && threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&bins[x[i]], 1);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x] = bins[threadIdx.x];
}

__global__ void dynamic_bins(const int* x, int* counts, int n, int clears) {
  extern __shared__ int counters[];
  if (clears && threadIdx.x < 16) counters[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&counters[x[i]], 1);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x] = counters[threadIdx.x];
}

// A right sum whose order, and so whose last bits, depend on the schedule.
__global__ void any_order(const float* x, float* total, int n) {
  const int i = element();
  if (i < n) atomicAdd(total, x[i]);
}

__global__ void one_nan(const float* x, float* y, int n) {
  const int i = element();
  if (i < n) y[i] = i == 37 ? nanf("") : x[i];
}

// NaN is taken for missing.
__global__ void drops_nan(const float* x, float* y, int n) {
  const int i = element();
  if (i < n) y[i] = fmaxf(x[i], -INFINITY);
}

__global__ void rounds(const float* x, __half* y, int n) {
  const int i = element();
  if (i < n) y[i] = __float2half(x[i]);
}

// 65504 in place of an infinity.
__global__ void saturates(const float* x, __half* y, int n) {
  const int i = element();
  if (i < n) y[i] = __float2half(fminf(fmaxf(x[i], -65504.0f), 65504.0f));
}

// Infinity from 2^15 on, where float16 still has numbers.
__global__ void overflows_early(const float* x, __half* y, int n) {
  const int i = element();
  if (i < n) y[i] = __float2half(fabsf(x[i]) < 32768.0f ? x[i] : 10.0f * x[i]);
}

__global__ void loses_sign(const float* x, __half* y, int n) {
  const int i = element();
  if (i < n) y[i] = __float2half(fabsf(x[i]) < 65520.0f ? x[i] : fabsf(x[i]));
}

__global__ void zeros(const float*, float* y, int n) {
  const int i = element();
  if (i < n) y[i] = 0.0f;
}
