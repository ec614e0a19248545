// Loads and stores with a word to the caches, which have no effect on what they give. Functions of these
// names in a source are more special, and so are taken in place of ours.
#pragma once

#include <type_traits>

#define TOKITAI_LOADED std::remove_cv_t<std::remove_reference_t<decltype(*address)>>
#define TOKITAI_LOAD(name) \
  template <int = 0, class P> \
  inline auto name(P address)->TOKITAI_LOADED { \
    return *address; \
  }
#define TOKITAI_STORE(name) \
  template <int = 0, class T, class V> \
  inline void name(T* address, V value) { \
    *address = value; \
  }
TOKITAI_LOAD(__ldg)
TOKITAI_LOAD(__ldca)
TOKITAI_LOAD(__ldcg)
TOKITAI_LOAD(__ldcs)
TOKITAI_LOAD(__ldcv)
TOKITAI_LOAD(__ldlu)
TOKITAI_STORE(__stcg)
TOKITAI_STORE(__stcs)
TOKITAI_STORE(__stwb)
TOKITAI_STORE(__stwt)
#undef TOKITAI_LOAD
#undef TOKITAI_STORE
#undef TOKITAI_LOADED
