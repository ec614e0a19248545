// HIP's half precision: CUDA has the same types and functions.
#pragma once

#include <cuda_fp16.h>

#include "hip_runtime.h"
