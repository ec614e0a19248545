// What kernels use of thrust: pairs, tuples, functors, `thrust::seq`'s algorithms over plain
// iterators, and the names of containers, which are the host's.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "host_only.hpp"
#include "../math.hpp"

namespace thrust {

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::swap;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;

using std::bit_and;
using std::bit_or;
using std::bit_xor;
using std::divides;
using std::equal_to;
using std::greater;
using std::greater_equal;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_not;
using std::logical_or;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::not_equal_to;
using std::plus;
#define TOKITAI_THRUST_FUNCTOR(NAME, EXPRESSION)                                                  \
  template <class T = void>                                                                       \
  struct NAME {                                                                                   \
    template <class U>                                                                            \
    constexpr U operator()(const U& a, const U& b) const {                                        \
      return EXPRESSION;                                                                          \
    }                                                                                             \
  };
TOKITAI_THRUST_FUNCTOR(maximum, a < b ? b : a)
TOKITAI_THRUST_FUNCTOR(minimum, b < a ? b : a)
#undef TOKITAI_THRUST_FUNCTOR
template <class T = void>
struct identity {
  template <class U>
  constexpr const U& operator()(const U& value) const {
    return value;
  }
};
template <class T>
struct square {
  constexpr T operator()(const T& value) const { return value * value; }
};
template <class Argument, class Result>
struct unary_function {
  using argument_type = Argument;
  using result_type = Result;
};
template <class First, class Second, class Result>
struct binary_function {
  using first_argument_type = First;
  using second_argument_type = Second;
  using result_type = Result;
};

// One thread's own algorithms; those of `thrust::device` are the host's to launch.
struct sequential {};
constexpr sequential seq;
#define TOKITAI_THRUST_ALGORITHM(NAME)                                                            \
  template <class... Arguments>                                                                   \
  inline auto NAME(sequential, Arguments&&... arguments) {                                        \
    return std::NAME(std::forward<Arguments>(arguments)...);                                      \
  }
TOKITAI_THRUST_ALGORITHM(binary_search)
TOKITAI_THRUST_ALGORITHM(copy)
TOKITAI_THRUST_ALGORITHM(copy_if)
TOKITAI_THRUST_ALGORITHM(count)
TOKITAI_THRUST_ALGORITHM(count_if)
TOKITAI_THRUST_ALGORITHM(fill)
TOKITAI_THRUST_ALGORITHM(find)
TOKITAI_THRUST_ALGORITHM(find_if)
TOKITAI_THRUST_ALGORITHM(for_each)
TOKITAI_THRUST_ALGORITHM(inner_product)
TOKITAI_THRUST_ALGORITHM(lower_bound)
TOKITAI_THRUST_ALGORITHM(max_element)
TOKITAI_THRUST_ALGORITHM(min_element)
TOKITAI_THRUST_ALGORITHM(remove_if)
TOKITAI_THRUST_ALGORITHM(sort)
TOKITAI_THRUST_ALGORITHM(stable_sort)
TOKITAI_THRUST_ALGORITHM(swap_ranges)
TOKITAI_THRUST_ALGORITHM(transform)
TOKITAI_THRUST_ALGORITHM(unique)
TOKITAI_THRUST_ALGORITHM(upper_bound)
#undef TOKITAI_THRUST_ALGORITHM
template <class In, class Out>
inline Out inclusive_scan(sequential, In begin, In end, Out out) {
  return std::partial_sum(begin, end, out);
}
template <class In, class T = typename std::iterator_traits<In>::value_type,
          class Operation = std::plus<>>
inline T reduce(sequential, In begin, In end, T first = T(), Operation operation = {}) {
  return std::accumulate(begin, end, first, operation);
}
template <class Out>
inline void sequence(sequential, Out begin, Out end) {
  std::iota(begin, end, 0);
}
template <class Pointer>
inline auto raw_pointer_cast(Pointer pointer) {
  return &*pointer;
}

// Declared, for signatures that stand beside device code.
template <class T, class... More>
class device_vector;
template <class T, class... More>
class host_vector;
// A pointer that a host gives a kernel.
template <class T>
class device_ptr {
 public:
  device_ptr() = default;
  explicit device_ptr(T* address) : address_(address) {}
  T* get() const { return address_; }
  T& operator*() const { return *address_; }
  T& operator[](ptrdiff_t n) const { return address_[n]; }
  device_ptr operator+(ptrdiff_t n) const { return device_ptr(address_ + n); }

 private:
  T* address_;
};

}  // namespace thrust
