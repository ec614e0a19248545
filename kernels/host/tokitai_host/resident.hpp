// Blocks that one OS thread has begun and not ended. One runs to its end before the next begins, but where
// it waits for others: then more begin, until one of those that wait can go on. So a grid needs no more
// blocks at once than it waits for, and only blocks that have begun make progress, as on a GPU.
#pragma once

#include <time.h>
#include <unistd.h>

#include "deadlock.hpp"
#include "shared_layout.hpp"
#include "ticker.hpp"

namespace tokitai {

// Blocks and their threads that an OS thread holds at once: each thread has a stack.
constexpr unsigned resident_limit = 4096, resident_threads = 16384;
// Processor time without progress of any block, after which a launch is a deadlock.
constexpr u64 patience_ns = 300 * 1000 * 1000;

struct Residents {
  Block* all[resident_limit];
  unsigned made;
};

// The calling OS thread's blocks.
TOKITAI_UNSANITIZED inline Residents& own_residents() {
  static thread_local Residents* own = reinterpret_cast<Residents*>(alignof(Residents));
  if (own == reinterpret_cast<Residents*>(alignof(Residents))) {
    void* memory = mmap(nullptr, sizeof(Residents), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    own = static_cast<Residents*>(memory);
  }
  return *own;
}

// Its block number `which`, or null where there is no memory for one.
TOKITAI_UNSANITIZED inline Block* own_block(unsigned which, Work& work) {
  Residents& own = own_residents();
  if (which == own.made) {
    void* memory = mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* block = static_cast<Block*>(memory);
    block->shared = own_shared();
    fiber_adopt(block->own);
    own.all[own.made++] = block;
  }
  Block* block = own.all[which];
  block->work = &work;
  return block_reserve(*block, work.block.x * work.block.y * work.block.z) ? block : nullptr;
}

// Copies the shared arrays to where they are kept, or back.
TOKITAI_UNSANITIZED inline bool keep_shared(Block& block, bool back) {
  size_t bytes = 0;
  for (size_t i = 0; i < shared_layout.count; i++)
    bytes += used_bytes(shared_layout.arrays[i], block.work->dynamic_bytes);
  if (!back) {
    free(block.shared_kept);
    block.shared_kept = static_cast<unsigned char*>(malloc(bytes + 1));
  }
  if (!block.shared_kept) return false;
  unsigned char* kept = block.shared_kept;
  for (size_t i = 0; i < shared_layout.count; i++) {
    const SharedArray& array = shared_layout.arrays[i];
    const size_t part = used_bytes(array, block.work->dynamic_bytes);
    unsigned char* at = block.shared + array.offset;
    memcpy(back ? at : kept, back ? kept : at, part);
    kept += part;
  }
  return true;
}

class Worker {
 public:
  TOKITAI_UNSANITIZED explicit Worker(Work& work)
      : work_(work), order_(block_order(work.seed, work.total)) {
    const unsigned threads = work.block.x * work.block.y * work.block.z;
    limit_ = resident_threads / threads;
    if (limit_ > resident_limit) limit_ = resident_limit;
  }

  TOKITAI_UNSANITIZED void run() {
    while (!failed()) {
      const bool stuck = count_ && in_vain_ >= (work_.most_resident > 1 ? 2 : 12);
      if (!count_ || stuck) {
        if (count_) note_wait();
        const unsigned batch = count_ ? count_ : 1;
        unsigned begun = 0;
        while (begun < batch && count_ < limit_ && !failed() && begin()) begun++;
        if (!count_ && !begun) break;
        if (begun) in_vain_ = 0;
      }
      if (count_) round();
    }
    if (failed())  // fibers of blocks that were given up wait for ever
      for (unsigned i = 0; i < own_residents().made; i++) own_residents().all[i]->waits = false;
    idle(true);
  }

 private:
  Work& work_;
  const BlockOrder order_;
  unsigned limit_, count_ = 0, in_vain_ = 0;
  u64 begin_ = 0, end_ = 0, since_ = 0;
  bool none_left_ = false, is_idle_ = false;
  Block* held_ = nullptr;  // whose shared memory lies in its place

  TOKITAI_UNSANITIZED bool failed() const {
    return __atomic_load_n(&work_.failed, __ATOMIC_RELAXED);
  }

  TOKITAI_UNSANITIZED bool next(u64& index) {
    if (begin_ == end_) {
      if (none_left_) return false;
      begin_ = __atomic_fetch_add(&work_.next, work_.chunk, __ATOMIC_RELAXED);
      none_left_ = begin_ >= work_.total;
      if (none_left_) {
        begin_ = end_ = 0;
        return false;
      }
      end_ = begin_ + work_.chunk < work_.total ? begin_ + work_.chunk : work_.total;
    }
    index = order_(begin_++);
    return true;
  }

  // Begins a block; false where none is left.
  TOKITAI_UNSANITIZED bool begin() {
    u64 index;
    if (!next(index)) return false;
    put_aside();
    Block* block = own_block(count_, work_);
    if (!block) {
      report_no_stack(work_);
      return true;
    }
    go_to(*block, index);
    run_block(*block, index);
    after(*block);
    if (count_ + 1 > work_.most_resident) work_.most_resident = count_ + 1;
    if (!block->waits || failed()) return true;
    held_ = block;
    count_++;
    return true;
  }

  // Where the first of the blocks waits that another one is to help.
  TOKITAI_UNSANITIZED void note_wait() {
    const Block& block = *own_residents().all[0];
    if (work_.waited_at.file || work_.waited_pc || none_left_) return;
    for (unsigned t = 0; t < block.threads; t++) {
      const Lane& lane = block.lanes[t];
      if (lane.returned || lane.operation != Operation::poll) continue;
      const Coordinates grid = work_.grid;
      work_.waited_at = lane.site;
      work_.waited_pc = lane.polled_at;
      work_.waiting_block = {unsigned(block.index % grid.x), unsigned(block.index / grid.x % grid.y),
                             unsigned(block.index / grid.x / grid.y)};
      work_.waiting_thread = lane.index;
      return;
    }
  }

  TOKITAI_UNSANITIZED void go_to(Block& block, u64 index) {
    const Coordinates grid = work_.grid;
    blockIdx = {unsigned(index % grid.x), unsigned(index / grid.x % grid.y),
                unsigned(index / grid.x / grid.y)};
    current_block = &block;
  }

  TOKITAI_UNSANITIZED void after(Block& block) {
    if (!block.waits || failed())
      report_shared_damage(block, work_.reach, Seen::after_block, block.index);
  }

  // Keeps the shared memory of the block that has it, for another block to run.
  TOKITAI_UNSANITIZED void put_aside() {
    if (!held_) return;
    report_shared_damage(*held_, work_.reach, Seen::after_block, held_->index);
    if (!keep_shared(*held_, false)) report_no_stack(work_);
#ifdef TOKITAI_WATCH_SCHEDULE
    watch_block_leaves(*held_);
#endif
    held_ = nullptr;
  }

  // Every block that waits looks again, once.
  TOKITAI_UNSANITIZED void round() {
    Residents& own = own_residents();
    bool progress = false;
    for (unsigned i = 0; i < count_ && !failed();) {
      Block& block = *own.all[i];
      if (held_ != &block) {
        put_aside();
        go_to(block, block.index);
        keep_shared(block, true);
#ifdef TOKITAI_WATCH_SCHEDULE
        watch_block_returns(block);
#endif
      }
      held_ = &block;
      go_to(block, block.index);
      const u64 before = block.progress;
      resume_block(block, in_vain_ > 4);
      progress = progress || block.progress != before;
      after(block);
      if (block.waits && !failed()) {
        i++;
        continue;
      }
      held_ = nullptr;
      count_--;
      own.all[i] = own.all[count_];  // which is looked at next
      own.all[count_] = &block;
    }
    if (progress) {
      in_vain_ = 0;
      since_ = 0;
      busy();
    } else {
      in_vain_++;
      idle(false);
    }
  }

  TOKITAI_UNSANITIZED void busy() {
    if (is_idle_) __atomic_fetch_sub(&work_.idle_workers, 1, __ATOMIC_ACQ_REL);
    is_idle_ = false;
  }

  // No block of this OS thread can go on. Where that is so for all, and has been for a while, it stays so.
  TOKITAI_UNSANITIZED void idle(bool ended) {
    if (ended) {
      busy();
      __atomic_fetch_add(&work_.idle_workers, 1, __ATOMIC_ACQ_REL);
      return;
    }
    // Who was stopped may only be slow.
    for (unsigned i = 0; i < count_; i++) {
      const Block& block = *own_residents().all[i];
      for (unsigned t = 0; t < block.threads; t++)
        if (block.lanes[t].operation == Operation::poll && !block.lanes[t].returned &&
            block.lanes[t].is_stopped)
          return;
    }
    const u64 now = processor_ns();
    if (!since_) since_ = now;
    if (work_.workers > 1) usleep(20);
    if (now - since_ < (work_.workers > 1 ? patience_ns / 10 : patience_ns) || in_vain_ < 64) return;
    if (!is_idle_) __atomic_fetch_add(&work_.idle_workers, 1, __ATOMIC_ACQ_REL);
    is_idle_ = true;
    if (__atomic_load_n(&work_.idle_workers, __ATOMIC_ACQUIRE) < work_.workers) return;
    report_waiting(work_, own_residents().all, count_, count_ == limit_ && !none_left_);
  }
};

TOKITAI_UNSANITIZED inline void work_on(Work& work) {
  blockDim = work.block;
  gridDim = work.grid;
  blockIdx = {0, 0, 0};
  Block* block = own_block(0, work);
  if (!block) return report_no_stack(work);
  current_block = block;
  fill_guards(block->shared, work.dynamic_bytes, work.fill);
  {
    Ticker ticker;
    Worker(work).run();
  }
  current_block = block;
  report_shared_damage(*block, SIZE_MAX, Seen::after_launch, no_index);
  current_block = no_block;
}

}  // namespace tokitai
