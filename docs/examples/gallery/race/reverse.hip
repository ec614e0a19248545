#include <hip/hip_runtime.h>

// Wrong: __syncthreads() is missing between the stores to shared memory and the loads of other threads.
__global__ void reverse(const float* x, float* y) {
    __shared__ float tile[256];
    int at = blockIdx.x * 256 + threadIdx.x;
    tile[threadIdx.x] = x[at];
    y[at] = tile[255 - threadIdx.x];
}
