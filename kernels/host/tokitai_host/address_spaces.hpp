// CUDA's conversions between addresses of all memory and of one part of it. An address in shared memory
// is the distance from where a block's copy begins: it fits 32 bits, as on a GPU.
#pragma once

#include "shared_memory.hpp"

namespace tokitai {
// Whether an address lies in an array of shared memory.
inline bool in_shared(const void* address) {
  const SharedLayout& layout = shared_layout;
  const auto* at = static_cast<const unsigned char*>(address);
  for (size_t i = 0; i < layout.count; i++) {
    const unsigned char* begin = own_shared() + layout.arrays[i].offset;
    if (at >= begin && at < begin + layout.arrays[i].bytes) return true;
  }
  return false;
}
}  // namespace tokitai

TOKITAI_OURS size_t __cvta_generic_to_shared(const void* address) {
  return size_t(static_cast<const unsigned char*>(address) - tokitai::own_shared());
}
TOKITAI_OURS void* __cvta_shared_to_generic(size_t address) {
  return tokitai::own_shared() + address;
}
#define TOKITAI_SAME_ADDRESS(SPACE)                                                               \
  TOKITAI_OURS size_t __cvta_generic_to_##SPACE(const void* address) { return size_t(address); }  \
  TOKITAI_OURS void* __cvta_##SPACE##_to_generic(size_t address) {                                \
    return reinterpret_cast<void*>(address);                                                      \
  }
TOKITAI_SAME_ADDRESS(global)
TOKITAI_SAME_ADDRESS(constant)
TOKITAI_SAME_ADDRESS(local)
TOKITAI_SAME_ADDRESS(grid_constant)
#undef TOKITAI_SAME_ADDRESS
TOKITAI_OURS unsigned __isShared(const void* address) { return tokitai::in_shared(address); }
