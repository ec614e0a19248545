// hipcub's loads, stores and exchanges of a thread's several items, blocked (thread t has items
// t*n to t*n + n - 1) or striped (t, t + threads, ...), for blocks and for logical warps.
#pragma once

#include "block.hpp"

namespace tokitai {

// Who exchanges: places among all items, and the barrier.
template <int x, int y, int z>
struct BlockGroup {
  static constexpr int threads = x * y * z;
  static int rank() { return int(linear_thread()); }
  static void wait(Site site) { block_barrier(false, site); }
};
template <int width>
struct WarpGroup {
  static_assert(width >= 1 && width <= int(warp_size), "a logical warp fits a warp");
  static constexpr int threads = width;
  static int rank() { return int(LogicalWarp(width).rank); }
  static void wait(Site site) { __syncwarp(LogicalWarp(width).mask(), site.file, site.line); }
};

template <class Group, int items>
constexpr int blocked(int rank, int i) {
  return rank * items + i;
}
template <class Group, int items>
constexpr int striped(int rank, int i) {
  return i * Group::threads + rank;
}
template <class Group, int items>
constexpr int warp_striped(int rank, int i) {
  constexpr int width = Group::threads < int(warp_size) ? Group::threads : int(warp_size);
  return rank / width * width * items + i * width + rank % width;
}
using Arrangement = int (*)(int, int);

template <class T, class Group, int items>
class Exchange {
 public:
  using TempStorage = Cells<T, size_t(Group::threads) * items>;
  Exchange() : storage_(own_storage<TempStorage>()) {}
  explicit Exchange(TempStorage& storage) : storage_(storage) {}

#define TOKITAI_EXCHANGE(NAME, FROM, TO)                                                          \
  template <class U>                                                                              \
  void NAME(const T(&in)[items], U(&out)[items], TOKITAI_HERE) {                                  \
    move<FROM<Group, items>, TO<Group, items>>(in, out, TOKITAI_SITE);                            \
  }                                                                                               \
  void NAME(T(&in)[items], TOKITAI_HERE) { NAME(in, in, file, line); }
  TOKITAI_EXCHANGE(StripedToBlocked, striped, blocked)
  TOKITAI_EXCHANGE(BlockedToStriped, blocked, striped)
  TOKITAI_EXCHANGE(WarpStripedToBlocked, warp_striped, blocked)
  TOKITAI_EXCHANGE(BlockedToWarpStriped, blocked, warp_striped)
#undef TOKITAI_EXCHANGE
  template <class U, class Rank>
  void ScatterToBlocked(const T (&in)[items], U (&out)[items], Rank (&ranks)[items],
                        TOKITAI_HERE) {
    scatter<blocked<Group, items>>(in, out, ranks, TOKITAI_SITE);
  }
  template <class U, class Rank>
  void ScatterToStriped(const T (&in)[items], U (&out)[items], Rank (&ranks)[items],
                        TOKITAI_HERE) {
    scatter<striped<Group, items>>(in, out, ranks, TOKITAI_SITE);
  }
  template <class Rank>
  void ScatterToStriped(T (&in)[items], Rank (&ranks)[items], TOKITAI_HERE) {
    ScatterToStriped(in, in, ranks, file, line);
  }

 private:
  template <Arrangement from, Arrangement to, class U>
  void move(const T (&in)[items], U (&out)[items], Site site) {
    for (int i = 0; i < items; i++) storage_[size_t(from(Group::rank(), i))] = in[i];
    take<to>(out, site);
  }
  template <Arrangement to, class U, class Rank>
  void scatter(const T (&in)[items], U (&out)[items], Rank (&ranks)[items], Site site) {
    for (int i = 0; i < items; i++)
      if (ranks[i] >= Rank(0)) storage_[size_t(ranks[i])] = in[i];
    take<to>(out, site);
  }
  template <Arrangement to, class U>
  void take(U (&out)[items], Site site) {
    Group::wait(site);
    for (int i = 0; i < items; i++) out[i] = storage_[size_t(to(Group::rank(), i))];
  }
  TempStorage& storage_;
};

// Loads and stores. Through shared memory (`transposed`) they need the barriers that hipCUB's do.
template <class T, class Group, int items, bool is_striped, bool transposed>
class Transfer {
 public:
  using TempStorage =
      typename std::conditional<transposed, typename Exchange<T, Group, items>::TempStorage,
                                NoCells>::type;
  Transfer() : storage_(own_storage<TempStorage>()) {}
  explicit Transfer(TempStorage& storage) : storage_(storage) {}

  template <class In>
  void Load(In in, T (&out)[items], TOKITAI_HERE) {
    Load(in, out, Group::threads * items, file, line);
  }
  // What lies beyond `valid` items stays as it is, or becomes `other`.
  template <class In>
  void Load(In in, T (&out)[items], int valid, TOKITAI_HERE) {
    for (int i = 0; i < items; i++)
      if (place(i) < valid) out[i] = in[place(i)];
    if constexpr (transposed)
      Exchange<T, Group, items>(storage_).StripedToBlocked(out, file, line);
  }
  template <class In, class Other>
  void Load(In in, T (&out)[items], int valid, Other other, TOKITAI_HERE) {
    for (int i = 0; i < items; i++) out[i] = T(other);
    Load(in, out, valid, file, line);
  }
  template <class Out>
  void Store(Out out, T (&in)[items], TOKITAI_HERE) {
    Store(out, in, Group::threads * items, file, line);
  }
  template <class Out>
  void Store(Out out, T (&in)[items], int valid, TOKITAI_HERE) {
    if constexpr (transposed) Exchange<T, Group, items>(storage_).BlockedToStriped(in, file, line);
    for (int i = 0; i < items; i++)
      if (place(i) < valid) out[place(i)] = in[i];
  }

 private:
  static int place(int i) {
    return is_striped || transposed ? striped<Group, items>(Group::rank(), i)
                                    : blocked<Group, items>(Group::rank(), i);
  }
  TempStorage& storage_;
};

}  // namespace tokitai

namespace hipcub {

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
enum WarpExchangeAlgorithm { WARP_EXCHANGE_SMEM, WARP_EXCHANGE_SHUFFLE };

#define TOKITAI_CUB_TRANSFER(NAME, ALGORITHM, FIRST)                                              \
  template <class T, int x, int items, ALGORITHM algorithm = FIRST##_DIRECT, int y = 1,           \
            int z = 1, int arch = 0>                                                              \
  class NAME : public tokitai::Transfer<T, tokitai::BlockGroup<x, y, z>, items,                   \
                                        algorithm == FIRST##_STRIPED,                             \
                                        (algorithm >= FIRST##_TRANSPOSE)> {                       \
    using NAME::Transfer::Transfer;                                                               \
  };
TOKITAI_CUB_TRANSFER(BlockLoad, BlockLoadAlgorithm, BLOCK_LOAD)
TOKITAI_CUB_TRANSFER(BlockStore, BlockStoreAlgorithm, BLOCK_STORE)
#undef TOKITAI_CUB_TRANSFER

template <class T, int x, int items, bool sliced = false, int y = 1, int z = 1, int arch = 0>
class BlockExchange : public tokitai::Exchange<T, tokitai::BlockGroup<x, y, z>, items> {
  using BlockExchange::Exchange::Exchange;
};
template <class T, int items, int width = int(tokitai::warp_size), int arch = 0,
          WarpExchangeAlgorithm algorithm = WARP_EXCHANGE_SMEM>
class WarpExchange : public tokitai::Exchange<T, tokitai::WarpGroup<width>, items> {
  using WarpExchange::Exchange::Exchange;
};

template <class T, int items, class In>
inline void LoadDirectBlocked(int rank, In in, T (&out)[items]) {
  for (int i = 0; i < items; i++) out[i] = in[rank * items + i];
}
template <int threads, class T, int items, class In>
inline void LoadDirectStriped(int rank, In in, T (&out)[items]) {
  for (int i = 0; i < items; i++) out[i] = in[i * threads + rank];
}
template <class T, int items, class Out>
inline void StoreDirectBlocked(int rank, Out out, T (&in)[items]) {
  for (int i = 0; i < items; i++) out[rank * items + i] = in[i];
}
template <int threads, class T, int items, class Out>
inline void StoreDirectStriped(int rank, Out out, T (&in)[items]) {
  for (int i = 0; i < items; i++) out[i * threads + rank] = in[i];
}

}  // namespace hipcub
