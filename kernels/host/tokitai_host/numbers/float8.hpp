// The four 8-bit formats of <hip/hip_fp8.h> and their conversions.
//
// Values are rounded to nearest even once. What rounds beyond the largest number becomes it where
// saturation is asked for, else infinity (E5M2) or NaN; an infinity is not saturated. The FNUZ
// formats have no infinities, and one NaN where others have -0.
#pragma once

#include "bfloat16.hpp"

enum __hip_fp8_interpretation_t {
  __HIP_E4M3 = 0,
  __HIP_E5M2 = 1,
  __HIP_E4M3_FNUZ = 2,
  __HIP_E5M2_FNUZ = 3
};
enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };
typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;

#define HIP_FP8_TYPE_OCP 1
#define HIP_FP8_TYPE_FNUZ 1
#define HIP_FP8_CVT_FAST_PATH 0

namespace tokitai {

struct Float8 {
  bool fnuz;
  int fraction, bias;
  unsigned char largest, infinity, nan;
};
constexpr Float8 float8_formats[4] = {{false, 3, 7, 0x7e, 0x7f, 0x7f},
                                      {false, 2, 15, 0x7b, 0x7c, 0x7f},
                                      {true, 3, 8, 0x7f, 0x80, 0x80},
                                      {true, 2, 16, 0x7f, 0x80, 0x80}};

inline unsigned char float8_bits(double value, __hip_saturation_t saturation,
                                 __hip_fp8_interpretation_t interpretation) {
  const Float8& format = float8_formats[interpretation];
  const unsigned char sign = __builtin_signbit(value) ? 0x80 : 0;
  if (value != value) return format.fnuz ? format.nan : (unsigned char)(sign | format.nan);
  const double magnitude = fabs(value);
  if (magnitude > DBL_MAX) return (unsigned char)(format.infinity | (format.fnuz ? 0 : sign));
  // A whole number of steps; the step is that of the value's binade, or of the subnormal numbers.
  int exponent = magnitude > 0 ? ilogb(magnitude) : 1 - format.bias;
  if (exponent < 1 - format.bias) exponent = 1 - format.bias;
  const long long steps = (long long)rint(scalbn(magnitude, format.fraction - exponent));
  // A carry out of the fraction counts the exponent up by itself.
  const long long code = ((long long)(exponent + format.bias - 1) << format.fraction) + steps;
  if (code > format.largest) {
    if (saturation == __HIP_SATFINITE) return (unsigned char)(sign | format.largest);
    return (unsigned char)(format.infinity | (format.fnuz ? 0 : sign));
  }
  return (unsigned char)(format.fnuz && code == 0 ? 0 : sign | code);
}

inline float float8_value(unsigned char bits, __hip_fp8_interpretation_t interpretation) {
  const Float8& format = float8_formats[interpretation];
  const int code = bits & 0x7f, exponent = code >> format.fraction;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (format.fnuz ? bits == 0x80 : code > format.infinity || code == format.nan)
    return copysignf(__uint_as_float(0x7fc00000u), sign);
  if (!format.fnuz && code == format.infinity) return sign * __uint_as_float(0x7f800000u);
  const int fraction = code & ((1 << format.fraction) - 1);
  const int whole = exponent ? fraction + (1 << format.fraction) : fraction;
  return sign * scalbnf(float(whole), (exponent ? exponent : 1) - format.bias - format.fraction);
}

}  // namespace tokitai

// --- conversions
// ---------------------------------------------------------------------------------
#define TOKITAI_FP8_FROM(NAME, ARGUMENT, RESULT, EXPRESSION)                                      \
  TOKITAI_OURS RESULT NAME(ARGUMENT x, __hip_saturation_t sat, __hip_fp8_interpretation_t to) {   \
    return RESULT(EXPRESSION);                                                                    \
  }
TOKITAI_FP8_FROM(__hip_cvt_double_to_fp8, double, __hip_fp8_storage_t,
                 tokitai::float8_bits(x, sat, to))
TOKITAI_FP8_FROM(__hip_cvt_float_to_fp8, float, __hip_fp8_storage_t,
                 tokitai::float8_bits(double(x), sat, to))
TOKITAI_FP8_FROM(__hip_cvt_halfraw_to_fp8, __half_raw, __hip_fp8_storage_t,
                 tokitai::float8_bits(double(float(__half(x))), sat, to))
TOKITAI_FP8_FROM(__hip_cvt_bfloat16raw_to_fp8, __hip_bfloat16_raw, __hip_fp8_storage_t,
                 tokitai::float8_bits(double(float(__hip_bfloat16(x))), sat, to))
#define TOKITAI_FP8_PAIR(NAME, ARGUMENT, ONE)                                                     \
  TOKITAI_FP8_FROM(NAME, ARGUMENT, __hip_fp8x2_storage_t,                                         \
                   tokitai::float8_bits(double(ONE(x.x)), sat, to) |                              \
                       tokitai::float8_bits(double(ONE(x.y)), sat, to) << 8)
TOKITAI_FP8_PAIR(__hip_cvt_double2_to_fp8x2, double2, )
TOKITAI_FP8_PAIR(__hip_cvt_float2_to_fp8x2, float2, )
TOKITAI_FP8_PAIR(__hip_cvt_halfraw2_to_fp8x2, __half2_raw, tokitai::half_value)
TOKITAI_FP8_PAIR(__hip_cvt_bfloat16raw2_to_fp8x2, __hip_bfloat162_raw, tokitai::bfloat16_value)
#undef TOKITAI_FP8_PAIR
#undef TOKITAI_FP8_FROM
TOKITAI_OURS __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t x,
                                                 __hip_fp8_interpretation_t from) {
  return __half(tokitai::float8_value(x, from));
}
TOKITAI_OURS __half2_raw __hip_cvt_fp8x2_to_halfraw2(__hip_fp8x2_storage_t x,
                                                     __hip_fp8_interpretation_t from) {
  return {__hip_cvt_fp8_to_halfraw((unsigned char)x, from).x,
          __hip_cvt_fp8_to_halfraw((unsigned char)(x >> 8), from).x};
}

// --- types
// ---------------------------------------------------------------------------------------
namespace tokitai {

template <__hip_fp8_interpretation_t interpretation>
struct Fp8 {
  __hip_fp8_storage_t __x;
  static constexpr __hip_saturation_t __default_saturation = __HIP_SATFINITE;
  static constexpr __hip_fp8_interpretation_t __default_interpret = interpretation;
  Fp8() = default;
  template <class T, Where<std::is_arithmetic<T>::value> = 0>
  Fp8(T value) : __x(float8_bits(double(value), __HIP_SATFINITE, interpretation)) {}
  Fp8(__half value) : Fp8(float(value)) {}
  Fp8(__hip_bfloat16 value) : Fp8(float(value)) {}
  operator float() const { return float8_value(__x, interpretation); }
  operator __half() const { return __half(float(*this)); }
  operator __hip_bfloat16() const { return __hip_bfloat16(float(*this)); }
  // To whole numbers: towards zero, to the nearest that there is, NaN to zero.
  template <class T, Where<std::is_integral<T>::value && !std::is_same<T, bool>::value> = 0>
  explicit operator T() const {
    return to_integer<T>(truncf(float(*this)));
  }
};

// Two or four, the first in the lowest byte.
template <class One, class Storage, class Floats>
struct Fp8s {
  static constexpr unsigned count = sizeof(Storage);
  Storage __x;
  static constexpr __hip_saturation_t __default_saturation = __HIP_SATFINITE;
  static constexpr __hip_fp8_interpretation_t __default_interpret = One::__default_interpret;
  Fp8s() = default;
  template <class T>
  Fp8s(HIP_vector_type<T, count> values) : __x(0) {
    for (unsigned i = 0; i < count; i++) put(i, One(values.data[i]));
  }
  Fp8s(__half2 v) : Fp8s(One(v.x), One(v.y)) {}
  Fp8s(__hip_bfloat162 v) : Fp8s(One(v.x), One(v.y)) {}
  Fp8s(__half2 low, __half2 high) : Fp8s(One(low.x), One(low.y), One(high.x), One(high.y)) {}
  Fp8s(__hip_bfloat162 low, __hip_bfloat162 high)
      : Fp8s(One(low.x), One(low.y), One(high.x), One(high.y)) {}
  operator Floats() const {
    Floats values;
    for (unsigned i = 0; i < count; i++) {
      One one;
      one.__x = (unsigned char)(__x >> 8 * i);
      values.data[i] = one;
    }
    return values;
  }
  operator __half2() const {
    static_assert(count == 2, "two numbers");
    return __half2(__hip_cvt_fp8x2_to_halfraw2(__x, __default_interpret));
  }

 private:
  template <class... Ones>
  Fp8s(One first, Ones... others) : __x(0) {
    static_assert(1 + sizeof...(Ones) == count, "as many numbers as the type holds");
    unsigned i = 0;
    for (One one : {first, others...}) put(i++, one);
  }
  void put(unsigned i, One one) { __x = Storage(__x | Storage(one.__x) << 8 * i); }
};

}  // namespace tokitai

#define TOKITAI_FP8(NAME, INTERPRETATION)                                                         \
  using __hip_fp8_##NAME = tokitai::Fp8<INTERPRETATION>;                                          \
  using __hip_fp8x2_##NAME = tokitai::Fp8s<__hip_fp8_##NAME, __hip_fp8x2_storage_t, float2>;      \
  using __hip_fp8x4_##NAME = tokitai::Fp8s<__hip_fp8_##NAME, __hip_fp8x4_storage_t, float4>;
TOKITAI_FP8(e4m3, __HIP_E4M3)
TOKITAI_FP8(e5m2, __HIP_E5M2)
TOKITAI_FP8(e4m3_fnuz, __HIP_E4M3_FNUZ)
TOKITAI_FP8(e5m2_fnuz, __HIP_E5M2_FNUZ)
#undef TOKITAI_FP8
