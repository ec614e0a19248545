// Every access of a kernel, as -fsanitize=thread has compilers call it: races, and reads of what
// nobody wrote.
//
// No runtime is linked: the callbacks are the tool's own (tokitai_tsan.hpp). Two accesses are a race or are
// none by what orders them (tokitai_order.hpp), whatever order they happened to run in (as in Flanagan,
// Freund, "FastTrack", 2009). One OS thread runs all blocks. Of a cell the last write and two reads by
// different threads are kept.
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
  std::unordered_map<uint64_t, Finding*>
      plain_reads;  // that met an atomic write, by thread and address
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
  for (Finding* found : store.findings) found->unequal += !equal;
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
  // A compare-and-swap of the same thread that follows makes sure of what it read.
  const bool now_is_plain = !(now.flags & is_atomic);
  const Stamp& plain = now_is_plain ? now : past;
  if ((now_is_plain ? now_writes : past_writes) || !(plain.flags & is_validated)) found->open++;
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

inline bool on_own_stack(const void* address) {
  const Fiber* running = current_block->running;
  return running && size_t(static_cast<const char*>(address) - running->stack) < stack_bytes;
}

inline bool watched_now() { return watch.running && current_block != no_block; }

inline Stamp stamp_now(const void* pc, void* const* frame, uint16_t flags) {
  const unsigned thread = linear_thread();
  return {order.now->block,
          current_block->interval,
          order.now->time[thread],
          code_place(static_cast<const char*>(pc) - 1, frame),
          uint16_t(thread),
          flags};
}

inline bool cells_for(Area& area, size_t offset, size_t size) {
  while (area.granule && ((offset | size) & ((size_t(1) << area.granule) - 1))) split(area);
  if (area.cells) return true;
  area.granule++;
  split(area);
  return area.cells != nullptr;
}

// `reads_first`: of a write that reads its place as well.
inline void on_area(Area& area, const unsigned char* at, size_t size, bool writes, const Stamp& now,
                    void* const* frame, bool reads_first) {
  const size_t offset = size_t(at - area.begin);
  if (size > area.bytes - offset) size = area.bytes - offset;  // AddressSanitizer's to tell
  if (area.written && (!writes || reads_first)) check_written(area, offset, size, now, frame);
  if (area.written && writes) set_written(area, offset, size, now.thread);
  if (!cells_for(area, offset, size)) return;
  const size_t step = size_t(1) << area.granule;
  for (size_t i = offset; i < offset + size; i += step)
    check_cell(area, i >> area.granule, size, now, writes, frame);
}

// A GPU keeps constants where kernels cannot write.
inline void check_constant(const Area& area, const unsigned char* at, size_t size, const Stamp& now,
                           void* const* frame) {
  const Elf64_Sym* object = object_at(at);
  if (!object || !tokitai_constants || at >= symbol_table.base + object->st_value + object->st_size)
    return;
  char name[160];
  plain_name(symbol_table.names + object->st_name, name, sizeof name);
  for (const char* const* constant = tokitai_constants; *constant; constant++) {
    if (strcmp(name, *constant) != 0) continue;
    Finding* found = finding("constant-write", spot_at(exe_base() + pc_of(now), frame), nullptr);
    if (!found || found->count > 1) return;
    say(*found, "write of %zu byte%s to constant memory, which no kernel can write", size,
        size == 1 ? "" : "s");
    name_area(*found, area, at - area.begin, size);
  }
}

inline void on_access(const void* address, size_t size, bool writes, const void* pc,
                      void* const* frame) {
  if (!watched_now() || on_own_stack(address)) return;
  close_store();
  const auto* at = static_cast<const unsigned char*>(address);
  Area* area = area_of(at);
  if (area) {
    const Stamp now = stamp_now(pc, frame, 0);
    on_area(*area, at, size, writes, now, frame, false);
    if (writes && area->kind == Area::Kind::variable) check_constant(*area, at, size, now, frame);
    if (writes) order.now->fence_is_latest[now.thread] = false;
  }
  if (writes) accesses.copied.written = nullptr;
}

inline void on_copy(void* to, const void* from, size_t size, const void* pc, void* const* frame) {
  if (!size) return;
  on_access(from, size, false, pc, frame);
  on_access(to, size, true, pc, frame);
}
inline void on_set(void* to, size_t size, const void* pc, void* const* frame) {
  if (size) on_access(to, size, true, pc, frame);
}

// --- atomic operations, volatile accesses and fences

// Of the program's own variables: whether an earlier repetition has left what is read here.
inline void check_stale(const Area& area, const unsigned char* at, size_t size, bool reads,
                        bool writes, const void* pc, void* const* frame) {
  if (area.kind != Area::Kind::variable) return;
  const auto key = reinterpret_cast<uintptr_t>(at);
  const auto left = accesses.stale.find(key);
  if (left != accesses.stale.end()) {
    if (reads) {
      Finding* found = finding("stale-flag", spot_at(static_cast<const char*>(pc) - 1, frame),
                               &left->second);
      if (found && found->count == 1) {
        found->mild = true;
        say(*found, "reads what an earlier run of the kernel left: nothing sets it back");
        name_area(*found, area, at - area.begin, size);
      }
    }
    accesses.stale.erase(left);
  }
  if (!writes || size > 16 || accesses.flags.size() >= 100000) return;
  const auto made = accesses.flags.try_emplace(key);
  Accesses::Flag& flag = made.first->second;
  if (made.second) memcpy(flag.first, at, flag.size = size);
  flag.writer = spot_at(static_cast<const char*>(pc) - 1, frame);
}

struct AtomicAccess {
  bool reads, writes, swaps;
  int order;
  Scope scope;
};

inline void on_swap(unsigned thread, const void* address) {
  const auto met = accesses.plain_reads.find(read_key(thread, address));
  if (met != accesses.plain_reads.end()) {
    met->second->open--;
    accesses.plain_reads.erase(met);
  }
  Area* area = area_of(static_cast<const unsigned char*>(address));
  if (!area || !area->cells) return;
  const size_t offset = size_t(static_cast<const unsigned char*>(address) - area->begin);
  for (Stamp& read : area->cells[offset >> area->granule].reads)
    if (read.block == order.now->block && read.thread == thread) read.flags |= is_validated;
}

inline bool acquiring(int order) {
  return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
         order == __ATOMIC_SEQ_CST;
}
inline bool releasing(int order) {
  return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

inline void on_ordered(const void* address, size_t size, const AtomicAccess& does, uint16_t flags,
                       const void* pc, void* const* frame) {
  const auto* at = static_cast<const unsigned char*>(address);
  const auto key = reinterpret_cast<uintptr_t>(address);
  const unsigned thread = linear_thread();
  if (does.reads)
    order_read(thread, key, does.scope, acquiring(does.order),
               spot_at(static_cast<const char*>(pc) - 1, frame));
  if (does.swaps) on_swap(thread, address);
  Area* area = area_of(at);
  flags = uint16_t(flags | unsigned(does.scope) << scope_shift);
  if (area) {
    check_stale(*area, at, size, does.reads, does.writes, pc, frame);
    on_area(*area, at, size, does.writes, stamp_now(pc, frame, flags), frame, does.reads);
  }
  if (does.writes) {
    order_write(thread, key, does.scope, releasing(does.order), does.reads);
    accesses.copied.written = nullptr;
  }
}

inline void on_atomic(const void* address, size_t size, AtomicAccess does, const void* pc,
                      void* const* frame) {
  if (!watched_now()) return;
  close_store();
  if (order.stated) {
    does.scope = order.scope;
    if (order.stated_order >= 0) does.order = order.stated_order;
  }
  on_ordered(address, size, does, is_atomic, pc, frame);
}

// A volatile write right behind a fence publishes a flag, as a relaxed atomic write does; a volatile read
// of what was written so, or atomically, meets it. Other volatile accesses are plain ones.
inline void on_volatile(const void* address, size_t size, bool writes, const void* pc,
                        void* const* frame) {
  if (!watched_now()) return;
  close_store();
  const auto* at = static_cast<const unsigned char*>(address);
  Area* area = area_of(at);
  if (!area) return;
  const unsigned thread = linear_thread();
  const Stamp now = stamp_now(pc, frame, is_volatile);
  bool flag = writes && order.now->fence_is_latest[thread];
  if (!writes) {
    auto& latest = accesses.latest_read[thread];
    if (latest.pc == now.place && latest.address == address) accesses.polled.insert(pc_of(now));
    latest = {now.place, address};
    const size_t offset = size_t(at - area->begin);
    flag = area->cells && area->cells[offset >> area->granule].write.flags & is_atomic;
  }
  if (flag)
    return on_ordered(address, size, {!writes, writes, false, __ATOMIC_RELAXED, Scope::system},
                      is_atomic | is_volatile, pc, frame);
  if (writes) order.released.erase(reinterpret_cast<uintptr_t>(address));
  on_area(*area, at, size, writes, now, frame, false);
}

inline void on_fence(int stated) {
  if (!watched_now()) return;
  close_store();
  if (order.stated && order.stated_order >= 0) stated = order.stated_order;
  order_fence(linear_thread(), order.stated ? order.scope : Scope::system, acquiring(stated),
              releasing(stated));
}

TOKITAI_SERVING void watch_scope(Scope scope, int stated) {
  order.scope = scope;
  order.stated_order = stated;
  order.stated = true;
}
TOKITAI_SERVING void watch_scope_ends() { order.stated = false; }

// --- blocks, barriers and warps

// The block that begins: its number, and shared memory that nobody of it has written.
TOKITAI_SERVING void watch_block(Block& block) {
  const Coordinates grid = gridDim;
  const uint64_t linear =
      blockIdx.x + uint64_t(grid.x) * (blockIdx.y + uint64_t(grid.y) * blockIdx.z);
  if (!block.history) {
    auto* made = new History;
    block.history = made;
    histories().push_back(made);
  }
  order.now = static_cast<History*>(block.history);
  order.now->block = order.first_block + uint32_t(linear);
  if (order.last_block < order.now->block) order.last_block = order.now->block;
  close_store();
  memset(accesses.latest_read, 0, block.threads * sizeof *accesses.latest_read);
  memset(accesses.latest_look, 0, block.threads * sizeof *accesses.latest_look);
  order_block(block.threads);
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared && watch.areas[i].written)
      memset(watch.areas[i].written, 0, watch.areas[i].bytes);
}

// The block waits for others: what is known of its shared memory is kept until it goes on.
TOKITAI_SERVING void watch_block_leaves(Block& block) {
  close_store();
  History& own = *static_cast<History*>(block.history);
  accesses.copied.written = nullptr;
  accesses.latest = nullptr;
  own.shared.clear();
  for (unsigned i = 0; i < watch.area_count; i++) {
    Area& area = watch.areas[i];
    if (area.kind != Area::Kind::shared) continue;
    own.shared.push_back(area);
    area.cells = nullptr;
    area.granule = 2;
    area.written = map_bytes(area.bytes);
  }
}

TOKITAI_SERVING void watch_block_returns(Block& block) {
  close_store();
  History& own = *static_cast<History*>(block.history);
  order.now = &own;
  accesses.copied.written = nullptr;
  forget_areas(Area::Kind::shared, false);
  size_t next = 0;
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared) watch.areas[i] = own.shared[next++];
  own.shared.clear();
}

TOKITAI_SERVING void watch_barrier() {
  Block& block = *current_block;
  close_store();
  order_barrier(block.threads);
  if (block.live == block.threads) return;
  Spot spot = {blockIdx, threadIdx, {}};
  // By the barrier's line, as it has no address of its own.
  spot.frames[0] = unsigned(block.barrier_site.line);
  Finding* found = finding("barrier", spot, nullptr);
  if (!found || found->count > 1) return;
  found->file = block.barrier_site.file;
  found->line = unsigned(block.barrier_site.line);
  Text text = {found->message, sizeof found->message, 0};
  // CUDA C++ programming guide, "Independent Thread Scheduling": all threads that have not exited.
  found->mild = true;
  append(text,
         "%u of %u threads returned in front of the barrier that the others wait at: from sm_70 on and on "
         "AMD's GPUs they count no more, on others this is undefined",
         block.threads - block.live, block.threads);
  for (unsigned t = 0; t < block.threads; t++)
    if (block.lanes[t].returned) {
      append(text, "; ");
      append_threads(text, block, t);
      break;
    }
}

// All blocks of the grid know what any did in front of its barrier.
// Each of its meetings has a key of its own, below all addresses.
TOKITAI_SERVING void watch_grid_arrives(u64 meeting) {
  close_store();
  order_write(linear_thread(), uintptr_t(meeting), Scope::device, true, true);
}
TOKITAI_SERVING void watch_grid_leaves(u64 meeting) {
  order_read(linear_thread(), uintptr_t(meeting), Scope::device, true, {});
}

// Where AMD's GPUs differ: their header asserts that the lanes of a mask are those that come to the operation
// together (HIP, amd_warp_sync_functions.h).
inline void check_amd_mask(const Block& block, unsigned warp, u64 members) {
  const Lane& first = block.lanes[warp * warp_size + unsigned(__builtin_ctzll(members))];
  if (!first.mask.given || first.operation == Operation::warp_barrier) return;
  const Lane* apart = nullptr;
  for (u64 left = members; left; left &= left - 1) {
    const Lane& lane = block.lanes[warp * warp_size + unsigned(__builtin_ctzll(left))];
    if (!(lane.site == first.site)) apart = &lane;
  }
  if (!apart && members == first.mask.lanes) return;
  Spot spot = {blockIdx, first.index, {unsigned(first.site.line)}};
  Finding* found = finding("amd-mask", spot, nullptr);
  if (!found || found->count > 1) return;
  found->mild = true;
  found->file = first.site.file;
  found->line = unsigned(first.site.line);
  if (apart)
    say(*found,
        "lanes of mask 0x%llx come to %s at two places, here and at line %d: they pair from sm_70 on, and do "
        "not on AMD's GPUs",
        first.mask.lanes, operation_name(first.operation), apart->site.line);
  else
    say(*found,
        "mask 0x%llx of %s names lanes that are not there or have returned: AMD's header asserts that it does "
        "not, CUDA's GPUs leave their values undefined",
        first.mask.lanes, operation_name(first.operation));
}

TOKITAI_SERVING void watch_warp(unsigned warp, u64 members) {
  close_store();
  const Block& block = *current_block;
  const unsigned any = warp * warp_size + unsigned(__builtin_ctzll(members));
  // Votes and shuffles order no memory (CUDA C++ programming guide, "Warp Vote Functions").
  if (block.lanes[any].operation == Operation::warp_barrier) order_warp(warp, members);
  if (!tokitai_of_cuda) check_amd_mask(block, warp, members);
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
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

// --- a launch

// What a case's findings are, now that all of it is known.
inline void settle_findings() {
  close_store();
  bool any_error = false;
  unsigned kept = 0;
  for (unsigned i = 0; i < watch.count; i++) {
    Finding& found = watch.findings[i];
    // Volatile words that threads wait for carry what they say in themselves.
    if (found.of_volatile && (accesses.polled.count(found.first.frames[0]) ||
                              accesses.polled.count(found.second.frames[0])))
      continue;
    if (found.of_writes && !found.unequal) {
      found.kind = "same-value-race";
      found.mild = true;
      append_words(found, "; each time both wrote the same value");
    }
    found.mild = found.mild || (found.mixed && found.open <= 0);
    any_error = any_error || !found.mild;
    watch.findings[kept++] = found;
  }
  watch.count = kept;
  // What an earlier run left is of use where it tells why something else was found.
  kept = 0;
  for (unsigned i = 0; i < watch.count; i++)
    if (any_error || strcmp(watch.findings[i].kind, "stale-flag") != 0)
      watch.findings[kept++] = watch.findings[i];
  watch.count = kept;
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
  order.first_block = 1;
  order.last_block = 0;
  accesses.stale.clear();
  for (const auto& [at, flag] : accesses.flags)
    if (memcmp(reinterpret_cast<const void*>(at), flag.first, flag.size) != 0)
      accesses.stale[at] = flag.writer;
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

// Blocks that waited for others which began later: no more than one is sure to be there at a time.
inline void watch_residents(const Work& work) {
  if (work.failed || work.meets || work.most_resident < 2 || work.total < 2) return;
  Spot spot = {work.waiting_block, work.waiting_thread, {offset_of(work.waited_pc)}};
  if (work.waited_at.file) spot.frames[0] = unsigned(work.waited_at.line);
  Finding* found = finding("resident-blocks", spot, nullptr);
  if (!found || found->count > 1) return;
  found->mild = true;
  found->kernel = work.kernel;
  found->file = work.waited_at.file;
  found->line = unsigned(work.waited_at.line);
  say(*found,
      "waits for a block that begins later: up to %u of %llu blocks had to be there at once, which a launch "
      "that is not cooperative does not promise",
      work.most_resident, work.total);
}

inline void watch_launch(size_t dynamic_bytes) {
  forget_areas(Area::Kind::shared, false);
  watch_shared(dynamic_bytes);
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared)
      watch.areas[i].written = map_bytes(watch.areas[i].bytes);
  order.first_block = order.last_block + 1;
  order.released.clear();
  order.gaps.clear();
  order.stated = false;
  accesses.plain_reads.clear();
  accesses.store.findings.clear();
  accesses.copied.written = nullptr;
}

}  // namespace tokitai
