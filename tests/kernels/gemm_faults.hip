// Wrong twins of the shipped grad-a kernel, one fault each, and one correct kernel that sums in
// another order. grad_A[m,k] = sum over n of grad_C[m,n] * B[k,n].
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#define OUTPUT_INDEX                                       \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;   \
    const int j = blockIdx.y * blockDim.y + threadIdx.y;   \
    if (i >= m || j >= k) return;

#define TERM(p) fmaf(__half2float(grad_c[(size_t)i * n + (p)]), __half2float(b[(size_t)j * n + (p)]), sum)

// Correct, in tiles of 16 terms whose partial sums are added afterwards: another order of summation.
__global__ void tiled(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    __shared__ float rows[16][17];
    __shared__ float columns[16][17];
    const int i = blockIdx.x * 16 + threadIdx.x;
    const int j = blockIdx.y * 16 + threadIdx.y;
    float total = 0.0f;
    for (int start = 0; start < n; start += 16) {
        const int p = start + threadIdx.y;
        const int q = start + threadIdx.x;
        rows[threadIdx.x][threadIdx.y] = i < m && p < n ? __half2float(grad_c[(size_t)i * n + p]) : 0.0f;
        columns[threadIdx.y][threadIdx.x] = j < k && q < n ? __half2float(b[(size_t)j * n + q]) : 0.0f;
        __syncthreads();
        float sum = 0.0f;
        for (int t = 0; t < 16; ++t) sum = fmaf(rows[threadIdx.x][t], columns[threadIdx.y][t], sum);
        total += sum;
        __syncthreads();
    }
    if (i < m && j < k) grad_a[(size_t)i * k + j] = __float2half(total);
}

// B read as if it were stored [n,k].
__global__ void transposed(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    OUTPUT_INDEX
    float sum = 0.0f;
    for (int p = 0; p < n; ++p)
        sum = fmaf(__half2float(grad_c[(size_t)i * n + p]), __half2float(b[(size_t)p * k + j]), sum);
    grad_a[(size_t)i * k + j] = __float2half(sum);
}

__global__ void last_term(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    OUTPUT_INDEX
    float sum = 0.0f;
    for (int p = 0; p < n - 1; ++p) sum = TERM(p);
    grad_a[(size_t)i * k + j] = __float2half(sum);
}

// Right arithmetic; the spec launches it on a grid that is one block short.
__global__ void plain(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    OUTPUT_INDEX
    float sum = 0.0f;
    for (int p = 0; p < n; ++p) sum = TERM(p);
    grad_a[(size_t)i * k + j] = __float2half(sum);
}

// The product and the running sum are both kept in half precision.
__global__ void half_accumulator(const __half* grad_c, const __half* b, __half* grad_a, int m, int n,
                                 int k) {
    OUTPUT_INDEX
    __half sum = __float2half(0.0f);
    for (int p = 0; p < n; ++p) {
        const float product =
            __half2float(grad_c[(size_t)i * n + p]) * __half2float(b[(size_t)j * n + p]);
        sum = __float2half(__half2float(sum) + __half2float(__float2half(product)));
    }
    grad_a[(size_t)i * k + j] = sum;
}

// The float sum is rounded to half after every term.
__global__ void rounded_steps(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    OUTPUT_INDEX
    float sum = 0.0f;
    for (int p = 0; p < n; ++p) sum = __half2float(__float2half(TERM(p)));
    grad_a[(size_t)i * k + j] = __float2half(sum);
}

__global__ void zeros(const __half*, const __half*, __half* grad_a, int m, int, int k) {
    OUTPUT_INDEX
    grad_a[(size_t)i * k + j] = __float2half(0.0f);
}

__global__ void one_nan(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    OUTPUT_INDEX
    float sum = 0.0f;
    for (int p = 0; p < n; ++p) sum = TERM(p);
    if (i == 5 && j == 7) sum = nanf("");
    grad_a[(size_t)i * k + j] = __float2half(sum);
}

__global__ void wrong_sign(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    OUTPUT_INDEX
    float sum = 0.0f;
    for (int p = 0; p < n; ++p) sum = TERM(p);
    grad_a[(size_t)i * k + j] = __float2half(-sum);
}
