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

// To bfloat16, to the nearest even or cut.
inline u32 bf16_of(float value, bool truncated) {
  const u32 bits = bits_of(value);
  if (value != value) return bits >> 16 | 0x40;
  return truncated ? bits >> 16 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
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

// Sums of two halves each, rounded once.
inline u32 pairs_added_f16(u32 a, u32 b) {
  const auto sum = [](u32 x, u32 y) { return f16_of(fma16(1, f32_of_f16(x & 0xffff), f32_of_f16(y & 0xffff))); };
  return sum(a, b) | sum(a >> 16, b >> 16) << 16;
}
inline u32 pairs_added_bf16(u32 a, u32 b) {
  const auto sum = [](u32 x, u32 y) { return bf16_of(fma16(1, f32_of(x << 16), f32_of(y << 16)), false) & 0xffff; };
  return sum(a, b) | sum(a >> 16, b >> 16) << 16;
}

// A denormal as the zero of its sign, where the float mode says so.
template <class F, class L>
inline F normal(F value, L least) {
  const F magnitude = value < 0 ? -value : value;
  return magnitude < F(least) ? value * 0 : value;
}
// Product and sum, each rounded, with denormals flushed whatever the float mode says (LLVM, FMAD_FTZ).
inline float mad32(float a, float b, float c) {
  constexpr float least = 0x1p-126f;
  const float product = normal(normal(a, least) * normal(b, least), least);
  return normal(product + normal(c, least), least);
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
// A NaN does not give way (IEEE 754-2019, minimum and maximum).
template <class T>
inline T minimum(T a, T b) { return a != a ? quiet(a) : b != b ? quiet(b) : least<false>(a, b); }
template <class T>
inline T maximum(T a, T b) { return a != a ? quiet(a) : b != b ? quiet(b) : greatest<false>(a, b); }
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
inline u32 shifted_bytes(i32 a, i32 b, u32 places, i32 lowest, i32 highest) {
  return (u32(limited(a >> places, lowest, highest)) & 255) | (u32(limited(b >> places, lowest, highest)) & 255) << 8;
}
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
// The operation on bits that a table of its eight cases gives: case 4 a + 2 b + c.
inline u32 bits_by(u32 a, u32 b, u32 c, u32 table) {
  u32 made = 0;
  for (u32 at = 0; at < 8; at++)
    if (table >> at & 1) made |= (at & 4 ? a : ~a) & (at & 2 ? b : ~b) & (at & 1 ? c : ~c);
  return made;
}
// Bits of a word below a place, which may lie in front of it or behind it.
inline u32 lanes_below(u32 word, int place) {
  const u32 below = place >= 32 ? ~0u : place <= 0 ? 0 : (1u << place) - 1;
  return u32(__builtin_popcount(word & below));
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

}  // namespace tokitai::gfx
