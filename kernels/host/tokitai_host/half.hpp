// __half and __half2 with the functions of <hip/hip_fp16.h>.
//
// Every operation rounds to binary16 once, to nearest even. Sums, products, quotients and roots of
// two binary16 values may be computed in float and rounded again, because 24 >= 2 * 11 + 2 digits
// make the second rounding harmless (Figueroa, "When is double rounding innocuous?", 1995); the
// fused multiply-add is not among them.
#pragma once

#include "atomics.hpp"
#include "math.hpp"
#include "vector_types.hpp"
#include "warp_operations.hpp"

#if defined(__FLT16_MANT_DIG__) && !defined(TOKITAI_SOFTWARE_HALF)
#define TOKITAI_FLOAT16
#endif

namespace tokitai {

#ifdef TOKITAI_FLOAT16
inline unsigned short half_bits(float value) { return reinterpret<unsigned short>((_Float16)value); }
inline unsigned short half_bits(double value) { return reinterpret<unsigned short>((_Float16)value); }
inline float half_value(unsigned short bits) { return float(reinterpret<_Float16>(bits)); }
#else
// Rounds |value| = significand * 2^exponent as IEEE 754 4.3.1 says; double holds every float exactly.
inline unsigned short half_bits(double value) {
  const unsigned long long bits = reinterpret<unsigned long long>(value);
  const unsigned sign = unsigned(bits >> 48) & 0x8000u;
  const int exponent = int(bits >> 52 & 0x7ff) - 1023;
  unsigned long long significand = bits & 0xfffffffffffffull;
  if (exponent == 1024) return (unsigned short)(sign | (significand ? 0x7e00u : 0x7c00u));
  if (exponent < -25) return (unsigned short)sign;
  significand |= 1ull << 52;
  const int dropped = exponent < -14 ? 42 - 14 - exponent : 42;
  const unsigned long long rest = significand & ((1ull << dropped) - 1), tie = 1ull << (dropped - 1);
  unsigned rounded = unsigned(significand >> dropped);
  if (rest > tie || (rest == tie && (rounded & 1))) rounded++;
  // A carry out of the significand counts the exponent up, up to infinity.
  if (exponent >= -14) rounded += unsigned(exponent + 14) << 10;
  return (unsigned short)(sign | (rounded < 0x7c00u ? rounded : 0x7c00u));
}
inline unsigned short half_bits(float value) { return half_bits(double(value)); }
inline float half_value(unsigned short bits) {
  const unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ffu;
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
};
using half = __half;

struct alignas(4) __half2 {
  __half x, y;
};
using half2 = __half2;

namespace tokitai {
inline __half half_of_bits(unsigned short bits) { return __half(__half_raw{bits}); }
}  // namespace tokitai

// --- conversions ---------------------------------------------------------------------------------
inline float __half2float(__half h) { return float(h); }
inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) { return __half(x); }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline short __half_as_short(__half h) { return short(h.bits); }
inline __half __ushort_as_half(unsigned short x) { return tokitai::half_of_bits(x); }
inline __half __short_as_half(short x) { return tokitai::half_of_bits((unsigned short)x); }
inline int __half2int_rn(__half h) { return __float2int_rn(float(h)); }
inline int __half2int_rz(__half h) { return __float2int_rz(float(h)); }
inline unsigned __half2uint_rn(__half h) { return __float2uint_rn(float(h)); }
inline unsigned __half2uint_rz(__half h) { return __float2uint_rz(float(h)); }
inline short __half2short_rn(__half h) { return short(__float2int_rn(float(h))); }
inline unsigned short __half2ushort_rn(__half h) {
  return (unsigned short)__float2uint_rn(float(h));
}
inline __half __int2half_rn(int x) { return __half(x); }
inline __half __uint2half_rn(unsigned x) { return __half(x); }
inline __half __short2half_rn(short x) { return __half(x); }
inline __half __ushort2half_rn(unsigned short x) { return __half(x); }
inline __half __ll2half_rn(long long x) { return __half(x); }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline __half2 __half2half2(__half h) { return {h, h}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return float(v.x); }
inline float __high2float(__half2 v) { return float(v.y); }
inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }

// --- arithmetic ----------------------------------------------------------------------------------
// An operator, its function for one value and its function for two.
#define TOKITAI_HALF_ARITHMETIC(OP, NAME, NAME2)                                                  \
  inline __half operator OP(__half a, __half b) { return __half(float(a) OP float(b)); }          \
  inline __half& operator OP##=(__half & a, __half b) { return a = a OP b; }                      \
  inline __half2 operator OP(__half2 a, __half2 b) { return {a.x OP b.x, a.y OP b.y}; }           \
  inline __half2& operator OP##=(__half2 & a, __half2 b) { return a = a OP b; }                   \
  inline __half NAME(__half a, __half b) { return a OP b; }                                       \
  inline __half2 NAME2(__half2 a, __half2 b) { return a OP b; }
TOKITAI_HALF_ARITHMETIC(+, __hadd, __hadd2)
TOKITAI_HALF_ARITHMETIC(-, __hsub, __hsub2)
TOKITAI_HALF_ARITHMETIC(*, __hmul, __hmul2)
TOKITAI_HALF_ARITHMETIC(/, __hdiv, __h2div)
#undef TOKITAI_HALF_ARITHMETIC

inline __half operator-(__half a) { return tokitai::half_of_bits(a.bits ^ 0x8000u); }
inline __half operator+(__half a) { return a; }
inline __half2 operator-(__half2 a) { return {-a.x, -a.y}; }
inline __half& operator++(__half& a) { return a = a + __half(1.0f); }
inline __half& operator--(__half& a) { return a = a - __half(1.0f); }
inline __half __hneg(__half a) { return -a; }
inline __half2 __hneg2(__half2 a) { return -a; }
inline __half __habs(__half a) { return tokitai::half_of_bits(a.bits & 0x7fffu); }
inline __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }
inline __half __hfma(__half a, __half b, __half c) {
  return __half(tokitai::fma_to_odd(float(a), float(b), float(c)));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __half __hadd_sat(__half a, __half b) { return __half(__saturatef(float(a + b))); }
inline __half __hsub_sat(__half a, __half b) { return __half(__saturatef(float(a - b))); }
inline __half __hmul_sat(__half a, __half b) { return __half(__saturatef(float(a * b))); }
inline __half __hfma_sat(__half a, __half b, __half c) {
  return __half(__saturatef(float(__hfma(a, b, c))));
}
inline __half __hmax(__half a, __half b) { return __half(fmaxf(a, b)); }
inline __half __hmin(__half a, __half b) { return __half(fminf(a, b)); }
inline __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
inline __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }

// --- comparison ----------------------------------------------------------------------------------
#define TOKITAI_HALF_COMPARISON(OP, NAME)                                                         \
  inline bool operator OP(__half a, __half b) { return float(a) OP float(b); }                    \
  inline bool NAME(__half a, __half b) { return a OP b; }                                         \
  inline __half2 NAME##2(__half2 a, __half2 b) {                                                  \
    return {__half(float(a.x OP b.x)), __half(float(a.y OP b.y))};                                \
  }
TOKITAI_HALF_COMPARISON(==, __heq)
TOKITAI_HALF_COMPARISON(!=, __hne)
TOKITAI_HALF_COMPARISON(<, __hlt)
TOKITAI_HALF_COMPARISON(<=, __hle)
TOKITAI_HALF_COMPARISON(>, __hgt)
TOKITAI_HALF_COMPARISON(>=, __hge)
#undef TOKITAI_HALF_COMPARISON
inline bool __hisnan(__half a) { return (a.bits & 0x7fffu) > 0x7c00u; }
inline int __hisinf(__half a) {
  return (a.bits & 0x7fffu) != 0x7c00u ? 0 : (a.bits & 0x8000u ? -1 : 1);
}

// --- functions -----------------------------------------------------------------------------------
#define TOKITAI_HALF_FUNCTION(NAME, EXPRESSION)                                                   \
  inline __half h##NAME(__half a) {                                                               \
    const float x = a;                                                                            \
    return __half(EXPRESSION);                                                                    \
  }                                                                                               \
  inline __half2 h2##NAME(__half2 a) { return {h##NAME(a.x), h##NAME(a.y)}; }
TOKITAI_HALF_FUNCTION(sqrt, sqrtf(x))
TOKITAI_HALF_FUNCTION(rsqrt, rsqrtf(x))
TOKITAI_HALF_FUNCTION(rcp, 1.0f / x)
TOKITAI_HALF_FUNCTION(exp, expf(x))
TOKITAI_HALF_FUNCTION(exp2, exp2f(x))
TOKITAI_HALF_FUNCTION(exp10, exp10f(x))
TOKITAI_HALF_FUNCTION(log, logf(x))
TOKITAI_HALF_FUNCTION(log2, log2f(x))
TOKITAI_HALF_FUNCTION(log10, log10f(x))
TOKITAI_HALF_FUNCTION(sin, sinf(x))
TOKITAI_HALF_FUNCTION(cos, cosf(x))
TOKITAI_HALF_FUNCTION(tanh, tanhf(x))
TOKITAI_HALF_FUNCTION(trunc, truncf(x))
TOKITAI_HALF_FUNCTION(ceil, ceilf(x))
TOKITAI_HALF_FUNCTION(floor, floorf(x))
TOKITAI_HALF_FUNCTION(rint, rintf(x))
#undef TOKITAI_HALF_FUNCTION

// --- atomics -------------------------------------------------------------------------------------
inline __half atomicAdd(__half* address, __half value) {
  return tokitai::atomic_update<unsigned short>(address, [value](__half old) { return old + value; });
}
inline __half2 atomicAdd(__half2* address, __half2 value) {
  return tokitai::atomic_update<unsigned>(address, [value](__half2 old) { return old + value; });
}
inline __half unsafeAtomicAdd(__half* address, __half value) { return atomicAdd(address, value); }
inline __half2 unsafeAtomicAdd(__half2* address, __half2 value) {
  return atomicAdd(address, value);
}
