// HIP's complex numbers, which are CUDA's vectors.
#pragma once

#include "../../host/hip/hip_complex.h"
