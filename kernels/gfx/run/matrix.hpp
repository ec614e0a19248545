// Products of matrices of 16 by 16 in waves of 32 (manual, 7.9 "Wave matrix multiply accumulate"). Lanes 0 to
// 15 hold a row of A, or a column of B, each, and lanes 16 to 31 hold them once more; register v of the result
// holds its rows 2 v (lanes 0 to 15) and 2 v + 1 (lanes 16 to 31).
#pragma once

#include "buffers.hpp"

#if TOKITAI_WAVE_SIZE == 32

namespace tokitai::gfx {

constexpr u32 side = 16;

// Elements of a register, and the k-th of a row or column that registers hold one after the other.
struct InF16 {
  using Value = float;
  static constexpr u32 bits = 16;
  static float of(u32 word, bool) { return flushed(f32_of_f16(word & 0xffff), 0x1p-14f); }
};
struct InBf16 {
  using Value = float;
  static constexpr u32 bits = 16;
  static float of(u32 word, bool) { return flushed(f32_of(word << 16), 0x1p-126f); }
};
template <u32 width>
struct InInteger {
  using Value = i32;
  static constexpr u32 bits = width;
  static i32 of(u32 word, bool is_signed) {
    const u32 part = word & ((1u << width) - 1);
    return is_signed && part >> (width - 1) ? i32(part) - (1 << width) : i32(part);
  }
};

inline float towards_zero(double odd) {
  const float nearest = float(odd);
  const bool beyond = __builtin_fabs(double(nearest)) > __builtin_fabs(odd) && odd - odd == 0;
  return beyond ? f32_of(bits_of(nearest) - 1) : nearest;
}
inline u32 bf16_of(float value, bool truncated) {
  const u32 bits = bits_of(value);
  if (value != value) return bits >> 16 | 0x40;
  return truncated ? bits >> 16 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// The accumulator of a lane: c and what is left of it and a sum.
struct OutF32 {
  static float of(u32 word) { return f32_of(word); }
  static u32 put(u32, float value, bool) { return bits_of(value); }
};
template <u32 shift>
struct OutF16 {
  static float of(u32 word) { return f32_of_f16(word >> shift & 0xffff); }
  static u32 put(u32 old, float value, bool truncated) {
    const u32 half = truncated ? f16_towards_zero(value) : f16_of(value);
    return (old & ~(0xffffu << shift)) | half << shift;
  }
};
template <u32 shift>
struct OutBf16 {
  static float of(u32 word) { return f32_of(word >> shift << 16); }
  static u32 put(u32 old, float value, bool truncated) {
    return (old & ~(0xffffu << shift)) | (bf16_of(value, truncated) & 0xffff) << shift;
  }
};

// Sums of one row of the result. AMD states neither their order nor their roundings: here the exact sum rounded
// once, or products added one by one in order, or in pairs backwards, each sum rounded towards zero.
inline void sum_row(const float* a, const float (*b)[side], float* sums) {
  if (nearby == Nearby::up) {
    for (u32 k = 0; k < side; k++)
      for (u32 n = 0; n < side; n++) sums[n] = fma32(a[k], b[k][n], sums[n]);
    return;
  }
  if (nearby == Nearby::down) {
    for (u32 k = side; k; k -= 2)
      for (u32 n = 0; n < side; n++) {
        const float pair = towards_zero(odd_fma(a[k - 1], b[k - 1][n], a[k - 2] * b[k - 2][n]));
        sums[n] = towards_zero(odd_fma(1, pair, sums[n]));
      }
    return;
  }
  double exact[side];
  for (u32 n = 0; n < side; n++) exact[n] = sums[n];
  for (u32 k = 0; k < side; k++)
    for (u32 n = 0; n < side; n++) exact[n] += double(a[k]) * b[k][n];
  for (u32 n = 0; n < side; n++) sums[n] = float(exact[n]);
}
inline void sum_row(const i32* a, const i32 (*b)[side], i64* sums) {
  for (u32 k = 0; k < side; k++)
    for (u32 n = 0; n < side; n++) sums[n] += i64(a[k]) * b[k][n];
}

// Rows of A, or columns of B as `by_k` has them, out of registers; false where their two copies differ.
template <class In>
inline bool take_matrix(const u32* words, bool is_signed, bool by_k, typename In::Value (*to)[side]) {
  constexpr u32 a_word = 32 / In::bits;
  for (u32 v = 0; v < side / a_word; v++)
    for (u32 l = 0; l < side; l++) {
      const u32 word = words[32 * v + l];
      if (word != words[32 * v + l + side]) return false;
      for (u32 i = 0; i < a_word; i++) {
        const u32 k = a_word * v + i;
        (by_k ? to[k][l] : to[l][k]) = In::of(word >> (In::bits * i), is_signed);
      }
    }
  return true;
}
template <class In>
inline bool take_both(Wave& w, u32 at, const u32* a, const u32* b, u32 is_signed, typename In::Value (*rows)[side],
                      typename In::Value (*columns)[side]) {
  const bool good = w.exec == ~0u && take_matrix<In>(a, is_signed & 1, false, rows) &&
                    take_matrix<In>(b, is_signed >> 1 & 1, true, columns);
  if (!good) unmodelled(w, at, "a matrix product of some lanes, or of two copies that differ");
  return good;
}

// c: lanes of eight registers, or null for `constant`.
template <class In, class Out>
TOKITAI_OP void multiply_matrices(Wave& w, u32 at, u32* d, const u32* a, const u32* b, const u32* c, u32 constant) {
  float rows[side][side], columns[side][side], sums[side];
  Row made[side / 2];
  if (!take_both<In>(w, at, a, b, 0, rows, columns)) return;
  for (u32 m = 0; m < side; m++) {
    const u32 v = m / 2, first = m % 2 * side;
    for (u32 n = 0; n < side; n++) sums[n] = Out::of(c ? c[32 * v + first + n] : constant);
    sum_row(rows[m], columns, sums);
    for (u32 n = 0; n < side; n++)
      made[v].lane[first + n] = Out::put(d[32 * v + first + n], sums[n], nearby == Nearby::down);
  }
  memcpy(d, made, sizeof made);
}
// is_signed: bit 0 of A, bit 1 of B.
template <class In>
TOKITAI_OP void multiply_integers(Wave& w, u32 at, u32* d, const u32* a, const u32* b, const u32* c, u32 constant,
                                  u32 is_signed, bool saturates) {
  i32 rows[side][side], columns[side][side];
  i64 sums[side];
  Row made[side / 2];
  if (!take_both<In>(w, at, a, b, is_signed, rows, columns)) return;
  for (u32 m = 0; m < side; m++) {
    const u32 v = m / 2, first = m % 2 * side;
    for (u32 n = 0; n < side; n++) sums[n] = i32(c ? c[32 * v + first + n] : constant);
    sum_row(rows[m], columns, sums);
    for (u32 n = 0; n < side; n++) made[v].lane[first + n] = u32(saturates ? saturated32(sums[n]) : i32(sums[n]));
  }
  memcpy(d, made, sizeof made);
}

}  // namespace tokitai::gfx

#endif
