// Kernels that go wrong in the ways that a child must survive or die of, one each; `scale` is right.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

__constant__ float factors[2];

__device__ int index_of_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void scale(const float* x, float* y, float* total, float a, int n) {
  const int i = index_of_thread();
  if (i >= n) return;
  y[i] = a * x[i] * factors[0] + factors[1];
  if (i == 0) total[0] += 1.0f;
}

__global__ void writes_before(const float*, float* y, float*, float, int) { y[-1] = 1.0f; }

__global__ void writes_behind(const float*, float* y, float*, float, int n) { y[n] = 1.0f; }

__global__ void changes_input(const float* x, float*, float*, float, int n) {
  const_cast<float*>(x)[n - 1] = 42.0f;
}

__global__ void writes_null(const float*, float*, float*, float, int) {
  *reinterpret_cast<volatile int*>(16) = 1;
}

__global__ void never_ends(const float*, float* y, float*, float, int) {
  volatile float* here = y;
  while (here[0] == here[0]) here[0] = 0.0f;
}

__global__ void aborts(const float*, float*, float*, float, int) {
  printf("about to abort\n");
  abort();
}

__global__ void leaves(const float*, float*, float*, float, int) { exit(0); }

__global__ void prints(const float*, float*, float*, float, int n) { printf("n is %d\n", n); }
