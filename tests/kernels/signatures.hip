// Kernels of users with every kind of argument, memory and launch that a spec can describe.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

__device__ inline int position() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline __half times(__half x, __half a) {
    return __float2half(__half2float(x) * __half2float(a));
}
__device__ inline __hip_bfloat16 times(__hip_bfloat16 x, __hip_bfloat16 a) {
    return __float2bfloat16(__bfloat162float(x) * __bfloat162float(a));
}
__device__ inline float times(float x, float a) { return x * a; }
__device__ inline double times(double x, double a) { return x * a; }

// y = a x in every floating-point type, a by value in the same type
template <typename T>
__global__ void product(const T* x, T* y, T a, int n) {
    int i = position();
    if (i < n) y[i] = times(x[i], a);
}

// y = x + a modulo 2^bits in every integer type
template <typename T>
__global__ void shifted(const T* x, T* y, T a, unsigned n) {
    unsigned i = position();
    if (i < n) y[i] = static_cast<T>(x[i] + a);
}

__global__ void inverted(const bool* x, bool* y, bool invert, long long n) {
    int i = position();
    if (i < n) y[i] = x[i] != invert;
}

// total += x, in place
__global__ void accumulate(const float* x, float* total, int n) {
    int i = position();
    if (i < n) total[i] += x[i];
}

// Sums of blocks of 64 through static shared memory into a workspace, then the sum of those.
__global__ void block_sums(const int* x, int* partial, int n) {
    __shared__ int values[64];
    int i = position();
    values[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (threadIdx.x < step) values[threadIdx.x] += values[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = values[0];
}
__global__ void last_sum(const int* partial, int* total, int blocks) {
    int sum = 0;
    for (int i = 0; i < blocks; ++i) sum += partial[i];
    *total = sum;
}

// Each block of 64 reversed through dynamic shared memory.
__global__ void reversed(const int16_t* x, int16_t* y) {
    extern __shared__ int16_t tile[];
    tile[threadIdx.x] = x[position()];
    __syncthreads();
    y[position()] = tile[blockDim.x - 1 - threadIdx.x];
}

// One artifact for each value of TIMES.
#ifndef TIMES
#define TIMES 1
#endif
__global__ void multiplied(const int* x, int* y, int n) {
    int i = position();
    if (i < n) y[i] = TIMES * x[i];
}

// WIDTH elements a thread
template <typename T, int WIDTH>
__global__ void scale(const T* x, T* y, float a, int n) {
    for (int j = 0; j < WIDTH; ++j) {
        int i = position() * WIDTH + j;
        if (i < n) y[i] = a * x[i];
    }
}

__constant__ float coefficients[4];
__device__ int offsets[4];

// y[i] = coefficients[i % 4] + offsets[i % 4]
__global__ void looked_up(float* y, int n) {
    int i = position();
    if (i < n) y[i] = coefficients[i % 4] + offsets[i % 4];
}

namespace kept {
__device__ int remainders[4];
}
__device__ unsigned long long counted;

// Results that are no arguments, beside y as above.
__global__ void kept_in_symbols(float* y, int n) {
    const int i = position();
    if (i >= n) return;
    y[i] = coefficients[i % 4] + offsets[i % 4];
    if (i < 4) kept::remainders[i] = (n + i) % 4;
    atomicAdd(&counted, 1ull);
}

// y = (a + b) + c in float64: right, and with the last term in float32
__global__ void sum_of_three(const double* a, const double* b, const double* c, double* y, int n) {
    int i = position();
    if (i < n) y[i] = (a[i] + b[i]) + c[i];
}
__global__ void sum_of_three_narrow(const double* a, const double* b, const double* c, double* y,
                                    int n) {
    int i = position();
    if (i < n) y[i] = (a[i] + b[i]) + static_cast<float>(c[i]);
}
