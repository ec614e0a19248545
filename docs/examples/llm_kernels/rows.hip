// Kernels on rows: one block a row. Storage is T (float or __half), arithmetic float32.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <math.h>

constexpr int kThreads = 128;

__device__ inline float load(const float* x, int i) { return x[i]; }
__device__ inline float load(const __half* x, int i) { return __half2float(x[i]); }
__device__ inline void store(float* y, int i, float value) { y[i] = value; }
__device__ inline void store(__half* y, int i, float value) { y[i] = __float2half(value); }

__device__ float block_sum(float value, float* partial) {
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
        __syncthreads();
    }
    const float total = partial[0];
    __syncthreads();
    return total;
}

__device__ float block_max(float value, float* partial) {
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float other = partial[threadIdx.x + half];
            // A NaN goes on, whichever side it is on.
            partial[threadIdx.x] = other > partial[threadIdx.x] || other != other ? other : partial[threadIdx.x];
        }
        __syncthreads();
    }
    const float largest = partial[0];
    __syncthreads();
    return largest;
}

// How a row's tail beyond the last full tile is masked: with -inf, with 0, or not at all.
enum Tail { kMinusInfinity, kZero, kUnmasked };

// y[r, :] = exp(x[r, :] - max) / sum, a tile of kThreads columns at a time; the buffer is padded to whole tiles.
template <typename T, int tail>
__global__ void softmax(const T* x, T* y, int cols, int stride) {
    __shared__ float partial[kThreads];
    const int row = blockIdx.x;
    const int tiles = (cols + kThreads - 1) / kThreads;
    float largest = -INFINITY;
    for (int tile = 0; tile < tiles; ++tile) {
        const int c = tile * kThreads + threadIdx.x;
        float value = tail == kZero ? 0.0f : -INFINITY;
        if (c < cols || tail == kUnmasked) {
            value = load(x, row * stride + c);
        }
        largest = value > largest || value != value ? value : largest;
    }
    largest = block_max(largest, partial);
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {
        const int c = tile * kThreads + threadIdx.x;
        float value = tail == kZero ? 0.0f : -INFINITY;
        if (c < cols || tail == kUnmasked) {
            value = load(x, row * stride + c);
        }
        sum += expf(value - largest);
    }
    sum = block_sum(sum, partial);
    for (int c = threadIdx.x; c < cols; c += kThreads) {
        store(y, row * cols + c, expf(load(x, row * stride + c) - largest) / sum);
    }
}

// The same with one thread a row and no tiles.
template <typename T>
__global__ void plain_softmax(const T* x, T* y, int rows, int cols, int stride) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float largest = load(x, row * stride);
    for (int c = 1; c < cols; ++c) {
        largest = fmaxf(largest, load(x, row * stride + c));
    }
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) {
        sum += expf(load(x, row * stride + c) - largest);
    }
    for (int c = 0; c < cols; ++c) {
        store(y, row * cols + c, expf(load(x, row * stride + c) - largest) / sum);
    }
}

// y = x / sqrt(mean(x^2) + eps) * weight; or with eps outside of the root.
template <typename T, bool eps_outside>
__global__ void rmsnorm(const T* x, const T* weight, T* y, int cols, float eps) {
    __shared__ float partial[kThreads];
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += kThreads) {
        const float value = load(x, row * cols + c);
        sum += value * value;
    }
    const float mean = block_sum(sum, partial) / cols;
    const float scale = eps_outside ? 1.0f / (sqrtf(mean) + eps) : 1.0f / sqrtf(mean + eps);
    for (int c = threadIdx.x; c < cols; c += kThreads) {
        store(y, row * cols + c, load(x, row * cols + c) * scale * load(weight, c));
    }
}

// y = x / max(sqrt(sum(x^2)), eps); or without the root.
template <typename T, bool without_root>
__global__ void l2norm(const T* x, T* y, int cols, float eps) {
    __shared__ float partial[kThreads];
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += kThreads) {
        const float value = load(x, row * cols + c);
        sum += value * value;
    }
    sum = block_sum(sum, partial);
    const float norm = without_root ? sum : sqrtf(sum);
    const float divisor = norm > eps || norm != norm ? norm : eps;
    for (int c = threadIdx.x; c < cols; c += kThreads) {
        store(y, row * cols + c, load(x, row * cols + c) / divisor);
    }
}

// y = (x - mean) / sqrt(var + eps) * weight + bias, one thread a row.
template <typename T>
__global__ void plain_layernorm(const T* x, const T* weight, const T* bias, T* y, int rows, int cols, float eps) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) {
        sum += load(x, row * cols + c);
    }
    const float mean = sum / cols;
    float squares = 0.0f;
    for (int c = 0; c < cols; ++c) {
        const float away = load(x, row * cols + c) - mean;
        squares += away * away;
    }
    const float scale = 1.0f / sqrtf(squares / cols + eps);
    for (int c = 0; c < cols; ++c) {
        const float away = load(x, row * cols + c) - mean;
        store(y, row * cols + c, away * scale * load(weight, c) + load(bias, c));
    }
}
