// hipcub's primitives over neighbours and orders: sorts, differences, flags, histograms, shuffles.
#pragma once

#include "exchange.hpp"

namespace tokitai {

// Sorts the keys of a block stably, and what goes with them; `below` tells whether one key is
// before another. Thread 0 sorts places by merging, and all take their items behind a barrier.
template <class Key, class Value, int threads, int items>
struct SortedCells {
  Cells<Key, size_t(threads) * items> keys;
  Cells<Value, size_t(threads) * items> values;
  Cells<unsigned, size_t(threads) * items> order;

  template <class Below>
  void sort(Below below, Site site) {
    constexpr size_t count = size_t(threads) * items;
    block_barrier(false, site);
    if (linear_thread() == 0) {
      unsigned* spare = static_cast<unsigned*>(malloc(count * sizeof(unsigned)));
      for (size_t i = 0; i < count; i++) order[i] = unsigned(i);
      for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
          const size_t middle = begin + width < count ? begin + width : count;
          const size_t end = middle + width < count ? middle + width : count;
          size_t left = begin, right = middle;
          for (size_t i = begin; i < end; i++) {
            const bool take_right =
                left == middle || (right < end && below(keys[order[right]], keys[order[left]]));
            spare[i] = take_right ? order[right++] : order[left++];
          }
        }
        for (size_t i = 0; i < count; i++) order[i] = spare[i];
      }
      free(spare);
    }
    block_barrier(false, site);
  }
};

template <class Key, class Value, int x, int y, int z, int items>
class BlockSort {
 protected:
  using Group = BlockGroup<x, y, z>;
  using Cells_ = SortedCells<Key, Value, Group::threads, items>;

 public:
  using TempStorage = Cells_;
  BlockSort() : storage_(own_storage<TempStorage>()) {}
  explicit BlockSort(TempStorage& storage) : storage_(storage) {}

 protected:
  template <Arrangement to, class Below>
  void sort(Key (&keys)[items], Value (*values)[items], Below below, Site site) {
    for (int i = 0; i < items; i++) {
      const size_t place = size_t(blocked<Group, items>(Group::rank(), i));
      storage_.keys[place] = keys[i];
      if (values) storage_.values[place] = (*values)[i];
    }
    storage_.sort(below, site);
    for (int i = 0; i < items; i++) {
      const unsigned from = storage_.order[size_t(to(Group::rank(), i))];
      keys[i] = storage_.keys[from];
      if (values) (*values)[i] = storage_.values[from];
    }
  }
  TempStorage& storage_;
};

}  // namespace tokitai

namespace hipcub {

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <class Key, int x, int items, class Value = NullType, int radix_bits = 4,
          bool memoize = true, BlockScanAlgorithm scan = BLOCK_SCAN_WARP_SCANS, int config = 0,
          int y = 1, int z = 1, int arch = 0>
class BlockRadixSort : public tokitai::BlockSort<Key, Value, x, y, z, items> {
  using Base = tokitai::BlockSort<Key, Value, x, y, z, items>;
  using Base::Base;
  using Group = typename Base::Group;
  static constexpr int bits = int(8 * sizeof(Key));

  // Compares the bits from `begin` up to, not including, `end`.
  struct Below {
    bool descending;
    int begin, end;
    bool operator()(const Key& a, const Key& b) const {
      return descending ? number(b) < number(a) : number(a) < number(b);
    }
    unsigned long long number(Key key) const {
      using Unsigned = typename Traits<Key>::UnsignedBits;
      const unsigned long long all = Traits<Key>::TwiddleIn(tokitai::reinterpret<Unsigned>(key));
      return (end - begin >= 64 ? all : all & ((1ull << end) - 1)) >> begin;
    }
  };

 public:
#define TOKITAI_CUB_SORT(NAME, DESCENDING, TO)                                                    \
  void NAME(Key(&keys)[items], int begin = 0, int end = bits, TOKITAI_HERE) {                     \
    this->template sort<tokitai::TO<Group, items>>(keys, nullptr, Below{DESCENDING, begin, end},  \
                                                   TOKITAI_SITE);                                 \
  }                                                                                               \
  void NAME(Key(&keys)[items], Value(&values)[items], int begin = 0, int end = bits,              \
            TOKITAI_HERE) {                                                                       \
    this->template sort<tokitai::TO<Group, items>>(keys, &values, Below{DESCENDING, begin, end},  \
                                                   TOKITAI_SITE);                                 \
  }
  TOKITAI_CUB_SORT(Sort, false, blocked)
  TOKITAI_CUB_SORT(SortDescending, true, blocked)
  TOKITAI_CUB_SORT(SortBlockedToStriped, false, striped)
  TOKITAI_CUB_SORT(SortDescendingBlockedToStriped, true, striped)
#undef TOKITAI_CUB_SORT
};

template <class Key, int x, int items, class Value = NullType, int y = 1, int z = 1>
class BlockMergeSort : public tokitai::BlockSort<Key, Value, x, y, z, items> {
  using Base = tokitai::BlockSort<Key, Value, x, y, z, items>;
  using Base::Base;

 public:
  template <class Below>
  void Sort(Key (&keys)[items], Below below, TOKITAI_HERE) {
    this->template sort<tokitai::blocked<typename Base::Group, items>>(keys, nullptr, below,
                                                                       TOKITAI_SITE);
  }
  template <class Below>
  void Sort(Key (&keys)[items], Value (&values)[items], Below below, TOKITAI_HERE) {
    this->template sort<tokitai::blocked<typename Base::Group, items>>(keys, &values, below,
                                                                       TOKITAI_SITE);
  }
  template <class Below>
  void StableSort(Key (&keys)[items], Below below, TOKITAI_HERE) {
    Sort(keys, below, file, line);
  }
};

// What a thread's neighbours have at their near ends, behind one barrier.
template <class T, int x, int y = 1, int z = 1>
class BlockNeighbours {
 protected:
  static constexpr int threads = x * y * z;

 public:
  using TempStorage = tokitai::Cells<T, 2 * size_t(threads)>;
  BlockNeighbours() : storage_(tokitai::own_storage<TempStorage>()) {}
  explicit BlockNeighbours(TempStorage& storage) : storage_(storage) {}

 protected:
  void show(const T& first, const T& last, tokitai::Site site) {
    storage_[rank()] = first;
    storage_[rank() + threads] = last;
    tokitai::block_barrier(false, site);
  }
  T before() { return storage_[rank() - 1 + threads]; }
  T behind() { return storage_[rank() + 1]; }
  static unsigned rank() { return tokitai::linear_thread(); }
  static bool is_first() { return rank() == 0; }
  static bool is_last() { return rank() == threads - 1; }
  TempStorage& storage_;
};

template <class T, int x, int y = 1, int z = 1, int arch = 0>
class BlockAdjacentDifference : public BlockNeighbours<T, x, y, z> {
  using Base = BlockNeighbours<T, x, y, z>;
  using Base::Base;

 public:
  // The first item of the block stays as it is, or is taken against `predecessor`.
  template <int items, class Out, class Operation>
  void SubtractLeft(T (&in)[items], Out (&out)[items], Operation operation, TOKITAI_HERE) {
    this->show(in[0], in[items - 1], TOKITAI_SITE);
    for (int i = items - 1; i > 0; i--) out[i] = operation(in[i], in[i - 1]);
    if (this->is_first()) {
      out[0] = in[0];
    } else {
      T beside = this->before();  // an operation may take references
      out[0] = operation(in[0], beside);
    }
  }
  template <int items, class Out, class Operation>
  void SubtractLeft(T (&in)[items], Out (&out)[items], Operation operation, T predecessor,
                    TOKITAI_HERE) {
    T first = in[0];
    SubtractLeft(in, out, operation, file, line);
    if (this->is_first()) out[0] = operation(first, predecessor);
  }
  // The last item of the block stays as it is, or is taken against `successor`.
  template <int items, class Out, class Operation>
  void SubtractRight(T (&in)[items], Out (&out)[items], Operation operation, TOKITAI_HERE) {
    this->show(in[0], in[items - 1], TOKITAI_SITE);
    for (int i = 0; i < items - 1; i++) out[i] = operation(in[i], in[i + 1]);
    if (this->is_last()) {
      out[items - 1] = in[items - 1];
    } else {
      T beside = this->behind();
      out[items - 1] = operation(in[items - 1], beside);
    }
  }
  template <int items, class Out, class Operation>
  void SubtractRight(T (&in)[items], Out (&out)[items], Operation operation, T successor,
                     TOKITAI_HERE) {
    T last = in[items - 1];
    SubtractRight(in, out, operation, file, line);
    if (this->is_last()) out[items - 1] = operation(last, successor);
  }
};

template <class T, int x, int y = 1, int z = 1, int arch = 0>
class BlockDiscontinuity : public BlockNeighbours<T, x, y, z> {
  using Base = BlockNeighbours<T, x, y, z>;
  using Base::Base;

 public:
  template <int items, class Flag, class Operation>
  void FlagHeads(Flag (&heads)[items], T (&in)[items], Operation differ, TOKITAI_HERE) {
    this->show(in[0], in[items - 1], TOKITAI_SITE);
    heads[0] = this->is_first() || differ(this->before(), in[0]);
    for (int i = 1; i < items; i++) heads[i] = differ(in[i - 1], in[i]);
  }
  template <int items, class Flag, class Operation>
  void FlagHeads(Flag (&heads)[items], T (&in)[items], Operation differ, T predecessor,
                 TOKITAI_HERE) {
    FlagHeads(heads, in, differ, file, line);
    if (this->is_first()) heads[0] = differ(predecessor, in[0]);
  }
  template <int items, class Flag, class Operation>
  void FlagTails(Flag (&tails)[items], T (&in)[items], Operation differ, TOKITAI_HERE) {
    this->show(in[0], in[items - 1], TOKITAI_SITE);
    for (int i = 0; i < items - 1; i++) tails[i] = differ(in[i], in[i + 1]);
    tails[items - 1] = this->is_last() || differ(in[items - 1], this->behind());
  }
};

template <class T, int x, int y = 1, int z = 1, int arch = 0>
class BlockShuffle : public BlockNeighbours<T, x, y, z> {
  using Base = BlockNeighbours<T, x, y, z>;
  using Base::Base;

 public:
  // What lies outside of the block leaves `out` as it is.
  void Offset(T in, T& out, int distance = 1, TOKITAI_HERE) {
    this->show(in, in, TOKITAI_SITE);
    const int from = int(this->rank()) + distance;
    if (from >= 0 && from < Base::threads) out = this->storage_[size_t(from)];
  }
  void Rotate(T in, T& out, unsigned distance = 1, TOKITAI_HERE) {
    this->show(in, in, TOKITAI_SITE);
    out = this->storage_[(this->rank() + distance) % Base::threads];
  }
  template <int items>
  void Up(T (&in)[items], T (&out)[items], TOKITAI_HERE) {
    this->show(in[0], in[items - 1], TOKITAI_SITE);
    for (int i = items - 1; i > 0; i--) out[i] = in[i - 1];
    if (!this->is_first()) out[0] = this->before();
  }
  template <int items>
  void Down(T (&in)[items], T (&out)[items], TOKITAI_HERE) {
    this->show(in[0], in[items - 1], TOKITAI_SITE);
    for (int i = 0; i < items - 1; i++) out[i] = in[i + 1];
    if (!this->is_last()) out[items - 1] = this->behind();
  }
};

template <class T, int x, int items, int bins,
          BlockHistogramAlgorithm algorithm = BLOCK_HISTO_SORT, int y = 1, int z = 1, int arch = 0>
class BlockHistogram {
  static constexpr int threads = x * y * z;

 public:
  using TempStorage = tokitai::NoCells;
  BlockHistogram() = default;
  explicit BlockHistogram(TempStorage&) {}
  template <class Counter>
  void InitHistogram(Counter (&histogram)[bins]) {
    for (int i = int(tokitai::linear_thread()); i < bins; i += threads) histogram[i] = 0;
  }
  template <class Counter>
  void Composite(T (&in)[items], Counter (&histogram)[bins], TOKITAI_HERE) {
    __syncthreads(file, line);
    for (const T& item : in) atomicAdd(&histogram[size_t(item)], Counter(1));
    __syncthreads(file, line);
  }
  template <class Counter>
  void Histogram(T (&in)[items], Counter (&histogram)[bins], TOKITAI_HERE) {
    InitHistogram(histogram);
    Composite(in, histogram, file, line);
  }
};

}  // namespace hipcub
