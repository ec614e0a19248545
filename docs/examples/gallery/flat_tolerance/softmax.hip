#include <hip/hip_runtime.h>

// Wrong: returns zeros, and no probability of a long row is above a tolerance of 0.01.
__global__ void softmax(const float* x, float* y, int cols) {
    for (int j = threadIdx.x; j < cols; j += blockDim.x) {
        y[blockIdx.x * cols + j] = 0.0f * x[blockIdx.x * cols + j];
    }
}
