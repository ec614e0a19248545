// Stands for <curand_kernel.h> on the cpu device. The generators that it does not have are refused by
// name.
#pragma once

#include <hip/hip_runtime.h>
#include "tokitai_host/libraries/random.hpp"

using curandStatePhilox4_32_10 = tokitai::Philox;
using curandStatePhilox4_32_10_t = tokitai::Philox;
using curandStateXORWOW = tokitai::Xorwow<tokitai::CurandSeed>;
using curandStateXORWOW_t = curandStateXORWOW;
using curandState = curandStateXORWOW;
using curandState_t = curandStateXORWOW;
#define curandStateMRG32k3a tokitai_other_generator<0>
#define curandStateMRG32k3a_t tokitai_other_generator<0>
#define curandStateMtgp32 tokitai_other_generator<0>
#define curandStateMtgp32_t tokitai_other_generator<0>
#define curandStateSobol32 tokitai_other_generator<0>
#define curandStateSobol32_t tokitai_other_generator<0>
#define curand_uniform2_double curand_uniform_double2
#define curand_normal2_double curand_normal_double2
