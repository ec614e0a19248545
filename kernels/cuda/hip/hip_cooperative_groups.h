// HIP's cooperative groups: CUDA has the same namespace.
#pragma once

#include "hip_runtime.h"

// clang-format off: in this order
#include "../tokitai_cuda/votes_off.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include "../tokitai_cuda/votes_on.h"
// clang-format on
