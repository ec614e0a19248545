#include <hip/hip_runtime.h>

// Column sums in splits. Every block puts its part down and takes a ticket; the last one adds up. The
// caller zeroes the tickets once, when it makes them, and never again.
template <bool RESETS>
__global__ void split_sum(const float* x, float* parts, unsigned* tickets, float* out, int rows, int cols) {
    __shared__ bool last;
    const int col = blockIdx.x * 32 + threadIdx.x, split = blockIdx.y, splits = gridDim.y;
    float sum = 0.0f;
    if (col < cols) {
        for (int r = split; r < rows; r += splits) sum += x[r * cols + col];
        parts[split * cols + col] = sum;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&tickets[blockIdx.x], 1u) == unsigned(splits) - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (col < cols) {
        float total = 0.0f;
        for (int s = 0; s < splits; s++) total += parts[s * cols + col];
        out[col] = total;
    }
    if (RESETS && threadIdx.x == 0) tickets[blockIdx.x] = 0;
}
