// The two bfloat16 types of HIP: hip_bfloat16 and, with its functions, __hip_bfloat16.
//
// bfloat16 is the upper half of a float; conversion rounds to nearest even and keeps NaN quiet.
#pragma once

#include "half.hpp"

namespace tokitai {

inline unsigned short bfloat16_bits(float value) {
  const unsigned bits = __float_as_uint(value);
  if (value != value) return (unsigned short)(bits >> 16 | 0x40u);
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// Rounds a double once: to a float with an odd last digit where it is not exact, then to bfloat16.
inline unsigned short bfloat16_bits(double value) {
  const float nearest = float(value);
  if (double(nearest) == value || nearest != nearest) return bfloat16_bits(nearest);
  const unsigned bits = __float_as_uint(nearest);
  const bool too_large = fabs(double(nearest)) > fabs(value);
  return bfloat16_bits(__uint_as_float((too_large ? bits - 1 : bits) | 1u));
}

inline float bfloat16_value(unsigned short bits) { return __uint_as_float(unsigned(bits) << 16); }

}  // namespace tokitai

struct hip_bfloat16 {
  unsigned short data;
  hip_bfloat16() = default;
  explicit hip_bfloat16(float value) : data(tokitai::bfloat16_bits(value)) {}
  operator float() const { return tokitai::bfloat16_value(data); }
  static hip_bfloat16 round_to_bfloat16(float value) { return hip_bfloat16(value); }
};

struct __hip_bfloat16_raw {
  unsigned short x;
};

struct __hip_bfloat16 {
  unsigned short data;
  __hip_bfloat16() = default;
  __hip_bfloat16(float value) : data(tokitai::bfloat16_bits(value)) {}
  __hip_bfloat16(double value) : data(tokitai::bfloat16_bits(value)) {}
  __hip_bfloat16(int value) : data(tokitai::bfloat16_bits(double(value))) {}
  __hip_bfloat16(unsigned value) : data(tokitai::bfloat16_bits(double(value))) {}
  __hip_bfloat16(__hip_bfloat16_raw raw) : data(raw.x) {}
  operator float() const { return tokitai::bfloat16_value(data); }
  operator __hip_bfloat16_raw() const { return {data}; }
};

struct alignas(4) __hip_bfloat162 {
  __hip_bfloat16 x, y;
};

#define TOKITAI_BFLOAT16_OPERATORS(T)                                                             \
  inline T operator+(T a, T b) { return T(float(a) + float(b)); }                                 \
  inline T operator-(T a, T b) { return T(float(a) - float(b)); }                                 \
  inline T operator*(T a, T b) { return T(float(a) * float(b)); }                                 \
  inline T operator/(T a, T b) { return T(float(a) / float(b)); }                                 \
  inline T operator-(T a) {                                                                       \
    a.data ^= 0x8000u;                                                                            \
    return a;                                                                                     \
  }                                                                                               \
  inline T& operator+=(T & a, T b) { return a = a + b; }                                          \
  inline T& operator-=(T & a, T b) { return a = a - b; }                                          \
  inline T& operator*=(T & a, T b) { return a = a * b; }                                          \
  inline T& operator/=(T & a, T b) { return a = a / b; }                                          \
  inline bool operator==(T a, T b) { return float(a) == float(b); }                               \
  inline bool operator!=(T a, T b) { return float(a) != float(b); }                               \
  inline bool operator<(T a, T b) { return float(a) < float(b); }                                 \
  inline bool operator<=(T a, T b) { return float(a) <= float(b); }                               \
  inline bool operator>(T a, T b) { return float(a) > float(b); }                                 \
  inline bool operator>=(T a, T b) { return float(a) >= float(b); }
TOKITAI_BFLOAT16_OPERATORS(hip_bfloat16)
TOKITAI_BFLOAT16_OPERATORS(__hip_bfloat16)
#undef TOKITAI_BFLOAT16_OPERATORS

inline float __bfloat162float(__hip_bfloat16 a) { return float(a); }
inline __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
inline __hip_bfloat16 __float2bfloat16_rn(float x) { return __hip_bfloat16(x); }
inline __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
inline unsigned short __bfloat16_as_ushort(__hip_bfloat16 a) { return a.data; }
inline __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) {
  return __hip_bfloat16(__hip_bfloat16_raw{x});
}
inline __hip_bfloat16 __hadd(__hip_bfloat16 a, __hip_bfloat16 b) { return a + b; }
inline __hip_bfloat16 __hsub(__hip_bfloat16 a, __hip_bfloat16 b) { return a - b; }
inline __hip_bfloat16 __hmul(__hip_bfloat16 a, __hip_bfloat16 b) { return a * b; }
inline __hip_bfloat16 __hdiv(__hip_bfloat16 a, __hip_bfloat16 b) { return a / b; }
inline __hip_bfloat16 __hneg(__hip_bfloat16 a) { return -a; }
inline __hip_bfloat16 __habs(__hip_bfloat16 a) {
  return __ushort_as_bfloat16((unsigned short)(a.data & 0x7fffu));
}
inline __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  return __hip_bfloat16(tokitai::fma_to_odd(float(a), float(b), float(c)));
}
inline __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) { return fmaxf(a, b); }
inline __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) { return fminf(a, b); }
inline bool __heq(__hip_bfloat16 a, __hip_bfloat16 b) { return a == b; }
inline bool __hne(__hip_bfloat16 a, __hip_bfloat16 b) { return a != b; }
inline bool __hlt(__hip_bfloat16 a, __hip_bfloat16 b) { return a < b; }
inline bool __hle(__hip_bfloat16 a, __hip_bfloat16 b) { return a <= b; }
inline bool __hgt(__hip_bfloat16 a, __hip_bfloat16 b) { return a > b; }
inline bool __hge(__hip_bfloat16 a, __hip_bfloat16 b) { return a >= b; }
inline bool __hisnan(__hip_bfloat16 a) { return float(a) != float(a); }

inline __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __hip_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 a) { return {a, a}; }
inline float2 __bfloat1622float2(__hip_bfloat162 v) { return {float(v.x), float(v.y)}; }
inline float __low2float(__hip_bfloat162 v) { return float(v.x); }
inline float __high2float(__hip_bfloat162 v) { return float(v.y); }
inline __hip_bfloat162 operator+(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {a.x + b.x, a.y + b.y};
}
inline __hip_bfloat162 operator-(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {a.x - b.x, a.y - b.y};
}
inline __hip_bfloat162 operator*(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {a.x * b.x, a.y * b.y};
}
inline __hip_bfloat162 __hadd2(__hip_bfloat162 a, __hip_bfloat162 b) { return a + b; }
inline __hip_bfloat162 __hsub2(__hip_bfloat162 a, __hip_bfloat162 b) { return a - b; }
inline __hip_bfloat162 __hmul2(__hip_bfloat162 a, __hip_bfloat162 b) { return a * b; }
inline __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
