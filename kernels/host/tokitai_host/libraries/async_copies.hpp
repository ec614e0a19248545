// Copies that end at a wait: of `__pipeline_memcpy_async`, `cp.async`, barriers, pipelines and groups.
//
// A copy may land at any time up to its wait. Here it lands at once where the repetition runs its threads in
// reverse order, and at its wait in the others: what depends on either differs between the repetitions.
#pragma once

#include <vector>

#include "../builtins.hpp"

namespace tokitai {

struct Copy {
  void* to;
  const void* from;
  size_t bytes, zeros;
  const void* barrier;  // whose phase ends it; none for those of batches
};

// Copies of a thread that have not landed: those that a barrier's phase ends, and others, in batches. Those
// of another block are none of its own.
struct Copies {
  u64 block = 0;
  std::vector<Copy> bound;
  std::vector<Copy> open;
  std::vector<std::vector<Copy>> batches;
};
// Of the threads of the blocks that an OS thread runs, and how many are bound in one of them.
struct CopiesOfThreads {
  Copies of[block_limit];
  u64 block = 0;
  size_t bound = 0;
};
inline void land(const Copy& copy) {
  memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
  if (copy.zeros) memset(static_cast<char*>(copy.to) + copy.bytes - copy.zeros, 0, copy.zeros);
}
// The pointer has an initial value, as .tbss is filled like shared memory.
inline CopiesOfThreads* const no_copies = reinterpret_cast<CopiesOfThreads*>(alignof(CopiesOfThreads));
inline __thread CopiesOfThreads* copies_of_threads = reinterpret_cast<CopiesOfThreads*>(alignof(CopiesOfThreads));
inline CopiesOfThreads& copies_of_block() {
  if (copies_of_threads == no_copies) copies_of_threads = new CopiesOfThreads;
  if (copies_of_threads->block != current_block->number)
    copies_of_threads->block = current_block->number, copies_of_threads->bound = 0;
  return *copies_of_threads;
}
inline Copies& own_copies() {
  Copies& found = copies_of_block().of[linear_thread()];
  if (found.block != current_block->number) {
    found.block = current_block->number;
    found.bound.clear(), found.open.clear(), found.batches.clear();
  }
  return found;
}
inline void copy_later(void* to, const void* from, size_t bytes, size_t zeros, const void* barrier = nullptr) {
  const Copy copy = {to, from, bytes, zeros, barrier};
  Copies& own = own_copies();
  if (current_block->reversed)
    land(copy);
  else if (barrier)
    own.bound.push_back(copy), copies_of_block().bound++;
  else
    own.open.push_back(copy);
}
// Lands what all threads of the block have bound to a barrier, as a thread has seen its phase end; whether
// there was any.
inline bool land_bound_copies(const void* barrier) {
  CopiesOfThreads& all = copies_of_block();
  const size_t waiting = all.bound;
  for (unsigned t = 0; all.bound && t < current_block->threads; t++) {
    Copies& one = all.of[t];
    if (one.block != all.block || one.bound.empty()) continue;
    const size_t before = one.bound.size();
    std::vector<Copy> others;
    for (const Copy& copy : one.bound)
      if (copy.barrier == barrier)
        land(copy);
      else
        others.push_back(copy);
    one.bound.swap(others);
    all.bound -= before - one.bound.size();
  }
  return all.bound != waiting;
}
// The calling thread's share of what a group of threads copies.
template <class Group>
inline void copy_share(const Group& group, void* to, const void* from, size_t bytes,
                       const void* barrier = nullptr) {
  const size_t share = (bytes + group.size() - 1) / group.size(), begin = share * group.thread_rank();
  if (begin >= bytes) return;
  const size_t count = begin + share > bytes ? bytes - begin : share;
  copy_later(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, count, 0,
             barrier);
}
inline void commit_copies() {
  Copies& own = own_copies();
  own.batches.push_back(std::move(own.open));
  own.open.clear();
}
// Lands all batches but the last `left`.
inline void wait_for_copies(size_t left) {
  Copies& own = own_copies();
  size_t done = 0;
  for (; own.batches.size() - done > left; done++)
    for (const Copy& copy : own.batches[done]) land(copy);
  own.batches.erase(own.batches.begin(), own.batches.begin() + long(done));
}
// Copies of 4, 8 or 16 bytes, aligned, of which the last `zeros` are none of the source's.
inline void copy_word_later(void* to, const void* from, size_t bytes, size_t zeros) {
  assert((bytes == 4 || bytes == 8 || bytes == 16) && zeros <= bytes);
  assert(size_t(to) % bytes == 0 && size_t(from) % bytes == 0);
  copy_later(to, from, bytes, zeros);
}

}  // namespace tokitai

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
  tokitai::copy_word_later(to, from, bytes, zeros);
}
inline void __pipeline_commit() { tokitai::commit_copies(); }
inline void __pipeline_wait_prior(size_t left) { tokitai::wait_for_copies(left); }
