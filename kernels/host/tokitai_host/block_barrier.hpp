// __syncthreads and its like. All live threads of the block must come to the same one; a thread
// that has returned counts no more. Line numbers tell barriers apart.
#pragma once

#ifdef TOKITAI_DEVICE_GFX
#include <tokitai_gfx/warp_operations.hpp>
#else

#include "memory_order.hpp"
#include "warp_operations.hpp"

namespace tokitai {

struct BarrierVote {
  unsigned nonzero, threads;
};

TOKITAI_UNSANITIZED __attribute__((noinline)) inline BarrierVote block_barrier(bool predicate,
                                                                               Site site) {
  Block& block = armed_block();
  Lane& lane = block.lanes[block.current];
  Warp& warp = block.warps[block.current / warp_size];
  const u64 bit = 1ull << (block.current % warp_size);
  lane.operation = Operation::block_barrier;
  lane.site = site;
  if (block.arrived == 0) {
    block.barrier_site = site;
    block.barrier_mixed = false;
  } else if (!(block.barrier_site == site)) {
    block.barrier_mixed = true;
  }
  block.arrived++;
  block.predicate_count += predicate;
  warp.runnable &= ~bit;
  warp.at_barrier |= bit;
  wait_for_turn(block);
  lane.operation = Operation::none;
  // Nobody can have left the next barrier before this thread has come to it.
  return {block.released_count, block.released_live};
}

// A barrier of all blocks of a grid. The first thread of a block that comes behind the block's own tells of it.
TOKITAI_UNSANITIZED __attribute__((noinline)) inline void grid_barrier(Site site) {
  block_barrier(false, site);
  Block& block = *current_block;
  Work& work = *block.work;
  __atomic_store_n(&work.meets, true, __ATOMIC_RELAXED);
  const u64 meeting = block.lanes[block.current].meetings++;
  if (block.meetings_begun == meeting) {
    block.meetings_begun++;
#ifdef TOKITAI_WATCH_SCHEDULE
    watch_grid_arrives(meeting);
#endif
    if (__atomic_add_fetch(&work.blocks_arrived, 1, __ATOMIC_ACQ_REL) == work.total) {
      work.blocks_arrived = 0;
      __atomic_fetch_add(&work.meetings, 1, __ATOMIC_ACQ_REL);
    }
    block.progress++;
    while (__atomic_load_n(&work.meetings, __ATOMIC_ACQUIRE) == meeting)
      wait_for_others(site, nullptr, Operation::grid_barrier);
    block.progress++;
#ifdef TOKITAI_WATCH_SCHEDULE
    watch_grid_leaves(meeting);
#endif
  }
  block_barrier(false, site);
}

}  // namespace tokitai

inline void __syncthreads(TOKITAI_HERE) { tokitai::block_barrier(false, TOKITAI_SITE); }
inline int __syncthreads_count(int predicate, TOKITAI_HERE) {
  tokitai::used(predicate);
  return int(tokitai::block_barrier(predicate != 0, TOKITAI_SITE).nonzero);
}
inline int __syncthreads_or(int predicate, TOKITAI_HERE) {
  tokitai::used(predicate);
  return tokitai::block_barrier(predicate != 0, TOKITAI_SITE).nonzero != 0;
}
inline int __syncthreads_and(int predicate, TOKITAI_HERE) {
  tokitai::used(predicate);
  const tokitai::BarrierVote vote = tokitai::block_barrier(predicate != 0, TOKITAI_SITE);
  return vote.nonzero == vote.threads;
}

inline void __threadfence() { tokitai::fence(tokitai::Scope::device); }
inline void __threadfence_block() { tokitai::fence(tokitai::Scope::block); }
inline void __threadfence_system() { tokitai::fence(tokitai::Scope::system); }

#endif
