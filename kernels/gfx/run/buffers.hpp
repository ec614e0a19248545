// Memory behind a buffer descriptor (manual, chapter "Vector memory buffer instructions"): what lies past its
// end is read as 0 and not written. Within it, the bounds of the launch's own memory hold as everywhere.
#pragma once

#include "memory.hpp"

namespace tokitai::gfx {

// Four scalar registers. With waves of 64 a scalar offset counts where the range is checked, only what has no
// stride is modelled, and one that is swizzled and begins at 0 is the wave's scratch (gfx90a), in which scalar
// offsets count the bytes of all lanes.
struct Descriptor {
  u64 base;
  u32 stride, records, select;
  bool plain;  // neither swizzled, nor indexed by threads
  bool scratch;

  explicit Descriptor(const u32* s)
      : base(s[0] | u64(s[1] & 0xffff) << 32),
        stride(s[1] >> 16 & 0x3fff),
        records(s[2]),
        select(s[3] >> 28 & 3),
        plain(!(s[1] >> 30) && !(s[3] >> 23 & 1) && (wave_size == 32 || !stride)),
        scratch(wave_size == 64 && !base && s[1] >> 31) {}
  // Whether `bytes` at an offset of a record are in range. Offsets are unsigned and do not wrap.
  bool holds(u64 index, u64 offset, u32 bytes) const {
    if (wave_size == 64) return offset + bytes <= records;
    switch (select) {
      case 0: return index < records && offset + bytes <= stride;
      case 1: return index < records;
      case 2: return records != 0;
    }
    return offset + stride * index + bytes <= records;
  }
};

// Where lanes access the memory of a descriptor: copies, since a load may overwrite its own address.
struct Described {
  Descriptor descriptor;
  u64 begin, checked, index[wave_size], offset[wave_size];

  // offsets, indices: lanes of a register, or null. scalar: what the address has beside the range.
  Described(Descriptor of, const u32* offsets, const u32* indices, u32 scalar, u32 constant)
      : descriptor(of),
        begin(of.base + (of.scratch ? scalar / wave_size : scalar)),
        checked(wave_size == 64 ? scalar : 0) {
    for (u32 l = 0; l < wave_size; l++) {
      index[l] = indices ? indices[l] : 0;
      offset[l] = u64(offsets ? offsets[l] : 0) + constant;
    }
  }
  u64 of(u32 l) const { return begin + descriptor.stride * index[l] + offset[l]; }
  // Active lanes that have `bytes` in range, from `at` bytes on.
  LaneMask lanes(const Wave& w, u32 at, u32 bytes) const {
    LaneMask mask = 0;
    for (u32 l = 0; l < wave_size; l++) mask |= LaneMask(descriptor.holds(index[l], checked + offset[l] + at, bytes)) << l;
    return mask & w.exec;
  }
};
struct Shifted {  // by some bytes
  const Described& address;
  u32 bytes;
  u64 of(u32 l) const { return address.of(l) + bytes; }
};

// EXEC, narrowed for an operation.
class Narrowed {
 public:
  Narrowed(Wave& w, LaneMask mask) : w_(w), kept_(w.exec) { w_.set_exec(mask); }
  ~Narrowed() { w_.set_exec(kept_); }
  Narrowed(const Narrowed&) = delete;

 private:
  Wave& w_;
  LaneMask kept_;
};

// What is stored for others must be set in the lanes that store.
inline void check_stored(const Wave& w, u32 at, const u32* data, u32 dwords, u32 mask) {
  const u32 first = u32(data - w.v[0].lane) / wave_size;
  for (u32 i = 0; i < dwords; i++)
    for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
      const u32 l = first_of(lanes);
      if (unset_of(w.unset, first + i, l) & mask) return report_unset(w, at, l, Matter::stored);
    }
}

// Double words are held against the range each for itself, what is smaller as a whole.
template <class What, class Place, bool atomic = false>
TOKITAI_OP void load_described(Wave& w, u32 at, u32* d, const Described& address) {
  if (address.descriptor.scratch) return load<Scratch, What, Place>(w, at, d, Shifted{address, 0});
  if (!address.descriptor.plain) return unmodelled(w, at, "a buffer with swizzle or thread numbers");
  const LaneMask within = address.lanes(w, 0, What::bytes), rest = w.exec & ~within;
  {
    const Narrowed narrowed(w, within);
    load<Global, What, Place, atomic>(w, at, d, Shifted{address, 0});
  }
  for (LaneMask lanes = rest; lanes; lanes &= lanes - 1) put_loaded<What, Place>(d + first_of(lanes), nullptr);
  for (u32 i = 0; What::bytes > 4 && rest && i < What::bytes; i += 4) {
    const Narrowed narrowed(w, address.lanes(w, i, 4) & rest);
    load<Global, B32, whole, atomic>(w, at, d + i / 4 * wave_size, Shifted{address, i});
  }
}
template <u32 bytes, u32 shift, bool atomic = false>
TOKITAI_OP void store_described(Wave& w, u32 at, const Described& address, V data) {
  if (address.descriptor.scratch) return store<Scratch, bytes, shift>(w, at, Shifted{address, 0}, data);
  if (!address.descriptor.plain) return unmodelled(w, at, "a buffer with swizzle or thread numbers");
  constexpr u32 size = bytes < 4 ? bytes : 4;
  for (u32 i = 0; i < bytes; i += size) {
    const Narrowed narrowed(w, address.lanes(w, i, size));
    const V part{data.p + i / 4 * wave_size};
    check_stored(w, at, part.p, 1, (size < 4 ? (1u << 8 * size) - 1 : ~0u) << shift);
    store<Global, size, shift, atomic>(w, at, Shifted{address, i}, part);
  }
}
template <u32 bytes>
TOKITAI_OP void load_lds_described(Wave& w, u32 at, const Described& address, i32 offset) {
  if (!address.descriptor.plain) return unmodelled(w, at, "a buffer with swizzle or thread numbers");
  u8 words[wave_size][bytes] = {};
  for (u32 i = 0; i < bytes; i += 4)
    for (LaneMask lanes = address.lanes(w, i, 4); lanes; lanes &= lanes - 1) {
      const u32 l = first_of(lanes);
      if (const u8* from = Global::touch(w, at, l, address.of(l) + i, 4, Does::read)) memcpy(words[l] + i, from, 4);
    }
  for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1)
    put_into_lds<bytes>(w, at, first_of(lanes), words[first_of(lanes)], offset);
}
template <class T, class Make>
inline void atomic_described(Wave& w, u32 at, u32* d, const Described& address, const u32* data, u32 dwords,
                             Make make) {
  if (!address.descriptor.plain) return unmodelled(w, at, "a buffer with swizzle or thread numbers");
  const LaneMask within = address.lanes(w, 0, sizeof(T)), rest = w.exec & ~within;
  {
    const Narrowed narrowed(w, within);
    check_stored(w, at, data, dwords, ~0u);
    atomic<Global, T>(w, at, d, Shifted{address, 0}, make);
  }
  for (LaneMask lanes = d ? rest : 0; lanes; lanes &= lanes - 1) to_lane<T>(d, first_of(lanes), 0);
}

// Double words past the end are 0.
TOKITAI_OP void load_scalars_described(Wave& w, u32 at, u32 first, Descriptor descriptor, u64 offset, u32 count) {
  const u64 bytes = descriptor.stride ? u64(descriptor.stride) * descriptor.records : descriptor.records;
  offset &= ~u64(3);
  for (u32 i = 0; i < count; i++, offset += 4) {
    if (offset + 4 <= bytes)
      load_scalars(w, at, first + i, descriptor.base + offset, 1);
    else
      w.s[first + i] = 0;
  }
}

}  // namespace tokitai::gfx
