// Blocks, barriers and warps as the scheduler tells of them, and what begins and ends with a launch.
#pragma once

#include "tokitai_accesses.hpp"

namespace tokitai {

// The block that begins: its number, and shared memory that nobody of it has written.
TOKITAI_SERVING void watch_block(Block& block) {
  const Coordinates grid = gridDim;
  const uint64_t linear =
      blockIdx.x + uint64_t(grid.x) * (blockIdx.y + uint64_t(grid.y) * blockIdx.z);
  if (!block.history) {
    auto* made = new History;
    block.history = made;
    histories().push_back(made);
  }
  order.now = static_cast<History*>(block.history);
  order.now->block = order.first_block + uint32_t(linear);
  if (order.last_block < order.now->block) order.last_block = order.now->block;
  close_store();
  memset(accesses.latest_read, 0, block.threads * sizeof *accesses.latest_read);
  memset(accesses.latest_look, 0, block.threads * sizeof *accesses.latest_look);
  order_block(block.threads);
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared && watch.areas[i].written)
      memset(watch.areas[i].written, 0, watch.areas[i].bytes);
}

// The block waits for others: what is known of its shared memory is kept until it goes on.
TOKITAI_SERVING void watch_block_leaves(Block& block) {
  close_store();
  History& own = *static_cast<History*>(block.history);
  accesses.copied.written = nullptr;
  accesses.latest = nullptr;
  own.shared.clear();
  for (unsigned i = 0; i < watch.area_count; i++) {
    Area& area = watch.areas[i];
    if (area.kind != Area::Kind::shared) continue;
    own.shared.push_back(area);
    area.cells = nullptr;
    area.granule = 2;
    area.written = map_bytes(area.bytes);
  }
}

TOKITAI_SERVING void watch_block_returns(Block& block) {
  close_store();
  History& own = *static_cast<History*>(block.history);
  order.now = &own;
  accesses.copied.written = nullptr;
  forget_areas(Area::Kind::shared, false);
  size_t next = 0;
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared) watch.areas[i] = own.shared[next++];
  own.shared.clear();
}

TOKITAI_SERVING void watch_barrier() {
  Block& block = *current_block;
  close_store();
  order_barrier(block.threads);
  if (block.live == block.threads) return;
  Spot spot = {blockIdx, threadIdx, {}};
  // By the barrier's line, as it has no address of its own.
  spot.frames[0] = unsigned(block.barrier_site.line);
  Finding* found = finding("barrier", spot, nullptr);
  if (!found || found->count > 1) return;
  found->file = block.barrier_site.file;
  found->line = unsigned(block.barrier_site.line);
  Text text = {found->message, sizeof found->message, 0};
  // CUDA C++ programming guide, "Independent Thread Scheduling": all threads that have not exited.
  found->mild = true;
  append(text,
         "%u of %u threads returned before the barrier at which the others wait: from sm_70 on and on "
         "AMD's GPUs they count no more, on others this is undefined",
         block.threads - block.live, block.threads);
  for (unsigned t = 0; t < block.threads; t++)
    if (block.lanes[t].returned) {
      append(text, "; ");
      append_threads(text, block, t);
      break;
    }
}

// All blocks of the grid know what any did in front of its barrier.
// Each of its meetings has a key of its own, below all addresses.
TOKITAI_SERVING void watch_grid_arrives(u64 meeting) {
  close_store();
  order_write(linear_thread(), uintptr_t(meeting), Scope::device, true, true);
}
TOKITAI_SERVING void watch_grid_leaves(u64 meeting) {
  order_read(linear_thread(), uintptr_t(meeting), Scope::device, true, {});
}

// Where AMD's GPUs differ: their header asserts that the lanes of a mask are those that come to the operation
// together (HIP, amd_warp_sync_functions.h).
inline void check_amd_mask(const Block& block, unsigned warp, u64 members) {
  const Lane& first = block.lanes[warp * warp_size + unsigned(__builtin_ctzll(members))];
  if (!first.mask.given || first.operation == Operation::warp_barrier) return;
  const Lane* apart = nullptr;
  for (u64 left = members; left; left &= left - 1) {
    const Lane& lane = block.lanes[warp * warp_size + unsigned(__builtin_ctzll(left))];
    if (!(lane.site == first.site)) apart = &lane;
  }
  if (!apart && members == first.mask.lanes) return;
  Spot spot = {blockIdx, first.index, {unsigned(first.site.line)}};
  Finding* found = finding("amd-mask", spot, nullptr);
  if (!found || found->count > 1) return;
  found->mild = true;
  found->file = first.site.file;
  found->line = unsigned(first.site.line);
  if (apart)
    say(*found,
        "lanes of mask 0x%llx come to %s at two places, here and at line %d: they pair from sm_70 on, and do "
        "not on AMD's GPUs",
        first.mask.lanes, operation_name(first.operation), apart->site.line);
  else
    say(*found,
        "mask 0x%llx of %s names lanes that are not there or have returned: AMD's header asserts that it does "
        "not, CUDA's GPUs leave their values undefined",
        first.mask.lanes, operation_name(first.operation));
}

TOKITAI_SERVING void watch_warp(unsigned warp, u64 members) {
  close_store();
  const Block& block = *current_block;
  const unsigned any = warp * warp_size + unsigned(__builtin_ctzll(members));
  // Votes and shuffles order no memory (CUDA C++ programming guide, "Warp Vote Functions").
  if (block.lanes[any].operation == Operation::warp_barrier) order_warp(warp, members);
  if (!tokitai_of_cuda) check_amd_mask(block, warp, members);
  for (u64 left = members; left; left &= left - 1) {
    const unsigned l = unsigned(__builtin_ctzll(left));
    const Lane& lane = block.lanes[warp * warp_size + l];
    if (lane.operation != Operation::shuffle || (members >> lane.source & 1)) continue;
    Spot spot = {blockIdx, lane.index, {unsigned(lane.site.line)}};
    Finding* found = finding("inactive-lane", spot, nullptr);
    if (!found || found->count > 1) continue;
    found->file = lane.site.file;
    found->line = unsigned(lane.site.line);
    say(*found, "lane %u takes the value of lane %u, which takes no part in the shuffle", l,
        lane.source);
  }
}

// --- a launch

// What a case's findings are, now that all of it is known.
inline void settle_findings() {
  close_store();
  bool any_error = false;
  unsigned kept = 0;
  for (unsigned i = 0; i < watch.count; i++) {
    Finding& found = watch.findings[i];
    // Volatile words that threads wait for carry what they say in themselves.
    if (found.of_volatile && (accesses.polled.count(found.first.frames[0]) ||
                              accesses.polled.count(found.second.frames[0])))
      continue;
    if (found.of_writes && !found.unequal) {
      found.kind = "same-value-race";
      found.mild = true;
      append_words(found, found.nonzero ? "; each time both wrote the same value"
                                        : "; each time both wrote zero, which proves nothing of other inputs");
    }
    // Where some thread made sure of what it read there, others had no need to.
    found.mild = found.mild || (found.mixed && !found.plain_writes && accesses.validated.count(found.plain_read));
    any_error = any_error || !found.mild;
    watch.findings[kept++] = found;
  }
  watch.count = kept;
  // What an earlier run left is of use where it tells why something else was found.
  kept = 0;
  for (unsigned i = 0; i < watch.count; i++)
    if (any_error || strcmp(watch.findings[i].kind, "stale-flag") != 0)
      watch.findings[kept++] = watch.findings[i];
  watch.count = kept;
  accesses.validated.clear();
}

// A repetition begins: what its buffers hold is written where the tool wrote it.
inline void watch_repetition(const Case& request) {
  forget_areas(Area::Kind::buffer, true);
  watch_areas(request);
  for (unsigned i = 0; i < watch.area_count; i++) {
    Area& area = watch.areas[i];
    if (request.buffers[area.index].fill == Fill::pattern && area.bytes)
      area.written = map_bytes(area.bytes);
  }
  order.first_block = 1;
  order.last_block = 0;
  accesses.stale.clear();
  for (const auto& [at, flag] : accesses.flags)
    if (memcmp(reinterpret_cast<const void*>(at), flag.first, flag.size) != 0)
      accesses.stale[at] = flag.writer;
  extern char edata __asm__("__data_start"), end __asm__("_end");
  watch.areas[watch.area_count++] = {Area::Kind::variable,
                                     0,
                                     reinterpret_cast<unsigned char*>(&edata),
                                     size_t(&end - &edata),
                                     nullptr,
                                     nullptr,
                                     0,
                                     2,
                                     nullptr,
                                     0,
                                     0};
}

// Blocks that waited for others which began later: no more than one is sure to be there at a time.
inline void watch_residents(const Work& work) {
  if (work.failed || work.meets || work.most_resident < 2 || work.total < 2) return;
  Spot spot = {work.waiting_block, work.waiting_thread, {offset_of(work.waited_pc)}};
  if (work.waited_at.file) spot.frames[0] = unsigned(work.waited_at.line);
  Finding* found = finding("resident-blocks", spot, nullptr);
  if (!found || found->count > 1) return;
  found->mild = true;
  found->kernel = work.kernel;
  found->file = work.waited_at.file;
  found->line = unsigned(work.waited_at.line);
  say(*found,
      "waits for a block that begins later: up to %u of %llu blocks had to be there at once, which a launch "
      "that is not cooperative does not promise",
      work.most_resident, work.total);
}

inline void watch_launch(size_t dynamic_bytes) {
  forget_areas(Area::Kind::shared, false);
  watch_shared(dynamic_bytes);
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared)
      watch.areas[i].written = map_bytes(watch.areas[i].bytes);
  order.first_block = order.last_block + 1;
  order.released.clear();
  order.gaps.clear();
  order.stated = false;
  accesses.plain_reads.clear();
  accesses.store.findings.clear();
  accesses.copied.written = nullptr;
}

}  // namespace tokitai
