#include <hip/hip_runtime.h>

// Exclusive prefix sums in three launches: blocks of 256, the blocks' totals, and both together.
template <bool SHORT_TOTAL>
__global__ void scan_blocks(const int* x, int* out, int* totals, int n) {
    __shared__ int sums[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    const int mine = i < n ? x[i] : 0;
    sums[t] = mine;
    __syncthreads();
    for (int reach = 1; reach < 256; reach *= 2) {
        const int left = t >= reach ? sums[t - reach] : 0;
        __syncthreads();
        sums[t] += left;
        __syncthreads();
    }
    if (i < n) out[i] = sums[t] - mine;
    if (t == 255) totals[blockIdx.x] = SHORT_TOTAL ? sums[t] - mine : sums[t];
}

__global__ void scan_totals(int* totals, int blocks) {
    int running = 0;
    for (int b = 0; b < blocks; b++) {
        const int total = totals[b];
        totals[b] = running;
        running += total;
    }
}

__global__ void scan_add(int* out, const int* totals, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] += totals[blockIdx.x];
}
