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

// The bits of a number rounded to nearest (0), up (1), down (-1) or towards zero (-2).
template <int direction>
inline unsigned short bfloat16_towards(double x) {
  const unsigned short nearest = bfloat16_bits(x);
  const double got = bfloat16_value(nearest);
  if (!direction || !(got != x) || x != x) return nearest;
  const bool negative = x < 0, away = negative ? got < x : got > x;
  const bool outwards = direction == -2 ? false : (direction > 0) != negative;
  return away == outwards ? nearest : (unsigned short)(nearest + (outwards ? 1 : -1));
}

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
struct __hip_bfloat162_raw {
  unsigned short x, y;
};

struct __hip_bfloat16 {
  unsigned short data;
  __hip_bfloat16() = default;
  __hip_bfloat16(float value) : data(tokitai::bfloat16_bits(value)) {}
  __hip_bfloat16(double value) : data(tokitai::bfloat16_bits(value)) {}
  __hip_bfloat16(int value) : data(tokitai::bfloat16_bits(double(value))) {}
  __hip_bfloat16(unsigned value) : data(tokitai::bfloat16_bits(double(value))) {}
  __hip_bfloat16(short value) : data(tokitai::bfloat16_bits(float(value))) {}
  __hip_bfloat16(unsigned short value) : data(tokitai::bfloat16_bits(float(value))) {}
  __hip_bfloat16(__hip_bfloat16_raw raw) : data(raw.x) {}
  operator float() const { return tokitai::bfloat16_value(data); }
  operator __hip_bfloat16_raw() const { return {data}; }
  unsigned short tokitai_bits() const { return data; }
  static __hip_bfloat16 tokitai_with_bits(unsigned value) {
    return __hip_bfloat16(__hip_bfloat16_raw{(unsigned short)value});
  }
};

struct alignas(4) __hip_bfloat162 {
  __hip_bfloat16 x, y;
  __hip_bfloat162() = default;
#ifdef TOKITAI_WRITTEN_COPIES
  __hip_bfloat162(const __hip_bfloat162& other) : x(other.x), y(other.y) {}
  __hip_bfloat162& operator=(const __hip_bfloat162& other) {
    x = other.x, y = other.y;
    return *this;
  }
#endif
  __hip_bfloat162(__hip_bfloat16 x_, __hip_bfloat16 y_) : x(x_), y(y_) {}
  __hip_bfloat162(__hip_bfloat162_raw raw)
      : x(__hip_bfloat16_raw{raw.x}), y(__hip_bfloat16_raw{raw.y}) {}
  operator __hip_bfloat162_raw() const { return {x.data, y.data}; }
  operator float2() const { return {float(x), float(y)}; }
};

// --- the older type
// ------------------------------------------------------------------------------
#define TOKITAI_BFLOAT16_OPERATOR(OP)                                                             \
  TOKITAI_OURS hip_bfloat16 operator OP(hip_bfloat16 a, hip_bfloat16 b) {                         \
    return hip_bfloat16(float(a) OP float(b));                                                    \
  }                                                                                               \
  TOKITAI_OURS hip_bfloat16& operator OP## = (hip_bfloat16 & a, hip_bfloat16 b) {                 \
    return a = a OP b;                                                                            \
  }
TOKITAI_BFLOAT16_OPERATOR(+)
TOKITAI_BFLOAT16_OPERATOR(-)
TOKITAI_BFLOAT16_OPERATOR(*)
TOKITAI_BFLOAT16_OPERATOR(/)
#undef TOKITAI_BFLOAT16_OPERATOR
TOKITAI_OURS hip_bfloat16 operator-(hip_bfloat16 a) {
  a.data ^= 0x8000u;
  return a;
}
#define TOKITAI_BFLOAT16_COMPARISON(OP)                                                           \
  TOKITAI_OURS bool operator OP(hip_bfloat16 a, hip_bfloat16 b) { return float(a) OP float(b); }
TOKITAI_BFLOAT16_COMPARISON(==)
TOKITAI_BFLOAT16_COMPARISON(!=)
TOKITAI_BFLOAT16_COMPARISON(<)
TOKITAI_BFLOAT16_COMPARISON(<=)
TOKITAI_BFLOAT16_COMPARISON(>)
TOKITAI_BFLOAT16_COMPARISON(>=)
#undef TOKITAI_BFLOAT16_COMPARISON

// --- conversions
// ---------------------------------------------------------------------------------
TOKITAI_OURS float __bfloat162float(__hip_bfloat16 a) { return float(a); }
TOKITAI_OURS __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
TOKITAI_OURS __hip_bfloat16 __float2bfloat16_rn(float x) { return __hip_bfloat16(x); }
TOKITAI_OURS __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
// Whole numbers: both ways, in every direction.
#define TOKITAI_WHOLE_BFLOAT16(NAME, T, WORD, DIRECTION, ROUNDED)                                 \
  TOKITAI_OURS T __bfloat162##NAME##_##WORD(__hip_bfloat16 h) {                                   \
    return tokitai::to_integer<T>(ROUNDED(float(h)));                                             \
  }                                                                                               \
  TOKITAI_OURS __hip_bfloat16 __##NAME##2bfloat16_##WORD(T x) {                                   \
    return __hip_bfloat16(                                                                        \
        __hip_bfloat16_raw{tokitai::bfloat16_towards<DIRECTION>(tokitai::odd_double(x))});        \
  }
#define TOKITAI_WHOLE_BFLOAT16S(NAME, T)                                                          \
  TOKITAI_WHOLE_BFLOAT16(NAME, T, rn, 0, rint)                                                   \
  TOKITAI_WHOLE_BFLOAT16(NAME, T, rz, -2, trunc)                                                 \
  TOKITAI_WHOLE_BFLOAT16(NAME, T, ru, 1, ceil)                                                   \
  TOKITAI_WHOLE_BFLOAT16(NAME, T, rd, -1, floor)
TOKITAI_WHOLE_BFLOAT16S(int, int)
TOKITAI_WHOLE_BFLOAT16S(uint, unsigned)
TOKITAI_WHOLE_BFLOAT16S(short, short)
TOKITAI_WHOLE_BFLOAT16S(ushort, unsigned short)
TOKITAI_WHOLE_BFLOAT16S(ll, long long)
TOKITAI_WHOLE_BFLOAT16S(ull, unsigned long long)
#undef TOKITAI_WHOLE_BFLOAT16S
#undef TOKITAI_WHOLE_BFLOAT16
TOKITAI_OURS short __bfloat16_as_short(__hip_bfloat16 a) { return short(a.data); }
TOKITAI_OURS unsigned short __bfloat16_as_ushort(__hip_bfloat16 a) { return a.data; }
TOKITAI_OURS __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) {
  return __hip_bfloat16::tokitai_with_bits(x);
}
TOKITAI_OURS __hip_bfloat16 __short_as_bfloat16(short x) {
  return __ushort_as_bfloat16((unsigned short)x);
}
TOKITAI_OURS int __hisinf(__hip_bfloat16 a) { return (a.data & 0x7fffu) == 0x7f80u; }

TOKITAI_OURS __hip_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
TOKITAI_OURS __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
TOKITAI_OURS __hip_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
TOKITAI_OURS __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 a) { return {a, a}; }
TOKITAI_OURS __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) {
  return {a, b};
}
TOKITAI_OURS __hip_bfloat162 make_bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) { return {a, b}; }
TOKITAI_OURS float2 __bfloat1622float2(__hip_bfloat162 v) { return {float(v.x), float(v.y)}; }
TOKITAI_OURS __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
TOKITAI_OURS __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
TOKITAI_OURS __hip_bfloat162 __low2bfloat162(__hip_bfloat162 v) { return {v.x, v.x}; }
TOKITAI_OURS __hip_bfloat162 __high2bfloat162(__hip_bfloat162 v) { return {v.y, v.y}; }
TOKITAI_OURS __hip_bfloat162 __lows2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {a.x, b.x};
}
TOKITAI_OURS __hip_bfloat162 __highs2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {a.y, b.y};
}

#define HIPRT_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80)
#define HIPRT_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0)
#define HIPRT_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80)
#define HIPRT_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fff)
#define HIPRT_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7f)
#define HIPRT_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)1)
#define HIPRT_NEG_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x8000)

#define TOKITAI_T __hip_bfloat16
#define TOKITAI_T2 __hip_bfloat162
#include "sixteen_bit.hpp"
