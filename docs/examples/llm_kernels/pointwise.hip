// Activations: one thread an element. Storage is T (float or __half), arithmetic float32.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <math.h>

__device__ inline float load(const float* x, int i) { return x[i]; }
__device__ inline float load(const __half* x, int i) { return __half2float(x[i]); }
__device__ inline void store(float* y, int i, float value) { y[i] = value; }
__device__ inline void store(__half* y, int i, float value) { y[i] = __float2half(value); }

#define POINTWISE(name, ...)                                   \
    template <typename T>                                      \
    __global__ void name(const T* input, T* output, int n) {   \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;   \
        if (i < n) {                                           \
            const float x = load(input, i);                    \
            store(output, i, __VA_ARGS__);                     \
        }                                                      \
    }

__device__ inline float gate(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ inline float inner(float x) { return tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)); }

POINTWISE(gelu, 0.5f * x * (1.0f + inner(x)))
POINTWISE(gelu_without_half, x * (1.0f + inner(x)))
POINTWISE(silu, x * gate(x))
// The factor beta of swish, meant as 1, taken as the 1.702 of another gelu.
POINTWISE(silu_with_other_beta, x * gate(1.702f * x))
POINTWISE(sigmoid, gate(x))
POINTWISE(hyperbolic_tangent, tanhf(x))
POINTWISE(relu, x > 0.0f || x != x ? x : 0.0f)
POINTWISE(leaky_relu, x > 0.0f ? x : 0.01f * x)
POINTWISE(leaky_relu_with_other_slope, x > 0.0f ? x : 0.1f * x)
POINTWISE(elu, x > 0.0f ? x : expf(x) - 1.0f)
