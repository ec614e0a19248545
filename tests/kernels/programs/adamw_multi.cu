// Optimizer steps for several types, made by a macro.
#include <cstdio>
#include <hip/hip_runtime.h>

struct Hyper {
  float lr, beta1, beta2, eps, decay;
  Hyper() : lr(1e-3f), beta1(0.9f), beta2(0.999f), eps(1e-8f), decay(0.01f) {}
  void print() const { std::printf("lr %g\n", lr); }
};

#define ADAMW(NAME, T)                                                                             \
  extern "C" __global__ void NAME(T* p, const T* g, T* m, T* v, float lr, float decay, int step, int n) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                           \
    if (i >= n) return;                                                                            \
    m[i] = T(0.9) * m[i] + T(0.1) * g[i];                                                          \
    v[i] = T(0.999) * v[i] + T(0.001) * g[i] * g[i];                                               \
    const T mh = m[i] / (1 - pow(T(0.9), step)), vh = v[i] / (1 - pow(T(0.999), step));            \
    p[i] -= lr * (mh / (sqrt(vh) + T(1e-8)) + decay * p[i]);                                       \
  }

ADAMW(adamw_float, float)
ADAMW(adamw_double, double)

static void step_all(float* p, float* g, float* m, float* v, int n, hipStream_t stream) {
  Hyper h;
  h.print();
  for (int t = 1; t <= 10; ++t)
    hipLaunchKernelGGL(adamw_float, dim3((n + 255) / 256), dim3(256), 0, stream, p, g, m, v, h.lr, h.decay, t, n);
}
