// Launches: the blocks of a grid, spread over OS threads that stay for the life of the process.
#pragma once

#include <pthread.h>

#include "resident.hpp"

namespace tokitai {

using ThreadSetup = void (*)();

struct Pool {
  unsigned threads;  // OS threads that work on a launch, the caller of `launch` included
  unsigned started;
  ThreadSetup setup;  // called once on each OS thread
  pthread_mutex_t mutex;
  pthread_cond_t work_ready, work_done;
  u64 generation;
  unsigned wanted, busy;
  Work* work;
};
inline Pool pool = {1, 0, nullptr, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                    PTHREAD_COND_INITIALIZER, 0, 0, 0, nullptr};

inline void* pool_thread(void*) {
  if (pool.setup) pool.setup();
  u64 seen = 0;
  pthread_mutex_lock(&pool.mutex);
  for (;;) {
    while (pool.generation == seen || pool.wanted == 0)
      pthread_cond_wait(&pool.work_ready, &pool.mutex);
    seen = pool.generation;  // one share of a launch for each thread
    pool.wanted--;
    Work* work = pool.work;
    pthread_mutex_unlock(&pool.mutex);
    work_on(*work);
    pthread_mutex_lock(&pool.mutex);
    if (--pool.busy == 0) pthread_cond_signal(&pool.work_done);
  }
}

// Starts OS threads up to `count` beside the caller; fewer where the system refuses.
inline void pool_grow(unsigned count) {
  while (pool.started < count) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, pool_thread, nullptr) != 0) return;
    pthread_detach(thread);
    pool.started++;
  }
}

// OS threads that share a launch, and how many blocks each takes at a time. The natural order and its
// reverse are kept from one block to the next: a small grid has one OS thread, a larger one no chunk of
// a single block.
inline unsigned share(Work& work) {
  constexpr u64 chunks_per_thread = 16, largest_chunk = 64, least_ordered = 4, small = 1 << 14;
  const bool ordered = work.seed == natural_order || work.seed == reverse_order;
  const bool alone = ordered && work.total * work.block.x * work.block.y * work.block.z <= small;
  unsigned threads = work.total < pool.threads ? unsigned(work.total) : pool.threads;
  if (alone || work.watched != no_index || work.guard_byte) threads = 1;
  work.chunk = work.total / (threads * chunks_per_thread) + 1;
  if (work.chunk > largest_chunk) work.chunk = largest_chunk;
  if (ordered && work.chunk < least_ordered) work.chunk = least_ordered;
  return threads;
}

inline void launch(Work& work) {
  work.total = u64(work.grid.x) * work.grid.y * work.grid.z;
  const unsigned threads = share(work);
  work.next = 0;
  work.idle_workers = work.most_resident = 0;
  work.meets = false;
  work.blocks_arrived = work.meetings = 0;
  work.waited_at = {};
  work.waited_pc = nullptr;
  unsigned others = threads - 1;
  if (others > pool.started) others = pool.started;
  work.workers = others + 1;
  if (others) {
    pthread_mutex_lock(&pool.mutex);
    pool.work = &work;
    pool.generation++;
    pool.wanted = pool.busy = others;
    pthread_cond_broadcast(&pool.work_ready);
    pthread_mutex_unlock(&pool.mutex);
  }
  work_on(work);
  if (others) {
    pthread_mutex_lock(&pool.mutex);
    // Shares that nobody has taken by now are not waited for: no block is left.
    pool.busy -= pool.wanted;
    pool.wanted = 0;
    while (pool.busy) pthread_cond_wait(&pool.work_done, &pool.mutex);
    pthread_mutex_unlock(&pool.mutex);
  }
}

}  // namespace tokitai
