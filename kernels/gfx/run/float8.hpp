// Floats of 8 bits and fewer. Those of MI300 are FNUZ: one NaN, in place of -0, no infinities, a bias one greater
// than OCP's. Those of MI350 are OCP's: "OCP 8-bit Floating Point Specification" (2023), "OCP Microscaling Formats
// (MX) Specification" (2023).
#pragma once

#include "arithmetic.hpp"

namespace tokitai::gfx {

// A number of so many bits, of which none stands for a NaN or an infinity. bias_more: beside OCP's bias.
template <u32 exponent_bits, u32 mantissa_bits, u32 bias_more = 0>
inline float f32_of_small(u32 bits) {
  constexpr u32 bias = (1u << (exponent_bits - 1)) - 1 + bias_more;
  const u32 exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1), low = bits & ((1u << mantissa_bits) - 1);
  const u32 whole = exponent ? low | 1u << mantissa_bits : low;
  const i32 scale = i32(exponent ? exponent : 1) - i32(bias + mantissa_bits);
  const float magnitude = ldexp32(float(whole), scale);
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

// mantissa_bits: 3 of fp8 (e4m3), 2 of bf8 (e5m2).
template <u32 mantissa_bits, bool ocp = false>
inline float f32_of_f8(u32 byte) {
  byte &= 255;
  if constexpr (!ocp)
    return byte == 0x80 ? f32_of(0x7fc00000) : f32_of_small<7 - mantissa_bits, mantissa_bits, 1>(byte);
  else if constexpr (mantissa_bits == 2)
    return f32_of_f16(byte << 8);
  else
    return (byte & 0x7f) == 0x7f ? f32_of(0x7fc00000 | (byte & 0x80) << 24) : f32_of_small<4, 3>(byte);
}
// Those of two bytes, one in each half.
template <u32 mantissa_bits, bool ocp = false>
inline u64 two_of_f8(u32 word) {
  return bits_of(f32_of_f8<mantissa_bits, ocp>(word)) | u64(bits_of(f32_of_f8<mantissa_bits, ocp>(word >> 8))) << 32;
}
// The same in two halves; both formats hold each.
template <u32 mantissa_bits>
inline u32 f16_pair_of_f8(u32 word) {
  return f16_of(f32_of_f8<mantissa_bits, true>(word)) | f16_of(f32_of_f8<mantissa_bits, true>(word >> 8)) << 16;
}
template <u32 mantissa_bits>
inline u32 bf16_pair_of_f8(u32 word) {
  const u32 low = bf16_of(f32_of_f8<mantissa_bits, true>(word), true);
  return low | bf16_of(f32_of_f8<mantissa_bits, true>(word >> 8), true) << 16;
}
// To the nearest, ties to even. What is greater than the greatest number is the infinity, or the NaN where there
// is none; saturated (FP16_OVFL): the greatest number. So is an infinity where float8 are OCP's (CDNA4, 7.3).
template <u32 mantissa_bits, bool ocp = false, bool saturated = false>
inline u32 f8_of(float value) {
  constexpr u32 exponent_bits = 7 - mantissa_bits, bias = (1u << (exponent_bits - 1)) - (ocp ? 1 : 0);
  constexpr u32 greatest = !ocp ? 0x7f : mantissa_bits == 3 ? 0x7e : 0x7b;
  const u32 sign = bits_of(value) >> 24 & 0x80, not_number = ocp ? sign | 0x7f : 0x80;
  const u32 beyond = saturated ? sign | greatest : ocp && mantissa_bits == 2 ? sign | 0x7c : not_number;
  if (value - value != 0) return value != value ? not_number : beyond;
  const float magnitude = __builtin_fabsf(value);
  int exponent;
  __builtin_frexp(double(magnitude), &exponent);
  const i32 least = 1 - i32(bias), scale = high(i32(exponent) - 1, least) - i32(mantissa_bits);
  const u32 whole = u32(__builtin_rint(__builtin_ldexp(double(magnitude), -scale)));
  if (!whole) return ocp ? sign : 0;
  const u32 made = whole + (u32(scale + i32(mantissa_bits) - least) << mantissa_bits);
  if (made > greatest) return beyond;
  return made | sign;
}

}  // namespace tokitai::gfx
