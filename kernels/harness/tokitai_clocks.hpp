// How far threads know of each other: clocks by block and thread, and what is amiss with what they know.
#pragma once

#include <unordered_map>
#include <vector>

#include "tokitai_host/memory_order.hpp"
#include "tokitai_undefined.hpp"

namespace tokitai {

// What orders two accesses: all that a memory model asks for; that but for an acquire behind a relaxed
// read; or that but for scopes, which leave one of the threads out.
enum Level : unsigned { sound, unacquired, narrow, level_count };

// What lacks at a level beyond the first: the read that acquires nothing, or the scopes.
struct Gap {
  bool scoped;
  Scope released, acquired;
  Spot at;  // of the read
};

struct Known {
  uint32_t until[level_count];
  uint16_t gap[level_count];  // from 1; 0 for none
};

// Of a block, the interval in front of which all is known; of a thread, its time.
using Clock = std::unordered_map<uint64_t, Known>;

constexpr uint32_t whole_block = 0xffff;
inline uint64_t clock_key(uint32_t block, uint32_t thread_or_all) {
  return uint64_t(block) << 16 | thread_or_all;
}

// Adds what `from` knows at the levels from `lowest` on. `gap` is what lacks at those that it does not know
// in full itself; where `over`, also of what was known there already.
inline void join(Clock& into, const Clock& from, Level lowest = sound, uint16_t gap = 0,
                 bool over = false) {
  for (const auto& [key, more] : from) {
    Known& known = into[key];
    for (unsigned l = lowest; l < level_count; l++) {
      const uint16_t own = more.gap[l] ? more.gap[l] : gap;
      if (known.until[l] < more.until[l] || (over && known.until[l] == more.until[l] && own &&
                                             known.until[sound] < more.until[l])) {
        known.until[l] = more.until[l];
        known.gap[l] = own;
      } else if (known.until[l] == more.until[l] && !own) {
        known.gap[l] = 0;  // nothing lacks any more
      }
    }
  }
}

inline void know(Clock& clock, uint32_t block, uint32_t thread_or_all, uint32_t until) {
  Known& known = clock[clock_key(block, thread_or_all)];
  for (unsigned l = 0; l < level_count; l++)
    if (known.until[l] < until) known.until[l] = until, known.gap[l] = 0;
}

struct Ordered {
  Level level;  // level_count where nothing orders
  uint16_t gap;
};

// How `clock` knows of an access; `better` is what is known otherwise.
inline Ordered known_in(const Clock& clock, uint32_t block, uint32_t thread, uint32_t interval,
                        uint32_t time, Ordered better) {
  if (clock.empty()) return better;
  const auto whole = clock.find(clock_key(block, whole_block));
  const auto own = clock.find(clock_key(block, thread));
  for (unsigned l = 0; l < better.level; l++) {
    if (whole != clock.end() && interval < whole->second.until[l])
      return {Level(l), whole->second.gap[l]};
    if (own != clock.end() && time <= own->second.until[l]) return {Level(l), own->second.gap[l]};
  }
  return better;
}

inline const char* scope_name(Scope scope) {
  constexpr const char* names[] = {"thread", "warp", "block", "device", "system"};
  return names[unsigned(scope)];
}

}  // namespace tokitai
