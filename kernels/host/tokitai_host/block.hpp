// A block of GPU threads on one OS thread: its lanes, warps and the choice of who runs next.
//
// A block starts as a plain loop over its threads in one fiber. The first thread that meets a
// barrier or a warp operation arms the block: from there on every thread has a fiber. A kernel
// without such operations therefore runs at the speed of the loop.
//
// A warp runs until all of its lanes wait or have returned (warp-greedy); uniformly random choices
// among all lanes would keep the warps abreast of each other and hide races between them.
//
// Threads that have returned do not count at barriers and in warp operations, as on AMD hardware.
#pragma once

#include "schedule.hpp"
#include "shared_memory.hpp"

namespace tokitai {

constexpr unsigned warp_limit = block_limit / warp_size;
constexpr u64 all_lanes = warp_size == 64 ? ~0ull : (1ull << (warp_size % 64)) - 1;

enum class Operation : unsigned char {
  none,
  block_barrier,
  warp_barrier,
  shuffle,
  ballot,
  active_mask,
  match_any,
  match_all,
  reduction,
  poll,  // of a place that others are to change
  grid_barrier,
  phase,  // of a cuda::barrier
};

// Where in the source an operation stands, as __builtin_FILE and __builtin_LINE tell it.
struct Site {
  const char* file;
  int line;
  TOKITAI_UNSANITIZED bool operator==(const Site& other) const {
    return line == other.line && (file == other.file || strcmp(file, other.file) == 0);
  }
};

// Lanes that take part in an operation: those that were given, or those of the warp that are active.
struct Mask {
  u64 lanes;
  bool given;
  Mask(u64 lanes) : lanes(lanes & all_lanes), given(true) {}
  Mask() : lanes(0), given(false) {}
};

struct Lane {
  Fiber* fiber;  // null until the thread first runs on a fiber of its own
  Coordinates index;
  Operation operation;  // what the lane waits in, with its operands
  bool returned;
  Site site;
  Mask mask;
  u64 value;
  unsigned source;
  u64 result;  // what the operation gave, and the lanes that took part
  u64 members;
  u64 meetings;           // barriers of the grid that it came to
  unsigned patience;      // polls before it waits again
  const void* polled_at;  // its code, where the source is not known
  bool is_stopped;        // it may wait, or be slow: its turn was taken away
};

struct Warp {
  u64 live, runnable, waiting, at_barrier, polling;
};

enum class Failure : unsigned char {
  divergence,
  shared_damage,
  guard_damage,
  out_of_memory,
  too_many_blocks,
};

// When a guard of shared memory was found damaged.
enum class Seen : unsigned char { after_thread, after_block, after_launch };

constexpr u64 no_index = ~0ull;

// One launch, shared by the OS threads that work on it.
struct Work {
  const char* kernel;
  void (*all_threads)(const void* arguments, struct Block&);
  void (*one_thread)(const void* arguments);
  const void* arguments;
  Coordinates grid, block;
  size_t dynamic_bytes;
  FillPattern fill;
  u64 seed;
  size_t reach;       // how far guards of shared arrays are looked at after each block
  u64 watched;        // block whose guards are looked at after each turn of a thread, or no_index
  const unsigned char* guard_byte;  // of a global buffer, looked at after each turn of any thread, or null
  unsigned char guard_value;        // what it held
  // Next block, and blocks that an OS thread takes at once.
  u64 total, chunk, next;
  int failed;
  Failure why;
  Site site;    // of the barrier that was not reached by all
  u64 damaged;  // block that wrote into a guard, or no_index
  Seen seen;
  // Blocks that wait for others: OS threads that work on the launch, those that are at their end or cannot
  // go on, the most blocks that one of them had begun and not ended, and where the first of them waited.
  unsigned workers, idle_workers, most_resident;
  bool meets;  // at a barrier of the whole grid: blocks that have come to it, and how often all have
  u64 blocks_arrived, meetings;
  Site waited_at;
  const void* waited_pc;
  Coordinates waiting_block, waiting_thread;
  char failure[4000];
};

struct Block {
  Work* work;
  unsigned threads, warp_count;
  // The scheduler's state.
  bool armed, seeded, reversed;
  u64 random;
  unsigned current;  // thread that runs
  unsigned live, arrived;
  Site barrier_site;
  bool barrier_mixed;
  unsigned predicate_count, released_count, released_live;
  Fiber* running;
  unsigned free_count;
  unsigned char* shared;  // thread-local storage of the OS thread
  bool watched;
  Fiber own;  // of the OS thread
  Warp warps[warp_limit];
  Lane lanes[block_limit];
  Fiber fibers[block_limit];
  Fiber* free_fibers[block_limit];
  unsigned interval;  // barriers that all live threads have left
  // Waiting for what other blocks do.
  u64 index;               // of the block in its grid
  bool waits;              // no thread of it can go on, and one polls
  u64 meetings_begun;      // barriers of the grid that one of its threads has told of
  u64 progress;            // grows with all that a poll does not do
  unsigned char* shared_kept;  // what its shared arrays hold while another block runs
  const void* polled[2];   // places that the polling thread looks at
  Coordinates poller;
  unsigned polls;
  // For the clock that stops a thread that polls by plain loads: whether a kernel's code runs, and turns.
  bool in_kernel;  // written by set_in_kernel alone
  u64 turns;
  void* history;  // of the watch
  u64 number;         // of this OS thread's blocks, from 1 on
};

// The block that this OS thread runs. `no_block` is not null, which would put the variable in .tbss.
inline Block* const no_block = reinterpret_cast<Block*>(alignof(Block));
inline __thread Block* current_block = reinterpret_cast<Block*>(alignof(Block));

// Says that from here on the kernel's code of `threadIdx` runs, or that it does not: the only time in which the
// clock's signal may take the turn away. So no compiler may leave the store out, nor move across it what the
// scheduler or the kernel does: the signal would find a scheduler in the middle of its work, or a thread that
// is not the one of `threadIdx`.
TOKITAI_UNSANITIZED inline void set_in_kernel(Block& block, bool is) {
  asm volatile("" : : "r"(&threadIdx) : "memory");
  *const_cast<volatile bool*>(&block.in_kernel) = is;
  asm volatile("" : : : "memory");
}

TOKITAI_UNSANITIZED inline unsigned lane_in(const Block& block, u64 lanes) {
  return block.reversed ? 63 - __builtin_clzll(lanes) : __builtin_ctzll(lanes);
}

// Of the unit that serves kernels (deadlock.hpp).
void report_stuck(Block& block);
void report_lone_caller(Block& block);
void report_waiting(Work& work, Block* const* blocks, unsigned count, bool more);
void report_mixed_barrier(Block& block);
void report_no_stack(Work& work);
bool report_shared_damage(Block& block, size_t reach, Seen seen, u64 index);
bool report_watched_guard(Block& block);
#ifdef TOKITAI_WATCH_SCHEDULE
void watch_barrier();
void watch_block(Block& block);
void watch_grid_arrives(u64 meeting);
void watch_grid_leaves(u64 meeting);
void watch_block_leaves(Block& block);
void watch_block_returns(Block& block);
void watch_warp(unsigned warp, u64 members);
#endif
inline void complete_warp_operation(Block& block, unsigned warp, bool partly);  // warp_operations.hpp
inline void fiber_main();

// Frees all lanes from the barrier that every live thread has reached.
TOKITAI_UNSANITIZED inline void release_barrier(Block& block) {
  for (unsigned w = 0; w < block.warp_count; w++) {
    block.warps[w].runnable = block.warps[w].at_barrier;
    block.warps[w].at_barrier = 0;
  }
  block.released_count = block.predicate_count;
  block.released_live = block.live;
  block.predicate_count = block.arrived = 0;
  block.interval++;
  block.progress++;
#ifdef TOKITAI_WATCH_SCHEDULE
  watch_barrier();
#endif
}

// A warp with a lane that can run, or -1: the next in order, which may be the reverse, or a random one.
TOKITAI_UNSANITIZED inline int other_warp(Block& block, unsigned after) {
  int chosen = -1;
  unsigned count = 0;
  for (unsigned i = 1; i <= block.warp_count; i++) {
    const unsigned w = (block.reversed ? after + block.warp_count - i : after + i) % block.warp_count;
    if (!block.warps[w].runnable) continue;
    if (!block.seeded) return int(w);
    if (next_random(block.random) % ++count == 0) chosen = int(w);
  }
  return chosen;
}

// The thread that runs next, or -1 where the block is done or cannot go on. `w` is the warp of the
// thread that ran until now.
TOKITAI_UNSANITIZED inline int next_thread(Block& block, unsigned w) {
  if (__builtin_expect(block.watched, 0) && report_watched_guard(block)) return -1;
  Warp& warp = block.warps[w];
  if (!warp.runnable && warp.waiting) complete_warp_operation(block, w, !warp.polling);
  if (warp.runnable) return int(w * warp_size + lane_in(block, warp.runnable));
  int other = other_warp(block, w);
  if (other < 0) {
    if (block.live == 0) return -1;
    for (unsigned i = 0; i < block.warp_count; i++) block.waits |= block.warps[i].polling != 0;
    if (block.waits) return -1;
    if (block.arrived != block.live) {
      report_stuck(block);
      return -1;
    }
    if (block.barrier_mixed) {
      report_mixed_barrier(block);
      return -1;
    }
    release_barrier(block);
    // From the last warp on, so that the natural order starts again with warp 0, the reverse with the last.
    other = other_warp(block, block.reversed ? 0 : block.warp_count - 1);
  }
  return int(unsigned(other) * warp_size + lane_in(block, block.warps[other].runnable));
}

TOKITAI_UNSANITIZED inline void become(Block& block, unsigned thread) {
  block.current = thread;
  threadIdx = block.lanes[thread].index;
}

// Gives a lane a fiber that starts its thread; false where there is no memory for its stack.
TOKITAI_UNSANITIZED inline bool equip(Block& block, unsigned thread) {
  Fiber* fiber = block.free_fibers[--block.free_count];
  if (!fiber->stack && !fiber_allocate(*fiber)) {
    report_no_stack(*block.work);
    return false;
  }
  fiber_prepare(*fiber, thread, fiber_main);
  block.lanes[thread].fiber = fiber;
  return true;
}

// Runs `thread`, or goes back to the OS thread's own stack where it is -1.
TOKITAI_UNSANITIZED inline void switch_to(Block& block, int thread, bool leaving_for_good) {
  Fiber* from = block.running;
  Fiber* to = &block.own;
  if (thread >= 0 && (block.lanes[thread].fiber || equip(block, unsigned(thread)))) {
    to = block.lanes[thread].fiber;
    become(block, unsigned(thread));
  }
  block.running = to;
  fiber_switch(*from, *to, leaving_for_good);
}

// The running thread waits; it goes on when it is chosen again.
TOKITAI_UNSANITIZED inline void wait_for_turn(Block& block) {
  const int next = next_thread(block, block.current / warp_size);
  // Where the block was given up, `next` is -1 and nothing ever switches back to this fiber.
  if (next != int(block.current)) switch_to(block, next, next < 0 && !block.waits);
  block.turns++;
  set_in_kernel(block, true);
  watch_resumed();
}

// Turns a block that ran as a plain loop into one of fibers; the thread that runs keeps its fiber.
// Threads in front of it in the loop's order have returned already.
TOKITAI_UNSANITIZED inline void arm(Block& block) {
  const Coordinates extent = block.work->block;
  const unsigned self = threadIdx.x + extent.x * (threadIdx.y + extent.y * threadIdx.z);
  unsigned thread = 0;
  for (unsigned z = 0; z < extent.z; z++)
    for (unsigned y = 0; y < extent.y; y++)
      for (unsigned x = 0; x < extent.x; x++, thread++) {
        Lane& lane = block.lanes[thread];
        lane.fiber = nullptr;
        lane.index = {x, y, z};
        lane.operation = Operation::none;
        lane.patience = 0;
        lane.meetings = 0;
        lane.returned = block.reversed ? thread > self : thread < self;
      }
  block.warp_count = (block.threads + warp_size - 1) / warp_size;
  block.live = block.reversed ? self + 1 : block.threads - self;
  for (unsigned w = 0; w < block.warp_count; w++) {
    u64 live = 0;
    for (unsigned l = 0; l < warp_size && w * warp_size + l < block.threads; l++)
      if (!block.lanes[w * warp_size + l].returned) live |= 1ull << l;
    block.warps[w] = {live, live, 0, 0, 0};
  }
  block.arrived = block.predicate_count = 0;
  block.barrier_mixed = false;
  block.current = self;
  block.lanes[self].fiber = block.running;
  block.armed = true;
}

TOKITAI_UNSANITIZED inline Block& armed_block() {
  Block& block = *current_block;
  set_in_kernel(block, false);
  if (__builtin_expect(!block.armed, 0)) arm(block);
  return block;
}

// The running thread has returned from the kernel: takes it out of its warp and its block.
TOKITAI_UNSANITIZED inline void retire(Block& block) {
  Warp& warp = block.warps[block.current / warp_size];
  const u64 bit = 1ull << (block.current % warp_size);
  warp.live &= ~bit;
  warp.runnable &= ~bit;
  block.lanes[block.current].returned = true;
  block.live--;
  block.progress++;
}

TOKITAI_UNSANITIZED inline void run_thread(Block& block) {
  block.turns++;
  set_in_kernel(block, true);
  block.work->one_thread(block.work->arguments);
  set_in_kernel(block, false);
}

// What every fiber does: a whole block as a loop until a thread arms it, then thread after thread.
TOKITAI_UNSANITIZED inline void fiber_main() {
  fiber_entered();
  Block& block = *current_block;
  if (!block.armed) {
    block.work->all_threads(block.work->arguments, block);
    if (!block.armed) {
      block.free_fibers[block.free_count++] = block.running;
      fiber_unwound(*block.running);
      switch_to(block, -1, true);
      __builtin_trap();
    }
  } else {
    run_thread(block);
  }
  for (;;) {
    retire(block);
    const int next = next_thread(block, block.current / warp_size);
    Fiber* self = block.running;
    if (next >= 0 && !block.lanes[next].fiber) {
      // The next thread has no stack yet and this one is not needed any more.
      block.lanes[next].fiber = self;
      become(block, unsigned(next));
      run_thread(block);
      continue;
    }
    block.free_fibers[block.free_count++] = self;
    fiber_unwound(*self);
    switch_to(block, next, true);
    __builtin_trap();
  }
}

TOKITAI_UNSANITIZED inline void free_all_fibers(Block& block) {
  block.free_count = 0;
  for (unsigned i = block.threads; i-- > 0;)
    block.free_fibers[block.free_count++] = &block.fibers[i];
}

// Prepares for blocks of `threads`. Returns false where memory ends. Stacks but the first are mapped
// when they are needed, as kernels without barriers never do.
TOKITAI_UNSANITIZED inline bool block_reserve(Block& block, unsigned threads) {
  block.threads = threads;
  free_all_fibers(block);
  return block.fibers[0].stack || fiber_allocate(block.fibers[0]);
}

// Runs one block to its end, or until it waits or cannot go on (then the work has failed).
TOKITAI_UNSANITIZED inline void run_block(Block& block, u64 linear_index) {
  Work& work = *block.work;
  block.armed = block.waits = block.in_kernel = false;
  block.index = linear_index;
  block.progress = block.polls = 0;
  block.meetings_begun = 0;
  block.turns++;
  block.number++;
  block.seeded = work.seed != natural_order && work.seed != reverse_order;
  block.random = mixed(work.seed ^ mixed(linear_index)) | 1;
  // One bit of the seed, so that a schedule is either way in all of its blocks.
  block.reversed = block.seeded ? mixed(work.seed) & 1 : work.seed == reverse_order;
  block.watched = work.watched == linear_index || work.guard_byte;
  // Blocks in front of the one that is watched may have written into guards as well.
  if (block.watched) fill_guards(block.shared, work.dynamic_bytes, work.fill);
  fill_shared(block.shared, work.dynamic_bytes, work.fill);
  block.interval = 0;
#ifdef TOKITAI_WATCH_SCHEDULE
  watch_block(block);
#endif
  Fiber* fiber = block.free_fibers[--block.free_count];
  fiber_prepare(*fiber, 0, fiber_main);
  block.running = fiber;
  if (block.watched) {
    threadIdx = {0, 0, 0};
    if (block.reversed) threadIdx = {work.block.x - 1, work.block.y - 1, work.block.z - 1};
    arm(block);
  }
  fiber_switch(block.own, *fiber, false);
  // Fibers of a block that was given up wait for ever and are prepared anew.
  if (work.failed) free_all_fibers(block);
}

// Goes on with a block that waits: its polling threads look again. Where they have done so in vain, lanes in
// an operation of the active ones go on without those that poll.
TOKITAI_UNSANITIZED inline void resume_block(Block& block, bool in_vain) {
  block.waits = false;
  for (unsigned w = 0; w < block.warp_count; w++) {
    Warp& warp = block.warps[w];
    if (in_vain && warp.polling && warp.waiting) complete_warp_operation(block, w, true);
    warp.runnable |= warp.polling;
    warp.polling = 0;
  }
  const int warp = other_warp(block, block.current / warp_size);
  const unsigned thread = unsigned(warp) * warp_size + lane_in(block, block.warps[warp].runnable);
  if (!block.lanes[thread].fiber && !equip(block, thread)) return;
  become(block, thread);
  block.running = block.lanes[thread].fiber;
  fiber_switch(block.own, *block.running, false);
  if (block.work->failed) free_all_fibers(block);
}

// The plain loop. `values` are the kernel's arguments, no closure: compilers that check the alignment of
// what a pointer leads to keep a closure in memory.
template <auto kernel, class... P>
inline void for_each_thread(Block& block, P... values) {
  const Coordinates extent = blockDim;
  const bool reversed = block.reversed;
  const unsigned step = reversed ? ~0u : 1u;
  Coordinates at = {0, 0, reversed ? extent.z - 1 : 0};
  for (unsigned z = 0; z < extent.z; z++, at.z += step) {
    at.y = reversed ? extent.y - 1 : 0;
    for (unsigned y = 0; y < extent.y; y++, at.y += step) {
      at.x = reversed ? extent.x - 1 : 0;
      for (unsigned x = 0; x < extent.x; x++, at.x += step) {
        threadIdx = at;
        set_in_kernel(block, true);
        kernel(values...);
        set_in_kernel(block, false);
        if (__builtin_expect(block.armed, 0)) return;
      }
    }
  }
}

}  // namespace tokitai
