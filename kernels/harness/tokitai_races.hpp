// Which pairs of accesses are races, and which reads are of what nobody wrote.
//
// Two accesses are a race or are none by what orders them (tokitai_order.hpp), whatever order they happened
// to run in (as in Flanagan, Freund, "FastTrack", 2009). One OS thread runs all blocks. Of a cell the last
// write and two reads by different threads are kept.
#pragma once

#include <unordered_set>

#include "tokitai_order.hpp"

// Names of the source's `__constant__` variables, where it has any; the last is null.
extern "C" __attribute__((weak)) const char* const tokitai_constants[];
// Whether it is CUDA's, by its name.
extern "C" __attribute__((weak)) const bool tokitai_of_cuda = false;

namespace tokitai {

struct Cell {
  Stamp write, reads[2];
  uint32_t unused;
};

// A write beside another thread's, of which the value is known once it is done.
struct OpenStore {
  const unsigned char* address = nullptr;
  size_t size = 0;
  unsigned char before[64];
  std::vector<Finding*> findings;
};

struct Accesses {
  // Plain reads that met an atomic write, by thread and address: their instruction. And the instructions of
  // which a compare-and-swap of the same thread made sure, at least once.
  std::unordered_map<uint64_t, uint32_t> plain_reads;
  std::unordered_set<uint32_t> validated;
  OpenStore store;
  // A thread's latest volatile read, and places that threads read again and again.
  struct {
    uint32_t pc;
    const void* address;
  } latest_read[block_limit];
  struct {
    const void *pc, *address;
    uint64_t value;
  } latest_look[block_limit];  // and its latest read of any kind
  std::unordered_set<uint32_t> polled;
  // A read of which a part is unset, to be handed on by the copy that it may be of.
  struct {
    const unsigned char* written = nullptr;
    size_t size = 0;
    unsigned thread = 0;
  } copied;
  // Variables of the program that were written atomically: their first value, and by whom. Those that an
  // earlier repetition left with another one.
  struct Flag {
    unsigned char first[16];
    size_t size;
    Spot writer;
  };
  std::unordered_map<uintptr_t, Flag> flags;
  std::unordered_map<uintptr_t, Spot> stale;
  Area* latest = nullptr;
};
inline Accesses accesses;

inline unsigned char* map_bytes(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
}

inline void forget_areas(Area::Kind kind, bool all) {
  for (unsigned i = 0; i < watch.area_count; i++) {
    Area& area = watch.areas[i];
    if (!all && area.kind != kind) continue;
    if (area.cells) munmap(area.cells, area.reserved);
    if (area.written) munmap(area.written, area.bytes);
    area.cells = nullptr;
    area.written = nullptr;
  }
  accesses.latest = nullptr;
}

inline std::vector<History*>& histories() {
  static std::vector<History*> all;
  return all;
}
inline bool is_done(uint32_t block) {
  for (const History* history : histories())
    if (history->block == block) return false;
  return true;
}

inline uint64_t read_key(unsigned thread, const void* address) {
  return uint64_t(thread) << 48 | (uintptr_t(address) & 0xffffffffffff);
}

// How a block's threads are laid out stays the same for a launch.
inline Coordinates thread_of(unsigned thread) {
  return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}
inline Spot spot_of(const Stamp& stamp) {
  const uint64_t at = stamp.block - order.first_block;
  Spot spot = {{unsigned(at % gridDim.x), unsigned(at / gridDim.x % gridDim.y),
                unsigned(at / gridDim.x / gridDim.y)},
               thread_of(stamp.thread),
               {}};
  if (stamp.place)
    memcpy(spot.frames, code_places.all[stamp.place - 1].frames, sizeof(CodePlace));
  return spot;
}

// --- races

inline const char* words_of(const Stamp& stamp, bool writes) {
  if (stamp.flags & is_atomic) return writes ? "atomic write" : "atomic read";
  return writes ? "write" : "read";
}

inline const char* distance_of(const Stamp& past, const Stamp& now) {
  if (past.block != now.block) return "in another block";
  return past.thread / warp_size == now.thread / warp_size ? "of its warp" : "of its block";
}

// The two threads' scopes leave one of them out.
inline void scoped_race(const Area& area, size_t offset, size_t size, const Stamp& past,
                        const Stamp& now, bool past_writes, bool now_writes, const Gap* gap,
                        void* const* frame) {
  const Spot other = spot_of(past);
  Finding* found = finding("scoped-race", spot_at(exe_base() + pc_of(now), frame), &other);
  if (!found || found->count > 1) return;
  if (gap)
    say(*found,
        "%s of %zu byte%s and %s by a thread %s: what is released at %s scope and acquired at %s scope "
        "does not order them",
        words_of(now, now_writes), size, size == 1 ? "" : "s", words_of(past, past_writes),
        distance_of(past, now), scope_name(gap->released), scope_name(gap->acquired));
  else
    say(*found,
        "%s of %zu byte%s at %s scope and %s at %s scope by a thread %s: they are not atomic for each "
        "other",
        words_of(now, now_writes), size, size == 1 ? "" : "s", scope_name(scope_of(now)),
        words_of(past, past_writes), scope_name(scope_of(past)), distance_of(past, now));
  name_area(*found, area, int64_t(offset), size);
}

// Ordered, but that nothing behind a relaxed read acquires.
inline void missing_acquire(const Area& area, size_t offset, size_t size, const Stamp& past,
                            const Stamp& now, bool past_writes, bool now_writes, const Gap& gap,
                            void* const* frame) {
  Finding* found = finding("missing-acquire", spot_at(exe_base() + pc_of(now), frame), &gap.at);
  if (!found || found->count > 1) return;
  found->mild = true;
  say(*found,
      "%s of %zu byte%s and %s by a thread %s: a relaxed read of what that thread released stands "
      "between, with no acquire or fence behind it",
      words_of(now, now_writes), size, size == 1 ? "" : "s", words_of(past, past_writes),
      distance_of(past, now));
  name_area(*found, area, int64_t(offset), size);
}

// Whether both write: then the values may be equal, which is known when this write is done.
inline void keep_store(Finding& found, const Area& area, size_t offset, size_t size) {
  OpenStore& store = accesses.store;
  if (store.findings.empty()) {
    store.address = area.begin + offset;
    store.size = 0;
  }
  const size_t end = size_t(area.begin + offset + size - store.address);
  if (end > sizeof store.before) {
    found.unequal++;
    return;
  }
  if (end > store.size) store.size = end;
  memcpy(store.before, store.address, store.size);
  store.findings.push_back(&found);
}

inline void close_store() {
  OpenStore& store = accesses.store;
  if (store.findings.empty()) return;
  const bool equal = memcmp(store.before, store.address, store.size) == 0;
  bool zero = true;
  for (size_t i = 0; i < store.size; i++) zero = zero && !store.address[i];
  for (Finding* found : store.findings) {
    found->unequal += !equal;
    found->nonzero += !zero;
  }
  store.findings.clear();
}

inline void race(const Area& area, size_t offset, size_t size, const Stamp& past, const Stamp& now,
                 bool past_writes, bool now_writes, Ordered by, void* const* frame) {
  const bool mixed = (past.flags | now.flags) & is_atomic;
  if (by.level != level_count) {
    const Gap* gap = by.gap ? &order.gaps[by.gap - 1] : nullptr;
    if (gap && !gap->scoped)
      missing_acquire(area, offset, size, past, now, past_writes, now_writes, *gap, frame);
    else
      scoped_race(area, offset, size, past, now, past_writes, now_writes, gap, frame);
    return;
  }
  const Spot other = spot_of(past);
  Finding* found =
      finding(mixed ? "mixed-race" : "race", spot_at(exe_base() + pc_of(now), frame), &other);
  if (!found) return;
  if (found->count == 1) {
    say(*found, "%s of %zu byte%s and %s by another thread%s, with nothing that orders them",
        words_of(now, now_writes), size, size == 1 ? "" : "s", words_of(past, past_writes),
        past.block == now.block ? " of the block" : " in another block");
    name_area(*found, area, int64_t(offset), size);
    found->mixed = mixed;
    found->of_writes = found->of_volatile = true;
  }
  found->of_writes = found->of_writes && past_writes && now_writes && !mixed;
  found->of_volatile = found->of_volatile && past.flags & now.flags & is_volatile;
  if (found->of_writes) keep_store(*found, area, offset, size);
  if (!mixed) return;
  const bool now_is_plain = !(now.flags & is_atomic);
  if (now_is_plain ? now_writes : past_writes) {
    found->plain_writes = true;
    return;
  }
  found->plain_read = pc_of(now_is_plain ? now : past);
  if (now_is_plain && accesses.plain_reads.size() < 100000)
    accesses.plain_reads[read_key(now.thread, area.begin + offset)] = found->plain_read;
}

// Cells of a granule's half the size: what is known of one holds for both.
inline void split(Area& area) {
  const size_t count = (area.bytes >> area.granule) + 1;
  const size_t bytes = 2 * count * sizeof(Cell);
  auto* made = static_cast<Cell*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (made == MAP_FAILED) return;
  for (size_t i = 0; area.cells && i < count; i++)
    if (area.cells[i].write.block || area.cells[i].reads[0].block)
      made[2 * i] = made[2 * i + 1] = area.cells[i];
  if (area.cells) munmap(area.cells, area.reserved);
  area.cells = made;
  area.reserved = bytes;
  area.granule--;
}

inline Area* area_of(const unsigned char* address) {
  Area* latest = accesses.latest;
  if (latest && size_t(address - latest->begin) < latest->bytes) return latest;
  for (unsigned i = 0; i < watch.area_count; i++) {
    Area& area = watch.areas[i];
    if (size_t(address - area.begin) < area.bytes) return accesses.latest = &area;
  }
  return nullptr;
}

// Whether unset bytes may be a struct's padding: of a whole struct that is copied, or the bytes of words
// that are set in part.
inline bool may_be_padding(const unsigned char* written, size_t size) {
  if (!memchr(written, 1, size)) return false;
  if (size > 8) return true;
  if (size < 8) return false;
  for (size_t word = 0; word < 8; word += 4)
    if (!memchr(written + word, 1, 4)) return false;
  return true;
}

inline void check_written(Area& area, size_t offset, size_t size, const Stamp& now,
                          void* const* frame) {
  const unsigned char* written = area.written + offset;
  if (!memchr(written, 0, size)) return;
  if (may_be_padding(written, size)) {
    accesses.copied = {written, size, now.thread};
    return;
  }
  size_t unset = 0;
  for (size_t i = 0; i < size; i++) unset += !written[i];
  Finding* found = finding("uninitialised-read", spot_at(exe_base() + pc_of(now), frame), nullptr);
  if (!found || found->count > 1) return;
  if (unset == size)
    say(*found, "read of %zu byte%s that nothing has written", size, size == 1 ? "" : "s");
  else
    say(*found, "read of %zu bytes of which nothing has written %zu", size, unset);
  name_area(*found, area, int64_t(offset), size);
}

// A copy hands on which bytes were set.
inline void set_written(Area& area, size_t offset, size_t size, unsigned thread) {
  unsigned char* written = area.written + offset;
  auto& copied = accesses.copied;
  if (copied.written && copied.size == size && copied.thread == thread)
    memmove(written, copied.written, size);
  else
    memset(written, 1, size);
}

// Operations that are atomic for each other, as are a flag's volatile accesses.
inline bool go_together(const Stamp& a, const Stamp& b) {
  if (!((a.flags | b.flags) & is_atomic)) return false;
  const uint16_t either = is_atomic | is_volatile;
  return a.flags & either && b.flags & either;
}

inline void check_pair(const Area& area, size_t index, size_t size, const Stamp& past,
                       const Stamp& now, bool past_writes, bool now_writes, void* const* frame) {
  const Ordered by = ordered(past, now, area.kind == Area::Kind::shared);
  if (by.level == sound) return;
  const size_t offset = index << area.granule;
  if (!go_together(past, now)) {
    race(area, offset, size, past, now, past_writes, now_writes, by, frame);
  } else if (past.flags & now.flags & is_atomic && !reach_each_other(past, now)) {
    scoped_race(area, offset, size, past, now, past_writes, now_writes, nullptr, frame);
  }
}

inline void check_cell(Area& area, size_t index, size_t size, const Stamp& now, bool writes,
                       void* const* frame) {
  Cell& cell = area.cells[index];
  check_pair(area, index, size, cell.write, now, true, writes, frame);
  if (!writes) {
    Stamp& first = cell.reads[0];
    const bool replaces = first.thread == now.thread && first.block == now.block;
    const bool shared = area.kind == Area::Kind::shared;
    (replaces || ordered(first, now, shared).level == sound ? first : cell.reads[1]) = now;
    return;
  }
  for (const Stamp& read : cell.reads)
    check_pair(area, index, size, read, now, false, true, frame);
  cell.write = now;
  cell.reads[0].block = cell.reads[1].block = 0;
}

}  // namespace tokitai
