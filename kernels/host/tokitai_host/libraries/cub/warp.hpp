// hipcub::WarpReduce, WarpScan and WarpExchange: by shuffles, in the order in which hipCUB adds.
#pragma once

#include "operators.hpp"

namespace tokitai {

// The logical warp of `width` lanes that the calling lane is in; any width up to a warp's.
struct LogicalWarp {
  unsigned width, rank, first;
  explicit LogicalWarp(unsigned width_)
      : width(width_), rank(lane_index() % width_), first(lane_index() - lane_index() % width_) {}
  u64 mask() const { return (width >= 64 ? ~0ull : (1ull << width) - 1) << first; }
  template <class T>
  T from(T value, unsigned other, Site site) const {
    return shuffle_any(mask(), value, first + other, site);
  }
};

// A tree over the first `valid` ranks; rank 0 gets the whole, others what the tree has left there.
template <class T, class Operation>
inline T warp_reduce(LogicalWarp warp, T value, unsigned valid, Operation operation, Site site) {
  for (unsigned distance = 1; distance < warp.width; distance *= 2) {
    const bool other = warp.rank + distance < valid;
    const T right =
        warp.from(value, warp.rank + (warp.rank + distance < warp.width ? distance : 0), site);
    if (other) value = operation(value, right);
  }
  return value;
}
template <class T, class Operation>
inline T warp_scan(LogicalWarp warp, T value, Operation operation, Site site) {
  for (unsigned distance = 1; distance < warp.width; distance *= 2) {
    const bool other = warp.rank >= distance;
    const T left = warp.from(value, warp.rank - (other ? distance : 0), site);
    if (other) value = operation(left, value);
  }
  return value;
}

// Shared memory for values of any type, which a constructor would keep from being shared.
template <class T, size_t count>
struct Cells {
  alignas(T) unsigned char bytes[count * sizeof(T)];
  T& operator[](size_t i) { return reinterpret_cast<T*>(bytes)[i]; }
};
struct NoCells {};

// Storage of a primitive that is given none.
template <class Storage>
inline Storage& own_storage() {
  static __shared__ Storage storage;
  return storage;
}

}  // namespace tokitai

namespace hipcub {

template <class T, int width = int(tokitai::warp_size), int arch = 0>
class WarpReduce {
  static_assert(width >= 1 && width <= int(tokitai::warp_size), "a logical warp fits a warp");

 public:
  using TempStorage = tokitai::NoCells;
  explicit WarpReduce(TempStorage&) {}
  template <class Operation>
  T Reduce(T value, Operation operation, int valid = width, TOKITAI_HERE) {
    return tokitai::warp_reduce(tokitai::LogicalWarp(width), value, unsigned(valid), operation,
                                TOKITAI_SITE);
  }
  T Sum(T value, int valid = width, TOKITAI_HERE) {
    return Reduce(value, hipcub::Sum(), valid, file, line);
  }
  // Segments begin where a flag is set; the first lane of each gets its whole.
  template <class Flag, class Operation>
  T HeadSegmentedReduce(T value, Flag head, Operation operation, TOKITAI_HERE) {
    const tokitai::LogicalWarp warp(width);
    const tokitai::u64 heads = __ballot_sync(warp.mask(), head != 0, file, line) >> warp.first;
    const tokitai::u64 after = warp.rank < 63 ? heads >> (warp.rank + 1) : 0;
    return Segmented(warp, value, after ? warp.rank + 1 + __builtin_ctzll(after) : width,
                     operation, TOKITAI_SITE);
  }
  template <class Flag>
  T HeadSegmentedSum(T value, Flag head, TOKITAI_HERE) {
    return HeadSegmentedReduce(value, head, hipcub::Sum(), file, line);
  }
  template <class Flag, class Operation>
  T TailSegmentedReduce(T value, Flag tail, Operation operation, TOKITAI_HERE) {
    const tokitai::LogicalWarp warp(width);
    const tokitai::u64 tails = __ballot_sync(warp.mask(), tail != 0, file, line) >> warp.first;
    const tokitai::u64 here = tails >> warp.rank;
    return Segmented(warp, value, here ? warp.rank + 1 + __builtin_ctzll(here) : width, operation,
                     TOKITAI_SITE);
  }
  template <class Flag>
  T TailSegmentedSum(T value, Flag tail, TOKITAI_HERE) {
    return TailSegmentedReduce(value, tail, hipcub::Sum(), file, line);
  }

 private:
  template <class Operation>
  T Segmented(tokitai::LogicalWarp warp, T value, unsigned end, Operation operation,
              tokitai::Site site) {
    return tokitai::warp_reduce(warp, value, end < unsigned(width) ? end : unsigned(width),
                                operation, site);
  }
};

template <class T, int width = int(tokitai::warp_size), int arch = 0>
class WarpScan {
  static_assert(width >= 1 && width <= int(tokitai::warp_size), "a logical warp fits a warp");

 public:
  using TempStorage = tokitai::NoCells;
  explicit WarpScan(TempStorage&) {}
  template <class Operation>
  void InclusiveScan(T in, T& out, Operation operation, TOKITAI_HERE) {
    out = tokitai::warp_scan(tokitai::LogicalWarp(width), in, operation, TOKITAI_SITE);
  }
  template <class Operation>
  void InclusiveScan(T in, T& out, Operation operation, T& whole, TOKITAI_HERE) {
    const tokitai::LogicalWarp warp(width);
    out = tokitai::warp_scan(warp, in, operation, TOKITAI_SITE);
    whole = warp.from(out, width - 1, TOKITAI_SITE);
  }
  // Without a first value rank 0 gets what it had.
  template <class Operation>
  void ExclusiveScan(T in, T& out, Operation operation, TOKITAI_HERE) {
    T inclusive;
    Scan(in, inclusive, out, operation, file, line);
  }
  template <class Operation>
  void ExclusiveScan(T in, T& out, T first, Operation operation, TOKITAI_HERE) {
    T inclusive;
    Scan(in, inclusive, out, first, operation, file, line);
  }
  template <class Operation>
  void ExclusiveScan(T in, T& out, T first, Operation operation, T& whole, TOKITAI_HERE) {
    T inclusive;
    Scan(in, inclusive, out, operation, file, line);
    whole = tokitai::LogicalWarp(width).from(inclusive, width - 1, TOKITAI_SITE);
    out = tokitai::LogicalWarp(width).rank ? T(operation(first, out)) : first;
  }
  template <class Operation>
  void Scan(T in, T& inclusive, T& exclusive, Operation operation, TOKITAI_HERE) {
    const tokitai::LogicalWarp warp(width);
    inclusive = tokitai::warp_scan(warp, in, operation, TOKITAI_SITE);
    const T left = warp.from(inclusive, warp.rank ? warp.rank - 1 : 0, TOKITAI_SITE);
    if (warp.rank) exclusive = left;
  }
  template <class Operation>
  void Scan(T in, T& inclusive, T& exclusive, T first, Operation operation, TOKITAI_HERE) {
    Scan(in, inclusive, exclusive, operation, file, line);
    inclusive = operation(first, inclusive);
    exclusive = tokitai::LogicalWarp(width).rank ? T(operation(first, exclusive)) : first;
  }
  void InclusiveSum(T in, T& out, TOKITAI_HERE) {
    InclusiveScan(in, out, hipcub::Sum(), file, line);
  }
  void InclusiveSum(T in, T& out, T& whole, TOKITAI_HERE) {
    InclusiveScan(in, out, hipcub::Sum(), whole, file, line);
  }
  void ExclusiveSum(T in, T& out, TOKITAI_HERE) {
    ExclusiveScan(in, out, T(0), hipcub::Sum(), file, line);
  }
  void ExclusiveSum(T in, T& out, T& whole, TOKITAI_HERE) {
    ExclusiveScan(in, out, T(0), hipcub::Sum(), whole, file, line);
  }
  T Broadcast(T value, unsigned lane, TOKITAI_HERE) {
    return tokitai::LogicalWarp(width).from(value, lane, TOKITAI_SITE);
  }
};

}  // namespace hipcub
