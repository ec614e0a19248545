// Stands for <cuda_fp16.h> on the cpu device: HIP's halves, whose names are CUDA's.
#pragma once

#include <hip/hip_fp16.h>
#include "cuda_runtime.h"
