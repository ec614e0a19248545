// hipRAND's device API over cuRAND's, whose numbers are others than rocRAND's.
#pragma once

#if !__has_include(<curand_kernel.h>)
#error "hiprand/hiprand_kernel.h needs cuRAND's headers (CUDA's package libcurand-dev)"
#endif
#include <curand_kernel.h>

#include "../hip/hip_runtime.h"

using hiprandState = curandState;
using hiprandState_t = curandState_t;
using hiprandStateXORWOW = curandStateXORWOW;
using hiprandStateXORWOW_t = curandStateXORWOW_t;
using hiprandStatePhilox4_32_10 = curandStatePhilox4_32_10;
using hiprandStatePhilox4_32_10_t = curandStatePhilox4_32_10_t;
using hiprandStateMRG32k3a = curandStateMRG32k3a;
using hiprandStateMRG32k3a_t = curandStateMRG32k3a_t;
#define hiprand_init curand_init
#define hiprand curand
#define hiprand4 curand4
#define hiprand_uniform curand_uniform
#define hiprand_uniform2 curand_uniform2
#define hiprand_uniform4 curand_uniform4
#define hiprand_uniform_double curand_uniform_double
#define hiprand_uniform_double2 curand_uniform2_double
#define hiprand_normal curand_normal
#define hiprand_normal2 curand_normal2
#define hiprand_normal4 curand_normal4
#define hiprand_normal_double curand_normal_double
#define hiprand_normal_double2 curand_normal2_double
#define hiprand_log_normal curand_log_normal
#define hiprand_log_normal_double curand_log_normal_double
#define hiprand_poisson curand_poisson
