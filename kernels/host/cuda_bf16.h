// Stands for <cuda_bf16.h> on the cpu device: HIP's bfloat16 under CUDA's names.
#pragma once

#include <hip/hip_bf16.h>
#include "cuda_fp16.h"

using __nv_bfloat16 = __hip_bfloat16;
using __nv_bfloat162 = __hip_bfloat162;
using __nv_bfloat16_raw = __hip_bfloat16_raw;
using __nv_bfloat162_raw = __hip_bfloat162_raw;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
