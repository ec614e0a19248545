// Stands for <cublas_v2.h> on the cpu device: of it, kernels have the types that it takes in.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuComplex.h>
