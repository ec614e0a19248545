#include <hip/hip_runtime.h>

enum Kind { kRight, kBackwards, kTwice, kSwapped, kNext, kLastTie, kAcross };

// The next of a row: the largest that is not among the `count` places, with stride `step`.
__device__ int next_of(const float* row, int n, const int* places, int count, int step, bool last) {
    int best = -1;
    for (int i = 0; i < n; ++i) {
        bool taken = false;
        for (int j = 0; j < count; ++j) taken = taken || places[j * step] == i;
        if (!taken && (best < 0 || row[i] > row[best] || (last && row[i] == row[best]))) best = i;
    }
    return best;
}

template <int kind>
__global__ void largest(const float* x, float* values, int* places, int n, int k) {
    const float* row = x + blockIdx.x * n;
    int* own = places + blockIdx.x * k;
    int first = kind == kBackwards ? k - 1 : 0, step = kind == kBackwards ? -1 : 1;
    for (int j = 0; j < k; ++j) own[first + j * step] = next_of(row, n, own + first, j, step, kind == kLastTie);
    if (kind == kTwice) own[1] = own[0];
    if (kind == kNext) own[k - 1] = next_of(row, n, own, k, 1, false);
    for (int j = 0; j < k; ++j) values[blockIdx.x * k + j] = row[own[j]];
    if (kind == kSwapped) {
        int other = own[0];
        own[0] = own[1];
        own[1] = other;
    }
}

template <int kind>
__global__ void segments(const float* x, const int* begins, int* kept, float* y, int n) {
    int begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
    kept[blockIdx.x] = begin;
    if (blockIdx.x == gridDim.x - 1) kept[blockIdx.x + 1] = end;
    for (int i = begin; i < end; ++i) {
        int at = kind == kBackwards ? begin + end - 1 - i : kind == kAcross ? n - 1 - i : i;
        y[at] = 2.0f * x[kind == kTwice && i > begin ? i - 1 : i];
    }
}
