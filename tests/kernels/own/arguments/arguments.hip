#include <hip/hip_runtime.h>

// Structs, functors and vectors by value.
struct Strides {
    long step[2];
    float beta;
};
struct Config {
    int n;
    float alpha;
    const Strides strides;
    const float* x;
    struct {
        short lo, hi;
    } limits[2];
};

template <bool Wrong>
__global__ void with_struct(Config c, const int4 v, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < c.n) {
        int from = c.limits[Wrong ? 0 : 1].lo;
        y[i] = i < from ? 0.0f : c.x[i * c.strides.step[0]] * c.alpha + c.strides.beta * (float)v.z;
    }
}

struct Scale {
    float factor;
    __device__ float operator()(float x) const { return x * factor; }
};
struct Negate {
    __device__ float operator()(float x) const { return -x; }
};

template <class F, class G>
__global__ void mapped(F f, G g, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = g(f(x[i]));
    }
}

// Pointers to pointers.
template <bool Wrong>
__global__ void added(const float* const* xs, int count, float** ys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float sum = 0.0f;
    for (int k = 0; k < count; ++k) {
        sum += xs[k][i];
    }
    ys[0][i] = sum;
    ys[1][i] = Wrong ? xs[0][i] : xs[1][i];
}

struct Batch {
    const float* const* rows;
    int count;
};

template <bool Wrong>
__global__ void batched(Batch batch, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y;
    if (i < n && row < batch.count) {
        y[row * n + i] = 2.0f * batch.rows[Wrong ? (row ? row - 1 : 0) : row][i];
    }
}

__global__ void forgets(const float** xs, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = xs[0][i] + xs[1][i] + xs[2][i];
    }
    if (i == 0) {
        xs[2] = xs[0];
    }
}

// Structs in device memory, by pointers.
struct Scales {
    const float* factors;
    float bias;
};
struct Groups {
    int count, step;
    Scales scales;
    float* sums[2];
};

enum { NoFault, WrongFactor, WritesField, WritesBehind };

template <int Fault>
__global__ void grouped(const float* x, Groups* groups) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < groups->count) {
        float term = x[i] * groups->scales.factors[Fault == WrongFactor ? 0 : i];
        groups->sums[0][i] = groups->step == 0 ? term : groups->sums[0][i] + term;
        (*groups).sums[1][i] = x[i] + (groups[0].scales.bias + groups->step);
    }
    if (Fault == WritesField && i == 0) {
        groups->scales.bias = 0.0f;
    }
    if (Fault == WritesBehind && i == 0) {
        groups[1].step = 0;
    }
}

__global__ void looked_at(const Groups* const __restrict__ groups, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < groups->count) {
        y[i] = groups->sums[1][i];
    }
}

template <bool Wrong>
__global__ void added_up(const float* x, const Scales* scales, int count, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (int k = 0; k < count; ++k) {
            sum += scales[k].factors[i] * x[i] + scales[Wrong ? 0 : k].bias;
        }
        y[i] = sum;
    }
}

// Steps that the host makes.
__global__ void exchanged(volatile float* x, unsigned distance, unsigned run, int n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned other = i ^ distance;
    if (other > i && other < n && ((x[i] > x[other]) == ((i & run) == 0))) {
        float kept = x[i];
        x[i] = x[other];
        x[other] = kept;
    }
}

template <bool Wrong>
__global__ void defaulted(const float* x, float* y, int n, float factor = Wrong ? 3.0f : 2.0f, int first = 0) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= first && i < n) {
        y[i] = factor * x[i];
    }
}

constexpr float kFactor = 2.0f;

__global__ void scaled(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = kFactor * x[i];
    }
}
__global__ void scaled(const double* x, double* y, int n) {  // the one that such arrays fit
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = kFactor * x[i];
    }
}
__global__ void scaled(const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = -kFactor * x[i];
    }
}

__global__ void spread(const volatile float* from, float* to, float weight, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        to[i] = from[i] + weight * from[(i + 1) % n];
    }
}
