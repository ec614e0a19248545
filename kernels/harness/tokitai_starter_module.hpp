// How a GPU's runtime starts a kernel out of a code object that others built: by HIP's module API, or the
// CUDA driver's under its names, with the explicit arguments as one block of bytes. HIP adds hidden ones.
#pragma once

#include <string.h>

#include "tokitai_starter_hip.hpp"

#ifdef __HIP_PLATFORM_NVIDIA__
#include "hip/tokitai_hip_module.h"
#endif

namespace tokitai {

// Where a word of a launch lies among the arguments.
struct Slot {
  unsigned offset, bytes;
};

struct ModuleKernel {
  const char* symbol;
  const Slot* slots;
  unsigned slot_count;
  size_t argument_bytes;
};

// The code object, loaded once for the GPU that was chosen.
template <const auto& image>
inline hipError_t load_module(hipModule_t& module) {
  static hipModule_t loaded;
  static const hipError_t error = hipModuleLoadData(&loaded, image);
  module = loaded;
  return error;
}

template <const auto& image, const ModuleKernel& kernel_of_module>
struct ModuleStarter {
  static hipError_t find(hipFunction_t& function) {
    static hipFunction_t found;
    static const hipError_t error = [] {
      hipModule_t module;
      starting_call = "hipModuleLoadData";
      if (const hipError_t failed = load_module<image>(module)) return failed;
      starting_call = "hipModuleGetFunction";
      return hipModuleGetFunction(&found, module, kernel_of_module.symbol);
    }();
    function = found;
    return error;
  }
  static hipError_t start(const Word* words, dim3 grid, dim3 block, size_t shared_bytes) {
    constexpr const ModuleKernel& kernel = kernel_of_module;
    alignas(64) unsigned char arguments[kernel.argument_bytes + 1] = {};
    for (unsigned i = 0; i < kernel.slot_count; i++)
      memcpy(arguments + kernel.slots[i].offset, &words[i], kernel.slots[i].bytes);
    hipFunction_t function;
    if (const hipError_t error = find(function)) return error;
    starting_call = "hipModuleLaunchKernel";
    size_t bytes = kernel.argument_bytes;
    void* passed[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                      HIP_LAUNCH_PARAM_END};
    return hipModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 unsigned(shared_bytes), nullptr, nullptr, passed);
  }
  static hipError_t allow_shared(size_t bytes) {
#ifdef __HIP_PLATFORM_NVIDIA__
    hipFunction_t function;
    if (const hipError_t error = find(function)) return error;
    return tokitai_cuda::allow_shared(function, bytes);
#else
    (void)bytes;
    return hipSuccess;  // the launch itself asks for it
#endif
  }
  static constexpr DeviceKernel kernel = {start, allow_shared};
};

}  // namespace tokitai
