// The groups of <hip/hip_cooperative_groups.h> but for those of several devices.
#pragma once

#include "block_barrier.hpp"
#include "math.hpp"

#define TOKITAI_GROUP_HERE file, line
// What waits for other devices is refused where it is called.
#define TOKITAI_REFUSE_GRID(WHAT)                                                                 \
  static_assert(n != n, WHAT                                                                      \
                " waits for other devices, and the cpu device is one: choose another device")

namespace tokitai {

// The lanes of a tile of `size` lanes that the calling lane is in.
inline u64 tile_mask(unsigned size) {
  const u64 lanes = size >= 64 ? ~0ull : (1ull << size) - 1;
  return lanes << (lane_index() & ~(size - 1));
}
inline unsigned nth_lane(u64 mask, unsigned n) {
  for (; n && mask; n--) mask &= mask - 1;
  return mask ? unsigned(__builtin_ctzll(mask)) : lane_index();
}
inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }

}  // namespace tokitai

namespace cooperative_groups {

enum class group_kind { thread, block, lanes };

// Any group of a block by its kind and, for one of lanes, their mask.
class thread_group {
 public:
  thread_group(group_kind kind, tokitai::u64 mask) : kind_(kind), mask_(mask) {}
  unsigned size() const {
    if (kind_ == group_kind::block) return tokitai::block_threads();
    return kind_ == group_kind::thread ? 1 : unsigned(__popcll(mask_));
  }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    if (kind_ == group_kind::block) return tokitai::linear_thread();
    return kind_ == group_kind::thread ? 0 : unsigned(__popcll(mask_ & __lanemask_lt()));
  }
  bool is_valid() const { return true; }
  void sync(TOKITAI_HERE) const {
    if (kind_ == group_kind::block) __syncthreads(TOKITAI_GROUP_HERE);
    if (kind_ == group_kind::lanes) __syncwarp(mask_, TOKITAI_GROUP_HERE);
  }
  tokitai::u64 tokitai_mask() const { return mask_; }

 protected:
  group_kind kind_;
  tokitai::u64 mask_;
};

class thread_block : public thread_group {
 public:
  thread_block() : thread_group(group_kind::block, 0) {}
  static void sync(TOKITAI_HERE) { __syncthreads(TOKITAI_GROUP_HERE); }
  static unsigned size() { return tokitai::block_threads(); }
  static unsigned num_threads() { return size(); }
  static unsigned thread_rank() { return tokitai::linear_thread(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};

// Operations of groups of lanes. `Group` says which lane has a rank, and which lanes are in it.
template <class Group>
class lane_operations {
 public:
  template <class T>
  T shfl(T value, unsigned rank, TOKITAI_HERE) const {
    return tokitai::shuffle_any(mask(), value, self().tokitai_lane(rank % self().size()),
                                TOKITAI_SITE);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, TOKITAI_HERE) const {
    const unsigned rank = self().thread_rank(), from = rank + delta;
    return shfl(value, from < self().size() ? from : rank, TOKITAI_GROUP_HERE);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, TOKITAI_HERE) const {
    const unsigned rank = self().thread_rank();
    return shfl(value, delta <= rank ? rank - delta : rank, TOKITAI_GROUP_HERE);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits, TOKITAI_HERE) const {
    const unsigned rank = self().thread_rank(), from = rank ^ bits;
    return shfl(value, from < self().size() ? from : rank, TOKITAI_GROUP_HERE);
  }
  unsigned long long ballot(int predicate, TOKITAI_HERE) const {
    return packed(__ballot_sync(mask(), predicate, TOKITAI_GROUP_HERE));
  }
  int any(int predicate, TOKITAI_HERE) const {
    return __any_sync(mask(), predicate, TOKITAI_GROUP_HERE);
  }
  int all(int predicate, TOKITAI_HERE) const {
    return __all_sync(mask(), predicate, TOKITAI_GROUP_HERE);
  }
  template <class T>
  unsigned long long match_any(T value, TOKITAI_HERE) const {
    return packed(__match_any_sync(mask(), value, TOKITAI_GROUP_HERE));
  }
  template <class T>
  unsigned long long match_all(T value, int& all, TOKITAI_HERE) const {
    return packed(__match_all_sync(mask(), value, &all, TOKITAI_GROUP_HERE));
  }
  void sync(TOKITAI_HERE) const { __syncwarp(mask(), TOKITAI_GROUP_HERE); }

 private:
  const Group& self() const { return static_cast<const Group&>(*this); }
  tokitai::u64 mask() const { return self().tokitai_mask(); }
  // Bits of lanes as bits of ranks.
  tokitai::u64 packed(tokitai::u64 lanes) const {
    tokitai::u64 ranks = 0;
    unsigned rank = 0;
    for (tokitai::u64 left = mask(); left; left &= left - 1, rank++)
      if (lanes & left & (0 - left)) ranks |= 1ull << rank;
    return ranks;
  }
};

class coalesced_group : public thread_group, public lane_operations<coalesced_group> {
 public:
  explicit coalesced_group(tokitai::u64 mask, unsigned meta_rank = 0, unsigned metas = 1)
      : thread_group(group_kind::lanes, mask), meta_rank_(meta_rank), metas_(metas) {}
  using lane_operations<coalesced_group>::sync;
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return metas_; }
  unsigned tokitai_lane(unsigned rank) const { return tokitai::nth_lane(mask_, rank); }

 private:
  unsigned meta_rank_, metas_;
};

template <unsigned tile, class Parent = void>
class thread_block_tile : public thread_group,
                          public lane_operations<thread_block_tile<tile, Parent>> {
  static_assert(tile && (tile & (tile - 1)) == 0, "the size of a tile is a power of two");
  static_assert(tile <= tokitai::warp_size, "a tile is no larger than a warp (see --warp-size)");

 public:
  thread_block_tile() : thread_group(group_kind::lanes, tokitai::tile_mask(tile)) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<tile, Other>&) : thread_block_tile() {}
  using lane_operations<thread_block_tile>::sync;
  static constexpr unsigned size() { return tile; }
  static constexpr unsigned num_threads() { return tile; }
  static unsigned thread_rank() { return tokitai::linear_thread() & (tile - 1); }
  static unsigned meta_group_rank() { return tokitai::linear_thread() / tile; }
  static unsigned meta_group_size() { return (tokitai::block_threads() + tile - 1) / tile; }
  static unsigned tokitai_lane(unsigned rank) {
    return (tokitai::lane_index() & ~(tile - 1)) + rank;
  }
};

class grid_group {
 public:
  unsigned long long size() const { return 1ull * num_blocks() * tokitai::block_threads(); }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    return block_rank() * tokitai::block_threads() + tokitai::linear_thread();
  }
  unsigned long long num_blocks() const { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  unsigned long long block_rank() const {
    return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
  }
  dim3 group_dim() const { return gridDim; }
  dim3 dim_blocks() const { return gridDim; }
  dim3 block_index() const { return blockIdx; }
  bool is_valid() const { return true; }
#ifdef TOKITAI_DEVICE_GFX
  template <int n = 0>
  void sync() const {
    static_assert(n != n,
                  "a barrier of the grid waits for other blocks, and the gfx device runs them one after "
                  "another: choose another device");
  }
#else
  void sync(TOKITAI_HERE) const { tokitai::grid_barrier(TOKITAI_SITE); }
#endif
};
template <int n = 0>
inline grid_group this_multi_grid() {
  TOKITAI_REFUSE_GRID("a multi_grid_group");
  return {};
}

inline thread_group this_thread() { return {group_kind::thread, 0}; }
inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }
inline coalesced_group coalesced_threads(TOKITAI_HERE) {
  return coalesced_group(__activemask(TOKITAI_GROUP_HERE));
}

template <unsigned tile, class Parent>
inline thread_block_tile<tile, Parent> tiled_partition(const Parent&) {
  return {};
}
// Tiles of a group of lanes are by rank, those of a block by its threads.
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned tile) {
  const unsigned first = parent.thread_rank() / tile * tile;
  tokitai::u64 mask = 0;
  for (unsigned rank = first; rank < first + tile && rank < parent.size(); rank++)
    mask |= 1ull << parent.tokitai_lane(rank);
  return coalesced_group(mask, first / tile, (parent.size() + tile - 1) / tile);
}
inline coalesced_group tiled_partition(const thread_group& parent, unsigned tile) {
  if (parent.tokitai_mask()) return tiled_partition(coalesced_group(parent.tokitai_mask()), tile);
  return coalesced_group(tokitai::tile_mask(tile), tokitai::linear_thread() / tile,
                         (tokitai::block_threads() + tile - 1) / tile);
}
// The lanes whose predicate is that of the calling lane.
template <class Group>
inline coalesced_group binary_partition(const Group& parent, bool predicate, TOKITAI_HERE) {
  const tokitai::u64 mask = parent.tokitai_mask();
  const tokitai::u64 chosen = __ballot_sync(mask, predicate, TOKITAI_GROUP_HERE);
  return coalesced_group(predicate ? chosen & mask : mask & ~chosen, predicate, 2);
}
template <class Group, class Label>
inline coalesced_group labeled_partition(const Group& parent, Label label, TOKITAI_HERE) {
  return coalesced_group(__match_any_sync(parent.tokitai_mask(), label, TOKITAI_GROUP_HERE));
}

template <class Group>
inline void sync(const Group& group, TOKITAI_HERE) {
  group.sync(TOKITAI_GROUP_HERE);
}
template <class Group>
inline auto group_size(const Group& group) {
  return group.size();
}
template <class Group>
inline auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
inline bool is_valid(const Group& group) {
  return group.is_valid();
}

#define TOKITAI_GROUP_OPERATION(NAME, EXPRESSION)                                                 \
  template <class T = void>                                                                       \
  struct NAME {                                                                                   \
    template <class U>                                                                            \
    U operator()(U a, U b) const {                                                                \
      return EXPRESSION;                                                                          \
    }                                                                                             \
  };
TOKITAI_GROUP_OPERATION(plus, a + b)
TOKITAI_GROUP_OPERATION(less, b < a ? b : a)
TOKITAI_GROUP_OPERATION(greater, a < b ? b : a)
TOKITAI_GROUP_OPERATION(bit_and, a& b)
TOKITAI_GROUP_OPERATION(bit_or, a | b)
TOKITAI_GROUP_OPERATION(bit_xor, a ^ b)
#undef TOKITAI_GROUP_OPERATION

// A tree over ranks, in their order; every lane gets the whole.
template <class Group, class T, class Operation>
inline T reduce(const Group& group, T value, Operation operation, TOKITAI_HERE) {
  const unsigned rank = group.thread_rank(), size = group.size();
  for (unsigned distance = 1; distance < size; distance *= 2) {
    const T other = group.shfl_down(value, distance, TOKITAI_GROUP_HERE);
    if (rank + distance < size) value = operation(value, other);
  }
  return group.shfl(value, 0, TOKITAI_GROUP_HERE);
}
template <class Group, class T, class Operation>
inline T inclusive_scan(const Group& group, T value, Operation operation, TOKITAI_HERE) {
  const unsigned rank = group.thread_rank(), size = group.size();
  for (unsigned distance = 1; distance < size; distance *= 2) {
    const T other = group.shfl_up(value, distance, TOKITAI_GROUP_HERE);
    if (rank >= distance) value = operation(other, value);
  }
  return value;
}
// Without a first value rank 0 gets T{}.
template <class Group, class T, class Operation>
inline T exclusive_scan(const Group& group, T value, Operation operation, TOKITAI_HERE) {
  const T whole = inclusive_scan(group, value, operation, TOKITAI_GROUP_HERE);
  const T before = group.shfl_up(whole, 1, TOKITAI_GROUP_HERE);
  return group.thread_rank() ? before : T{};
}

}  // namespace cooperative_groups

#undef TOKITAI_GROUP_HERE
#undef TOKITAI_REFUSE_GRID
