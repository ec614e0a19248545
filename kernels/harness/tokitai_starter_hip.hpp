// How a GPU's runtime starts a kernel.
#pragma once

#include <hip/hip_runtime.h>

#include "tokitai_arguments.hpp"

namespace tokitai {

struct DeviceKernel {
  hipError_t (*start)(const Word* arguments, dim3 grid, dim3 block, size_t shared_bytes);
  hipError_t (*allow_shared)(size_t bytes);
};

template <auto function>
struct Starter;
template <class... P, void (*function)(P...)>
struct Starter<function> {
  template <size_t... i>
  static void launch(const Word* words, dim3 grid, dim3 block, size_t shared_bytes,
                     std::index_sequence<i...>) {
    (void)words;
    hipLaunchKernelGGL(function, grid, block, shared_bytes, nullptr, argument_from<P>(words[i])...);
  }
  static hipError_t start(const Word* words, dim3 grid, dim3 block, size_t shared_bytes) {
    launch(words, grid, block, shared_bytes, std::index_sequence_for<P...>());
    return hipGetLastError();
  }
  // More dynamic shared memory than every kernel may have is to be asked for.
  static hipError_t allow_shared(size_t bytes) {
    return hipFuncSetAttribute(reinterpret_cast<const void*>(function),
                               hipFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
  }
  static constexpr DeviceKernel kernel = {start, allow_shared};
};

}  // namespace tokitai
