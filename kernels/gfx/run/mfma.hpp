// Products of matrices in waves of 64 (MFMA): `blocks` products of rows x depth and depth x columns side by side.
// Which lane holds which element: AMD, CDNA3 Instruction Set Architecture, "Matrix Arithmetic Instructions", and
// the tables of AMD's matrix instruction calculator.
#pragma once

#include "matrix_sums.hpp"

#if TOKITAI_WAVE_SIZE == 64

namespace tokitai::gfx {

// float8 of MI300 (FNUZ): one NaN, in place of -0, no infinities, a bias one greater than that of OFP8.
template <u32 mantissa_bits>
inline float f32_of_f8(u32 byte) {
  constexpr u32 exponent_bits = 7 - mantissa_bits, bias = 1u << (exponent_bits - 1);
  const u32 exponent = byte >> mantissa_bits & ((1u << exponent_bits) - 1), low = byte & ((1u << mantissa_bits) - 1);
  if ((byte & 255) == 0x80) return f32_of(0x7fc00000);
  const u32 whole = exponent ? low | 1u << mantissa_bits : low;
  const i32 scale = i32(exponent ? exponent : 1) - i32(bias + mantissa_bits);
  return ldexp32(byte >> 7 & 1 ? -float(whole) : float(whole), scale);
}
// Those of two bytes, one in each half.
template <u32 mantissa_bits>
inline u64 two_of_f8(u32 word) {
  return bits_of(f32_of_f8<mantissa_bits>(word)) | u64(bits_of(f32_of_f8<mantissa_bits>(word >> 8))) << 32;
}
// To the nearest, ties to even; what is greater than the greatest number is the NaN.
template <u32 mantissa_bits>
inline u32 f8_of(float value) {
  constexpr u32 exponent_bits = 7 - mantissa_bits, bias = 1u << (exponent_bits - 1);
  if (value - value != 0) return 0x80;
  const float magnitude = __builtin_fabsf(value);
  int exponent;
  __builtin_frexp(double(magnitude), &exponent);
  const i32 least = 1 - i32(bias), scale = high(i32(exponent) - 1, least) - i32(mantissa_bits);
  const u32 whole = u32(__builtin_rint(__builtin_ldexp(double(magnitude), -scale)));
  if (!whole) return 0;
  const u32 made = whole + (u32(scale + i32(mantissa_bits) - least) << mantissa_bits);
  return made > 0x7f ? 0x80 : made | (value < 0 ? 0x80 : 0);
}

struct InF32 {
  using Value = float;
  static constexpr u32 bits = 32;
  static float of(u32 word, bool) { return flushed(f32_of(word), 0x1p-126f); }
};
// float32 of which ten bits of the mantissa count; how the others are dropped is not stated.
struct InXf32 {
  using Value = float;
  static constexpr u32 bits = 32;
  static float of(u32 word, bool) {
    const bool number = (word & 0x7fffffff) <= 0x7f7fffff;
    const u32 rounded = nearby == Nearby::down || !number ? word : word + 0xfff + (word >> 13 & 1);
    return f32_of(rounded & ~0x1fffu);
  }
};
template <u32 mantissa_bits>
struct InF8 {
  using Value = float;
  static constexpr u32 bits = 8;
  static float of(u32 word, bool) { return f32_of_f8<mantissa_bits>(word & 255); }
};
struct InI8 {
  using Value = i32;
  static constexpr u32 bits = 8;
  static i32 of(u32 word, bool) { return i8(word); }
};
struct InF64 {
  using Value = double;
  static constexpr u32 bits = 64;
};

// The item-th element that a lane holds.
template <class In>
inline typename In::Value element(const u32* words, u32 lane, u32 item) {
  if constexpr (In::bits == 64) {
    return f64_of(words[2 * item * wave_size + lane] | u64(words[(2 * item + 1) * wave_size + lane]) << 32);
  } else {
    constexpr u32 in_word = 32 / In::bits;
    return In::of(words[item / in_word * wave_size + lane] >> In::bits * (item % in_word), true);
  }
}

// What is summed in, and where a lane's word of it goes.
template <class Value>
struct Accumulator {
  using Sum = Value;
  static constexpr u32 dwords = sizeof(Value) / 4;
};
template <>
struct Accumulator<i32> {
  using Sum = i64;
  static constexpr u32 dwords = 1;
};

// c: lanes of registers, or null for `constant`. spread, first: blocks of A in groups of 2^spread are that one of
// the group (cbsz, abid).
template <class InA, class InB, u32 rows, u32 columns, u32 depth, u32 blocks>
TOKITAI_OP void multiply_blocks(Wave& w, u32 at, u32* d, const u32* a, const u32* b, const u32* c, u64 constant,
                                u32 spread, u32 first) {
  using Value = typename InA::Value;
  using Sum = typename Accumulator<Value>::Sum;
  constexpr u32 dwords = Accumulator<Value>::dwords, held = depth / (64 / (rows * blocks));
  constexpr u32 group = dwords == 2 ? 1 : 4;  // rows of the result that a lane holds side by side
  constexpr u32 over = columns * rows / group, side_by_side = over >= 64 ? 1 : 64 / over;
  constexpr u32 in_lanes = 64 / side_by_side / columns, groups = rows / (group * in_lanes);
  Row results[rows * columns * blocks * dwords / 64];
  if (w.exec != all_lanes) return unmodelled(w, at, "a matrix product of some lanes");
  for (u32 block = 0; block < blocks; block++) {
    Value x[rows][depth], y[depth][columns];
    const u32 block_a = (block >> spread << spread) | (spread ? first : 0);
    for (u32 k = 0; k < depth; k++) {
      const u32 lane = rows * blocks * (k / held);
      for (u32 i = 0; i < rows; i++) x[i][k] = element<InA>(a, i + rows * block_a + lane, k % held);
      for (u32 j = 0; j < columns; j++) y[k][j] = element<InB>(b, j + columns * block + lane, k % held);
    }
    for (u32 i = 0; i < rows; i++) {
      const u32 item = i % group + group * (i / (group * in_lanes) + groups * (block / side_by_side));
      const u32 lane = columns * (block % side_by_side + side_by_side * (i / group % in_lanes));
      Sum sums[columns];
      for (u32 j = 0; j < columns; j++) {
        u64 word = constant;
        if (c) word = c[dwords * item * wave_size + lane + j];
        if (c && dwords == 2) word |= u64(c[(dwords * item + 1) * wave_size + lane + j]) << 32;
        if constexpr (dwords == 2)
          sums[j] = f64_of(word);
        else if constexpr (sizeof(Sum) == 8)
          sums[j] = i32(word);
        else
          sums[j] = flushed(f32_of(u32(word)), 0x1p-126f);
      }
      sum_row<depth>(x[i], y, sums);
      for (u32 j = 0; j < columns; j++) {
        u64 word;
        if constexpr (dwords == 2)
          word = bits_of(sums[j]);
        else if constexpr (sizeof(Sum) == 8)
          word = u32(sums[j]);
        else
          word = bits_of(flushed(sums[j], 0x1p-126f));
        for (u32 part = 0; part < dwords; part++)
          results[dwords * item + part].lane[lane + j] = u32(word >> 32 * part);
      }
    }
  }
  memcpy(d, results, sizeof results);
}

}  // namespace tokitai::gfx

#endif
