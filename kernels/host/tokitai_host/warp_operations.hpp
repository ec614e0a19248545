// Shuffles, votes and warp barriers.
//
// Forms with a mask wait until every live lane of the mask is in the same operation. Forms without
// one involve the active lanes, which only a GPU's divergence stack knows. They are taken to be the
// lanes that wait at the same place in the source once no lane of the warp can run; of several
// places the first in the source goes on first, so that the sides of a branch meet again behind it
// (the order of a minimum-PC scheduler; Collange, "Stack-less SIMT reconvergence at low cost", 2011).
//
// A lane that reads from one that takes no part gets a word of the repetition's fill, as the value is
// undefined: two repetitions with different fills then differ.
#pragma once

#ifdef TOKITAI_DEVICE_GFX
#include <tokitai_gfx/warp_operations.hpp>
#else

#include "waiting.hpp"

namespace tokitai {

TOKITAI_UNSANITIZED inline bool same_operation(const Lane& a, const Lane& b) {
  if (a.operation != b.operation || a.mask.given != b.mask.given) return false;
  if (a.mask.lanes != b.mask.lanes) return false;
  // Operations with one mask pair across the sides of a branch, which all lanes of the mask reach (PTX ISA,
  // shfl.sync, vote.sync, match.sync, bar.warp.sync; from sm_70 on).
  return a.mask.given || a.site == b.site;
}

TOKITAI_UNSANITIZED inline u64 match_result(const Lane* lanes, u64 members, unsigned self) {
  u64 equal = 0;
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    if (lanes[l].value == lanes[self].value) equal |= 1ull << l;
  }
  return equal;
}

// What the members of a reduction get; its kind stands where a shuffle has its source.
enum Reduced : unsigned { sum, least, largest, least_signed, largest_signed, all_bits, any_bit, odd_bits };

TOKITAI_UNSANITIZED inline u64 reduced(const Lane* lanes, u64 members, unsigned kind) {
  unsigned result = unsigned(lanes[__builtin_ctzll(members)].value);
  for (u64 left = members & (members - 1); left; left &= left - 1) {
    const unsigned value = unsigned(lanes[__builtin_ctzll(left)].value);
    switch (kind) {
      case sum: result += value; break;
      case least: result = value < result ? value : result; break;
      case largest: result = value > result ? value : result; break;
      case least_signed: result = int(value) < int(result) ? value : result; break;
      case largest_signed: result = int(value) > int(result) ? value : result; break;
      case all_bits: result &= value; break;
      case any_bit: result |= value; break;
      default: result ^= value;
    }
  }
  return result;
}

// Computes what each member gets and lets all of them run. All results are computed at once, as the
// first member to go on may already be in its next operation before the last one has read its own.
TOKITAI_UNSANITIZED inline void complete(Block& block, unsigned w, u64 members) {
  Warp& warp = block.warps[w];
  Lane* lanes = &block.lanes[w * warp_size];
  u64 ballot = 0;
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    if (lanes[l].value) ballot |= 1ull << l;
  }
  u64 undefined;
  memcpy(&undefined, block.work->fill.bytes, sizeof undefined);
#ifdef TOKITAI_WATCH_SCHEDULE
  watch_warp(w, members);
#endif
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    Lane& lane = lanes[l];
    lane.members = members;
    switch (lane.operation) {
      case Operation::shuffle:
        lane.result = (members >> lane.source) & 1 ? lanes[lane.source].value : undefined;
        break;
      case Operation::match_any:
      case Operation::match_all:
        lane.result = match_result(lanes, members, l);
        break;
      case Operation::reduction:
        lane.result = reduced(lanes, members, lane.source);
        break;
      default:
        lane.result = ballot;
    }
  }
  warp.waiting &= ~members;
  warp.runnable |= members;
  block.progress++;
}

// Lets lanes of a warp go on of which none can run: every complete group with a mask, else, where others
// may be left out (`partly`), the first group without one.
TOKITAI_UNSANITIZED inline void complete_warp_operation(Block& block, unsigned w, bool partly) {
  Warp& warp = block.warps[w];
  const Lane* lanes = &block.lanes[w * warp_size];
  u64 unmasked = 0;
  int unmasked_line = 0;
  for (u64 left = warp.waiting; left;) {
    const Lane& first = lanes[__builtin_ctzll(left)];
    u64 group = 0;
    for (u64 others = left; others; others &= others - 1) {
      const unsigned l = unsigned(__builtin_ctzll(others));
      if (same_operation(first, lanes[l])) group |= 1ull << l;
    }
    left &= ~group;
    if (first.mask.given) {
      if (group == (first.mask.lanes & warp.live)) complete(block, w, group);
    } else if (!unmasked || first.site.line < unmasked_line) {
      unmasked = group;
      unmasked_line = first.site.line;
    }
  }
  if (!warp.runnable && unmasked && partly) complete(block, w, unmasked);
}

// Waits in a warp operation. The lane's result and members are valid until its next operation.
TOKITAI_UNSANITIZED __attribute__((noinline)) inline Lane& warp_operation(Operation operation,
                                                                          Mask mask, u64 value,
                                                                          unsigned source,
                                                                          Site site) {
  Block& block = armed_block();
  Lane& lane = block.lanes[block.current];
  Warp& warp = block.warps[block.current / warp_size];
  const u64 bit = 1ull << (block.current % warp_size);
  lane.operation = operation;
  lane.mask = mask;
  lane.value = value;
  lane.source = source;
  lane.site = site;
  if (mask.given && !(mask.lanes & bit)) {
    report_lone_caller(block);
    switch_to(block, -1, true);
  }
  warp.runnable &= ~bit;
  warp.waiting |= bit;
  wait_for_turn(block);
  lane.operation = Operation::none;
  return lane;
}

inline unsigned linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
inline unsigned lane_index() { return linear_thread() % warp_size; }

// A value of up to 8 bytes as a word, and back.
template <class T>
inline u64 to_word(const T& value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves values of at most 8 bytes");
  u64 word = 0;
  memcpy(&word, &value, sizeof value);
  return word;
}
template <class T>
inline T from_word(u64 word) {
  T value;
  memcpy(&value, &word, sizeof value);
  return value;
}

template <class T>
inline T shuffle(Mask mask, T value, unsigned source, Site site) {
  u64 word = to_word(value);
  used(source);
  watch_given(&word);
  word = warp_operation(Operation::shuffle, mask, word, source, site).result;
  watch_taken(&word);
  return from_word<T>(word);
}

// The same for values of any size, word by word.
template <class T>
inline T shuffle_any(Mask mask, T value, unsigned source, Site site) {
  if constexpr (sizeof(T) <= 8) {
    return shuffle(mask, value, source, site);
  } else {
    constexpr size_t words = (sizeof(T) + 7) / 8;
    u64 parts[words] = {};
    memcpy(parts, &value, sizeof value);
    for (u64& part : parts) part = shuffle(mask, part, source, site);
    memcpy(&value, parts, sizeof value);
    return value;
  }
}

// Source lanes of the four shuffles, in segments of `width` lanes (a power of two).
inline unsigned source_at(int lane, int width) {
  const unsigned self = lane_index(), last = unsigned(width) - 1;
  return (self & ~last) + (unsigned(lane) & last);
}
inline unsigned source_up(unsigned delta, int width) {
  const unsigned self = lane_index(), last = unsigned(width) - 1;
  return (self & last) < delta ? self : self - delta;
}
inline unsigned source_down(unsigned delta, int width) {
  const unsigned self = lane_index(), last = unsigned(width) - 1;
  return (self & last) + delta > last ? self : self + delta;
}
inline unsigned source_xor(int lanes, int width) {
  const unsigned self = lane_index(), other = self ^ unsigned(lanes), last = unsigned(width) - 1;
  return other > (self | last) ? self : other;
}

}  // namespace tokitai

#define TOKITAI_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define TOKITAI_SITE tokitai::Site{file, line}

template <class T>
inline T __shfl(T value, int lane, int width = warpSize, TOKITAI_HERE) {
  return tokitai::shuffle(tokitai::Mask(), value, tokitai::source_at(lane, width), TOKITAI_SITE);
}
template <class T>
inline T __shfl_up(T value, unsigned delta, int width = warpSize, TOKITAI_HERE) {
  return tokitai::shuffle(tokitai::Mask(), value, tokitai::source_up(delta, width), TOKITAI_SITE);
}
template <class T>
inline T __shfl_down(T value, unsigned delta, int width = warpSize, TOKITAI_HERE) {
  return tokitai::shuffle(tokitai::Mask(), value, tokitai::source_down(delta, width), TOKITAI_SITE);
}
template <class T>
inline T __shfl_xor(T value, int lanes, int width = warpSize, TOKITAI_HERE) {
  return tokitai::shuffle(tokitai::Mask(), value, tokitai::source_xor(lanes, width), TOKITAI_SITE);
}
template <class T>
inline T __shfl_sync(tokitai::u64 mask, T value, int lane, int width = warpSize, TOKITAI_HERE) {
  return tokitai::shuffle(mask, value, tokitai::source_at(lane, width), TOKITAI_SITE);
}
template <class T>
inline T __shfl_up_sync(tokitai::u64 mask, T value, unsigned delta, int width = warpSize,
                        TOKITAI_HERE) {
  return tokitai::shuffle(mask, value, tokitai::source_up(delta, width), TOKITAI_SITE);
}
template <class T>
inline T __shfl_down_sync(tokitai::u64 mask, T value, unsigned delta, int width = warpSize,
                          TOKITAI_HERE) {
  return tokitai::shuffle(mask, value, tokitai::source_down(delta, width), TOKITAI_SITE);
}
template <class T>
inline T __shfl_xor_sync(tokitai::u64 mask, T value, int lanes, int width = warpSize,
                         TOKITAI_HERE) {
  return tokitai::shuffle(mask, value, tokitai::source_xor(lanes, width), TOKITAI_SITE);
}

// HIP's ballots are 64 bits wide whatever the size of a warp.
inline unsigned long long __ballot(int predicate, TOKITAI_HERE) {
  tokitai::used(predicate);
  return tokitai::warp_operation(tokitai::Operation::ballot, tokitai::Mask(), predicate != 0, 0, TOKITAI_SITE)
      .result;
}
inline unsigned long long __ballot_sync(tokitai::u64 mask, int predicate, TOKITAI_HERE) {
  tokitai::used(predicate);
  return tokitai::warp_operation(tokitai::Operation::ballot, mask, predicate != 0, 0, TOKITAI_SITE)
      .result;
}
inline int __any(int predicate, TOKITAI_HERE) { return __ballot(predicate, file, line) != 0; }
inline int __any_sync(tokitai::u64 mask, int predicate, TOKITAI_HERE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all(int predicate, TOKITAI_HERE) { return __ballot(!predicate, file, line) == 0; }
inline int __all_sync(tokitai::u64 mask, int predicate, TOKITAI_HERE) {
  return __ballot_sync(mask, !predicate, file, line) == 0;
}
inline unsigned long long __activemask(TOKITAI_HERE) {
  return tokitai::warp_operation(tokitai::Operation::active_mask, tokitai::Mask(), 0, 0, TOKITAI_SITE).members;
}
template <class T>
inline unsigned long long __match_any_sync(tokitai::u64 mask, T value, TOKITAI_HERE) {
  tokitai::used(value);
  return tokitai::warp_operation(tokitai::Operation::match_any, mask, tokitai::to_word(value), 0,
                                 TOKITAI_SITE)
      .result;
}
template <class T>
inline unsigned long long __match_all_sync(tokitai::u64 mask, T value, int* all, TOKITAI_HERE) {
  tokitai::used(value);
  const tokitai::Lane& lane = tokitai::warp_operation(tokitai::Operation::match_all, mask,
                                                      tokitai::to_word(value), 0, TOKITAI_SITE);
  *all = lane.result == lane.members;
  return *all ? lane.members : 0;
}
#define TOKITAI_REDUCTION(NAME, T, KIND)                                                          \
  inline T __reduce_##NAME##_sync(tokitai::u64 mask, T value, TOKITAI_HERE) {                     \
    tokitai::used(value);                                                                         \
    return T(tokitai::warp_operation(tokitai::Operation::reduction, mask, unsigned(value),        \
                                     tokitai::KIND, TOKITAI_SITE)                                 \
                 .result);                                                                        \
  }
TOKITAI_REDUCTION(add, unsigned, sum)
TOKITAI_REDUCTION(add, int, sum)
TOKITAI_REDUCTION(min, unsigned, least)
TOKITAI_REDUCTION(min, int, least_signed)
TOKITAI_REDUCTION(max, unsigned, largest)
TOKITAI_REDUCTION(max, int, largest_signed)
TOKITAI_REDUCTION(and, unsigned, all_bits)
TOKITAI_REDUCTION(or, unsigned, any_bit)
TOKITAI_REDUCTION(xor, unsigned, odd_bits)
#undef TOKITAI_REDUCTION
inline void __syncwarp(tokitai::u64 mask = ~0ull, TOKITAI_HERE) {
  tokitai::warp_operation(tokitai::Operation::warp_barrier, mask, 0, 0, TOKITAI_SITE);
}

inline unsigned __lane_id() { return tokitai::lane_index(); }
inline tokitai::u64 __lanemask_lt() { return (1ull << tokitai::lane_index()) - 1; }
inline tokitai::u64 __lanemask_eq() { return 1ull << tokitai::lane_index(); }
inline tokitai::u64 __lanemask_gt() {
  return tokitai::all_lanes & ~(__lanemask_lt() | __lanemask_eq());
}

#endif
