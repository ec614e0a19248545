// Names of libraries that host code calls: known, so that a source that holds such calls compiles,
// and never to be called, as only kernels run here.
#pragma once

#include "../../hip/hip_runtime_api.h"
#include "../language.hpp"

namespace tokitai {
template <class Result>
Result host_only(const char* name) {
  fprintf(stderr, "%s is called on the host; the cpu device runs kernels alone\n", name);
  abort();
}
}  // namespace tokitai

#define TOKITAI_HOST_FUNCTION(LINKAGE, RESULT, NAME)                                              \
  template <class... Arguments>                                                                   \
  LINKAGE RESULT NAME(Arguments&&...) {                                                           \
    return tokitai::host_only<RESULT>(#NAME);                                                     \
  }
