// What hipCUB's primitives work with: operators, pairs, bits of keys, iterators; and the names of
// what the host calls, which is not run here.
#pragma once

#include "../../atomics.hpp"
#include "../../block_barrier.hpp"
#include "../../math.hpp"
#include "../host_only.hpp"

namespace hipcub {

#define TOKITAI_CUB_OPERATOR(NAME, RESULT, EXPRESSION)                                            \
  struct NAME {                                                                                   \
    template <class T, class U>                                                                   \
    constexpr RESULT operator()(const T& a, const U& b) const {                                   \
      return EXPRESSION;                                                                          \
    }                                                                                             \
  };
TOKITAI_CUB_OPERATOR(Sum, auto, a + b)
TOKITAI_CUB_OPERATOR(Difference, auto, a - b)
TOKITAI_CUB_OPERATOR(Division, auto, a / b)
TOKITAI_CUB_OPERATOR(Max, auto, b > a ? b : a)
TOKITAI_CUB_OPERATOR(Min, auto, b < a ? b : a)
TOKITAI_CUB_OPERATOR(Equality, bool, a == b)
TOKITAI_CUB_OPERATOR(Inequality, bool, a != b)
TOKITAI_CUB_OPERATOR(Less, bool, a < b)
TOKITAI_CUB_OPERATOR(Greater, bool, a > b)
// Of equal values the one with the smaller key.
TOKITAI_CUB_OPERATOR(ArgMax, T, b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a)
TOKITAI_CUB_OPERATOR(ArgMin, T, b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a)
#undef TOKITAI_CUB_OPERATOR
template <class To>
struct CastOp {
  template <class T>
  To operator()(const T& value) const {
    return To(value);
  }
};

struct NullType {};
template <int value_>
struct Int2Type {
  enum { VALUE = value_ };
};
template <class Key_, class Value_>
struct KeyValuePair {
  using Key = Key_;
  using Value = Value_;
  Key key;
  Value value;
  KeyValuePair() = default;
  KeyValuePair(const Key& k, const Value& v) : key(k), value(v) {}
  bool operator!=(const KeyValuePair& other) const {
    return key != other.key || value != other.value;
  }
};

// Keys as unsigned numbers of the same order.
template <size_t bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = unsigned char;
};
template <>
struct UnsignedOf<2> {
  using Type = unsigned short;
};
template <>
struct UnsignedOf<4> {
  using Type = unsigned;
};
template <>
struct UnsignedOf<8> {
  using Type = unsigned long long;
};
template <class T>
struct Traits {
  using UnsignedBits = typename UnsignedOf<sizeof(T)>::Type;
  static constexpr UnsignedBits HIGH_BIT = UnsignedBits(UnsignedBits(1) << (sizeof(T) * 8 - 1));
  static constexpr bool is_unsigned = std::is_unsigned<T>::value;
  static constexpr bool is_integer = std::is_integral<T>::value;
  static UnsignedBits TwiddleIn(UnsignedBits key) {
    if constexpr (is_unsigned) return key;
    const bool negative = !is_integer && (key & HIGH_BIT);
    return UnsignedBits(key ^ (negative ? UnsignedBits(-1) : HIGH_BIT));
  }
  static UnsignedBits TwiddleOut(UnsignedBits key) {
    if constexpr (is_unsigned) return key;
    const bool negative = !is_integer && !(key & HIGH_BIT);
    return UnsignedBits(key ^ (negative ? UnsignedBits(-1) : HIGH_BIT));
  }
};
template <class T>
using NumericTraits = Traits<T>;

template <class T>
struct DoubleBuffer {
  T* d_buffers[2] = {};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

template <class T, class Offset = ptrdiff_t>
struct CountingInputIterator {
  using value_type = T;
  T first;
  explicit CountingInputIterator(T first_) : first(first_) {}
  T operator[](Offset n) const { return T(first + n); }
  T operator*() const { return first; }
  CountingInputIterator operator+(Offset n) const { return CountingInputIterator(T(first + n)); }
};
template <class T, class Offset = ptrdiff_t>
struct ConstantInputIterator {
  using value_type = T;
  T value;
  explicit ConstantInputIterator(T value_, Offset = 0) : value(value_) {}
  T operator[](Offset) const { return value; }
  T operator*() const { return value; }
  ConstantInputIterator operator+(Offset) const { return *this; }
};
template <class T, class Conversion, class Input, class Offset = ptrdiff_t>
struct TransformInputIterator {
  using value_type = T;
  Input input;
  Conversion conversion;
  TransformInputIterator(Input input_, Conversion conversion_)
      : input(input_), conversion(conversion_) {}
  T operator[](Offset n) const { return conversion(input[n]); }
  T operator*() const { return conversion(*input); }
  TransformInputIterator operator+(Offset n) const { return {input + n, conversion}; }
};
struct DiscardOutputIterator {
  template <class T>
  const DiscardOutputIterator& operator=(const T&) const {
    return *this;
  }
  template <class Offset>
  const DiscardOutputIterator& operator[](Offset) const {
    return *this;
  }
};

inline unsigned LaneId() { return tokitai::lane_index(); }
inline unsigned WarpId() { return tokitai::linear_thread() / tokitai::warp_size; }
inline int RowMajorTid(int, int, int) { return int(tokitai::linear_thread()); }
inline void CTA_SYNC(TOKITAI_HERE) { __syncthreads(file, line); }
inline void WARP_SYNC(tokitai::u64 mask, TOKITAI_HERE) { __syncwarp(mask, file, line); }

// Device-wide algorithms are launched by the host.
#define TOKITAI_CUB_HOST(NAME) TOKITAI_HOST_FUNCTION(static, hipError_t, NAME)
struct DeviceReduce {
  TOKITAI_CUB_HOST(Sum)
  TOKITAI_CUB_HOST(Reduce)
  TOKITAI_CUB_HOST(Min)
  TOKITAI_CUB_HOST(Max)
  TOKITAI_CUB_HOST(ArgMin)
  TOKITAI_CUB_HOST(ArgMax)
  TOKITAI_CUB_HOST(ReduceByKey)
};
using DeviceSegmentedReduce = DeviceReduce;
struct DeviceScan {
  TOKITAI_CUB_HOST(ExclusiveSum)
  TOKITAI_CUB_HOST(InclusiveSum)
  TOKITAI_CUB_HOST(ExclusiveScan)
  TOKITAI_CUB_HOST(InclusiveScan)
};
struct DeviceRadixSort {
  TOKITAI_CUB_HOST(SortPairs)
  TOKITAI_CUB_HOST(SortPairsDescending)
  TOKITAI_CUB_HOST(SortKeys)
  TOKITAI_CUB_HOST(SortKeysDescending)
};
using DeviceSegmentedRadixSort = DeviceRadixSort;
struct DeviceMergeSort {
  TOKITAI_CUB_HOST(SortKeys)
  TOKITAI_CUB_HOST(SortPairs)
  TOKITAI_CUB_HOST(StableSortKeys)
  TOKITAI_CUB_HOST(StableSortPairs)
};
struct DeviceSelect {
  TOKITAI_CUB_HOST(Flagged)
  TOKITAI_CUB_HOST(If)
  TOKITAI_CUB_HOST(Unique)
};
using DevicePartition = DeviceSelect;
struct DeviceHistogram {
  TOKITAI_CUB_HOST(HistogramEven)
  TOKITAI_CUB_HOST(HistogramRange)
  TOKITAI_CUB_HOST(MultiHistogramEven)
};
struct DeviceRunLengthEncode {
  TOKITAI_CUB_HOST(Encode)
  TOKITAI_CUB_HOST(NonTrivialRuns)
};
#undef TOKITAI_CUB_HOST

}  // namespace hipcub
namespace cub = hipcub;
