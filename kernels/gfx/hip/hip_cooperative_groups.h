#pragma once

#include <hip/hip_runtime.h>
#pragma clang force_cuda_host_device begin
#include <tokitai_host/cooperative_groups.hpp>
#pragma clang force_cuda_host_device end
