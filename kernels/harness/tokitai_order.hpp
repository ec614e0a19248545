// What orders the accesses of GPU threads, as memory models of GPUs say it (PTX ISA, "Memory Consistency
// Model"; Lustig et al., "A formal analysis of the NVIDIA PTX memory consistency model", 2019): barriers,
// __syncwarp, and releases that an acquire has read from, where the scopes of both hold the other thread.
//
// A block's barriers stand for clocks of its threads: an access of an earlier interval is known to all of
// them. What a block knows of others lies in clocks, which only fences and atomic operations make.
#pragma once

#include <memory>

#include "tokitai_clocks.hpp"

namespace tokitai {

struct Stamp {
  uint32_t block;  // counted over all launches, from 1; 0 for no access
  uint32_t interval, time;
  uint32_t place;  // of the code, in `code_places`
  uint16_t thread;
  uint16_t flags;
};

// Places of the code from which memory was accessed, with their callers: what stands in a header is told at
// the kernel's own line.
struct CodePlace {
  uint32_t frames[compared_frames];
};
struct CodePlaces {
  static constexpr uint32_t limit = 1 << 16;  // those beyond share the last number
  CodePlace all[limit];
  uint32_t numbers[2 * limit];  // by hash; 0 for none
  uint32_t count = 0;
};
inline CodePlaces code_places;

inline uint32_t code_place(const void* pc, void* const* frame) {
  CodePlace place = {};
  frames_at(pc, frame, place.frames, compared_frames);
  uint64_t hash = 0;
  for (const uint32_t one : place.frames) hash = (hash ^ one) * 0x9e3779b97f4a7c15ull;
  for (uint32_t at = uint32_t(hash >> 40);; at++) {
    uint32_t& number = code_places.numbers[at % (2 * CodePlaces::limit)];
    if (number && memcmp(&code_places.all[number - 1], &place, sizeof place) == 0) return number;
    if (number && code_places.count < CodePlaces::limit) continue;
    if (code_places.count == CodePlaces::limit) return code_places.count;
    code_places.all[code_places.count++] = place;
    return number = code_places.count;
  }
}
inline uint32_t pc_of(const Stamp& stamp) {
  return stamp.place ? code_places.all[stamp.place - 1].frames[0] : 0;
}

enum : uint16_t { is_atomic = 1, is_volatile = 2, scope_shift = 4 };
inline Scope scope_of(const Stamp& stamp) { return Scope(stamp.flags >> scope_shift); }

// Fences of which others than the own block learn, and those of the own block.
enum Reach : unsigned { wide, local, reach_count };

// Clocks of a thread or, from the last barrier on, of all threads of a block.
struct Clocks {
  Clock known;                 // in front of what comes next
  Clock fenced[reach_count];   // what a later atomic write tells of
  Clock pending[reach_count];  // what a relaxed read has met, which a later fence takes in
  bool empty = true;

  void take(const Clocks& more) {
    if (more.empty) return;
    empty = false;
    join(known, more.known);
    for (unsigned r = 0; r < reach_count; r++) {
      join(fenced[r], more.fenced[r]);
      join(pending[r], more.pending[r]);
    }
  }
  void clear() {
    if (empty) return;
    *this = {};
  }
};

// What a resident block's threads have done and know.
struct History {
  uint32_t block = 0;
  uint32_t time[block_limit];
  uint32_t synced[warp_limit][warp_size][warp_size];  // of a lane: of each other one in its warp
  std::unique_ptr<Clocks> threads[block_limit];
  bool has_clocks = false;  // any of its threads
  Clocks common;
  bool fence_is_latest[block_limit];  // no write of the thread's since its fence
  std::vector<Area> shared;           // what is known of shared memory while another block runs

  Clocks& of(unsigned thread) {
    if (!threads[thread]) threads[thread] = std::make_unique<Clocks>();
    threads[thread]->empty = false;
    has_clocks = true;
    return *threads[thread];
  }
};

// What was told by writes of a place, for those who read it.
struct Told {
  uint32_t block;
  uint16_t warp;
  Scope scope;
  Clock clock;
};
struct Released {
  Clock wide;
  std::vector<Told> by_block;  // the same and narrower ones, of blocks that are not done
};

struct Order {
  uint32_t first_block = 1, last_block = 0;
  History* now = nullptr;
  std::unordered_map<uintptr_t, Released> released;
  std::vector<Gap> gaps;
  Scope scope = Scope::system;  // of the atomic operation that comes, where `stated`
  int stated_order = -1;
  bool stated = false;
};
inline Order order;

inline uint16_t gap_number(const Gap& gap) {
  constexpr size_t most = 1000;
  for (size_t i = 0; i < order.gaps.size(); i++) {
    const Gap& known = order.gaps[i];
    if (known.scoped == gap.scoped && known.released == gap.released &&
        known.acquired == gap.acquired && known.at.frames[0] == gap.at.frames[0])
      return uint16_t(i + 1);
  }
  if (order.gaps.size() == most) return uint16_t(most);
  order.gaps.push_back(gap);
  return uint16_t(order.gaps.size());
}

inline bool holds(Scope scope, uint32_t block, unsigned thread, uint32_t other_block,
                  unsigned other_thread) {
  if (scope >= Scope::device) return true;
  if (block != other_block) return false;
  if (scope == Scope::block) return true;
  return scope == Scope::warp ? thread / warp_size == other_thread / warp_size
                              : thread == other_thread;
}

// Whether the scopes of two operations hold the other one's thread each.
inline bool reach_each_other(const Stamp& a, const Stamp& b) {
  const Scope least = scope_of(a) < scope_of(b) ? scope_of(a) : scope_of(b);
  return holds(least, a.block, a.thread, b.block, b.thread);
}

// What orders `past` in front of what the running thread does now.
inline Ordered ordered(const Stamp& past, const Stamp& now, bool shared) {
  if (past.block < order.first_block) return {sound, 0};  // an earlier launch's, or none
  History& own = *order.now;
  if (past.block == now.block) {
    if (past.thread == now.thread || past.interval < now.interval) return {sound, 0};
    const unsigned warp = now.thread / warp_size;
    if (past.thread / warp_size == warp &&
        past.time <= own.synced[warp][now.thread % warp_size][past.thread % warp_size])
      return {sound, 0};
  } else if (shared) {
    return {sound, 0};  // of a block that is gone
  }
  Ordered found = {level_count, 0};
  const auto look = [&](const Clock& clock) {
    found = known_in(clock, past.block, past.thread, past.interval, past.time, found);
  };
  if (!own.common.empty) look(own.common.known);
  if (own.has_clocks && own.threads[now.thread]) look(own.threads[now.thread]->known);
  return found;
}

// All that the thread knows, its own work included; what comes next is later.
inline Clock snapshot(unsigned thread) {
  History& own = *order.now;
  Clock made = own.common.known;
  if (own.has_clocks && own.threads[thread]) join(made, own.threads[thread]->known);
  know(made, own.block, whole_block, current_block->interval);
  const unsigned warp = thread / warp_size;
  for (unsigned lane = 0; lane < warp_size; lane++)
    if (const uint32_t until = own.synced[warp][thread % warp_size][lane])
      know(made, own.block, warp * warp_size + lane, until);
  know(made, own.block, thread, own.time[thread]++);
  return made;
}

// --- fences and atomic operations

// A fence takes in what relaxed reads have met. Where its scope is too narrow for that, what was met is
// known but for the scope.
inline void take_pending(unsigned thread, Scope scope) {
  History& own = *order.now;
  const Clocks* sources[] = {&own.common, own.has_clocks ? own.threads[thread].get() : nullptr};
  for (const Clocks* source : sources) {
    if (!source || source->empty) continue;
    if (scope >= Scope::block) {
      const Clock met = source->pending[local];
      join(own.of(thread).known, met);
    }
    if (source->pending[wide].empty()) continue;
    const Clock met = source->pending[wide];
    if (scope >= Scope::device)
      join(own.of(thread).known, met);
    else
      join(own.of(thread).known, met, unacquired,
           gap_number({true, Scope::device, scope, Spot{blockIdx, threadIdx, {}}}), true);
  }
}

inline void order_fence(unsigned thread, Scope scope, bool acquires, bool releases) {
  if (acquires) take_pending(thread, scope);
  if (!releases || scope < Scope::block) return;
  History& own = *order.now;
  Clock made = snapshot(thread);
  Clocks& clocks = own.of(thread);
  if (scope >= Scope::device) clocks.fenced[wide] = made;
  clocks.fenced[local] = std::move(made);
  own.fence_is_latest[thread] = true;
}

// An atomic read meets what was told at its place.
inline void order_read(unsigned thread, uintptr_t at, Scope scope, bool acquires, const Spot& spot) {
  const auto found = order.released.find(at);
  if (found == order.released.end()) return;
  const Released& released = found->second;
  History& own = *order.now;
  Clocks& clocks = own.of(thread);
  uint16_t unfenced = 0;
  const auto take = [&](const Clock& clock, bool reached, Reach reach, Scope told) {
    if (!reached)
      return join(clocks.known, clock, narrow, gap_number({true, told, scope, spot}));
    if (acquires) return join(clocks.known, clock);
    if (!unfenced) unfenced = gap_number({false, told, scope, spot});
    join(clocks.known, clock, unacquired, unfenced);
    join(clocks.pending[reach], clock);
  };
  for (const Told& told : released.by_block) {
    if (told.block == own.block) {
      const Scope least = told.scope < scope ? told.scope : scope;
      const bool reached = least >= Scope::block || (least == Scope::warp && told.warp == thread / warp_size);
      take(told.clock, reached, local, told.scope);
    } else if (told.scope < Scope::device) {
      take(told.clock, false, wide, told.scope);
    }
  }
  if (!released.wide.empty())
    take(released.wide, scope >= Scope::device, wide, Scope::device);
}

inline bool is_done(uint32_t block);  // a block (tokitai_races.hpp)

inline void tell(uintptr_t at, const Clock& clock, Scope scope, unsigned thread) {
  Released& released = order.released[at];
  History& own = *order.now;
  if (scope >= Scope::device) join(released.wide, clock);
  auto& all = released.by_block;
  const uint16_t warp = uint16_t(thread / warp_size);
  for (Told& told : all)
    if (told.block == own.block && told.warp == warp && told.scope == scope)
      return join(told.clock, clock);
  // Of blocks that are done the wide ones are all that can be read.
  for (size_t i = 0; i < all.size();)
    if (all[i].scope >= Scope::device && is_done(all[i].block))
      all[i] = std::move(all.back()), all.pop_back();
    else
      i++;
  constexpr size_t most = 64;  // narrow ones of other blocks are of use to findings alone
  if (all.size() == most) all.erase(all.begin());
  all.push_back({own.block, warp, scope, clock});
}

// An atomic write tells what its thread knew at its fence or, where it releases, knows now. A store ends
// what earlier writes told; an operation that reads as well goes on with it.
inline void order_write(unsigned thread, uintptr_t at, Scope scope, bool releases, bool reads) {
  if (!reads) order.released.erase(at);
  History& own = *order.now;
  if (releases) return tell(at, snapshot(thread), scope, thread);
  const Clocks* sources[] = {&own.common, own.has_clocks ? own.threads[thread].get() : nullptr};
  for (const Clocks* source : sources) {
    if (!source || source->empty) continue;
    for (unsigned r = 0; r < reach_count; r++) {
      const Scope fence = r == wide ? Scope::system : Scope::block;
      if (!source->fenced[r].empty())
        tell(at, source->fenced[r], fence < scope ? fence : scope, thread);
    }
  }
}

inline bool has_fenced(unsigned thread) {
  const History& own = *order.now;
  return (own.has_clocks && own.threads[thread] && !own.threads[thread]->fenced[local].empty()) ||
         !own.common.fenced[local].empty();
}

// --- barriers

inline void order_block(unsigned threads) {
  History& own = *order.now;
  for (unsigned t = 0; t < threads; t++) {
    own.time[t] = 1;
    own.fence_is_latest[t] = false;
    if (own.threads[t]) own.threads[t]->clear();
  }
  memset(own.synced, 0, (threads + warp_size - 1) / warp_size * sizeof own.synced[0]);
  own.common.clear();
  own.has_clocks = false;
}

inline void order_barrier(unsigned threads) {
  History& own = *order.now;
  if (!own.has_clocks) return;
  for (unsigned t = 0; t < threads; t++)
    if (own.threads[t] && !own.threads[t]->empty) {
      own.common.take(*own.threads[t]);
      own.threads[t]->clear();
    }
  own.has_clocks = false;
}

inline void order_warp(unsigned warp, u64 members) {
  History& own = *order.now;
  auto& synced = own.synced[warp];
  uint32_t joined[warp_size] = {};
  Clocks together;
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    for (unsigned i = 0; i < warp_size; i++)
      if (joined[i] < synced[l][i]) joined[i] = synced[l][i];
    const unsigned thread = warp * warp_size + l;
    if (own.has_clocks && own.threads[thread]) together.take(*own.threads[thread]);
  }
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    joined[l] = own.time[warp * warp_size + l]++;
  }
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    memcpy(synced[l], joined, sizeof joined);
    if (!together.empty) own.of(warp * warp_size + l).take(together);
  }
}

}  // namespace tokitai
