// __half and __half2 with the functions of <hip/hip_fp16.h>.
//
// Every operation rounds to binary16 once, to nearest even. Sums, products, quotients and roots of
// two binary16 values may be computed in float and rounded again, because 24 >= 2 * 11 + 2 digits
// make the second rounding harmless (Figueroa, "When is double rounding innocuous?", 1995); the
// fused multiply-add is not among them.
#pragma once

#include "../atomics.hpp"
#include "../math.hpp"
#include "../vector_types.hpp"
#include "../warp_operations.hpp"

#if defined(__FLT16_MANT_DIG__) && !defined(TOKITAI_SOFTWARE_HALF)
#define TOKITAI_FLOAT16
#endif

namespace tokitai {

#ifdef TOKITAI_FLOAT16
inline unsigned short half_bits(float value) {
  return reinterpret<unsigned short>((_Float16)value);
}
inline unsigned short half_bits(double value) {
  return reinterpret<unsigned short>((_Float16)value);
}
inline float half_value(unsigned short bits) { return float(reinterpret<_Float16>(bits)); }
#else
// Rounds |value| = significand * 2^exponent as IEEE 754 4.3.1 says; double holds every float
// exactly.
inline unsigned short half_bits(double value) {
  const unsigned long long bits = reinterpret<unsigned long long>(value);
  const unsigned sign = unsigned(bits >> 48) & 0x8000u;
  const int exponent = int(bits >> 52 & 0x7ff) - 1023;
  unsigned long long significand = bits & 0xfffffffffffffull;
  if (exponent == 1024) return (unsigned short)(sign | (significand ? 0x7e00u : 0x7c00u));
  if (exponent < -25) return (unsigned short)sign;
  significand |= 1ull << 52;
  const int dropped = exponent < -14 ? 42 - 14 - exponent : 42;
  const unsigned long long rest = significand & ((1ull << dropped) - 1),
                           tie = 1ull << (dropped - 1);
  unsigned rounded = unsigned(significand >> dropped);
  if (rest > tie || (rest == tie && (rounded & 1))) rounded++;
  // A carry out of the significand counts the exponent up, up to infinity.
  if (exponent >= -14) rounded += unsigned(exponent + 14) << 10;
  return (unsigned short)(sign | (rounded < 0x7c00u ? rounded : 0x7c00u));
}
inline unsigned short half_bits(float value) { return half_bits(double(value)); }
inline float half_value(unsigned short bits) {
  const unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31,
                 fraction = bits & 0x3ffu;
  // A conversion makes a signalling NaN quiet.
  const unsigned quiet = fraction ? 0x400000u : 0;
  if (exponent == 31) return reinterpret<float>(sign | 0x7f800000u | quiet | fraction << 13);
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * float(fraction) * 0x1p-24f;
  return reinterpret<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
#endif

// a * b + c for values of few digits, rounded so that a further rounding to 16 bits is right: the
// product is exact in double, and a sum that is not exact gets an odd last digit (round to odd;
// Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
inline double fma_to_odd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  if (!(fabs(sum) <= DBL_MAX)) return sum;
  const double part = sum - product, error = (product - (sum - part)) + (c - part);
  const long long bits = reinterpret<long long>(sum);
  if (error == 0 || (bits & 1)) return sum;
  const bool away = (error > 0) == (sum > 0);
  return reinterpret<double>(bits + (away ? 1 : -1));
}

}  // namespace tokitai

struct __half_raw {
  unsigned short x;
};

struct __half {
  unsigned short bits;
  __half() = default;
  __half(float value) : bits(tokitai::half_bits(value)) {}
  __half(double value) : bits(tokitai::half_bits(value)) {}
  __half(int value) : bits(tokitai::half_bits(double(value))) {}
  __half(unsigned value) : bits(tokitai::half_bits(double(value))) {}
  __half(long value) : bits(tokitai::half_bits(double(value))) {}
  __half(unsigned long value) : bits(tokitai::half_bits(double(value))) {}
  __half(long long value) : bits(tokitai::half_bits(double(value))) {}
  __half(unsigned long long value) : bits(tokitai::half_bits(double(value))) {}
  __half(short value) : bits(tokitai::half_bits(float(value))) {}
  __half(unsigned short value) : bits(tokitai::half_bits(float(value))) {}
  __half(__half_raw raw) : bits(raw.x) {}
#ifdef TOKITAI_FLOAT16
  __half(_Float16 value) : bits(tokitai::reinterpret<unsigned short>(value)) {}
#endif
  operator float() const { return tokitai::half_value(bits); }
  operator __half_raw() const { return {bits}; }
  unsigned short tokitai_bits() const { return bits; }
  static __half tokitai_with_bits(unsigned value) {
    return __half(__half_raw{(unsigned short)value});
  }
};
using half = __half;

struct __half2_raw {
  unsigned short x, y;
};

struct alignas(4) __half2 {
  __half x, y;
  __half2() = default;
#ifdef TOKITAI_WRITTEN_COPIES
  __half2(const __half2& other) : x(other.x), y(other.y) {}
  __half2& operator=(const __half2& other) {
    x = other.x, y = other.y;
    return *this;
  }
#endif
  __half2(__half x_, __half y_) : x(x_), y(y_) {}
  template <class T, tokitai::Where<std::is_arithmetic<T>::value> = 0>
  explicit __half2(T both) : x(both), y(both) {}
  __half2(__half2_raw raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  operator __half2_raw() const { return {x.bits, y.bits}; }
};
using half2 = __half2;

namespace tokitai {
inline __half half_of_bits(unsigned short bits) { return __half(__half_raw{bits}); }
// a * b + c, rounded once; by AMD's own headers bfloat16 goes through a float.
template <class T>
inline T fused(T a, T b, T c) {
#ifdef TOKITAI_DEVICE_GFX
  if constexpr (std::is_same<T, __half>::value)
    return __half(__builtin_fmaf16(_Float16(float(a)), _Float16(float(b)), _Float16(float(c))));
  else
    return T(fmaf(float(a), float(b), float(c)));
#else
  return T(fma_to_odd(float(a), float(b), float(c)));
#endif
}
// A number rounded up (1), down (-1) or towards zero (-2).
template <int direction, class Float>
inline __half half_towards(Float x) {
  const __half nearest(x);
  const Float got = float(nearest);
  if (!(got != x) || x != x) return nearest;
  const bool negative = x < 0, away = negative ? got < x : got > x;
  const bool outwards = direction == -2 ? false : (direction > 0) != negative;
  if (away == outwards) return nearest;
  return half_of_bits((unsigned short)(nearest.bits + (outwards ? 1 : -1)));
}
}  // namespace tokitai

// --- conversions
// ---------------------------------------------------------------------------------
TOKITAI_OURS float __half2float(__half h) { return float(h); }
TOKITAI_OURS __half __float2half(float x) { return __half(x); }
TOKITAI_OURS __half __float2half_rn(float x) { return __half(x); }
TOKITAI_OURS __half __float2half_rz(float x) { return tokitai::half_towards<-2>(x); }
TOKITAI_OURS __half __float2half_ru(float x) { return tokitai::half_towards<1>(x); }
TOKITAI_OURS __half __float2half_rd(float x) { return tokitai::half_towards<-1>(x); }
TOKITAI_OURS __half __double2half(double x) { return __half(x); }
TOKITAI_OURS unsigned short __half_as_ushort(__half h) { return h.bits; }
TOKITAI_OURS short __half_as_short(__half h) { return short(h.bits); }
TOKITAI_OURS __half __ushort_as_half(unsigned short x) { return tokitai::half_of_bits(x); }
TOKITAI_OURS __half __short_as_half(short x) { return tokitai::half_of_bits((unsigned short)x); }
// Whole numbers and halves: both ways, in every direction. What 16 bits of integer cannot hold ends there.
#define TOKITAI_WHOLE_HALF(NAME, T, DIRECTION, ROUNDED, OF_HALF)                                  \
  TOKITAI_OURS T __half2##NAME##_##DIRECTION(__half h) {                                          \
    return tokitai::to_integer<T>(ROUNDED(float(h)));                                             \
  }                                                                                               \
  TOKITAI_OURS __half __##NAME##2half_##DIRECTION(T x) { return OF_HALF(tokitai::odd_double(x)); }
#define TOKITAI_WHOLE_HALVES(NAME, T)                                                             \
  TOKITAI_WHOLE_HALF(NAME, T, rn, rint, __half)                                                  \
  TOKITAI_WHOLE_HALF(NAME, T, rz, trunc, tokitai::half_towards<-2>)                              \
  TOKITAI_WHOLE_HALF(NAME, T, ru, ceil, tokitai::half_towards<1>)                                \
  TOKITAI_WHOLE_HALF(NAME, T, rd, floor, tokitai::half_towards<-1>)
TOKITAI_WHOLE_HALVES(int, int)
TOKITAI_WHOLE_HALVES(uint, unsigned)
TOKITAI_WHOLE_HALVES(short, short)
TOKITAI_WHOLE_HALVES(ushort, unsigned short)
TOKITAI_WHOLE_HALVES(ll, long long)
TOKITAI_WHOLE_HALVES(ull, unsigned long long)
#undef TOKITAI_WHOLE_HALVES
#undef TOKITAI_WHOLE_HALF
TOKITAI_OURS signed char __half2char_rz(__half h) {
  return tokitai::to_integer<signed char>(trunc(float(h)));
}
TOKITAI_OURS unsigned char __half2uchar_rz(__half h) {
  return tokitai::to_integer<unsigned char>(trunc(float(h)));
}
TOKITAI_OURS __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
TOKITAI_OURS __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
TOKITAI_OURS __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
TOKITAI_OURS float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
TOKITAI_OURS __half2 __half2half2(__half h) { return {h, h}; }
TOKITAI_OURS __half2 __halves2half2(__half x, __half y) { return {x, y}; }
TOKITAI_OURS __half2 make_half2(__half x, __half y) { return {x, y}; }
TOKITAI_OURS __half __low2half(__half2 v) { return v.x; }
TOKITAI_OURS __half __high2half(__half2 v) { return v.y; }
TOKITAI_OURS __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
TOKITAI_OURS __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
TOKITAI_OURS __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
TOKITAI_OURS __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }

// --- functions
// -----------------------------------------------------------------------------------
TOKITAI_OURS int __hisinf(__half a) {
  return (a.bits & 0x7fffu) != 0x7c00u ? 0 : (a.bits & 0x8000u ? -1 : 1);
}
#define TOKITAI_T __half
#define TOKITAI_T2 __half2
#include "sixteen_bit.hpp"
