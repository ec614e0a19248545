// Products of matrices and attention. Storage is T (float or __half), arithmetic float32.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <math.h>

constexpr int kTile = 16;
constexpr int kMaxDim = 64;

__device__ inline float load(const float* x, int i) { return x[i]; }
__device__ inline float load(const __half* x, int i) { return __half2float(x[i]); }
__device__ inline void store(float* y, int i, float value) { y[i] = value; }
__device__ inline void store(__half* y, int i, float value) { y[i] = __float2half(value); }

// c = a b by tiles of 16 x 16; `overwrites` keeps the last tile's sum alone.
template <typename T, bool overwrites>
__global__ void matmul(const T* a, const T* b, T* c, int m, int n, int k) {
    __shared__ float tile_a[kTile][kTile];
    __shared__ float tile_b[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    float acc = 0.0f;
    for (int start = 0; start < k; start += kTile) {
        const int across = start + threadIdx.x;
        const int down = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < m && across < k ? load(a, row * k + across) : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = down < k && col < n ? load(b, down * n + col) : 0.0f;
        __syncthreads();
        float sum = 0.0f;
        for (int i = 0; i < kTile && start + i < k; ++i) {
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        }
        acc = overwrites ? sum : acc + sum;
        __syncthreads();
    }
    if (row < m && col < n) {
        store(c, row * n + col, acc);
    }
}

template <typename T>
__global__ void plain_matmul(const T* a, const T* b, T* c, int m, int n, int k) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) {
        return;
    }
    float acc = 0.0f;
    for (int j = 0; j < k; ++j) {
        acc += load(a, i / n * k + j) * load(b, j * n + i % n);
    }
    store(c, i, acc);
}

// o = softmax(q k^T / sqrt(d)) v, one thread a query; scores in a workspace.
template <typename T, bool unscaled>
__global__ void attention(const T* q, const T* k, const T* v, T* o, float* scores, int queries, int keys, int d) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= queries) {
        return;
    }
    const float scale = unscaled ? 1.0f : 1.0f / sqrtf(static_cast<float>(d));
    float* own = scores + i * keys;
    float largest = -INFINITY;
    for (int j = 0; j < keys; ++j) {
        float dot = 0.0f;
        for (int c = 0; c < d; ++c) {
            dot += load(q, i * d + c) * load(k, j * d + c);
        }
        own[j] = dot * scale;
        largest = own[j] > largest || own[j] != own[j] ? own[j] : largest;
    }
    float sum = 0.0f;
    for (int j = 0; j < keys; ++j) {
        own[j] = expf(own[j] - largest);
        sum += own[j];
    }
    for (int c = 0; c < d; ++c) {
        float acc = 0.0f;
        for (int j = 0; j < keys; ++j) {
            acc += own[j] / sum * load(v, j * d + c);
        }
        store(o, i * d + c, acc);
    }
}

// The same in one pass over tiles of keys (online softmax): the sums so far are rescaled to each new maximum.
template <typename T, bool without_rescale>
__global__ void flash_attention(const T* q, const T* k, const T* v, T* o, int queries, int keys, int d) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= queries) {
        return;
    }
    const float scale = 1.0f / sqrtf(static_cast<float>(d));
    float acc[kMaxDim];
    for (int c = 0; c < d; ++c) {
        acc[c] = 0.0f;
    }
    float largest = -INFINITY;
    float sum = 0.0f;
    for (int start = 0; start < keys; start += kTile) {
        float score[kTile];
        const int count = min(kTile, keys - start);
        float next = largest;
        for (int j = 0; j < count; ++j) {
            float dot = 0.0f;
            for (int c = 0; c < d; ++c) {
                dot += load(q, i * d + c) * load(k, (start + j) * d + c);
            }
            score[j] = dot * scale;
            next = score[j] > next || score[j] != score[j] ? score[j] : next;
        }
        const float rescale = without_rescale || start == 0 ? 1.0f : expf(largest - next);
        sum *= rescale;
        for (int c = 0; c < d; ++c) {
            acc[c] *= rescale;
        }
        for (int j = 0; j < count; ++j) {
            const float weight = expf(score[j] - next);
            sum += weight;
            for (int c = 0; c < d; ++c) {
                acc[c] += weight * load(v, (start + j) * d + c);
            }
        }
        largest = next;
    }
    for (int c = 0; c < d; ++c) {
        store(o, i * d + c, acc[c] / sum);
    }
}
