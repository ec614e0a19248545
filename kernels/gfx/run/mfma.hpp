// Products of matrices in waves of 64 (MFMA): `blocks` products of rows x depth and depth x columns side by side.
// Which lane holds which element: AMD, CDNA3 Instruction Set Architecture, "Matrix Arithmetic Instructions", and
// the tables of AMD's matrix instruction calculator.
#pragma once

#include "float8.hpp"
#include "matrix_sums.hpp"

#if TOKITAI_WAVE_SIZE == 64

namespace tokitai::gfx {

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
template <u32 mantissa_bits, bool ocp = false>
struct InF8 {
  using Value = float;
  static constexpr u32 bits = 8;
  static float of(u32 word, bool) { return f32_of_f8<mantissa_bits, ocp>(word); }
};
// float6 and float4 of OCP.
template <u32 exponent_bits, u32 mantissa_bits>
struct InSmall {
  using Value = float;
  static constexpr u32 bits = 1 + exponent_bits + mantissa_bits;
  static float of(u32 word, bool) { return f32_of_small<exponent_bits, mantissa_bits>(word); }
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
  } else if constexpr (32 % In::bits) {  // one may begin in a word and end in the next
    const u32 first = In::bits * item, word = first / 32;
    const u32 after = (first % 32 + In::bits > 32) ? words[(word + 1) * wave_size + lane] : 0;
    return In::of(u32((words[word * wave_size + lane] | u64(after) << 32) >> first % 32), true);
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

// Rows of 16 lanes exchanged: odd ones of the first register with even ones of the second (16), or its upper two
// with the lower two (32).
template <u32 lanes>
TOKITAI_OP void swap_rows(Wave& w, u32 at, u32* first, u32* second) {
  if (w.exec != all_lanes) return unmodelled(w, at, "rows that some lanes exchange");
  for (u32 l = 0; l < wave_size; l++) {
    if (l & lanes) continue;
    const u32 kept = first[l + lanes];
    first[l + lanes] = second[l];
    second[l] = kept;
  }
}

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
