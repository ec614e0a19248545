// Stands for <curand_kernel.h> on the cpu device: Philox4x32-10, whose numbers are those of rocRAND.
// cuRAND's XORWOW starts from a seed in another way, and is refused by name with the others.
#pragma once

#include <hip/hip_runtime.h>
#include "tokitai_host/libraries/random.hpp"

using curandStatePhilox4_32_10 = tokitai::Philox;
using curandStatePhilox4_32_10_t = tokitai::Philox;
#define curandState tokitai_other_generator<0>
#define curandState_t tokitai_other_generator<0>
#define curandStateXORWOW tokitai_other_generator<0>
#define curandStateXORWOW_t tokitai_other_generator<0>
#define curandStateMRG32k3a tokitai_other_generator<0>
#define curandStateMRG32k3a_t tokitai_other_generator<0>
#define curandStateMtgp32 tokitai_other_generator<0>
#define curandStateMtgp32_t tokitai_other_generator<0>
#define curandStateSobol32 tokitai_other_generator<0>
#define curandStateSobol32_t tokitai_other_generator<0>
