// Conversions and arithmetic with a direction of rounding (_rd down, _ru up, _rz towards zero):
// from the nearest number and the sign of what it lacks, which is exact.
#pragma once

#include <cmath>

#include "../math.hpp"

namespace tokitai {

enum class Towards { nearest, down, up, zero };

// `nearest` as it would be rounded, where the exact value is `lacks` (its sign counts) more.
template <Towards towards, class T>
inline T directed(T nearest, double lacks) {
  constexpr T infinity = T(__builtin_inf());
  if (towards == Towards::nearest || !(lacks != 0) || nearest != nearest) return nearest;
  const bool below = lacks < 0;  // the exact value is below the nearest
  const bool positive = nearest > 0 || (nearest == 0 && lacks > 0);
  if (towards == Towards::down || (towards == Towards::zero && positive))
    return below ? std::nextafter(nearest, -infinity) : nearest;
  return below ? nearest : std::nextafter(nearest, infinity);
}

template <Towards towards, class Float, class Integer>
inline Float rounded(Integer x) {
  const Float nearest = Float(x);
  const __int128 lacks = __int128(x) - __int128(nearest);
  return directed<towards>(nearest, lacks < 0 ? -1.0 : lacks > 0 ? 1.0 : 0.0);
}
template <Towards towards>
inline float rounded_to_float(double x) {
  const float nearest = float(x);
  if (nearest - nearest != 0) {  // beyond the largest float, or what was no number
    if (x - x != 0) return nearest;
    return directed<towards>(nearest, x > 0 ? -1.0 : 1.0);
  }
  return directed<towards>(nearest, x - double(nearest));
}

// What nearest sums, products, quotients and roots lack (Knuth's two-sum; fused multiply-add).
template <class T>
inline T sum_lacks(T a, T b, T sum) {
  const T part = sum - a;
  return (a - (sum - part)) + (b - part);
}
template <class T>
inline T quotient_lacks(T a, T b, T quotient) {
  const T rest = std::fma(-quotient, b, a);
  return b < 0 ? -rest : rest;
}

#define TOKITAI_ROUNDED(SUFFIX, TOWARDS)                                                          \
  template <class T>                                                                              \
  inline T add_##SUFFIX(T a, T b) {                                                               \
    return directed<TOWARDS>(a + b, double(sum_lacks(a, b, a + b)));                              \
  }                                                                                               \
  template <class T>                                                                              \
  inline T mul_##SUFFIX(T a, T b) {                                                               \
    return directed<TOWARDS>(a * b, double(std::fma(a, b, -(a * b))));                            \
  }                                                                                               \
  template <class T>                                                                              \
  inline T div_##SUFFIX(T a, T b) {                                                               \
    return directed<TOWARDS>(a / b, double(quotient_lacks(a, b, a / b)));                         \
  }                                                                                               \
  template <class T>                                                                              \
  inline T sqrt_##SUFFIX(T a) {                                                                   \
    const T root = std::sqrt(a);                                                                  \
    return directed<TOWARDS>(root, double(std::fma(-root, root, a)));                             \
  }
TOKITAI_ROUNDED(rd, Towards::down)
TOKITAI_ROUNDED(ru, Towards::up)
TOKITAI_ROUNDED(rz, Towards::zero)
#undef TOKITAI_ROUNDED

}  // namespace tokitai

#define TOKITAI_FROM_INTEGER(SUFFIX, TOWARDS)                                                     \
  TOKITAI_OURS float __int2float_##SUFFIX(int x) { return tokitai::rounded<TOWARDS, float>(x); }  \
  TOKITAI_OURS float __uint2float_##SUFFIX(unsigned x) {                                          \
    return tokitai::rounded<TOWARDS, float>(x);                                                   \
  }                                                                                               \
  TOKITAI_OURS float __ll2float_##SUFFIX(long long x) {                                           \
    return tokitai::rounded<TOWARDS, float>(x);                                                   \
  }                                                                                               \
  TOKITAI_OURS float __ull2float_##SUFFIX(unsigned long long x) {                                 \
    return tokitai::rounded<TOWARDS, float>(x);                                                   \
  }                                                                                               \
  TOKITAI_OURS double __ll2double_##SUFFIX(long long x) {                                         \
    return tokitai::rounded<TOWARDS, double>(x);                                                  \
  }                                                                                               \
  TOKITAI_OURS double __ull2double_##SUFFIX(unsigned long long x) {                               \
    return tokitai::rounded<TOWARDS, double>(x);                                                  \
  }                                                                                               \
  TOKITAI_OURS float __double2float_##SUFFIX(double x) {                                          \
    return tokitai::rounded_to_float<TOWARDS>(x);                                                 \
  }
TOKITAI_FROM_INTEGER(rd, tokitai::Towards::down)
TOKITAI_FROM_INTEGER(ru, tokitai::Towards::up)
TOKITAI_FROM_INTEGER(rz, tokitai::Towards::zero)
#undef TOKITAI_FROM_INTEGER

#define TOKITAI_DIRECTED(LETTER, T, SUFFIX)                                                       \
  TOKITAI_OURS T __##LETTER##add_##SUFFIX(T a, T b) { return tokitai::add_##SUFFIX(a, b); }       \
  TOKITAI_OURS T __##LETTER##sub_##SUFFIX(T a, T b) { return tokitai::add_##SUFFIX(a, -b); }      \
  TOKITAI_OURS T __##LETTER##mul_##SUFFIX(T a, T b) { return tokitai::mul_##SUFFIX(a, b); }       \
  TOKITAI_OURS T __##LETTER##div_##SUFFIX(T a, T b) { return tokitai::div_##SUFFIX(a, b); }       \
  TOKITAI_OURS T __##LETTER##rcp_##SUFFIX(T a) { return tokitai::div_##SUFFIX(T(1), a); }         \
  TOKITAI_OURS T __##LETTER##sqrt_##SUFFIX(T a) { return tokitai::sqrt_##SUFFIX(a); }
#define TOKITAI_DIRECTED_BOTH(SUFFIX)                                                             \
  TOKITAI_DIRECTED(f, float, SUFFIX)                                                              \
  TOKITAI_DIRECTED(d, double, SUFFIX)
TOKITAI_DIRECTED_BOTH(rd)
TOKITAI_DIRECTED_BOTH(ru)
TOKITAI_DIRECTED_BOTH(rz)
#undef TOKITAI_DIRECTED_BOTH
#undef TOKITAI_DIRECTED
