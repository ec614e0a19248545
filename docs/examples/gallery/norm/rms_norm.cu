#include <cuda_runtime.h>

// y = x * weight / sqrt(mean of x^2 + eps), one block for each row.
__global__ void rms_norm(const float* x, const float* weight, float* y, int cols, float eps) {
    __shared__ float partial[128];
    const float* row = x + blockIdx.x * cols;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) {
        sum += row[j] * row[j];
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
        __syncthreads();
    }
    float scale = rsqrtf(partial[0] / cols + eps);
    for (int j = threadIdx.x; j < cols; j += blockDim.x) {
        y[blockIdx.x * cols + j] = row[j] * scale * weight[j];
    }
}

void run(const float* x, const float* weight, float* y, int rows, int cols) {
    rms_norm<<<rows, 128>>>(x, weight, y, cols, 1e-5f);
}
