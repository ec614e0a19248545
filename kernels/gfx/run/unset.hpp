// Registers that nobody has set, by bits. A region is code without a branch in which EXEC stays. Where all
// that it reads is set it runs at once, and what it writes is set; else it runs step by step: each
// instruction several times, with other values for the unset bits of what it reads. Bits of the result that
// differ are not set. What decides an address, a branch or EXEC, or is stored for others, must not be unset.
#pragma once

#include <initializer_list>

#include "wave.hpp"

namespace tokitai::gfx {

// Numbers of registers in steps: vector ones, then scalar ones, SCC and EXEC. In regions: low halves of
// vector registers, high halves, then as before.
constexpr u32 scalar_number = register_limit, scalar_half = 2 * register_limit, scc_scalar = 128;
constexpr u32 exec_scalar = 129;  // and its upper half behind it

struct Region {
  u64 reads[unset_words], writes[unset_words];
  u64 across[scalar_half / 64];  // read in lanes that are not active too
  u32 first, end;  // steps
  bool always;     // step by step, whatever is set; of one instruction
};

// An instruction. Of `numbers`: registers that it reads or writes in part, those that it writes, halves that it
// reads, halves that it writes; then what must not be unset, by register, Matter, and two halves of a mask.
struct Step {
  u32 at, constant;  // one that it has, or 0
  const u16* numbers;
  u8 in_count, out_count, read_count, write_count, check_count;
  bool once;    // it is not run with other values
  bool always;  // it is run with others, whatever is set
};
enum class Matter : u16 { address, stored, branch, exec, shared };

inline void set_half(Unset& unset, u32 half, LaneMask lanes) {
  LaneMask& left = unset.lanes[half];
  left &= ~lanes;
  if (!left) unset.whole[half >> 6] |= u64(1) << (half & 63);
}
inline void set_scalar(Unset& unset, u32 scalar) {
  unset.scalar[scalar] = 0;
  unset.whole[(scalar_half + scalar) >> 6] |= u64(1) << (scalar & 63);
}
inline void set_any(Unset& unset, u32 half, LaneMask lanes) {
  if (half < scalar_half)
    set_half(unset, half, lanes);
  else
    set_scalar(unset, half - scalar_half);
}

// Of a wave that begins: nothing is set of so many vector registers, nor of scalar ones.
inline void unset_all(Unset& unset, u32 vectors, u32 accumulations) {
  memset(unset.whole, 0, sizeof unset.whole);
  memset(unset.scalar, 255, sizeof unset.scalar);
  const auto unset_of_bank = [&unset](u32 first, u32 count) {
    for (u32 half : {0u, u32(register_limit)}) memset(unset.lanes + half + first, 255, count * sizeof(LaneMask));
    memset(unset.bits + first, 255, count * sizeof(Row));
  };
  unset_of_bank(0, vectors);
  if (accumulations) unset_of_bank(accumulation, accumulations);
  for (u32 part : {0u, 1u}) set_scalar(unset, exec_scalar + part);
}

// Bits of a vector register's lane.
inline u32 unset_of(const Unset& unset, u32 number, u32 lane) {
  const u32 low = unset.lanes[number] >> lane & 1, high = unset.lanes[register_limit + number] >> lane & 1;
  return unset.bits[number].lane[lane] & ((low ? 0xffff : 0) | (high ? 0xffff0000 : 0));
}
inline void put_unset(Unset& unset, u32 number, u32 lane, u32 bits) {
  unset.bits[number].lane[lane] = bits;
  for (u32 half : {0u, 1u}) {
    const u32 place = register_limit * half + number, there = bits >> (16 * half) & 0xffff;
    LaneMask& lanes = unset.lanes[place];
    lanes = (lanes & ~lane_bit(lane)) | LaneMask(there != 0) << lane;
    u64& whole = unset.whole[place >> 6];
    whole = (whole & ~(u64(1) << (place & 63))) | u64(!lanes) << (place & 63);
  }
}

inline bool is_set(const Wave& w, u32 half) {
  return half < scalar_half ? !(w.unset.lanes[half] & w.exec) : !w.unset.scalar[half - scalar_half];
}

// Of the unit that serves.
void run_slowly(Wave& w, const Region& region);
void report_unset(const Wave& w, u32 at, u32 lane, Matter matter);

// Whether all that the region reads is set; then so is what it writes.
TOKITAI_OP bool begins(Wave& w, const Region& region) {
  Unset& unset = w.unset;
  if (region.always) return false;
  for (u32 i = 0; i < scalar_half / 64; i++) {
    if (region.across[i] & ~unset.whole[i]) return false;
    for (u64 some = region.reads[i] & ~unset.whole[i]; some; some &= some - 1)
      if (unset.lanes[64 * i + u32(__builtin_ctzll(some))] & w.exec) return false;
  }
  for (u32 i = scalar_half / 64; i < unset_words; i++)
    if (region.reads[i] & ~unset.whole[i]) return false;
  for (u32 i = 0; i < unset_words; i++)
    for (u64 some = region.writes[i] & ~unset.whole[i]; some; some &= some - 1)
      set_any(unset, 64 * i + u32(__builtin_ctzll(some)), w.exec);
  return true;
}

// In front of a branch on whether a scalar register is zero, or on SCC.
TOKITAI_OP void steer(Wave& w, u32 at, u32 scalar) {
  LaneMask unset = w.unset.scalar[scalar], held = w.s[scalar];
  if (wave_size == 64 && scalar == vcc) {
    unset |= LaneMask(u64(w.unset.scalar[vcc + 1]) << 32);
    held = w.vcc_mask();
  }
  if (!unset) return;
  if (scalar == scc_scalar || !(held & ~unset)) report_unset(w, at, 0, Matter::branch);
}

}  // namespace tokitai::gfx
