#pragma once

#include <hip/hip_runtime.h>
#pragma clang force_cuda_host_device begin
#include <tokitai_host/libraries/cub/rocprim.hpp>
#pragma clang force_cuda_host_device end
