// Memory as a wave sees it. Every access is held against what the launch owns; what nobody has written, and
// what two waves of a block access between the same barriers, is told.
#pragma once

#include "shared_words.hpp"

namespace tokitai::gfx {

// Memory of the launch. `written`: a byte for each, 0 until something is written; null where all is.
struct Area {
  u8* begin;
  u64 bytes;
  u8* written;
  bool writable;
  int buffer;  // its number, or -1
  const char* name;
  WordUse* uses;  // of words of 1 << `shift` bytes; null where no race is looked for
  u32 shift;
};

// What is known of four bytes of LDS since the block began. A stamp is a number of the interval between
// barriers, and the wave.
struct LdsCell {
  u32 write, read;
  u32 write_at, read_at;  // the instructions
  u8 write_mask, read_mask, written;
  bool several_read, write_atomic, read_atomic;
};

struct Launch;

struct Group {
  u8* lds;
  LdsCell* cells;
  u8 *scratch, *scratch_written;
  u32 lds_bytes, scratch_bytes;  // scratch: of a lane
  u32 interval, fenced_interval;  // the last one in which a wave made a fence of the block's scope
  bool fenced;                    // of the device's scope, in this block
  u32 number, first_number;       // of the block, and of the launch's first one
  u32 entry;                      // of the kernel's code
  u32 block[3];
  Wave* waves;
  unsigned wave_count;
  Launch* launch;
};

enum class Fault : u32 { out_of_bounds, uninitialised, unset, race, mixed_race, same_value, misaligned };

// Of the unit that serves: an area that holds [address, address + bytes), or null; and what is found.
const Area* area_at(const Wave& w, u64 address, u64 bytes);
struct Found {
  Fault fault;
  u32 at, lane;
  u64 address;
  u32 bytes;
  bool writes;
  const char* space;
  u32 other_at, other_wave;  // of a race
  bool other_writes;
  u32 other_block = 0;  // its index and 1, 0 for the same, ~0 for several
  bool zero = false;    // of two stores of the same value: it is zero
};
void report(const Wave& w, const Found& found);
inline bool is_zero(const u8* value, u32 bytes) {
  for (u32 i = 0; i < bytes; i++)
    if (value[i]) return false;
  return true;
}

// Of the unit that serves: ends a wave that does what is not modelled.
void unmodelled(Wave& w, u32 at, const char* what);
// Two float32 before a conversion that saturates (FP16_OVFL) to FNUZ: what it makes of an infinity is not stated.
template <class A, class B>
inline void finite_to_float8(Wave& w, u32 at, const u32* active, A a, B b) {
  bool infinite = false;
  for (int l = 0; l < int(wave_size); l++)
    for (const u32 bits : {a.bits(l), b.bits(l)}) infinite |= active[l] && (bits & 0x7fffffff) == 0x7f800000;
  if (infinite) unmodelled(w, at, "an infinity to float8 in a mode that saturates");
}

// High halves of generic addresses of LDS and scratch; no pointer of the host has them.
constexpr u32 lds_aperture = 0x10000, scratch_aperture = 0x20000;

enum class Does : u32 { read, write, update };

struct Global {
  static constexpr bool threaded = true;
  // same: what is stored is there already.
  static void hold(Wave& w, const Found& found, Access mine, Access other, bool in_block, bool same) {
    const Other kind = unordered(other, mine, in_block);
    const bool atomic = mine.has(Access::atomic_flag);
    if (kind == Other::none || (kind == Other::atomic && atomic)) return;
    const bool several = other.block() == mine.block() && other.has(Access::blocks_flag | Access::atomic_blocks_flag);
    Found told = found;
    // With waves of 64 no instruction tells a fence of the block's scope, which may order both.
    const bool fenced = wave_size == 64 && other.block() == mine.block() && !several;
    told.fault = kind != Other::plain || atomic || fenced ? Fault::mixed_race : same ? Fault::same_value : Fault::race;
    told.other_at = other.place() == Access::any_place ? 0 : w.group->entry + 4 * other.place();
    told.other_wave = other.wave();
    told.other_block = several ? ~0u : other.block() == mine.block() ? 0 : other.block() - w.group->first_number + 1;
    report(w, told);
  }
  static void use(Wave& w, const Area& area, u64 offset, u32 at, u32 lane, u64 address, u32 bytes, Does does,
                  bool atomic, bool same, bool zero) {
    const Group& g = *w.group;
    if (g.fenced) return;
    u32 place = (at - g.entry) / 4;
    if (at < g.entry || place > Access::any_place) place = Access::any_place;
    const u32 interval = g.interval < Access::last_interval ? g.interval : Access::last_interval;
    const Access mine = Access::of(g.number, place, interval, w.index, atomic);
    const bool in_block = g.fenced_interval != g.interval, writes = does != Does::read;
    const Found found = {Fault::race, at, lane, address, bytes, writes, "global", 0, 0, false};
    Found by_write = found;
    by_write.other_writes = true;
    by_write.zero = zero;
    for (u64 word = offset >> area.shift; word <= (offset + bytes - 1) >> area.shift; word++) {
      WordUse& use = area.uses[word];
      const Access before = put_access(writes ? use.write : use.read, mine, g.first_number);
      if (writes) hold(w, by_write, mine, before, in_block, same);
      const Access other = read_access(writes ? use.read : use.write, g.first_number);
      hold(w, writes ? found : by_write, mine, other, in_block, false);
    }
  }
  // stored: what a store puts there.
  static u8* touch(Wave& w, u32 at, u32 lane, u64 address, u32 bytes, Does does, bool atomic = false,
                   const u8* stored = nullptr) {
    const Area* area = w.recent(at);
    u64 offset = address - reinterpret_cast<u64>(area->begin);
    if (offset >= area->bytes || area->bytes - offset < bytes || (does != Does::read && !area->writable)) {
      area = area_at(w, address, bytes);
      if (!area || (does != Does::read && !area->writable)) {
        report(w, {Fault::out_of_bounds, at, lane, address, bytes, does != Does::read, "global", 0, 0, false});
        return nullptr;
      }
      w.recent(at) = area;
      offset = address - reinterpret_cast<u64>(area->begin);
    }
    if (area->written) {
      u8* written = area->written + offset;
      if (does != Does::write)
        for (u32 i = 0; i < bytes; i++)
          if (!written[i]) {
            report(w, {Fault::uninitialised, at, lane, address, bytes, false, "global", 0, 0, false});
            break;
          }
      if (does != Does::read) memset(written, 1, bytes);
    }
    if (area->uses) {
      const bool same = stored && memcmp(area->begin + offset, stored, bytes) == 0;
      use(w, *area, offset, at, lane, address, bytes, does, atomic, same, same && is_zero(stored, bytes));
    }
    return area->begin + offset;
  }
};

struct Lds {
  static constexpr bool threaded = false;
  static void conflict(Wave& w, u32 at, u32 lane, u64 address, u32 bytes, bool writes, bool atomic,
                       const LdsCell& cell, bool other_writes, bool same = false, bool zero = false) {
    const bool mixed = atomic || (other_writes ? cell.write_atomic : cell.read_atomic);
    const Fault fault = mixed ? Fault::mixed_race : same ? Fault::same_value : Fault::race;
    report(w, {fault, at, lane, address, bytes, writes, "LDS",
               other_writes ? cell.write_at : cell.read_at, (other_writes ? cell.write : cell.read) & 255,
               other_writes, 0, zero});
  }
  static u8* touch(Wave& w, u32 at, u32 lane, u64 address, u32 bytes, Does does, bool atomic = false,
                   const u8* stored = nullptr) {
    Group& g = *w.group;
    if (address >= g.lds_bytes || g.lds_bytes - address < bytes) {
      report(w, {Fault::out_of_bounds, at, lane, address, bytes, does != Does::read, "LDS", 0, 0, false});
      return nullptr;
    }
    const u32 stamp = g.interval << 8 | w.index, first = u32(address), end = first + bytes;
    for (u32 dword = first >> 2; dword << 2 < end; dword++) {
      LdsCell& cell = g.cells[dword];
      const u32 from = dword << 2 < first ? first & 3 : 0, to = end - (dword << 2) < 4 ? end & 3 : 4;
      const u8 mask = u8((1u << to) - (1u << from));
      const bool reads = does != Does::write, writes = does != Does::read;
      if (reads && (mask & ~cell.written))
        report(w, {Fault::uninitialised, at, lane, address, bytes, false, "LDS", 0, 0, false});
      const bool written_now = cell.write >> 8 == g.interval, read_now = cell.read >> 8 == g.interval;
      if (written_now && cell.write != stamp && cell.write_mask & mask && !(atomic && cell.write_atomic)) {
        const bool same = stored && memcmp(g.lds + address, stored, bytes) == 0;
        conflict(w, at, lane, address, bytes, writes, atomic, cell, true, same, same && is_zero(stored, bytes));
      }
      if (writes) {
        if (read_now && (cell.read != stamp || cell.several_read) && cell.read_mask & mask &&
            !(atomic && cell.read_atomic))
          conflict(w, at, lane, address, bytes, true, atomic, cell, false);
        cell.write_mask = u8(cell.write == stamp ? cell.write_mask | mask : mask);
        cell.write = stamp;
        cell.write_at = at;
        cell.write_atomic = atomic;
        cell.written |= mask;
      }
      if (reads && !(writes && atomic)) {
        cell.several_read = read_now && (cell.several_read || cell.read != stamp);
        cell.read_mask = u8(read_now ? cell.read_mask | mask : mask);
        cell.read_atomic = atomic;
        cell.read = stamp;
        cell.read_at = at;
      }
    }
    return g.lds + address;
  }
};

struct Scratch {
  static constexpr bool threaded = false;
  static u8* touch(Wave& w, u32 at, u32 lane, u64 address, u32 bytes, Does does, bool = false,
                   const u8* = nullptr) {
    Group& g = *w.group;
    address = u32(address);
    if (address >= g.scratch_bytes || g.scratch_bytes - address < bytes) {
      report(w, {Fault::out_of_bounds, at, lane, address, bytes, does != Does::read, "scratch", 0, 0, false});
      return nullptr;
    }
    const u64 offset = u64(w.index * wave_size + lane) * g.scratch_bytes + address;
    if (does != Does::read) memset(g.scratch_written + offset, 1, bytes);
    return g.scratch + offset;
  }
  // What nobody has written, or written with an unset register (2), is unset in a register that it is loaded
  // into: it is told where it comes to matter, as compilers reload registers that they have not spilled yet.
  static bool has(const Wave& w, const u8* place) {
    const Group& g = *w.group;
    return place && place >= g.scratch && place < g.scratch + u64(g.scratch_bytes) * g.wave_count * wave_size;
  }
  static void keep_unset(const Wave& w, u32 at, const u8* place, const u32* data, u32 lane, u32 bytes, u32 shift) {
    const u32 number = u32(data - w.v[0].lane) / wave_size;
    for (u32 i = 0; i < bytes; i++) {
      if (!(unset_of(w.unset, number + i / 4, lane) >> (shift + 8 * (i & 3)) & 255)) continue;
      if (!has(w, place)) return report_unset(w, at, lane, Matter::stored);
      w.group->scratch_written[place + i - w.group->scratch] = 2;
    }
  }
  static void put_unset_loaded(Wave& w, const u8* place, const u32* d, u32 lane, u32 bytes, u32 shift) {
    if (!has(w, place)) return;
    const u8* written = w.group->scratch_written + (place - w.group->scratch);
    const u32 number = u32(d - w.v[0].lane) / wave_size;
    for (u32 i = 0; i < bytes; i++)
      if (written[i] != 1) {
        const u32 to = number + i / 4, bits = 255u << (shift + 8 * (i & 3));
        put_unset(w.unset, to, lane, unset_of(w.unset, to, lane) | bits);
      }
  }
};

struct Flat {
  static constexpr bool threaded = true;
  static u8* touch(Wave& w, u32 at, u32 lane, u64 address, u32 bytes, Does does, bool atomic = false,
                   const u8* stored = nullptr) {
    if (address >> 32 == lds_aperture) return Lds::touch(w, at, lane, u32(address), bytes, does, atomic, stored);
    if (address >> 32 == scratch_aperture) return Scratch::touch(w, at, lane, address, bytes, does);
    return Global::touch(w, at, lane, address, bytes, does, atomic, stored);
  }
};

template <class Space>
inline u8* touch_atomically(Wave& w, u32 at, u32 lane, u64 address, u32 bytes) {
  if (address % bytes) {
    report(w, {Fault::misaligned, at, lane, address, bytes, true, "memory", 0, 0, false});
    return nullptr;
  }
  return Space::touch(w, at, lane, address, bytes, Does::update, true);
}

// --- addresses of a lane

struct Wide {  // a pair of registers
  const u32* p;
  i32 offset;
  u64 of(u32 l) const { return (p[l] | u64(p[l + wave_size]) << 32) + u64(i64(offset)); }
};
struct Based {  // a scalar base and a register
  u64 base;
  const u32* p;
  u64 of(u32 l) const { return base + p[l]; }
};
struct Uniform {
  u64 base;
  u64 of(u32) const { return base; }
};
struct Narrow {  // 32 bits
  const u32* p;
  u32 offset;
  u64 of(u32 l) const { return u32(p[l] + offset); }
};
// Of LDS: the sum wraps at 32 bits. LLVM gives a negative base an offset on all but the oldest GPUs
// (AMDGPUISelDAGToDAG.cpp, isDSOffsetLegal).
struct Ranged {
  const u32* p;
  u32 offset;
  u64 of(u32 l) const { return u32(p[l] + offset); }
};

// --- loads and stores

template <class T>
struct Small {
  static constexpr u32 bytes = sizeof(T);
  static void put(u32* d, const u8* from) {
    T value = 0;
    if (from) memcpy(&value, from, sizeof value);
    *d = u32(i32(value));
  }
};
template <u32 count>
struct Dwords {
  static constexpr u32 bytes = 4 * count;
  static void put(u32* d, const u8* from) {
    for (u32 i = 0; i < count; i++) {
      u32 value = 0;
      if (from) memcpy(&value, from + 4 * i, 4);
      d[wave_size * i] = value;
    }
  }
};
using U8 = Small<u8>;
using I8 = Small<i8>;
using U16 = Small<u16>;
using I16 = Small<i16>;
using B32 = Dwords<1>;
using B64 = Dwords<2>;
using B96 = Dwords<3>;
using B128 = Dwords<4>;
// Where a loaded value goes: the whole register, or one half.
struct whole {
  static void put(u32* d, u32 value) { *d = value; }
};
template <u32 shift>
struct HalfPlace {
  static void put(u32* d, u32 value) { *d = (*d & ~(0xffffu << shift)) | (value & 0xffff) << shift; }
};
using lower = HalfPlace<0>;
using upper = HalfPlace<16>;

template <class What, class Place>
inline void put_loaded(u32* d, const u8* from) {
  if constexpr (__is_same(Place, whole)) {
    What::put(d, from);
  } else {
    u32 value;
    What::put(&value, from);
    Place::put(d, value);
  }
}

// Loads of lanes that all lie in one area, of which all is written: false where some do not.
template <class What, class Place, class Address>
inline bool load_at_once(Wave& w, u32 at, u32* d, Address address) {
  const Area* area = w.recent(at);
  if (area->written || area->uses || area->bytes < What::bytes) return false;
  const u64 begin = reinterpret_cast<u64>(area->begin), last = area->bytes - What::bytes;
  u64 offsets[wave_size];
  u64 outside = 0;
  TOKITAI_LANES {
    const u64 offset = (address.of(u32(l)) - begin) & u64(i64(i32(w.active.lane[l])));
    offsets[l] = offset;
    outside |= offset > last;
  }
  if (outside) return false;
  if (w.exec == all_lanes) {
    for (u32 l = 0; l < wave_size; l++) put_loaded<What, Place>(d + l, area->begin + offsets[l]);
  } else {
    for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
      const u32 l = first_of(lanes);
      put_loaded<What, Place>(d + l, area->begin + offsets[l]);
    }
  }
  return true;
}

// `atomic`: past the caches of a block, as volatile and atomic accesses of a program are.
template <class Space, class What, class Place, bool atomic = false, class Address>
TOKITAI_OP void load(Wave& w, u32 at, u32* d, Address address) {
  if constexpr (__is_same(Space, Global))
    if (load_at_once<What, Place>(w, at, d, address)) return;
  for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
    const u32 l = first_of(lanes);
    const u8* from = Space::touch(w, at, l, address.of(l), What::bytes, Does::read, atomic);
    put_loaded<What, Place>(d + l, from);
    if constexpr (__is_same(Space, Scratch) || __is_same(Space, Flat))
      Scratch::put_unset_loaded(w, from, d, l, What::bytes, __is_same(Place, upper) ? 16 : 0);
  }
}

// Of a load into half a register, the half from `shift` on where it does not stay: nothing is known of it.
template <u32 shift>
TOKITAI_OP void forget_half(Wave& w, u32 number) {
  for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
    const u32 l = first_of(lanes);
    put_unset(w.unset, number, l, unset_of(w.unset, number, l) | 0xffffu << shift);
  }
}

// From global memory into LDS, where lanes' words lie side by side from M0 on.
template <u32 bytes>
inline void put_into_lds(Wave& w, u32 at, u32 l, const u8* from, i32 offset) {
  u8 words[bytes] = {};
  if (from) memcpy(words, from, bytes);
  u8* to = Lds::touch(w, at, l, u32(w.s[m0] + u32(offset) + l * bytes), bytes, Does::write, false, words);
  if (to) memcpy(to, words, bytes);
}
template <u32 bytes, class Address>
TOKITAI_OP void load_lds(Wave& w, u32 at, Address address, i32 offset) {
  for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
    const u32 l = first_of(lanes);
    put_into_lds<bytes>(w, at, l, Global::touch(w, at, l, address.of(l), bytes, Does::read), offset);
  }
}

// Of LDS: 64 bits a lane, of which 16 lanes hold a matrix of elements of `bits` bits, and what they get is the
// transposed one: lane m holds element m of each row.
template <u32 bits, class Address>
TOKITAI_OP void load_transposed(Wave& w, u32 at, u32* d, Address address) {
  constexpr u32 side = 16, held = 64 / bits;
  u64 words[wave_size] = {};
  if (w.exec != all_lanes) return unmodelled(w, at, "a matrix that some lanes load");
  for (u32 l = 0; l < wave_size; l++)
    if (const u8* from = Lds::touch(w, at, l, address.of(l), 8, Does::read)) memcpy(&words[l], from, 8);
  for (u32 l = 0; l < wave_size; l++) {
    u64 made = 0;
    for (u32 k = 0; k < held; k++) {
      const u32 m = l % side, from = l - m + side * k / held + m / held;
      made |= (words[from] >> bits * (m % held) & ((u64(1) << bits) - 1)) << bits * k;
    }
    d[l] = u32(made);
    d[wave_size + l] = u32(made >> 32);
  }
}

// `shift`: of a store of the high half.
template <class Space, u32 bytes, u32 shift, bool atomic = false, class Address, class Data>
TOKITAI_OP void store(Wave& w, u32 at, Address address, Data data) {
  for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
    const u32 l = first_of(lanes);
    u32 words[bytes / 4 + 1];
    for (u32 i = 0; i < bytes / 4; i++) words[i] = data.p[wave_size * i + l];
    if constexpr (bytes < 4) words[0] = data.p[l] >> shift;
    const auto* stored = reinterpret_cast<const u8*>(words);
    u8* to = Space::touch(w, at, l, address.of(l), bytes, Does::write, atomic, stored);
    if (!to) continue;
    memcpy(to, stored, bytes);
    if constexpr (__is_same(Space, Scratch) || __is_same(Space, Flat))
      Scratch::keep_unset(w, at, to, data.p, l, bytes, shift);
  }
}

// --- atomic operations

template <class T>
inline T from_lane(const u32* p, u32 l) {
  if constexpr (sizeof(T) == 8)
    return bit_cast<T>(p[l] | u64(p[l + wave_size]) << 32);
  else
    return bit_cast<T>(p[l]);
}
template <class T>
inline void to_lane(u32* p, u32 l, T value) {
  if constexpr (sizeof(T) == 8) {
    const u64 bits = bit_cast<u64>(value);
    p[l] = u32(bits);
    p[l + wave_size] = u32(bits >> 32);
  } else {
    p[l] = bit_cast<u32>(value);
  }
}

// d: what was there, or null. `make` gives what is left of what was there and the lane's data.
template <class Space, class T, class Address, class Make>
inline void atomic(Wave& w, u32 at, u32* d, Address address, Make make) {

  for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
    const u32 l = first_of(lanes);
    u8* place = touch_atomically<Space>(w, at, l, address.of(l), sizeof(T));
    T old = 0;
    if (place && Space::threaded) {
      auto* bits = reinterpret_cast<u64*>(place);
      if constexpr (sizeof(T) == 8) {
        u64 was = __atomic_load_n(bits, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(bits, &was, bit_cast<u64>(make(bit_cast<T>(was), l)), false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
        old = bit_cast<T>(was);
      } else {
        auto* half = reinterpret_cast<u32*>(place);
        u32 was = __atomic_load_n(half, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(half, &was, bit_cast<u32>(make(bit_cast<T>(was), l)), false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
        old = bit_cast<T>(was);
      }
    } else if (place) {
      memcpy(&old, place, sizeof old);
      const T made = make(old, l);
      memcpy(place, &made, sizeof made);
    }
    if (d) to_lane<T>(d, l, old);
  }

}

// --- scalar loads

TOKITAI_OP void load_scalars(Wave& w, u32 at, u32 first, u64 address, u32 count) {
  const u8* from = Global::touch(w, at, 0, address & ~u64(3), 4 * count, Does::read);
  for (u32 i = 0; i < count; i++) {
    u32 value = 0;
    if (from) memcpy(&value, from + 4 * i, 4);
    w.s[first + i] = value;
  }
}

}  // namespace tokitai::gfx
