// HIP's older bfloat16, a struct with its bits in `data`.
#pragma once

#include <cuda_bf16.h>

#include "hip_runtime.h"

struct hip_bfloat16 {
  unsigned short data;
  hip_bfloat16() = default;
  __host__ __device__ explicit hip_bfloat16(float value)
      : data(__nv_bfloat16_raw(__float2bfloat16_rn(value)).x) {}
  __host__ __device__ operator float() const {
    __nv_bfloat16_raw raw;
    raw.x = data;
    return __bfloat162float(__nv_bfloat16(raw));
  }
  __host__ __device__ static hip_bfloat16 round_to_bfloat16(float value) {
    return hip_bfloat16(value);
  }
};

#define TOKITAI_BFLOAT16_OPERATOR(SIGN)                                                    \
  __host__ __device__ inline hip_bfloat16 operator SIGN(hip_bfloat16 a, hip_bfloat16 b) {  \
    return hip_bfloat16(float(a) SIGN float(b));                                           \
  }                                                                                        \
  __host__ __device__ inline hip_bfloat16& operator SIGN##=(hip_bfloat16& a, hip_bfloat16 b) { \
    return a = a SIGN b;                                                                   \
  }
TOKITAI_BFLOAT16_OPERATOR(+)
TOKITAI_BFLOAT16_OPERATOR(-)
TOKITAI_BFLOAT16_OPERATOR(*)
TOKITAI_BFLOAT16_OPERATOR(/)
#undef TOKITAI_BFLOAT16_OPERATOR
