// A wave of 32 or 64 lanes: its registers, and operands and destinations of vector instructions.
#pragma once

#include "approximation.hpp"

// Lanes of a wave, as the build says: 32 of RDNA, 64 of CDNA.
#ifndef TOKITAI_WAVE_SIZE
#define TOKITAI_WAVE_SIZE 32
#endif
#define TOKITAI_LANES _Pragma("GCC ivdep") for (int l = 0; l < TOKITAI_WAVE_SIZE; l++)
#define TOKITAI_OP __attribute__((noinline)) inline
// Of long functions that are hardly executed compilers need not make much.
#if defined(__clang__)
#define TOKITAI_COLD __attribute__((cold, noinline, optnone))
#else
#define TOKITAI_COLD __attribute__((cold, noinline, optimize("O0")))
#endif

namespace tokitai {
struct DeviceKernel;
}

namespace tokitai::gfx {

struct Group;
struct Area;

constexpr u32 wave_size = TOKITAI_WAVE_SIZE;
// A bit for each lane.
#if TOKITAI_WAVE_SIZE == 64
using LaneMask = u64;
#else
using LaneMask = u32;
#endif
constexpr LaneMask all_lanes = ~LaneMask(0);
inline LaneMask lane_bit(u32 lane) { return LaneMask(1) << lane; }
inline u32 first_of(LaneMask mask) { return u32(__builtin_ctzll(mask)); }
// Of a mask those of lanes 0 to 31, or 32 to 63.
inline u32 mask_part(LaneMask mask, u32 high) { return high ? u32(u64(mask) >> 32) : u32(mask); }

enum class State : u32 { ready, at_barrier, ended, stopped };

struct alignas(64) Row {
  u32 lane[wave_size];
};

// Vector registers; with waves of 64 accumulation registers follow the 256 others.
constexpr unsigned vcc = 106, m0 = 125, accumulation = 256, register_limit = wave_size == 64 ? 512 : 256;

// Registers that nobody has set (unset.hpp). lanes: by halves, low ones first, those with an unset bit; bits:
// which, and nothing of other lanes. whole: a bit of each half and each scalar that has none unset.
constexpr u32 scalar_count = 131, unset_words = (2 * register_limit + scalar_count + 63) / 64;
struct Unset {
  LaneMask lanes[2 * register_limit];
  u32 scalar[scalar_count];
  u64 whole[unset_words];
  Row bits[register_limit];
};

struct Wave {
  Row v[register_limit + 6];  // the last ones for operands on their way
  Row active;                 // EXEC, as all ones or none in each lane
  u32 s[128];
  LaneMask exec;
  u32 scc, pc, index;
  u32 turns;  // backward branches until the next wave is to have a turn
  State state;
  Group* group;
  const Area* areas[16];  // that instructions met last, by their addresses
  Unset unset;

  const Area*& recent(u32 at) { return areas[at >> 3 & 15]; }
  u32* temporary(unsigned which) { return v[register_limit + which].lane; }
  void set_exec(LaneMask mask) {
    exec = mask;
    TOKITAI_LANES active.lane[l] = 0u - u32(mask >> l & 1);
  }
  void set_exec_part(u32 part, u32 high) {
    const u64 kept = high ? u32(exec) : u64(exec) >> 32 << 32;
    set_exec(LaneMask(kept | u64(part) << (32 * high)));
  }
  LaneMask vcc_mask() const { return LaneMask(pair(vcc)); }
  u64 pair(unsigned first) const { return s[first] | u64(s[first + 1]) << 32; }
  void set_pair(unsigned first, u64 value) {
    s[first] = u32(value);
    s[first + 1] = u32(value >> 32);
  }
};

// --- sources: bits of a lane

struct V {
  const u32* p;
  u32 bits(int l) const { return p[l]; }
  u64 wide(int l) const { return p[l] | u64(p[l + int(wave_size)]) << 32; }
};
template <int shift>
struct Half {
  const u32* p;
  u32 bits(int l) const { return p[l] >> shift & 0xffff; }
};
struct S {
  u32 x;
  u32 bits(int) const { return x; }
};
struct S64 {
  u64 x;
  u64 wide(int) const { return x; }
};
struct Mask {
  LaneMask x;
  u32 bits(int l) const { return u32(x >> l & 1); }
};
// Absolute value and negation: some bits are kept, some are flipped.
template <class A>
struct Signed {
  A a;
  u32 keep, flip;
  u32 bits(int l) const { return (a.bits(l) & keep) ^ flip; }
};
template <class A>
struct Signed64 {
  A a;
  u64 keep, flip;
  u64 wide(int l) const { return (a.wide(l) & keep) ^ flip; }
};
// Halves that op_sel picks; `whole` and `half` are those of v_fma_mix.
template <class A>
struct Picked {
  A a;
  u32 low, high, flip;
  u32 bits(int l) const {
    const u32 x = a.bits(l);
    return ((x >> low & 0xffff) | (x >> high & 0xffff) << 16) ^ flip;
  }
};
// Of a pair of registers: two floats, or one register.
template <class A>
struct PickedPair {
  A a;
  u32 low, high;
  u64 flip;
  u64 wide(int l) const {
    const u64 x = a.wide(l);
    return ((x >> low & 0xffffffff) | (x >> high) << 32) ^ flip;
  }
};
template <class A>
struct Pick {
  A a;
  u32 shift;
  u64 wide(int l) const { return a.wide(l) >> shift; }
};
// Bytes or nibbles, and in bit 32 whether they are signed.
template <class A>
struct Bytes {
  A a;
  u64 is_signed;
  u64 bits(int l) const { return a.bits(l) | is_signed; }
};
template <class A>
struct MixWhole {
  A a;
  u32 keep, flip;
  float mixed(int l) const { return f32_of((a.bits(l) & keep) ^ flip); }
};
template <class A>
struct MixHalf {
  A a;
  u32 shift, keep, flip;
  float mixed(int l) const { return f32_of_f16(((a.bits(l) >> shift & 0xffff) & keep) ^ flip); }
};

// A byte or a word of a register, as SDWA selects it, for an operation on `width` bits.
template <class A, int shift, int bit_count, bool extended, int width>
struct Part {
  A a;
  u32 bits(int l) const {
    const u32 part = a.bits(l) >> shift << (32 - bit_count);
    const u32 made = extended ? u32(i32(part) >> (32 - bit_count)) : part >> (32 - bit_count);
    return width == 16 ? made & 0xffff : made;
  }
};

// --- destinations: lanes that are not active keep what they hold

struct D {
  u32* p;
  u32 bits(int l) const { return p[l]; }
  u64 wide(int l) const { return p[l] | u64(p[l + int(wave_size)]) << 32; }
  void put(int l, u32 active, u32 value) const { p[l] = (value & active) | (p[l] & ~active); }
  void put_wide(int l, u32 active, u64 value) const {
    p[l] = (u32(value) & active) | (p[l] & ~active);
    u32& high = p[l + int(wave_size)];
    high = (u32(value >> 32) & active) | (high & ~active);
  }
};
template <int shift>
struct HalfD {
  u32* p;
  u32 bits(int l) const { return p[l] >> shift & 0xffff; }
  void put(int l, u32 active, u32 value) const {
    const u32 mask = active & (0xffffu << shift);
    p[l] = (value << shift & mask) | (p[l] & ~mask);
  }
};
// A byte or a word of a register, as SDWA selects it. unused: the rest is 0 (0), takes the sign upwards and is 0
// below (1), or stays (2).
template <int shift, int bit_count, int unused>
struct PartD {
  u32* p;
  static constexpr u32 mask = (bit_count < 32 ? (1u << bit_count) - 1 : ~0u) << shift;
  u32 bits(int l) const { return p[l]; }
  void put(int l, u32 active, u32 value) const {
    const u32 part = value << shift & mask;
    const u32 made = unused == 2   ? part | (p[l] & ~mask)
                     : unused == 1 ? u32(i32(part << (32 - shift - bit_count)) >> (32 - shift - bit_count))
                                   : part;
    p[l] = (made & active) | (p[l] & ~active);
  }
};
// Clamped to 0 to 1, a NaN to 0 (DX10_CLAMP).
struct Clamped32 {
  D d;
  u32 bits(int l) const { return d.bits(l); }
  void put(int l, u32 active, u32 value) const {
    const float x = f32_of(value);
    d.put(l, active, x > 0 ? bits_of(x < 1 ? x : 1.0f) : 0);
  }
};
template <class To>
struct Clamped16 {
  To d;
  u32 bits(int l) const { return d.bits(l); }
  void put(int l, u32 active, u32 value) const {
    d.put(l, active, value - 1 < 0x7c00 ? (value < 0x3c00 ? value : 0x3c00) : 0);
  }
};

// --- lanes that read other lanes

// Copies of a source for DPP, and the lanes that may write. `control` as in the encoding (manual, 7.4).
inline int dpp_lane(u32 control, int l) {
  const int row = l & ~15, in_row = l & 15;
  const int amount = int(control & 15);
  int from = -1;
  if (control < 0x100) return (l & ~3) | int(control >> (2 * (l & 3)) & 3);
  switch (control & 0xff0) {
    case 0x100: from = in_row + amount; return from < 16 ? row + from : -1;  // row_shl
    case 0x110: from = in_row - amount; return from >= 0 ? row + from : -1;  // row_shr
    case 0x120: return row + ((in_row - amount) & 15);                       // row_ror
    // Of gfx9: all lanes by one, and the last lane of a row, or of the lower half, for those behind it.
    case 0x130:
      switch (control) {
        case 0x130: return l + 1 < int(wave_size) ? l + 1 : -1;  // wave_shl
        case 0x134: return (l + 1) & int(wave_size - 1);         // wave_rol
        case 0x138: return l - 1;                                // wave_shr
        case 0x13c: return (l - 1) & int(wave_size - 1);         // wave_ror
      }
      return -1;
    case 0x140:
      if (control == 0x142) return row - 1;               // row_bcast:15
      if (control == 0x143) return l >= 32 ? 31 : -1;     // row_bcast:31
      return control == 0x140 ? row + 15 - in_row : row + (in_row ^ 7);
    case 0x150: return row + amount;             // row_share
    case 0x160: return row + (in_row ^ amount);  // row_xmask
  }
  return from;
}
TOKITAI_OP LaneMask dpp(const Wave& w, u32* to, const u32* from, u32 control, u32 rows, u32 banks, bool bound,
                   bool inactive) {
  LaneMask writes = 0;
  for (int l = 0; l < int(wave_size); l++) {
    const int source = dpp_lane(control, l);
    const bool valid = source >= 0 && (inactive || (w.exec >> source & 1));
    to[l] = valid ? from[source] : 0;
    if ((valid || bound) && (rows >> (l >> 4) & 1) && (banks >> (l >> 2 & 3) & 1)) writes |= lane_bit(u32(l));
  }
  return writes & w.exec;
}
TOKITAI_OP LaneMask dpp8(const Wave& w, u32* to, const u32* from, u32 lanes, bool inactive) {
  for (int l = 0; l < int(wave_size); l++) {
    const int source = (l & ~7) | int(lanes >> (3 * (l & 7)) & 7);
    to[l] = inactive || (w.exec >> source & 1) ? from[source] : 0;
  }
  return w.exec;
}
inline const u32* lanes_of(LaneMask mask, Row& row) {
  TOKITAI_LANES row.lane[l] = 0u - u32(mask >> l & 1);
  return row.lane;
}

inline u32 first_lane(const Wave& w) { return w.exec ? first_of(w.exec) : 0; }

// Each lane of a row picks one of 16 of its row, or of the other row (x).
TOKITAI_OP void permlane16(Wave& w, D d, V from, u32 low, u32 high, bool other_row, bool inactive,
                           bool bound) {
  const u64 picks = low | u64(high) << 32;
  u32 made[wave_size];
  LaneMask writes = 0;
  for (int l = 0; l < int(wave_size); l++) {
    const int row = (l & ~15) ^ (other_row ? 16 : 0), source = row | int(picks >> (4 * (l & 15)) & 15);
    const bool valid = inactive || (w.exec >> source & 1);
    made[l] = valid ? from.bits(source) : 0;
    if (valid || bound) writes |= lane_bit(u32(l));
  }
  for (int l = 0; l < int(wave_size); l++)
    if (writes & w.exec & lane_bit(u32(l))) d.p[l] = made[l];
}

TOKITAI_OP void ds_bpermute(Wave& w, D d, const u32* address, const u32* data, u32 offset) {
  u32 made[wave_size];
  for (int l = 0; l < int(wave_size); l++) {
    const u32 source = (address[l] + offset) >> 2 & (wave_size - 1);
    made[l] = w.exec >> source & 1 ? data[source] : 0;
  }
  TOKITAI_LANES d.put(l, w.active.lane[l], made[l]);
}
TOKITAI_OP void ds_permute(Wave& w, D d, const u32* address, const u32* data, u32 offset) {
  u32 made[wave_size] = {};
  for (int l = 0; l < int(wave_size); l++)
    if (w.exec >> l & 1) made[(address[l] + offset) >> 2 & (wave_size - 1)] = data[l];
  TOKITAI_LANES d.put(l, w.active.lane[l], made[l]);
}
// `pattern` is the instruction's offset (manual, ds_swizzle_b32).
inline int swizzled(u32 pattern, int l) {
  if (pattern >= 0xe000) return -1;  // FFT: not translated
  if (pattern >= 0xc000) {
    const int amount = int(pattern >> 5 & 31), mask = int(pattern & 31);
    const int moved = pattern & 0x400 ? l - amount : l + amount;
    return (l & (mask | 32)) | (moved & ~mask & 31);
  }
  if (pattern & 0x8000) return (l & ~3) | int(pattern >> (2 * (l & 3)) & 3);
  return ((l & int((pattern & 31) | 32)) | int(pattern >> 5 & 31)) ^ int(pattern >> 10 & 31);
}
TOKITAI_OP void ds_swizzle(Wave& w, D d, const u32* data, u32 pattern) {
  u32 made[wave_size];
  for (int l = 0; l < int(wave_size); l++) {
    const int source = swizzled(pattern, l);
    made[l] = w.exec >> source & 1 ? data[source] : 0;
  }
  TOKITAI_LANES d.put(l, w.active.lane[l], made[l]);
}

}  // namespace tokitai::gfx
