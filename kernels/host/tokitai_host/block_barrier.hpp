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
