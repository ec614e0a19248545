// What to say when no thread of a block can run: who waits where, and who never came.
#pragma once

#include <cxxabi.h>

#include "block_barrier.hpp"
#include "text.hpp"

// What units of kernels call and the unit that serves them has; a unit that launches by itself has it too.
#define TOKITAI_SERVING __attribute__((weak))

namespace tokitai {

inline const char* operation_name(Operation operation) {
  switch (operation) {
    case Operation::block_barrier: return "__syncthreads";
    case Operation::warp_barrier: return "__syncwarp";
    case Operation::shuffle: return "a shuffle";
    case Operation::ballot: return "a vote";
    case Operation::active_mask: return "__activemask";
    case Operation::match_any: return "__match_any_sync";
    case Operation::match_all: return "__match_all_sync";
    case Operation::reduction: return "a reduction of a warp";
    case Operation::poll: return "a loop that looks for another thread's write";
    case Operation::grid_barrier: return "a barrier of the grid";
    case Operation::phase: return "a cuda::barrier";
    default: return "nothing";
  }
}

inline bool is_masked(const Lane& lane) {
  return lane.mask.given && lane.operation > Operation::block_barrier && lane.operation < Operation::poll;
}

inline bool waits_together(const Lane& a, const Lane& b) {
  if (a.returned || b.returned) return a.returned == b.returned;
  if (a.operation != b.operation) return false;
  if (a.operation == Operation::none) return true;
  if (a.site.file != b.site.file && (!a.site.file || !b.site.file)) return false;
  return (!a.site.file || a.site == b.site) && (!is_masked(a) || a.mask.lanes == b.mask.lanes);
}

// Appends the members' numbers as ranges: "threads 0-31, 64".
inline void append_threads(Text& text, const Block& block, unsigned first) {
  unsigned ranges = 0;
  append(text, "thread%s", first + 1 < block.threads ? "s" : "");
  for (unsigned t = first; t < block.threads;) {
    if (!waits_together(block.lanes[first], block.lanes[t])) {
      t++;
      continue;
    }
    unsigned end = t;
    while (end + 1 < block.threads && waits_together(block.lanes[first], block.lanes[end + 1])) end++;
    if (++ranges > 8) {
      append(text, ", ...");
      return;
    }
    append(text, end > t ? "%s %u-%u" : "%s %u", ranges > 1 ? "," : "", t, end);
    t = end + 1;
  }
}

inline void append_groups(Text& text, const Block& block) {
  for (unsigned t = 0; t < block.threads; t++) {
    const Lane& lane = block.lanes[t];
    unsigned count = 0;
    bool is_first = true;
    for (unsigned i = 0; i < block.threads; i++) {
      if (!waits_together(lane, block.lanes[i])) continue;
      is_first = is_first && i >= t;
      count++;
    }
    if (!is_first) continue;
    append(text, "; %u of %u (", count, block.threads);
    append_threads(text, block, t);
    if (lane.returned) {
      append(text, ") returned from the kernel");
      continue;
    }
    if (lane.operation == Operation::none) {
      append(text, ") ha%s not come to an end", count == 1 ? "s" : "ve");
      continue;
    }
    append(text, ") wait%s in %s", count == 1 ? "s" : "", operation_name(lane.operation));
    if (lane.site.file) append(text, " at %s:%d", lane.site.file, lane.site.line);
    if (is_masked(lane)) append(text, " with mask 0x%llx", lane.mask.lanes);
  }
  const Coordinates extent = block.work->block;
  if (extent.y > 1 || extent.z > 1)
    append(text, " (thread = x + %u * y + %u * z)", extent.x, extent.x * extent.y);
}

// Of several OS threads that fail, the first one tells: true for that one.
inline bool claim_failure(Work& work, Failure why) {
  if (__atomic_exchange_n(&work.failed, 1, __ATOMIC_ACQ_REL)) return false;
  work.why = why;
  return true;
}

inline Text failure_text(Work& work, const char* what) {
  Text text = {work.failure, sizeof work.failure, 0};
  append(text, "%s in kernel %s, block (%u,%u,%u)", what, work.kernel, blockIdx.x, blockIdx.y,
         blockIdx.z);
  return text;
}

// What an array is called in its function: the last part of its name.
inline void append_array(Text& text, const SharedArray& array, size_t dynamic_bytes) {
  if (array.offset == shared_layout.dynamic) {
    append(text, "dynamic shared memory (the launch asks for %zu bytes)", dynamic_bytes);
    return;
  }
  int status = 0;
  char* whole = abi::__cxa_demangle(array.symbol, nullptr, nullptr, &status);
  const char* name = whole ? whole : array.symbol;
  for (const char* next = strstr(name, "::"); next; next = strstr(name, "::")) name = next + 2;
  append(text, "shared array %s (%zu bytes)", name, array.bytes);
  free(whole);
}

// After a turn of a thread in a block that is watched: true where the launch is at its end, as the thread
// wrote into the guard that is looked for.
TOKITAI_SERVING TOKITAI_UNSANITIZED bool report_watched_guard(Block& block) {
  Work& work = *block.work;
  if (!work.guard_byte)
    return report_shared_damage(block, SIZE_MAX, Seen::after_thread, work.watched);
  if (*work.guard_byte == work.guard_value) return false;
  if (!claim_failure(work, Failure::guard_damage)) return true;
  const Coordinates thread = block.lanes[block.current].index;
  Text text = {work.failure, sizeof work.failure, 0};
  append(text, "kernel %s, block (%u,%u,%u), thread (%u,%u,%u)", work.kernel, blockIdx.x, blockIdx.y,
         blockIdx.z, thread.x, thread.y, thread.z);
  return true;
}

// Looks at the first `reach` bytes of every guard of shared memory. True where one is damaged; of
// several finds the first is told. `index` is the block's.
TOKITAI_SERVING TOKITAI_UNSANITIZED bool report_shared_damage(Block& block, size_t reach, Seen seen, u64 index) {
  Work& work = *block.work;
  const SharedDamage damage = shared_damage(block.shared, work.dynamic_bytes, work.fill, reach);
  if (!damage.array) return false;
  if (!claim_failure(work, Failure::shared_damage)) return true;
  work.damaged = index;
  work.seen = seen;
  const unsigned char* begin = block.shared + damage.array->offset;
  const unsigned char* end = begin + used_bytes(*damage.array, work.dynamic_bytes);
  Text text = {work.failure, sizeof work.failure, 0};
  const bool in_front = damage.at < begin;
  const size_t distance = size_t(in_front ? begin - damage.at : damage.at - end);
  append(text, "write %zu byte%s %s ", distance, distance == 1 ? "" : "s",
         in_front ? "before" : "past the end of");
  append_array(text, *damage.array, work.dynamic_bytes);
  append(text, " in kernel %s, ", work.kernel);
  if (seen == Seen::after_launch) {
    append(text, "block and thread not known");
    return true;
  }
  append(text, "block (%u,%u,%u), thread ", blockIdx.x, blockIdx.y, blockIdx.z);
  const Coordinates thread = block.lanes[block.current].index;
  if (seen == Seen::after_thread)
    append(text, "(%u,%u,%u)", thread.x, thread.y, thread.z);
  else
    append(text, "not known");
  return true;
}

TOKITAI_SERVING void report_no_stack(Work& work) {
  if (claim_failure(work, Failure::out_of_memory))
    failure_text(work, "no memory for the stacks of GPU threads");
}

// A lane that waits in an operation with a mask of which a named lane waits elsewhere; -1 for none.
inline int partly_met(const Block& block, unsigned& missing) {
  for (unsigned t = 0; t < block.threads; t++) {
    const Lane& lane = block.lanes[t];
    if (lane.returned || !is_masked(lane)) continue;
    const unsigned first = t / warp_size * warp_size;
    for (u64 left = lane.mask.lanes; left; left &= left - 1) {
      const unsigned other = first + unsigned(__builtin_ctzll(left));
      if (other >= block.threads || block.lanes[other].returned) continue;
      if (block.lanes[other].operation == lane.operation && block.lanes[other].mask.lanes == lane.mask.lanes)
        continue;
      missing = other;
      return int(t);
    }
  }
  return -1;
}

TOKITAI_SERVING void report_stuck(Block& block) {
  if (!claim_failure(*block.work, Failure::divergence)) return;
  unsigned missing = 0;
  const int partly = partly_met(block, missing);
  if (partly >= 0) {
    const Lane& lane = block.lanes[partly];
    block.work->site = lane.site;
    Text text = failure_text(*block.work, "divergent mask");
    append(text, ": mask 0x%llx of %s at %s:%d names thread %u, which waits elsewhere", lane.mask.lanes,
           operation_name(lane.operation), lane.site.file, lane.site.line, missing);
    append_groups(text, block);
    return;
  }
  const bool barrier = block.arrived > 0;
  block.work->site = barrier ? block.barrier_site : block.lanes[block.current].site;
  Text text = failure_text(*block.work, barrier ? "divergent barrier" : "deadlock");
  if (barrier)
    append(text, ": %u of %u threads came to the barrier at %s:%d, %u never did", block.arrived,
           block.live, block.barrier_site.file, block.barrier_site.line, block.live - block.arrived);
  else
    append(text, ": no thread can go on");
  append_groups(text, block);
}

// An operation with a mask that its caller is not in.
TOKITAI_SERVING void report_lone_caller(Block& block) {
  if (!claim_failure(*block.work, Failure::divergence)) return;
  const Lane& lane = block.lanes[block.current];
  block.work->site = lane.site;
  Text text = failure_text(*block.work, "mask without its caller");
  append(text, ": lane %u is not in mask 0x%llx of %s at %s:%d", block.current % warp_size,
         lane.mask.lanes, operation_name(lane.operation), lane.site.file, lane.site.line);
}

// Blocks of which none can go on, all that an OS thread has begun. `more`: others have not begun, for which
// there is no room.
TOKITAI_SERVING void report_waiting(Work& work, Block* const* blocks, unsigned count, bool more) {
  if (!claim_failure(work, more ? Failure::too_many_blocks : Failure::divergence)) return;
  Text text = {work.failure, sizeof work.failure, 0};
  if (more)
    append(text,
           "blocks that wait for others in kernel %s: %u wait for blocks that have not begun; of %llu blocks "
           "with %u threads this device has no more at once",
           work.kernel, count, work.total, blocks[0]->threads);
  else
    append(text, "deadlock in kernel %s: no thread can go on in %u block%s that ha%s begun", work.kernel,
           count, count == 1 ? "" : "s", count == 1 ? "s" : "ve");
  for (unsigned i = 0; i < count && i < 4; i++) {
    const Block& block = *blocks[i];
    const Coordinates grid = work.grid;
    append(text, "; block (%u,%u,%u)", unsigned(block.index % grid.x),
           unsigned(block.index / grid.x % grid.y), unsigned(block.index / grid.x / grid.y));
    for (unsigned t = 0; !work.site.file && t < block.threads; t++)
      if (block.lanes[t].operation >= Operation::poll && !block.lanes[t].returned)
        work.site = block.lanes[t].site;
    append_groups(text, block);
  }
}

TOKITAI_SERVING void report_mixed_barrier(Block& block) {
  if (!claim_failure(*block.work, Failure::divergence)) return;
  block.work->site = block.barrier_site;
  Text text = failure_text(*block.work, "divergent barrier");
  append(text, ": the threads of the block wait at different barriers");
  append_groups(text, block);
}

}  // namespace tokitai
