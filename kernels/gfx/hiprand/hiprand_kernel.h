#pragma once

#include <hip/hip_runtime.h>
#pragma clang force_cuda_host_device begin
#include <tokitai_host/libraries/random.hpp>
#pragma clang force_cuda_host_device end
