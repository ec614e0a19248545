// HIP's cooperative groups: CUDA has the same namespace.
#pragma once

#include <cooperative_groups.h>

#include "hip_runtime.h"
