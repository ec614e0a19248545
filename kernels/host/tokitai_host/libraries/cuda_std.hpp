// cuda::std is the C++ library's own: what a kernel takes of it means the same in both.
#pragma once

#include <array>
#include <atomic>
#include <cfloat>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <ratio>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <hip/hip_runtime.h>

namespace cuda {
namespace std {
using namespace ::std;
}

// Those of <cuda/functional>.
template <class T = void>
struct maximum {
  constexpr T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <>
struct maximum<void> {
  template <class T, class U>
  constexpr ::std::common_type_t<T, U> operator()(const T& a, const U& b) const {
    return a < b ? b : a;
  }
};
template <class T = void>
struct minimum {
  constexpr T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct minimum<void> {
  template <class T, class U>
  constexpr ::std::common_type_t<T, U> operator()(const T& a, const U& b) const {
    return b < a ? b : a;
  }
};
// The promise of a type is of no use here.
template <class, class F>
constexpr F proclaim_return_type(F f) {
  return f;
}
}  // namespace cuda
