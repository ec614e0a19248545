// Every access of a kernel, as -fsanitize=thread has compilers call it: races, and reads of what
// nobody wrote.
//
// No runtime is linked: these are the callbacks. Barriers, warps and launches are known here, so
// that two accesses are a race or are none by what orders them, whatever order they happened to run
// in (as in Flanagan, Freund, "FastTrack", 2009, with a block's barriers in place of clocks of its
// threads):
// - in a block, by a barrier between them, or by an operation of a warp that both took part in;
// - otherwise by a fence, an atomic operation behind it, and an atomic operation on the same place
//   by the other thread (a barrier carries that on to its block);
// - launches follow each other.
// One OS thread runs all blocks. Of a cell the last write and two reads by different threads are
// kept.
#pragma once

#include <unordered_map>

#include "tokitai_undefined.hpp"

namespace tokitai {

struct Stamp {
  uint32_t block;  // counted over all launches, from 1; 0 for no access
  uint32_t interval, time;
  uint32_t pc;
  uint16_t thread;
  uint16_t flags;
};
struct Cell {
  Stamp write, reads[2];
  uint32_t unused;
};

// How far others are known: of a block, the interval in front of which all is; of a thread, its
// time.
using Clock = std::unordered_map<uint64_t, uint32_t>;

struct Accesses {
  static constexpr uint16_t atomic = 1, validated = 2;
  uint32_t first_block = 1, block = 0, last_block = 0;
  uint32_t time[block_limit];
  uint32_t known[warp_limit][warp_size][warp_size];  // of a lane: of each other one in its warp
  bool clocks = false;                               // any fence met an atomic operation
  Clock acquired[block_limit], fenced[block_limit], of_block;
  bool has_acquired[block_limit], has_fenced[block_limit];
  Clock of_block_fenced;  // what its threads had fenced in front of a barrier
  bool any_fenced = false;
  std::unordered_map<uintptr_t, Clock> released;
  std::unordered_map<uint64_t, Finding*>
      plain_reads;  // that met an atomic write, by thread and address
  Area* latest = nullptr;
};
inline Accesses accesses;

inline uint64_t clock_key(uint32_t block, uint32_t thread_or_all) {
  return uint64_t(block) << 16 | thread_or_all;
}
constexpr uint32_t whole_block = 0xffff;

inline void join(Clock& into, const Clock& from) {
  for (const auto& [key, value] : from) {
    uint32_t& known = into[key];
    if (known < value) known = value;
  }
}

inline bool knows(const Clock& clock, const Stamp& past) {
  auto found = clock.find(clock_key(past.block, whole_block));
  if (found != clock.end() && past.interval < found->second) return true;
  found = clock.find(clock_key(past.block, past.thread));
  return found != clock.end() && past.time <= found->second;
}

// Whether `past` happened before what the running thread does now.
inline bool ordered(const Stamp& past, const Stamp& now, bool shared) {
  if (past.block < accesses.first_block) return true;  // an earlier launch's, or none
  if (past.block == now.block) {
    if (past.thread == now.thread || past.interval < now.interval) return true;
    const unsigned warp = now.thread / warp_size;
    if (past.thread / warp_size == warp &&
        past.time <= accesses.known[warp][now.thread % warp_size][past.thread % warp_size])
      return true;
  } else if (shared) {
    return true;  // of a block that is gone
  }
  if (!accesses.clocks) return false;
  return (accesses.has_acquired[now.thread] && knows(accesses.acquired[now.thread], past)) ||
         knows(accesses.of_block, past);
}

inline uint64_t read_key(unsigned thread, const void* address) {
  return uint64_t(thread) << 48 | (uintptr_t(address) & 0xffffffffffff);
}

// How a block's threads are laid out stays the same for a launch.
inline Coordinates thread_of(unsigned thread) {
  return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}
inline Spot spot_of(const Stamp& stamp) {
  const uint64_t at = stamp.block - accesses.first_block;
  return {{unsigned(at % gridDim.x), unsigned(at / gridDim.x % gridDim.y),
           unsigned(at / gridDim.x / gridDim.y)},
          thread_of(stamp.thread),
          {stamp.pc}};
}

inline void race(const Area& area, size_t offset, size_t size, const Stamp& past, const Stamp& now,
                 bool past_writes, bool now_writes, void* const* frame) {
  const bool mixed = (past.flags | now.flags) & Accesses::atomic;
  const Spot other = spot_of(past);
  Finding* found =
      finding(mixed ? "mixed-race" : "race", spot_at(exe_base() + now.pc, frame), &other);
  if (!found) return;
  const auto words = [](const Stamp& stamp, bool writes) {
    if (stamp.flags & Accesses::atomic) return writes ? "atomic write" : "atomic read";
    return writes ? "write" : "read";
  };
  if (found->count == 1) {
    say(*found, "%s of %zu byte%s and %s by another thread%s, with nothing that orders them",
        words(now, now_writes), size, size == 1 ? "" : "s", words(past, past_writes),
        past.block == now.block ? " of the block" : " in another block");
    name_area(*found, area, int64_t(offset), size);
    found->mixed = mixed;
  }
  if (!mixed) return;
  // A compare-and-swap of the same thread that follows makes sure of what it read.
  const bool now_is_plain = !(now.flags & Accesses::atomic);
  const Stamp& plain = now_is_plain ? now : past;
  if ((now_is_plain ? now_writes : past_writes) || !(plain.flags & Accesses::validated))
    found->open++;
  if (now_is_plain && !now_writes && accesses.plain_reads.size() < 100000)
    accesses.plain_reads[read_key(now.thread, area.begin + offset)] = found;
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

inline void check_written(Area& area, size_t offset, size_t size, uint32_t pc, void* const* frame) {
  if (!memchr(area.written + offset, 0, size)) return;
  Finding* found = finding("uninitialised-read", spot_at(exe_base() + pc, frame), nullptr);
  if (found && found->count == 1) {
    say(*found, "read of %zu byte%s that nothing has written", size, size == 1 ? "" : "s");
    name_area(*found, area, int64_t(offset), size);
  }
}

inline void check_cell(Area& area, size_t index, size_t size, const Stamp& now, bool writes,
                       void* const* frame) {
  Cell& cell = area.cells[index];
  const bool shared = area.kind == Area::Kind::shared, is_atomic = now.flags & Accesses::atomic;
  const size_t offset = index << area.granule;
  if (!ordered(cell.write, now, shared) && !(is_atomic && cell.write.flags & Accesses::atomic))
    race(area, offset, size, cell.write, now, true, writes, frame);
  if (!writes) {
    Stamp& first = cell.reads[0];
    const bool replaces = first.thread == now.thread && first.block == now.block;
    (replaces || ordered(first, now, shared) ? first : cell.reads[1]) = now;
    return;
  }
  for (const Stamp& read : cell.reads)
    if (!ordered(read, now, shared) && !(is_atomic && read.flags & Accesses::atomic))
      race(area, offset, size, read, now, false, true, frame);
  cell.write = now;
  cell.reads[0].block = cell.reads[1].block = 0;
}

inline Stamp stamp_now(const void* pc, uint16_t flags) {
  const unsigned thread = linear_thread();
  return {accesses.block, current_block->interval, accesses.time[thread],
          offset_of(pc),  uint16_t(thread),        flags};
}

inline void on_access(const void* address, size_t size, bool writes, uint16_t flags, const void* pc,
                      void* const* frame, bool reads_first = false) {
  if (!watch.running || current_block == no_block) return;
  const auto* at = static_cast<const unsigned char*>(address);
  Area* area = area_of(at);
  if (!area) return;
  const size_t offset = size_t(at - area->begin);
  if (size > area->bytes - offset) size = area->bytes - offset;  // AddressSanitizer's to tell
  const Stamp now = stamp_now(static_cast<const char*>(pc) - 1, flags);
  if (area->written && (!writes || reads_first)) check_written(*area, offset, size, now.pc, frame);
  if (area->written && writes) memset(area->written + offset, 1, size);
  while (area->granule && ((offset | size) & ((size_t(1) << area->granule) - 1))) split(*area);
  if (!area->cells) {
    area->granule++;
    split(*area);
    if (!area->cells) return;
  }
  const size_t step = size_t(1) << area->granule;
  for (size_t i = offset; i < offset + size; i += step)
    check_cell(*area, i >> area->granule, size, now, writes, frame);
}

// --- what orders accesses

// The block that begins: its number, and shared memory that nobody of it has written.
TOKITAI_SERVING void watch_block() {
  const Coordinates grid = gridDim;
  const uint64_t linear =
      blockIdx.x + uint64_t(grid.x) * (blockIdx.y + uint64_t(grid.y) * blockIdx.z);
  accesses.block = accesses.first_block + uint32_t(linear);
  if (accesses.last_block < accesses.block) accesses.last_block = accesses.block;
  const unsigned threads = current_block->threads;
  for (unsigned t = 0; t < threads; t++) {
    accesses.time[t] = 1;
    accesses.has_acquired[t] = accesses.has_fenced[t] = false;
  }
  accesses.any_fenced = false;
  accesses.of_block_fenced.clear();
  memset(accesses.known, 0, (threads + warp_size - 1) / warp_size * sizeof accesses.known[0]);
  accesses.of_block.clear();
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared && watch.areas[i].written)
      memset(watch.areas[i].written, 0, watch.areas[i].bytes);
}

TOKITAI_SERVING void watch_barrier() {
  Block& block = *current_block;
  if (accesses.clocks)
    for (unsigned t = 0; t < block.threads; t++)
      if (accesses.has_acquired[t]) {
        join(accesses.of_block, accesses.acquired[t]);
        accesses.has_acquired[t] = false;
      }
  if (accesses.any_fenced)
    for (unsigned t = 0; t < block.threads; t++)
      if (accesses.has_fenced[t]) join(accesses.of_block_fenced, accesses.fenced[t]);
  if (block.live == block.threads) return;
  Spot spot = {blockIdx, threadIdx, {}};
  // By the barrier's line, as it has no address of its own.
  spot.frames[0] = unsigned(block.barrier_site.line);
  Finding* found = finding("barrier", spot, nullptr);
  if (!found || found->count > 1) return;
  found->file = block.barrier_site.file;
  found->line = unsigned(block.barrier_site.line);
  Text text = {found->message, sizeof found->message, 0};
  append(text, "%u of %u threads returned in front of the barrier that the others wait at",
         block.threads - block.live, block.threads);
  for (unsigned t = 0; t < block.threads; t++)
    if (block.lanes[t].returned) {
      append(text, "; ");
      append_threads(text, block, t);
      break;
    }
}

TOKITAI_SERVING void watch_warp(unsigned warp, u64 members) {
  auto& known = accesses.known[warp];
  uint32_t joined[warp_size] = {};
  const Block& block = *current_block;
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    for (unsigned i = 0; i < warp_size; i++)
      if (joined[i] < known[l][i]) joined[i] = known[l][i];
  }
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    joined[l] = accesses.time[warp * warp_size + l]++;
  }
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    memcpy(known[l], joined, sizeof joined);
    const Lane& lane = block.lanes[warp * warp_size + l];
    if (lane.operation != Operation::shuffle || (members >> lane.source & 1)) continue;
    Spot spot = {blockIdx, lane.index, {unsigned(lane.site.line)}};
    Finding* found = finding("inactive-lane", spot, nullptr);
    if (!found || found->count > 1) continue;
    found->file = lane.site.file;
    found->line = unsigned(lane.site.line);
    say(*found, "lane %u takes the value of lane %u, which takes no part in the shuffle", l,
        lane.source);
  }
}

inline void on_fence() {
  if (!watch.running || current_block == no_block) return;
  const unsigned thread = linear_thread();
  Clock& clock = accesses.fenced[thread];
  if (!accesses.has_fenced[thread]) clock.clear();
  accesses.has_fenced[thread] = accesses.any_fenced = true;
  join(clock, accesses.of_block);
  if (accesses.has_acquired[thread]) join(clock, accesses.acquired[thread]);
  clock[clock_key(accesses.block, whole_block)] = current_block->interval;
  clock[clock_key(accesses.block, thread)] = accesses.time[thread]++;
}

inline void on_atomic(const void* address, size_t size, bool reads, bool writes, bool swaps,
                      int order, const void* pc, void* const* frame) {
  if (!watch.running || current_block == no_block) return;
  const unsigned thread = linear_thread();
  if (writes &&
      (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST))
    on_fence();
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (reads && accesses.clocks) {
    const auto found = accesses.released.find(at);
    if (found != accesses.released.end()) {
      if (!accesses.has_acquired[thread]) accesses.acquired[thread].clear();
      accesses.has_acquired[thread] = true;
      join(accesses.acquired[thread], found->second);
    }
  }
  if (swaps) {
    const auto met = accesses.plain_reads.find(read_key(thread, address));
    if (met != accesses.plain_reads.end()) {
      met->second->open--;
      accesses.plain_reads.erase(met);
    }
    Area* area = area_of(static_cast<const unsigned char*>(address));
    if (area && area->cells)
      for (Stamp& read : area->cells[size_t(at - uintptr_t(area->begin)) >> area->granule].reads)
        if (read.block == accesses.block && read.thread == thread)
          read.flags |= Accesses::validated;
  }
  on_access(address, size, writes, Accesses::atomic, pc, frame, reads);
  if (writes && accesses.any_fenced) {
    accesses.clocks = true;
    join(accesses.released[at], accesses.of_block_fenced);
    if (accesses.has_fenced[thread]) join(accesses.released[at], accesses.fenced[thread]);
  }
}

// --- a launch

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

// A repetition begins: what its buffers hold is written where the tool wrote it.
inline void watch_repetition(const Case& request) {
  forget_areas(Area::Kind::buffer, true);
  watch_areas(request);
  for (unsigned i = 0; i < watch.area_count; i++) {
    Area& area = watch.areas[i];
    if (request.buffers[area.index].fill == Fill::pattern && area.bytes)
      area.written = map_bytes(area.bytes);
  }
  accesses.first_block = 1;
  accesses.last_block = 0;
  extern char edata __asm__("__data_start"), end __asm__("_end");
  watch.areas[watch.area_count++] = {Area::Kind::variable,
                                     0,
                                     reinterpret_cast<unsigned char*>(&edata),
                                     size_t(&end - &edata),
                                     nullptr,
                                     nullptr,
                                     0,
                                     2,
                                     nullptr};
}

inline void watch_launch(size_t dynamic_bytes) {
  forget_areas(Area::Kind::shared, false);
  watch_shared(dynamic_bytes);
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared)
      watch.areas[i].written = map_bytes(watch.areas[i].bytes);
  accesses.first_block = accesses.last_block + 1;
  accesses.clocks = false;
  accesses.released.clear();
  accesses.plain_reads.clear();
}

}  // namespace tokitai

#define TOKITAI_CALLER \
  __builtin_return_address(0), static_cast<void* const*>(__builtin_frame_address(0))
#define TOKITAI_ACCESS(NAME, SIZE, WRITES) \
  void NAME(void* address) { tokitai::on_access(address, SIZE, WRITES, 0, TOKITAI_CALLER); }
#define TOKITAI_ACCESSES(SIZE)                             \
  TOKITAI_ACCESS(__tsan_read##SIZE, SIZE, false)           \
  TOKITAI_ACCESS(__tsan_write##SIZE, SIZE, true)           \
  TOKITAI_ACCESS(__tsan_unaligned_read##SIZE, SIZE, false) \
  TOKITAI_ACCESS(__tsan_unaligned_write##SIZE, SIZE, true) \
  TOKITAI_ACCESS(__tsan_volatile_read##SIZE, SIZE, false)  \
  TOKITAI_ACCESS(__tsan_volatile_write##SIZE, SIZE, true)
#define TOKITAI_FETCH(NAME, T, READS, EXPRESSION)                                     \
  T NAME(volatile T* address, T value, int order) {                                   \
    tokitai::on_atomic(const_cast<T*>(address), sizeof(T), READS, true, false, order, \
                       TOKITAI_CALLER);                                               \
    return EXPRESSION;                                                                \
  }
#define TOKITAI_SWAP(NAME, T, EXPECTED, RESULT)                                     \
  RESULT NAME(volatile T* address, EXPECTED expected, T value, int order, int) {    \
    tokitai::on_atomic(const_cast<T*>(address), sizeof(T), true, true, true, order, \
                       TOKITAI_CALLER);                                             \
    return tokitai_swap<T>(address, expected, value);                               \
  }
#define TOKITAI_ATOMICS(BITS, T)                                                            \
  T __tsan_atomic##BITS##_load(const volatile T* address, int order) {                      \
    tokitai::on_atomic(const_cast<const T*>(address), sizeof(T), true, false, false, order, \
                       TOKITAI_CALLER);                                                     \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  void __tsan_atomic##BITS##_store(volatile T* address, T value, int order) {               \
    tokitai::on_atomic(const_cast<T*>(address), sizeof(T), false, true, false, order,       \
                       TOKITAI_CALLER);                                                     \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  TOKITAI_FETCH(__tsan_atomic##BITS##_exchange, T, false,                                   \
                __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST))                      \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_add, T, true,                                   \
                __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST))                       \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_sub, T, true,                                   \
                __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST))                       \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_and, T, true,                                   \
                __atomic_fetch_and(address, value, __ATOMIC_SEQ_CST))                       \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_or, T, true,                                    \
                __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST))                        \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_xor, T, true,                                   \
                __atomic_fetch_xor(address, value, __ATOMIC_SEQ_CST))                       \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_nand, T, true,                                  \
                __atomic_fetch_nand(address, value, __ATOMIC_SEQ_CST))                      \
  TOKITAI_SWAP(__tsan_atomic##BITS##_compare_exchange_strong, T, T*, int)                   \
  TOKITAI_SWAP(__tsan_atomic##BITS##_compare_exchange_weak, T, T*, int)                     \
  TOKITAI_SWAP(__tsan_atomic##BITS##_compare_exchange_val, T, T, T)

template <class T>
int tokitai_swap(volatile T* address, T* expected, T value) {
  return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}
template <class T>
T tokitai_swap(volatile T* address, T expected, T value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

extern "C" {
TOKITAI_ACCESSES(1)
TOKITAI_ACCESSES(2)
TOKITAI_ACCESSES(4)
TOKITAI_ACCESSES(8)
TOKITAI_ACCESSES(16)
TOKITAI_ATOMICS(8, uint8_t)
TOKITAI_ATOMICS(16, uint16_t)
TOKITAI_ATOMICS(32, uint32_t)
TOKITAI_ATOMICS(64, uint64_t)
void __tsan_read_range(void* address, size_t size) {
  tokitai::on_access(address, size, false, 0, TOKITAI_CALLER);
}
void __tsan_write_range(void* address, size_t size) {
  tokitai::on_access(address, size, true, 0, TOKITAI_CALLER);
}
void* __tsan_memset(void* to, int value, size_t size) {
  tokitai::on_access(to, size, true, 0, TOKITAI_CALLER);
  return memset(to, value, size);
}
void* __tsan_memcpy(void* to, const void* from, size_t size) {
  tokitai::on_access(from, size, false, 0, TOKITAI_CALLER);
  tokitai::on_access(to, size, true, 0, TOKITAI_CALLER);
  return memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, size_t size) {
  tokitai::on_access(from, size, false, 0, TOKITAI_CALLER);
  tokitai::on_access(to, size, true, 0, TOKITAI_CALLER);
  return memmove(to, from, size);
}
void __tsan_atomic_thread_fence(int order) {
  tokitai::on_fence();
  if (order != __ATOMIC_RELAXED) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
}
