// float4, int2 and their like: layout, alignment, constructors and operators as HIP has them.
//
// Every operator is a template, so that one that a source defines for itself is taken in its
// place.
#pragma once

#include <type_traits>
#include <utility>

#include "language.hpp"

using uchar = unsigned char;
using longlong = long long;
using ulonglong = unsigned long long;

namespace tokitai {

// Two and four components align as the whole, one and three as a component.
template <class T, unsigned n>
struct VectorMembers;
template <class T>
struct VectorMembers<T, 1> {
  union {
    struct {
      T x;
    };
    T data[1];
  };
  VectorMembers() = default;
  constexpr VectorMembers(T x_) : x(x_) {}
};
template <class T>
struct alignas(2 * sizeof(T)) VectorMembers<T, 2> {
  union {
    struct {
      T x, y;
    };
    T data[2];
  };
  VectorMembers() = default;
  constexpr VectorMembers(T x_, T y_) : x(x_), y(y_) {}
};
template <class T>
struct VectorMembers<T, 3> {
  union {
    struct {
      T x, y, z;
    };
    T data[3];
  };
  VectorMembers() = default;
  constexpr VectorMembers(T x_, T y_, T z_) : x(x_), y(y_), z(z_) {}
};
template <class T>
struct alignas(4 * sizeof(T)) VectorMembers<T, 4> {
  union {
    struct {
      T x, y, z, w;
    };
    T data[4];
  };
  VectorMembers() = default;
  constexpr VectorMembers(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {}
};

// The C++ library asks functions of the host, which the initial value of a device's variable cannot.
template <class From, class To>
constexpr bool converts() {
#ifdef __clang__
  return __is_convertible_to(From, To);
#else
  return std::is_convertible<From, To>::value;
#endif
}

template <bool condition>
using Where = typename std::enable_if<condition, int>::type;

}  // namespace tokitai

template <class T, unsigned n>
struct HIP_vector_type : tokitai::VectorMembers<T, n> {
  using value_type = T;
  HIP_vector_type() = default;
#ifdef TOKITAI_WRITTEN_COPIES
  // Clang looks at the address behind a reference, and at none of a copy that it makes by itself.
  constexpr HIP_vector_type(const HIP_vector_type& other) : tokitai::VectorMembers<T, n>(other) {}
  constexpr HIP_vector_type& operator=(const HIP_vector_type& other) {
    tokitai::VectorMembers<T, n>::operator=(other);
    return *this;
  }
#endif
  // Of one number: all components are that number.
  template <class U, tokitai::Where<tokitai::converts<U, T>()> = 0>
  explicit constexpr HIP_vector_type(U value)
      : HIP_vector_type(T(value), std::make_integer_sequence<unsigned, n>()) {}
  template <class... Us, tokitai::Where<(n > 1 && sizeof...(Us) == n &&
                                         (tokitai::converts<Us, T>() && ...))> = 0>
  constexpr HIP_vector_type(Us... values) : tokitai::VectorMembers<T, n>(T(values)...) {}

 private:
  template <unsigned... i>
  constexpr HIP_vector_type(T value, std::integer_sequence<unsigned, i...>)
      : tokitai::VectorMembers<T, n>((void(i), value)...) {}
};

// OP between vectors, and with a number on either side, which is converted to a component first.
#define TOKITAI_VECTOR_OPERATOR(OP)                                                               \
  template <class T, unsigned n>                                                                  \
  inline HIP_vector_type<T, n> operator OP(HIP_vector_type<T, n> a, HIP_vector_type<T, n> b) {    \
    for (unsigned i = 0; i < n; i++) a.data[i] = T(a.data[i] OP b.data[i]);                       \
    return a;                                                                                     \
  }                                                                                               \
  template <class T, unsigned n, class U, tokitai::Where<tokitai::converts<U, T>()> = 0>   \
  inline HIP_vector_type<T, n> operator OP(HIP_vector_type<T, n> a, U b) {                        \
    return a OP HIP_vector_type<T, n>(b);                                                         \
  }                                                                                               \
  template <class T, unsigned n, class U, tokitai::Where<tokitai::converts<U, T>()> = 0>   \
  inline HIP_vector_type<T, n> operator OP(U a, HIP_vector_type<T, n> b) {                        \
    return HIP_vector_type<T, n>(a) OP b;                                                         \
  }                                                                                               \
  template <class T, unsigned n, class U>                                                         \
  inline auto operator OP## = (HIP_vector_type<T, n> & a, U b)->decltype(a = a OP b) {            \
    return a = a OP b;                                                                            \
  }
TOKITAI_VECTOR_OPERATOR(+)
TOKITAI_VECTOR_OPERATOR(-)
TOKITAI_VECTOR_OPERATOR(*)
TOKITAI_VECTOR_OPERATOR(/)
TOKITAI_VECTOR_OPERATOR(%)
TOKITAI_VECTOR_OPERATOR(&)
TOKITAI_VECTOR_OPERATOR(|)
TOKITAI_VECTOR_OPERATOR(^)
TOKITAI_VECTOR_OPERATOR(<<)
TOKITAI_VECTOR_OPERATOR(>>)
#undef TOKITAI_VECTOR_OPERATOR

template <class T, unsigned n>
inline HIP_vector_type<T, n> operator-(HIP_vector_type<T, n> a) {
  for (T& value : a.data) value = T(-value);
  return a;
}
template <class T, unsigned n>
inline HIP_vector_type<T, n> operator~(HIP_vector_type<T, n> a) {
  for (T& value : a.data) value = T(~value);
  return a;
}
#define TOKITAI_VECTOR_STEP(OP)                                                                   \
  template <class T, unsigned n>                                                                  \
  inline HIP_vector_type<T, n>& operator OP##OP(HIP_vector_type<T, n>& a) {                       \
    return a = a OP T(1);                                                                         \
  }                                                                                               \
  template <class T, unsigned n>                                                                  \
  inline HIP_vector_type<T, n> operator OP##OP(HIP_vector_type<T, n>& a, int) {                   \
    const HIP_vector_type<T, n> old = a;                                                          \
    a = a OP T(1);                                                                                \
    return old;                                                                                   \
  }
TOKITAI_VECTOR_STEP(+)
TOKITAI_VECTOR_STEP(-)
#undef TOKITAI_VECTOR_STEP

template <class T, unsigned n>
inline bool operator==(HIP_vector_type<T, n> a, HIP_vector_type<T, n> b) {
  for (unsigned i = 0; i < n; i++)
    if (a.data[i] != b.data[i]) return false;
  return true;
}
template <class T, unsigned n>
inline bool operator!=(HIP_vector_type<T, n> a, HIP_vector_type<T, n> b) {
  return !(a == b);
}

#define TOKITAI_VECTORS(T, NAME)                                                                  \
  using NAME##1 = HIP_vector_type<T, 1>;                                                          \
  using NAME##2 = HIP_vector_type<T, 2>;                                                          \
  using NAME##3 = HIP_vector_type<T, 3>;                                                          \
  using NAME##4 = HIP_vector_type<T, 4>;                                                          \
  TOKITAI_OURS constexpr NAME##1 make_##NAME##1(T x) { return NAME##1(x); }                       \
  TOKITAI_OURS constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                      \
  TOKITAI_OURS constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }              \
  TOKITAI_OURS constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
TOKITAI_VECTORS(signed char, char)
TOKITAI_VECTORS(unsigned char, uchar)
TOKITAI_VECTORS(short, short)
TOKITAI_VECTORS(unsigned short, ushort)
TOKITAI_VECTORS(int, int)
TOKITAI_VECTORS(unsigned, uint)
TOKITAI_VECTORS(long, long)
TOKITAI_VECTORS(unsigned long, ulong)
TOKITAI_VECTORS(long long, longlong)
TOKITAI_VECTORS(unsigned long long, ulonglong)
TOKITAI_VECTORS(float, float)
TOKITAI_VECTORS(double, double)
#undef TOKITAI_VECTORS
