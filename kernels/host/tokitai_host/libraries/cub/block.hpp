// hipcub::BlockReduce and BlockScan: warps by shuffles, then one barrier, then what warps left in
// shared memory. As in hipCUB storage may be used anew only behind a barrier, and a reduction's
// whole is thread 0's.
#pragma once

#include "warp.hpp"

namespace hipcub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

}  // namespace hipcub

namespace tokitai {

// What the primitives of a block of `threads` threads share.
template <class T, int threads>
struct BlockParts {
  static constexpr unsigned warps = (threads + warp_size - 1) / warp_size;
  Cells<T, warps + 1> parts;
};
inline unsigned warp_of_thread() { return linear_thread() / warp_size; }

template <class T>
struct Scanned {
  T inclusive, exclusive, whole;
  bool first;  // no value before it, so that `exclusive` says nothing
};

template <int threads, class T, class Operation>
inline T block_reduce(BlockParts<T, threads>& storage, T value, Operation operation, int valid,
                      Site site) {
  const unsigned warp = warp_of_thread();
  const int in_warp = valid - int(warp * warp_size);
  value = warp_reduce(LogicalWarp(warp_size), value, unsigned(in_warp > 0 ? in_warp : 0),
                      operation, site);
  if (lane_index() == 0) storage.parts[warp] = value;
  block_barrier(false, site);
  if (linear_thread() == 0)
    for (unsigned w = 1; int(w * warp_size) < valid && w < BlockParts<T, threads>::warps; w++)
      value = operation(value, storage.parts[w]);
  return value;
}

template <int threads, class T, class Operation>
inline Scanned<T> block_scan(BlockParts<T, threads>& storage, T value, Operation operation,
                             Site site) {
  const LogicalWarp lanes(warp_size);
  const unsigned warp = warp_of_thread(), self = linear_thread();
  T inclusive = warp_scan(lanes, value, operation, site);
  T exclusive = lanes.from(inclusive, lanes.rank ? lanes.rank - 1 : 0, site);
  if (lanes.rank == warp_size - 1 || self == threads - 1) storage.parts[warp] = inclusive;
  block_barrier(false, site);
  T whole = storage.parts[0];
  for (unsigned w = 1; w < BlockParts<T, threads>::warps; w++) {
    if (w == warp) {
      exclusive = lanes.rank ? T(operation(whole, exclusive)) : whole;
      inclusive = operation(whole, inclusive);
    }
    whole = operation(whole, storage.parts[w]);
  }
  return {inclusive, exclusive, whole, self == 0};
}

}  // namespace tokitai

namespace hipcub {

template <class T, int x, BlockReduceAlgorithm algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int y = 1,
          int z = 1, int arch = 0>
class BlockReduce {
  static constexpr int threads = x * y * z;

 public:
  using TempStorage = tokitai::BlockParts<T, threads>;
  BlockReduce() : storage_(tokitai::own_storage<TempStorage>()) {}
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
  template <class Operation>
  T Reduce(T value, Operation operation, int valid = threads, TOKITAI_HERE) {
    return tokitai::block_reduce<threads>(storage_, value, operation, valid, TOKITAI_SITE);
  }
  template <int items, class Operation>
  T Reduce(T (&values)[items], Operation operation, TOKITAI_HERE) {
    T value = values[0];
    for (int i = 1; i < items; i++) value = operation(value, values[i]);
    return Reduce(value, operation, threads, file, line);
  }
  T Sum(T value, int valid = threads, TOKITAI_HERE) {
    return Reduce(value, hipcub::Sum(), valid, file, line);
  }
  template <int items>
  T Sum(T (&values)[items], TOKITAI_HERE) {
    return Reduce(values, hipcub::Sum(), file, line);
  }

 private:
  TempStorage& storage_;
};

template <class T, int x, BlockScanAlgorithm algorithm = BLOCK_SCAN_RAKING, int y = 1, int z = 1,
          int arch = 0>
class BlockScan {
  static constexpr int threads = x * y * z;

 public:
  using TempStorage = tokitai::BlockParts<T, threads>;
  BlockScan() : storage_(tokitai::own_storage<TempStorage>()) {}
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  // Each form for one value and for a thread's several, with the whole or with a callback that is
  // told it by the first warp and gives what stands before the block.
  template <int items, class Operation>
  void InclusiveScan(T (&in)[items], T (&out)[items], Operation operation, TOKITAI_HERE) {
    spread(scan(fold(in, operation), operation, TOKITAI_SITE), in, out, operation);
  }
  template <int items, class Operation>
  void InclusiveScan(T (&in)[items], T (&out)[items], Operation operation, T& whole,
                     TOKITAI_HERE) {
    const auto found = scan(fold(in, operation), operation, TOKITAI_SITE);
    spread(found, in, out, operation);
    whole = found.whole;
  }
  template <int items, class Operation, class Callback,
            class = decltype(std::declval<Callback&>()(std::declval<T>()))>
  void InclusiveScan(T (&in)[items], T (&out)[items], Operation operation, Callback& callback,
                     TOKITAI_HERE) {
    const auto found = scan(fold(in, operation), operation, TOKITAI_SITE);
    spread(behind(found, callback, operation, TOKITAI_SITE), in, out, operation);
  }
  template <int items, class Operation>
  void ExclusiveScan(T (&in)[items], T (&out)[items], Operation operation, TOKITAI_HERE) {
    shift(scan(fold(in, operation), operation, TOKITAI_SITE), in, out, operation);
  }
  template <int items, class Operation>
  void ExclusiveScan(T (&in)[items], T (&out)[items], T first, Operation operation, TOKITAI_HERE) {
    T whole;
    ExclusiveScan(in, out, first, operation, whole, file, line);
  }
  template <int items, class Operation>
  void ExclusiveScan(T (&in)[items], T (&out)[items], T first, Operation operation, T& whole,
                     TOKITAI_HERE) {
    const auto found = scan(fold(in, operation), operation, TOKITAI_SITE);
    shift(after(found, first, operation), in, out, operation);
    whole = found.whole;
  }
  template <int items, class Operation, class Callback,
            class = decltype(std::declval<Callback&>()(std::declval<T>()))>
  void ExclusiveScan(T (&in)[items], T (&out)[items], Operation operation, Callback& callback,
                     TOKITAI_HERE) {
    const auto found = scan(fold(in, operation), operation, TOKITAI_SITE);
    shift(behind(found, callback, operation, TOKITAI_SITE), in, out, operation);
  }

#define TOKITAI_CUB_SCAN(NAME, PARAMETERS, ARGUMENTS)                                             \
  template <class Operation>                                                                      \
  void NAME(T in, T& out, TOKITAI_CUB_UNPACK PARAMETERS, TOKITAI_HERE) {                          \
    T one[1] = {in}, result[1] = {out};                                                           \
    NAME(one, result, TOKITAI_CUB_UNPACK ARGUMENTS, file, line);                                  \
    out = result[0];                                                                              \
  }
#define TOKITAI_CUB_UNPACK(...) __VA_ARGS__
  TOKITAI_CUB_SCAN(InclusiveScan, (Operation operation), (operation))
  TOKITAI_CUB_SCAN(InclusiveScan, (Operation operation, T& whole), (operation, whole))
  TOKITAI_CUB_SCAN(ExclusiveScan, (Operation operation), (operation))
  TOKITAI_CUB_SCAN(ExclusiveScan, (T first, Operation operation), (first, operation))
  TOKITAI_CUB_SCAN(ExclusiveScan, (T first, Operation operation, T& whole),
                   (first, operation, whole))
#undef TOKITAI_CUB_SCAN
#undef TOKITAI_CUB_UNPACK
  template <class Operation, class Callback,
            class = decltype(std::declval<Callback&>()(std::declval<T>()))>
  void InclusiveScan(T in, T& out, Operation operation, Callback& callback, TOKITAI_HERE) {
    T one[1] = {in}, result[1];
    InclusiveScan(one, result, operation, callback, file, line);
    out = result[0];
  }
  template <class Operation, class Callback,
            class = decltype(std::declval<Callback&>()(std::declval<T>()))>
  void ExclusiveScan(T in, T& out, Operation operation, Callback& callback, TOKITAI_HERE) {
    T one[1] = {in}, result[1];
    ExclusiveScan(one, result, operation, callback, file, line);
    out = result[0];
  }

  // Sums, of one value or several; what follows the output is the whole or a callback.
  template <class In, class Out>
  void InclusiveSum(In&& in, Out& out, TOKITAI_HERE) {
    InclusiveScan(in, out, hipcub::Sum(), file, line);
  }
  template <class In, class Out, class More, tokitai::Where<!std::is_pointer<More>::value> = 0>
  void InclusiveSum(In&& in, Out& out, More& more, TOKITAI_HERE) {
    InclusiveScan(in, out, hipcub::Sum(), more, file, line);
  }
  template <class In, class Out>
  void ExclusiveSum(In&& in, Out& out, TOKITAI_HERE) {
    ExclusiveScan(in, out, T(0), hipcub::Sum(), file, line);
  }
  template <class In, class Out, class More, tokitai::Where<!std::is_pointer<More>::value> = 0>
  void ExclusiveSum(In&& in, Out& out, More& more, TOKITAI_HERE) {
    if constexpr (std::is_same<More, T>::value)
      ExclusiveScan(in, out, T(0), hipcub::Sum(), more, file, line);
    else
      ExclusiveScan(in, out, hipcub::Sum(), more, file, line);
  }

 private:
  using Scanned = tokitai::Scanned<T>;
  template <class Operation>
  Scanned scan(T value, Operation operation, tokitai::Site site) {
    return tokitai::block_scan<threads>(storage_, value, operation, site);
  }
  template <int items, class Operation>
  static T fold(const T (&in)[items], Operation operation) {
    T value = in[0];
    for (int i = 1; i < items; i++) value = operation(value, in[i]);
    return value;
  }
  template <class Operation>
  static Scanned after(Scanned found, T first, Operation operation) {
    found.exclusive = found.first ? first : T(operation(first, found.exclusive));
    found.first = false;
    return found;
  }
  template <class Callback, class Operation>
  Scanned behind(Scanned found, Callback& callback, Operation operation, tokitai::Site site) {
    constexpr unsigned place = TempStorage::warps;
    if (tokitai::warp_of_thread() == 0) {
      const T before = callback(found.whole);
      if (tokitai::lane_index() == 0) storage_.parts[place] = before;
    }
    tokitai::block_barrier(false, site);
    return after(found, storage_.parts[place], operation);
  }
  // `in` and `out` may be the same array.
  template <int items, class Operation>
  static void spread(Scanned found, T (&in)[items], T (&out)[items], Operation operation) {
    T value = found.first ? in[0] : T(operation(found.exclusive, in[0]));
    out[0] = value;
    for (int i = 1; i < items; i++) out[i] = value = operation(value, in[i]);
  }
  template <int items, class Operation>
  static void shift(Scanned found, T (&in)[items], T (&out)[items], Operation operation) {
    T next = in[0], value = found.first ? next : T(operation(found.exclusive, next));
    if (!found.first) out[0] = found.exclusive;
    for (int i = 1; i < items; i++) {
      next = in[i];
      out[i] = value;
      value = operation(value, next);
    }
  }

  TempStorage& storage_;
};

}  // namespace hipcub
