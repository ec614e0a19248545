// hipCUB over CUB, with the operators that CUB has given up.
#pragma once

#include "../hip/hip_runtime.h"

// clang-format off: in this order
#include "../tokitai_cuda/votes_off.h"
#include <cub/cub.cuh>
#include "../tokitai_cuda/votes_on.h"
// clang-format on

namespace hipcub {

using namespace cub;

#define TOKITAI_CUB_OPERATOR(NAME, RESULT, EXPRESSION)                                            \
  struct NAME {                                                                                   \
    template <class T, class U>                                                                   \
    __host__ __device__ constexpr RESULT operator()(const T& a, const U& b) const {               \
      return EXPRESSION;                                                                          \
    }                                                                                             \
  };
TOKITAI_CUB_OPERATOR(Sum, auto, a + b)
TOKITAI_CUB_OPERATOR(Difference, auto, a - b)
TOKITAI_CUB_OPERATOR(Division, auto, a / b)
TOKITAI_CUB_OPERATOR(Max, auto, b > a ? b : a)
TOKITAI_CUB_OPERATOR(Min, auto, b < a ? b : a)
TOKITAI_CUB_OPERATOR(Equality, bool, a == b)
TOKITAI_CUB_OPERATOR(Inequality, bool, a != b)
#undef TOKITAI_CUB_OPERATOR

}  // namespace hipcub
