// Division by the sequences that compilers emit, and instructions whose results hardware gives within an error.
#pragma once

#include "arithmetic.hpp"

namespace tokitai::gfx {

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
