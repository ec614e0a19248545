// Products of matrices of 16 by 16 in waves of 32 (manual, 7.9 "Wave matrix multiply accumulate"). Lanes 0 to
// 15 hold a row of A, or a column of B, each, and lanes 16 to 31 hold them once more; register v of the result
// holds its rows 2 v (lanes 0 to 15) and 2 v + 1 (lanes 16 to 31).
#pragma once

#include "matrix_sums.hpp"

#if TOKITAI_WAVE_SIZE == 32

namespace tokitai::gfx {

constexpr u32 side = 16;

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
    sum_row<side>(rows[m], columns, sums);
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
    sum_row<side>(rows[m], columns, sums);
    for (u32 n = 0; n < side; n++) made[v].lane[first + n] = u32(saturates ? saturated32(sums[n]) : i32(sums[n]));
  }
  memcpy(d, made, sizeof made);
}

}  // namespace tokitai::gfx

#endif
