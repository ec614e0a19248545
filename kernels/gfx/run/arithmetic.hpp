// Arithmetic of single lanes, as the RDNA3 manual defines it, where C++ has no operator for it. Rounding is to
// nearest even: kernels with another mode are not translated. Denormals are kept, or flushed by the caller.
#pragma once

#include <stdint.h>
#include <string.h>

namespace tokitai::gfx {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
inline float f32_of(u32 bits) { return bit_cast<float>(bits); }
inline u32 bits_of(float value) { return bit_cast<u32>(value); }
inline double f64_of(u64 bits) { return bit_cast<double>(bits); }
inline u64 bits_of(double value) { return bit_cast<u64>(value); }

// --- float16, by operations that vectorise

inline float f32_of_f16(u32 half) {
  const u32 magnitude = (half & 0x7fff) << 13;
  u32 bits = bits_of(f32_of(magnitude) * 0x1p112f);
  bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : bits;
  return f32_of(bits | (half & 0x8000) << 16);
}

inline u32 f16_of(float value) {
  const u32 bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  const u32 tiny = bits_of(f32_of(magnitude) + 0.5f) - 0x3f000000;
  const u32 usual = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const u32 large = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : 0x7c00;
  const u32 finite = magnitude < 0x38800000 ? tiny : usual;
  return sign | (magnitude >= 0x477ff000 ? large : finite);
}

inline u32 f16_towards_zero(float value) {
  const u32 bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | (magnitude >> 13 & 0x3ff);
  if (magnitude == 0x7f800000) return sign | 0x7c00;
  if (magnitude >= 0x47800000) return sign | 0x7bff;
  if (magnitude >= 0x38800000) return sign | (magnitude - 0x38000000) >> 13;
  return sign | u32(f32_of(magnitude) * 0x1p24f);
}

inline float fma32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// Rounded so that a second rounding to fewer bits is right: to odd (Boldo, Melquiond, 2008).
inline double to_odd(double value, double error) {
  const u64 bits = bits_of(value);
  if (!(error != 0) || bits & 1 || value - value != 0) return value;
  return f64_of((error > 0) == (value > 0) ? bits + 1 : bits - 1);
}

// a * b + c, rounded to odd.
inline double odd_fma(float a, float b, float c) {
  const double product = double(a) * b, sum = product + c, back = sum - product;
  return to_odd(sum, (product - (sum - back)) + (c - back));
}

inline float odd_float(double odd) {
  const float rounded = float(odd);
  const u32 bits = bits_of(rounded);
  if (double(rounded) == odd || rounded - rounded != 0 || bits & 1) return rounded;
  if (rounded == 0) return odd < 0 ? -0x1p-149f : 0x1p-149f;
  return f32_of((odd > rounded) == (rounded > 0) ? bits + 1 : bits - 1);
}
inline float fma16(float a, float b, float c) { return odd_float(odd_fma(a, b, c)); }

// A denormal as the zero of its sign, where the float mode says so.
template <class F, class L>
inline F normal(F value, L least) {
  const F magnitude = value < 0 ? -value : value;
  return magnitude < F(least) ? value * 0 : value;
}
// An overflow of float16 as the greatest number, where the float mode says so (FP16_OVFL).
inline u32 f16_saturated(float value) {
  const u32 bits = f16_of(value);
  return (bits & 0x7fff) == 0x7c00 && value - value == 0 ? bits - 1 : bits;
}

// --- least and greatest: a NaN gives way to a number, and -0 is less than 0. With the mode bit IEEE, a
// signalling NaN becomes a quiet one and does not give way (manual, v_min_f32).

template <class T>
inline bool sign_of(T value) { return __builtin_signbit(value); }
inline bool signals(float value) {
  const u32 magnitude = bits_of(value) & 0x7fffffff;
  return magnitude > 0x7f800000 && magnitude < 0x7fc00000;
}
inline bool signals(double value) {
  const u64 magnitude = bits_of(value) & ~(u64(1) << 63);
  return magnitude > 0x7ff0000000000000 && magnitude < 0x7ff8000000000000;
}
inline float quiet(float value) { return f32_of(bits_of(value) | 0x400000); }
inline double quiet(double value) { return f64_of(bits_of(value) | u64(1) << 51); }
template <bool ieee = true, class T>
inline T least(T a, T b) {
  const T numbers = a < b ? a : b < a ? b : sign_of(a) ? a : b;
  const T made = a != a ? b : b != b ? a : numbers;
  return ieee && signals(a) ? quiet(a) : ieee && signals(b) ? quiet(b) : made;
}
template <bool ieee = true, class T>
inline T greatest(T a, T b) {
  const T numbers = a > b ? a : b > a ? b : sign_of(a) ? b : a;
  const T made = a != a ? b : b != b ? a : numbers;
  return ieee && signals(a) ? quiet(a) : ieee && signals(b) ? quiet(b) : made;
}
template <bool ieee = true, class T>
inline T middle_float(T a, T b, T c) {
  if (a != a || b != b || c != c) return least<ieee>(least<ieee>(a, b), c);
  const T highest = greatest(greatest(a, b), c);
  return highest == a ? greatest(b, c) : highest == b ? greatest(a, c) : greatest(a, b);
}
template <class T>
inline T low(T a, T b) {
  if constexpr (T(0.5) != T(0)) return least<false>(a, b);
  return a < b ? a : b;
}
template <class T>
inline T high(T a, T b) {
  if constexpr (T(0.5) != T(0)) return greatest<false>(a, b);
  return a > b ? a : b;
}
template <class T>
inline T middle(T a, T b, T c) { return high(low(a, b), low(high(a, b), c)); }
inline i32 limited(i32 value, i32 lowest, i32 highest) { return middle(value, lowest, highest); }

// --- integers

inline i32 signed24(u32 value) { return i32(value << 8) >> 8; }
inline u32 reversed(u32 value) {
  value = (value >> 1 & 0x55555555) | (value & 0x55555555) << 1;
  value = (value >> 2 & 0x33333333) | (value & 0x33333333) << 2;
  value = (value >> 4 & 0x0f0f0f0f) | (value & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(value);
}
inline i32 extracted(i32 value, u32 first, u32 width) {
  return width ? i32(u32(value >> first) << (32 - width)) >> (32 - width) : 0;
}
inline u64 low_bits(u64 value, u32 width) {
  return width >= 64 ? value : value & ((u64(1) << width) - 1);
}
inline i64 extracted64(i64 value, u32 first, u32 width) {
  value >>= first;
  return width == 0 ? 0 : width >= 64 ? value : i64(u64(value) << (64 - width)) >> (64 - width);
}
inline u32 packed_i16(i32 a, i32 b) {
  return (u32(limited(a, -32768, 32767)) & 0xffff) | u32(limited(b, -32768, 32767)) << 16;
}
// The sum, and its sign: bit 64 of the sum in 65 bits.
inline bool added(i64 a, i64 b, u64& sum) {
  i64 made;
  const bool overflow = __builtin_add_overflow(a, b, &made);
  sum = u64(made);
  return overflow != (made < 0);
}
inline u32 saturated8(i32 value) { return u32(limited(value, 0, 255)); }
inline i32 saturated32(i64 value) {
  return i32(value > 0x7fffffff ? 0x7fffffff : value < -0x80000000ll ? -0x80000000ll : value);
}
inline u32 distance8(u32 a, u32 b) {
  u32 sum = 0;
  for (int i = 0; i < 32; i += 8) {
    const i32 distance = i32(a >> i & 255) - i32(b >> i & 255);
    sum += u32(distance < 0 ? -distance : distance);
  }
  return sum;
}
// Sums of products of bytes or nibbles; those of an operand are signed where bit 32 of it is set.
template <int width>
inline i64 dot_of(u64 a, u64 b, i64 sum) {
  const auto part = [](u64 word, int at) {
    const i64 value = i64(word >> at & ((1 << width) - 1));
    return word >> 32 && value >> (width - 1) ? value - (1 << width) : value;
  };
  for (int i = 0; i < 32; i += width) sum += part(a, i) * part(b, i);
  return sum;
}
inline u32 saturated_u32(i64 value) { return value > 0xffffffff ? 0xffffffff : u32(value); }
// Each byte of c picks one of the eight of a and b, or signs of some, or 0 or 255.
inline u32 permuted_bytes(u32 a, u32 b, u32 c) {
  const u64 bytes = u64(a) << 32 | b;
  u32 made = 0;
  for (int i = 0; i < 32; i += 8) {
    const u32 pick = c >> i & 255;
    u32 byte = pick < 8 ? u32(bytes >> (8 * (pick & 7))) & 255 : pick == 12 ? 0 : 255;
    if (pick >= 8 && pick < 12) byte = bytes >> (16 * (pick - 8) + 15) & 1 ? 255 : 0;
    made |= byte << i;
  }
  return made;
}
inline u32 whole_quads(u32 mask) {
  u32 made = 0;
  for (int i = 0; i < 32; i += 4)
    if (mask >> i & 15) made |= 15u << i;
  return made;
}

// --- conversions

template <class F>
inline i32 to_i32(F value) {
  const i32 inside = i32(value > F(-2147483648.0) && value < F(2147483648.0) ? value : F(0));
  return value >= F(2147483648.0) ? 0x7fffffff : value <= F(-2147483648.0) ? i32(0x80000000) : inside;
}
template <class F>
inline u32 to_u32(F value) {
  const i64 inside = i64(value > F(-1) && value < F(4294967296.0) ? value : F(0));
  return value >= F(4294967296.0) ? 0xffffffffu : u32(inside);
}
inline u32 packed8(float value, u32 byte, u32 old) {
  const u32 whole = to_u32(__builtin_rintf(value)), shift = 8 * byte;
  return (old & ~(255u << shift)) | (whole > 255 ? 255 : whole) << shift;
}
template <class F>
inline F fraction(F value, F below_one) {
  const F part = value - __builtin_floor(value);
  return part > below_one ? below_one : part;
}

inline double power_of_two(i32 exponent) { return f64_of(u64(1023 + exponent) << 52); }
inline float ldexp32(float value, i32 exponent) {
  const i32 limit = 300;
  return float(double(value) * power_of_two(limited(exponent, -limit, limit)));
}
inline double ldexp64(double value, i32 exponent) { return __builtin_ldexp(value, exponent); }

template <class F>
inline i32 frexp_exponent(F value) {
  if (value - value != 0 || value == 0) return 0;
  int exponent;
  __builtin_frexp(double(value), &exponent);
  return exponent;
}
template <class F>
inline F frexp_mantissa(F value) {
  if (value - value != 0 || value == 0) return value;
  int exponent;
  return F(__builtin_frexp(double(value), &exponent));
}

// The bits that v_cmp_class tests: signalling and quiet NaN, then -inf, -normal, -denormal, -0, 0, ... inf.
template <int exponent_bits, int mantissa_bits>
inline u32 class_of(u64 bits) {
  const u64 mantissa = bits & ((u64(1) << mantissa_bits) - 1);
  const u64 all = (1u << exponent_bits) - 1, exponent = bits >> mantissa_bits & all;
  const bool negative = bits >> (exponent_bits + mantissa_bits) & 1;
  if (exponent == all && mantissa) return mantissa >> (mantissa_bits - 1) ? 2 : 1;
  const int size = exponent == all ? 3 : exponent ? 2 : mantissa ? 1 : 0;
  return negative ? 1u << (5 - size) : 1u << (6 + size);
}
inline u32 class_f16(u32 bits) { return class_of<5, 10>(bits); }
inline u32 class_f32(u32 bits) { return class_of<8, 23>(bits); }
inline u32 class_f64(u64 bits) { return class_of<11, 52>(bits); }

// --- sums of two products, rounded in the order that the manual adds in

struct Pair {
  float low, high;
};
inline Pair pair_f16(u32 bits) { return {f32_of_f16(bits & 0xffff), f32_of_f16(bits >> 16)}; }
inline Pair pair_bf16(u32 bits) { return {f32_of(bits << 16), f32_of(bits & 0xffff0000)}; }
inline float dot2(Pair a, Pair b, float sum) { return (a.low * b.low + a.high * b.high) + sum; }
inline float dot2acc(Pair a, Pair b, float sum) { return (sum + a.low * b.low) + a.high * b.high; }

// --- division: scale, refine, undo the scale, put in what refining cannot give

template <class F>
struct Format;
template <>
struct Format<float> {
  static constexpr int far = 96, scale = 64, tiny = 23, bias = 127, none = -150;
  static constexpr float least = 0x1p-126f, large = 0x1p126f;
  static int exponent(float value) { return int(bits_of(value) >> 23 & 255); }
  static float nan() { return f32_of(0xffc00000); }
};
template <>
struct Format<double> {
  static constexpr int far = 768, scale = 128, tiny = 53, bias = 1023, none = -1075;
  static constexpr double least = 0x1p-1022, large = 0x1p1022;
  static int exponent(double value) { return int(bits_of(value) >> 52 & 2047); }
  static double nan() { return f64_of(u64(0xfff8) << 48); }
};
inline float ldexp_of(float value, i32 exponent) { return ldexp32(value, exponent); }
inline double ldexp_of(double value, i32 exponent) { return ldexp64(value, exponent); }

// `value` is the denominator or the numerator; `undo` tells v_div_fmas to take the scale back. A reciprocal
// that would be denormal is avoided, as the hardware's flushes it.
template <class F>
inline F div_scale(F value, F denominator, F numerator, bool& undo) {
  using Is = Format<F>;
  const int of_denominator = Is::exponent(denominator), of_numerator = Is::exponent(numerator);
  const F quotient = numerator / denominator;
  const bool small = __builtin_fabs(quotient) < Is::least;
  const bool far = __builtin_fabs(denominator) > Is::large && denominator - denominator == 0;
  undo = false;
  if (numerator == 0 || denominator == 0) return -Is::nan();
  if (of_numerator - of_denominator >= Is::far) {
    undo = true;
    return value == denominator ? ldexp_of(value, Is::scale) : value;
  }
  if (of_denominator == 0) return ldexp_of(value, Is::scale);
  if (far && small) {
    undo = true;
    return value == denominator ? ldexp_of(value, -Is::scale) : value;
  }
  if (far) return ldexp_of(value, -Is::scale);
  if (small) {
    undo = true;
    return value == numerator ? ldexp_of(value, Is::scale) : value;
  }
  return of_numerator <= Is::tiny ? ldexp_of(value, Is::scale) : value;
}
// Rounded once, with the scale taken back: else a quotient that is denormal would not be IEEE's.
inline float div_fmas(float a, float b, float c, bool undo) {
  if (!undo) return fma32(a, b, c);
  return float(odd_fma(a, b, c) * (Format<float>::exponent(c) > 127 ? 0x1p64 : 0x1p-64));
}
// What a sum leaves behind when it is rounded (Knuth).
inline double left_over(double a, double b, double sum) {
  const double back = sum - a;
  return (a - (sum - back)) + (b - back);
}
inline double div_fmas(double a, double b, double c, bool undo) {
  const double nearest = __builtin_fma(a, b, c);
  if (!undo) return nearest;
  if (Format<double>::exponent(c) > 1023 || !(__builtin_fabs(nearest) < 0x1p-800))
    return nearest * (Format<double>::exponent(c) > 1023 ? 0x1p128 : 0x1p-128);
  // What is left behind of a * b + c, by its sign (Boldo, Melquiond, 2008).
  const double product = a * b, low = __builtin_fma(a, b, -product), part = c + low;
  const double high = product + part, rest = left_over(c, low, part) + left_over(product, part, high);
  const double error = (high - nearest) + rest;
  const double made = nearest * 0x1p-128, over = nearest - made * 0x1p128;
  constexpr double half = 0x1p-947;  // of the least denormal, scaled
  if (over == half && error > 0) return made + 0x1p-1074;
  if (over == -half && error < 0) return made - 0x1p-1074;
  return made;
}
template <class F>
inline F div_fixup(F quotient, F denominator, F numerator) {
  using Is = Format<F>;
  const bool negative = sign_of(denominator) != sign_of(numerator);
  const F zero = negative ? F(-0.0) : F(0), infinite = negative ? -F(__builtin_inf()) : F(__builtin_inf());
  const F magnitude = __builtin_fabs(quotient);
  if (numerator != numerator) return quiet(numerator);
  if (denominator != denominator) return quiet(denominator);
  const bool inf_d = __builtin_isinf(denominator), inf_n = __builtin_isinf(numerator);
  if ((numerator == 0 && denominator == 0) || (inf_d && inf_n)) return Is::nan();
  if (denominator == 0 || inf_n) return infinite;
  if (inf_d || numerator == 0) return zero;
  if (Is::exponent(numerator) - Is::exponent(denominator) < Is::none) return zero;
  // Refining a quotient that overflowed gives a NaN; of numbers, there is no other way to one.
  if (quotient != quotient) return infinite;
  return negative ? -magnitude : magnitude;
}

// --- approximations: what the hardware gives within an error, here the nearest or a neighbour

enum class Nearby : u32 { nominal, up, down, flush };
extern Nearby nearby;  // of the process

template <class F>
inline F flushed(F value, F least_normal) { return nearby == Nearby::flush ? normal(value, least_normal) : value; }
// Of the two numbers of a format that lie about an exact value the one away from zero or the one towards it:
// an error of 1 ulp reaches no third one, and what the format holds is exact. nearest: bits of the number
// next to `exact`; `held` is its value. Zeros, infinities and NaN stay.
inline u32 neighbour(u32 nearest, double held, double exact, u32 magnitude_mask, u32 infinite) {
  const u32 magnitude = nearest & magnitude_mask;
  const double distance = __builtin_fabs(exact) - __builtin_fabs(held);
  const bool moves = magnitude != 0 && magnitude < infinite;
  const u32 up = nearby == Nearby::up && distance > 0 && magnitude + 1 < infinite;
  const u32 down = nearby == Nearby::down && distance < 0;
  return moves ? nearest + up - down : nearest;
}
inline u32 near_f32(double exact) {
  const float nearest = flushed(float(exact), 0x1p-126f);
  return neighbour(bits_of(nearest), nearest, exact, 0x7fffffff, 0x7f800000);
}
inline u32 near_f16(double exact) {
  const u32 nearest = f16_of(flushed(odd_float(exact), 0x1p-14f));
  return neighbour(nearest, f32_of_f16(nearest), exact, 0x7fff, 0x7c00);
}
// The manual gives these of float64 within 2^29 ulp and keeps their denormals.
inline u64 near_f64(double nearest) {
  const double moved = nearest * (nearby == Nearby::up ? 1 + 0x1p-23 : nearby == Nearby::down ? 1 - 0x1p-23 : 1);
  return bits_of(moved - moved == 0 ? moved : nearest);
}
// The exact value of a quotient's reciprocal. Of a denominator whose mantissa is all ones it is the nearest
// float: the sequence that compilers emit for a division is IEEE's with no other (Markstein, IBM J. Res. Dev.
// 34, 1990), and AMD's compilers rely on that.
inline double reciprocal(float a) {
  const double exact = 1 / double(a);
  return (bits_of(a) & 0x7fffff) == 0x7fffff ? double(float(exact)) : exact;
}
inline double reciprocal_f16(float a) { return 1 / double(a); }
// sin or cos of a number of turns. The manual gives them a domain of 256 turns.
inline float turned(float turns, int cosine) {
  if (!(__builtin_fabsf(turns) <= 256.0f)) return turns - turns == 0 ? (cosine ? 1.0f : 0.0f) : f32_of(0x7fc00000);
  const double angle = (double(turns) - __builtin_floor(double(turns))) * 6.283185307179586476925;
  const double value = cosine ? __builtin_cos(angle) : __builtin_sin(angle);
  const double step = nearby == Nearby::up ? 0x1p-23 : nearby == Nearby::down ? -0x1p-23 : 0;
  return float(__builtin_fabs(value) < 0x1p-40 ? step : value + step);
}

}  // namespace tokitai::gfx
