// Threads that wait for what others do: they look again and again, and give their turn away in between.
#pragma once

#include "block.hpp"

namespace tokitai {

// Polls of a thread in front of its first wait, and the most in front of a later one.
constexpr unsigned first_patience = 16, most_patience = 4096;

// The running thread waits for what others do; all that can go on have their turn first.
TOKITAI_UNSANITIZED __attribute__((noinline)) inline void wait_for_others(
    Site site, const void* pc, Operation what = Operation::poll, bool stopped = false) {
  Block& block = armed_block();
  Lane& lane = block.lanes[block.current];
  Warp& warp = block.warps[block.current / warp_size];
  const u64 bit = 1ull << (block.current % warp_size);
  lane.operation = what;
  lane.site = site;
  lane.polled_at = pc;
  lane.is_stopped = stopped;
  warp.runnable &= ~bit;
  warp.polling |= bit;
  const u64 before = block.progress;
  wait_for_turn(block);
  lane.operation = Operation::none;
  if (block.progress != before) lane.patience = 0;
  else if (lane.patience < most_patience) lane.patience = lane.patience ? 2 * lane.patience : 2;
  block.poller = threadIdx;
  block.polls = lane.patience < first_patience ? first_patience - lane.patience : 0;
}

// An atomic operation on a place, and whether it left another value. Of many in turn that change nothing, at
// no more than two places, the thread that makes them waits.
TOKITAI_UNSANITIZED inline void polled(const void* address, bool changed, Site site,
                                       const void* pc = nullptr) {
  if (current_block == no_block) return;
  Block& block = *current_block;
  if (changed) {
    block.progress++;
    block.polls = 0;
    return;
  }
  const bool known = address == block.polled[0] || address == block.polled[1];
  if (!known || memcmp(&block.poller, &threadIdx, sizeof block.poller) != 0) {
    block.polls = 0;
    block.poller = threadIdx;
    block.polled[1] = block.polled[0];
    block.polled[0] = address;
  }
  const unsigned patience = block.armed ? block.lanes[block.current].patience : 0;
  if (++block.polls < (patience > first_patience ? patience : first_patience)) return;
  wait_for_others(site, pc);
  block.polled[0] = address;
}

// While it lives the running thread keeps its turn: what is made once must not be left half made.
struct Unstopped {
  const bool was = current_block != no_block && current_block->in_kernel;
  TOKITAI_UNSANITIZED Unstopped() {
    if (was) set_in_kernel(*current_block, false);
  }
  TOKITAI_UNSANITIZED ~Unstopped() {
    if (was) set_in_kernel(*current_block, true);
  }
};

}  // namespace tokitai
