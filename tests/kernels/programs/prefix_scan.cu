// Inclusive scan of blocks, and its sums added: started step by step by the host.
#include "hip/hip_runtime.h"
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <list>
#define BLOCK_SIZE 256
using std::swap;

__global__ static void scan_blocks(const int *in, int *out, int *sums, const unsigned int n)
{
  HIP_DYNAMIC_SHARED(int, temp)
  unsigned int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
  temp[hipThreadIdx_x] = i < n ? in[i] : 0;
  for (unsigned int step = 1; step < hipBlockDim_x; step *= 2) {
    __syncthreads();
    int add = hipThreadIdx_x >= step ? temp[hipThreadIdx_x - step] : 0;
    __syncthreads();
    temp[hipThreadIdx_x] += add;
  }
  if (i < n) out[i] = temp[hipThreadIdx_x];
  if (hipThreadIdx_x == hipBlockDim_x - 1) sums[hipBlockIdx_x] = temp[hipThreadIdx_x];
}

__global__ void add_sums(int *out, const int *sums, const unsigned int n)
{
  unsigned int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
  if (i < n && hipBlockIdx_x > 0) out[i] += sums[hipBlockIdx_x - 1];
}

int main(int argc, char *argv[])
{
  const unsigned int n = 1 << 12, blocks = n / BLOCK_SIZE;
  int *in, *out, *sums, *more;
  clock_t begin = clock();
  hipMalloc((void**)&in, n * sizeof(int)); hipMalloc((void**)&out, n * sizeof(int));
  hipMalloc((void**)&sums, blocks * sizeof(int)); hipMalloc((void**)&more, sizeof(int));
  hipLaunchKernelGGL(scan_blocks, dim3(blocks), dim3(BLOCK_SIZE), BLOCK_SIZE * sizeof(int), 0, in, out, sums, n);
  hipLaunchKernelGGL(scan_blocks, dim3(1), dim3(BLOCK_SIZE), BLOCK_SIZE * sizeof(int), 0, sums, sums, more, blocks);
  hipLaunchKernelGGL(add_sums, dim3(blocks), dim3(BLOCK_SIZE), 0, 0, out, sums, n);
  swap(in, out);
  printf("%f s\n", double(clock() - begin) / CLOCKS_PER_SEC);
  return 0;
}
