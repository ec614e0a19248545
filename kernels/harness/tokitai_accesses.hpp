// Every access of a kernel, as -fsanitize=thread has compilers call it (tokitai_tsan.hpp; no runtime is
// linked): plain and volatile ones, copies, atomic operations and fences.
#pragma once

#include "tokitai_races.hpp"

namespace tokitai {

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
  if (size > area.bytes - offset) size = area.bytes - offset;  // what lies beyond, `check_outside` tells
  if (area.written && (!writes || reads_first)) check_written(area, offset, size, now, frame);
  if (area.written && writes) set_written(area, offset, size, now.thread);
  if (!cells_for(area, offset, size)) return;
  const size_t step = size_t(1) << area.granule;
  for (size_t i = offset; i < offset + size; i += step)
    check_cell(area, i >> area.granule, size, now, writes, frame);
}

// An access that goes where no array is: in front of one, or past its end, as far as its guards go.
inline void check_outside(const unsigned char* at, size_t size, bool writes, const void* pc,
                          void* const* frame) {
  for (unsigned i = 0; i < watch.area_count; i++) {
    const Area& area = watch.areas[i];
    if (area.kind == Area::Kind::variable) continue;
    const int64_t offset = at - area.begin;
    if (offset < -int64_t(area.front) || offset >= int64_t(area.bytes + area.back)) continue;
    Finding* found =
        finding("out-of-bounds", spot_at(static_cast<const char*>(pc) - 1, frame), nullptr);
    if (!found || found->count > 1) return;
    say(*found, "out-of-bounds: %s of %zu byte%s", writes ? "write" : "read", size,
        size == 1 ? "" : "s");
    return name_area(*found, area, offset, size);
  }
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
  if (!area || size > size_t(area->begin + area->bytes - at)) check_outside(at, size, writes, pc, frame);
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
  bool changes;  // the value
  int order;
  Scope scope;
};

// A compare-and-swap makes sure of what the same thread has read before.
inline void on_swap(unsigned thread, const void* address) {
  const auto met = accesses.plain_reads.find(read_key(thread, address));
  if (met != accesses.plain_reads.end()) {
    accesses.validated.insert(met->second);
    accesses.plain_reads.erase(met);
  }
  Area* area = area_of(static_cast<const unsigned char*>(address));
  if (!area || !area->cells) return;
  const size_t offset = size_t(static_cast<const unsigned char*>(address) - area->begin);
  for (const Stamp& read : area->cells[offset >> area->granule].reads)
    if (read.block == order.now->block && read.thread == thread && !(read.flags & is_atomic))
      accesses.validated.insert(pc_of(read));
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
  } else {
    check_outside(at, size, does.writes, pc, frame);
  }
  if (does.writes) {
    // Nobody can see that an operation has been there which leaves the value as it was.
    if (does.changes || !does.reads)
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

// A fence orders what stands in front of it: of two volatile words that are written behind one, who has
// acquired it through the one cannot count on the other. Whoever reads that again and again waits for it
// (`polled`); and another's read in front of this one may have been acquired as well.
inline void check_published(const Area& area, const Cell& cell, size_t offset, size_t size, const Stamp& now,
                            void* const* frame) {
  const Stamp& past = cell.write;
  if (!(past.flags & is_volatile) || cell.reads[0].block || cell.reads[1].block || past.time < 2) return;
  const bool shared = area.kind == Area::Kind::shared;
  if (past.block < order.first_block || ordered(past, now, shared).level == sound) return;
  Stamp fenced = past;
  fenced.time--;  // each fence begins another time of its thread
  if (ordered(fenced, now, shared).level != sound) return;
  Stamp plain = past;
  plain.flags = is_volatile;
  race(area, offset, size, plain, now, true, false, {level_count, 0}, frame);
}

// A volatile write right behind a fence publishes a flag, as a relaxed atomic write does; a volatile read
// of what was written so, or atomically, meets it. Other volatile accesses are plain ones.
inline void on_volatile(const void* address, size_t size, bool writes, const void* pc,
                        void* const* frame) {
  if (!watched_now()) return;
  close_store();
  const auto* at = static_cast<const unsigned char*>(address);
  Area* area = area_of(at);
  if (!area) return check_outside(at, size, writes, pc, frame);
  const unsigned thread = linear_thread();
  const Stamp now = stamp_now(pc, frame, is_volatile);
  bool flag = writes && order.now->fence_is_latest[thread];
  if (!writes) {
    auto& latest = accesses.latest_read[thread];
    if (latest.pc == now.place && latest.address == address) accesses.polled.insert(pc_of(now));
    latest = {now.place, address};
    const size_t offset = size_t(at - area->begin);
    const Cell* cell = area->cells ? &area->cells[offset >> area->granule] : nullptr;
    flag = cell && cell->write.flags & is_atomic;
    if (flag) check_published(*area, *cell, offset, size, now, frame);
  }
  if (flag)
    return on_ordered(address, size, {!writes, writes, false, writes, __ATOMIC_RELAXED, Scope::system},
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

}  // namespace tokitai
