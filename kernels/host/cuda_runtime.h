// Stands for <cuda_runtime.h> on the cpu device: HIP's under CUDA's names, types of host code included.
#pragma once

#include <hip/hip_runtime.h>

using cudaError_t = hipError_t;
using cudaStream_t = hipStream_t;
using cudaEvent_t = hipEvent_t;
using cudaPitchedPtr = hipPitchedPtr;
using cudaExtent = hipExtent;
using cudaPos = hipPos;
