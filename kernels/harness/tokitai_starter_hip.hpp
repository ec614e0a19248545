// How a GPU's runtime starts a kernel.
#pragma once

#include <hip/hip_runtime.h>

#include "tokitai_arguments.hpp"

namespace tokitai {

inline const char* starting_call = "launch";  // as the failure of a start names it

struct DeviceKernel {
  hipError_t (*start)(const Word* arguments, dim3 grid, dim3 block, size_t shared_bytes);
  hipError_t (*allow_shared)(size_t bytes);
};

template <class Maker, class P>
inline P made(const Word* words) {
  if constexpr (std::is_same_v<Maker, Plain>)
    return argument_from<P>(*words);
  else
    return Maker::template tokitai_make<P>(words);
}

// `Call` launches the kernel by its name, which knows the default arguments that the spec leaves to it.
template <auto function, class Call, class... Makers>
struct Starter {
  using Traits = KernelTraits<function>;
  template <size_t i>
  using At = typename Traits::template At<i>;

  template <size_t... i>
  static void launch(const Word* words, dim3 grid, dim3 block, size_t shared_bytes,
                     std::index_sequence<i...>) {
    (void)words;
    if constexpr (Traits::count == sizeof...(Makers))
      hipLaunchKernelGGL(function, grid, block, shared_bytes, nullptr,
                         made<Makers, At<i>>(words + first_word<Makers...>(i))...);
    else
      Call::tokitai_launch(grid, block, shared_bytes,
                           made<Makers, At<i>>(words + first_word<Makers...>(i))...);
  }
  static hipError_t start(const Word* words, dim3 grid, dim3 block, size_t shared_bytes) {
    launch(words, grid, block, shared_bytes, std::index_sequence_for<Makers...>());
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
