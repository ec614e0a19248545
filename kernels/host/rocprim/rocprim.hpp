// Stands for <rocprim/rocprim.hpp> on the cpu device.
#pragma once

#include <hip/hip_runtime.h>
#include "../tokitai_host/libraries/cub/rocprim.hpp"
