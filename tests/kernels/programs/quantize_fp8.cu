// Rows to 8 bits with a scale each; half input, both branches of a macro.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <iomanip>
#include <sstream>

#ifdef QUANT_SYMMETRIC
#define LOWEST -127
#else
#define LOWEST -128
#endif
#define HOST_DEVICE __host__ __device__ __forceinline__
#define KERNEL __global__ void

HOST_DEVICE float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

KERNEL quantize_rows(const __half* __restrict__ x, int8_t* __restrict__ q, float* __restrict__ scale, int cols) {
  __shared__ unsigned most;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  float mine = 0.f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) mine = fmaxf(mine, fabsf(__half2float(x[blockIdx.x * cols + c])));
  atomicMax(&most, __float_as_uint(mine));
  __syncthreads();
  const float s = __uint_as_float(most) / 127.f;
  if (threadIdx.x == 0) scale[blockIdx.x] = s;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    q[blockIdx.x * cols + c] = int8_t(rintf(clamp(s > 0 ? __half2float(x[blockIdx.x * cols + c]) / s : 0, LOWEST, 127)));
}

std::string shown(const float* scales, int rows) {
  std::ostringstream out;
  for (int r = 0; r < rows; r++) out << std::setprecision(3) << scales[r] << (r + 1 < rows ? ", " : "");
  return out.str();
}
void run(const __half* x, int8_t* q, float* s, int rows, int cols) { quantize_rows<<<rows, 256>>>(x, q, s, cols); }
