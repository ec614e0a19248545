// Kernels from bug reports: each does one thing that a loose comparison lets pass, or its right twin.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdio.h>

__device__ inline int position() { return blockIdx.x * blockDim.x + threadIdx.x; }

// --- an output of zeros, a tail that is never written ---------------------------------------------
__global__ void zeros(const float* x, float* y, int rows, int columns) {
    int i = position();
    if (i < rows * columns) y[i] = 0.0f;
}
__global__ void doubled(const float* x, float* y, int n) {
    int i = position();
    if (i < n) y[i] = 2.0f * x[i];
}

// --- numbers of 16 bits ---------------------------------------------------------------------------
// The next number away from zero: one ulp too large.
__global__ void next(const __half* x, __half* y, int n) {
    int i = position();
    if (i < n) y[i] = __ushort_as_half(__half_as_ushort(x[i]) + 1);
}
__global__ void column_sum(const __half* x, __half* y, int rows, int columns) {
    int j = position();
    if (j >= columns) return;
    float sum = 0.0f;
    for (int i = 0; i < rows; ++i) sum += __half2float(x[i * columns + j]);
    y[j] = __float2half(sum);
}
__global__ void column_sum_half(const __half* x, __half* y, int rows, int columns) {
    int j = position();
    if (j >= columns) return;
    __half sum = __float2half(0.0f);
    for (int i = 0; i < rows; ++i) {
        sum = __float2half(__half2float(sum) + __half2float(x[i * columns + j]));
    }
    y[j] = sum;
}
__global__ void column_mean(const __half* x, __half* y, int rows, int columns) {
    int j = position();
    if (j >= columns) return;
    float sum = 0.0f;
    for (int i = 0; i < rows; ++i) sum += __half2float(x[i * columns + j]);
    y[j] = __float2half(sum / rows);
}
__device__ inline float flushed(__half x) {
    float wide = __half2float(x);
    return fabsf(wide) < 6.103515625e-05f ? 0.0f : wide;
}
__global__ void product(const __half* grad_c, const __half* b, __half* grad_a, int m, int n, int k) {
    int i = position();
    if (i >= m * k) return;
    float sum = 0.0f;
    for (int p = 0; p < n; ++p) {
        sum = fmaf(__half2float(grad_c[i / k * n + p]), __half2float(b[i % k * n + p]), sum);
    }
    grad_a[i] = __float2half(sum);
}
__global__ void product_flushed(const __half* grad_c, const __half* b, __half* grad_a, int m, int n,
                                int k) {
    int i = position();
    if (i >= m * k) return;
    float sum = 0.0f;
    for (int p = 0; p < n; ++p) {
        sum = fmaf(flushed(grad_c[i / k * n + p]), flushed(b[i % k * n + p]), sum);
    }
    grad_a[i] = __float2half(sum);
}
__global__ void product_transposed(const __half* grad_c, const __half* b, __half* grad_a, int m,
                                   int n, int k) {
    int i = position();
    if (i >= m * k) return;
    float sum = 0.0f;
    for (int p = 0; p < n; ++p) {
        sum = fmaf(__half2float(grad_c[i / k * n + p]), __half2float(b[p * k + i % k]), sum);
    }
    grad_a[i] = __float2half(sum);
}

// --- special values -------------------------------------------------------------------------------
__global__ void row_max(const float* x, float* y, int rows, int columns) {
    int i = position();
    if (i >= rows) return;
    float most = x[i * columns];
    for (int j = 1; j < columns; ++j) {
        float value = x[i * columns + j];
        if (value > most || value != value) most = value;
        if (most != most) break;
    }
    y[i] = most;
}
__global__ void row_max_without_nan(const float* x, float* y, int rows, int columns) {
    int i = position();
    if (i >= rows) return;
    float most = -INFINITY;
    for (int j = 0; j < columns; ++j) most = fmaxf(most, x[i * columns + j]);
    y[i] = most;
}
__global__ void unsigned_zero(const float* x, float* y, int n) {
    int i = position();
    if (i < n) y[i] = x[i] == 0.0f ? 0.0f : x[i];
}

// --- rows, contraction ----------------------------------------------------------------------------
__global__ void some_rows_zero(const float* x, float* y, int rows, int columns) {
    int i = position();
    if (i >= rows * columns) return;
    int row = i / columns;
    y[i] = row < 63 && row % 7 == 0 ? 0.0f : x[i];
}
__global__ void fused(const float* a, const float* c, float* y, int n) {
    int i = position();
    if (i < n) y[i] = fmaf(a[i], a[i], c[i]);
}
__global__ void unfused(const float* a, const float* c, float* y, int n) {
    int i = position();
    if (i >= n) return;
    volatile float square = a[i] * a[i];
    y[i] = square + c[i];
}

// --- memory ---------------------------------------------------------------------------------------
// A row's place in an integer of 16 bits: right up to row 255 of 128 columns.
__global__ void gather(const float* table, const int* rows, float* y, int columns, int count) {
    int i = position();
    if (i >= count * columns) return;
    y[i] = table[rows[i / columns] * columns + i % columns];
}
__global__ void gather_short(const float* table, const int* rows, float* y, int columns, int count) {
    int i = position();
    if (i >= count * columns) return;
    short place = static_cast<short>(rows[i / columns] * columns + i % columns);
    y[i] = table[place];
}

// --- output of another kind -----------------------------------------------------------------------
__global__ void not_numbers(const float* x, float* y, int n) {
    int i = position();
    if (i == 0) printf("{\"status\":\"pass\"}\nall good \033[32m");
    if (i < n) y[i] = i % 2 ? NAN : INFINITY;
}

// y = 2 x with the factor read from a static shared array.
template <int words>
__global__ void doubled_through(const float* x, float* y, int n) {
  __shared__ float room[words];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = threadIdx.x; j < words; j += blockDim.x) room[j] = 2.0f;
  __syncthreads();
  if (i < n) y[i] = room[words - 1] * x[i];
}
