// Stands for <hip/hip_runtime.h> in device code for an AMD GPU: the compiler's builtins below, and what
// is no matter of a device out of the cpu device's headers, where each function becomes one for both sides.
#pragma once

#include <tokitai_gfx/language.hpp>
#include <tokitai_gfx/warp_operations.hpp>
#pragma clang force_cuda_host_device begin
#include <tokitai_host/atomics.hpp>
#include <tokitai_host/math.hpp>
#include <tokitai_host/numbers/rounded.hpp>
#include <tokitai_host/vector_types.hpp>
#pragma clang force_cuda_host_device end
#include <hip/hip_runtime_api.h>
