// CUDA's headers and names alone, as a CUDA program's kernel uses them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuComplex.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <curand_kernel.h>
#include <device_launch_parameters.h>
#include <math_constants.h>
#include <vector_types.h>

namespace cg = cooperative_groups;

struct Call {
  cudaStream_t stream;
  float scale;
};

__global__ void sums(const float* x, const __nv_bfloat16* b, const __half* h,
                     const __nv_fp8_e4m3* f, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + __bfloat162float(b[i]) + __half2float(h[i]) + float(f[i]);
}

__global__ void largest(const float* x, float* y, int n) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = i < n ? x[i] : -CUDART_INF_F;
  const float most = cg::reduce(tile, v, cg::greater<float>());
  const cuFloatComplex z = cuCmulf(make_cuFloatComplex(most, 0), make_cuComplex(0, 2));
  if (i < n) y[i] = cuCimagf(z);
}

__global__ void rounded(const float* x, unsigned char* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __nv_cvt_float_to_fp8(x[i], __NV_SATFINITE, __NV_E4M3);
}

__global__ void drawn(float* y, int n, unsigned long long seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i, 0, &state);
  const float u = curand_uniform(&state);
  if (i < n) y[i] = u > 0 && u <= 1 ? 1 : 0;
}
