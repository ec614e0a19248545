// Kernels that keep something from one launch to the next.
#include <hip/hip_runtime.h>

__device__ float kept[2048];
static __device__ int filled;
__device__ int aside;
__constant__ float never_written[4] = {1, 2, 3, 4};

__device__ inline int index() { return int(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void copies(const float* x, float* y, int n) {
  if (index() < n) y[index()] = x[index()] * never_written[0];
}

// Reads x in the first launch alone.
__global__ void replays(const float* x, float* y, int n) {
  if (index() >= n) return;
  if (!filled) kept[index()] = x[index()];
  y[index()] = kept[index()];
}
__global__ void marks_filled() { filled = 1; }

__global__ void copies_and_counts(const float* x, float* y, int n) {
  if (index() >= n) return;
  y[index()] = x[index()];
  atomicAdd(&aside, 1);
}

// Right as long as nothing was counted.
__global__ void copies_where_none_counted(const float* x, float* y, int n) {
  if (index() < n) y[index()] = aside ? 0.0f : x[index()];
}

// Right in the first five launches.
__global__ void tires(const float* x, float* y, int n) {
  static int launches;
  if (index() < n) y[index()] = launches >= 5 ? 0.0f : x[index()];
  if (index() == n - 1) ++launches;
}

// Relies on a counter that is zero; `raises` leaves it at one.
__global__ void copies_where_zero(const float* x, float* y, const int* counter, int n) {
  if (index() < n) y[index()] = *counter ? 0.0f : x[index()];
}
// Reads x in the first launch alone; `raises` tells of it.
__global__ void replays_from(const float* x, float* y, float* cache, const int* counter, int n) {
  if (index() >= n) return;
  if (!*counter) cache[index()] = x[index()];
  y[index()] = cache[index()];
}
__global__ void raises(int* counter) { *counter = 1; }
