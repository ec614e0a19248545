// cuda::barrier of a block, and copies that end at a wait.
//
// A copy may land at any time up to its wait. Here it lands at once where the repetition runs its threads in
// reverse order, and at its wait in the others: what depends on either differs between the repetitions.
#pragma once

#include <vector>

#include <hip/hip_cooperative_groups.h>

#include "cuda_atomic.hpp"

namespace tokitai {

// The calling thread waits for `place`, until `wake` frees all that do.
TOKITAI_UNSANITIZED __attribute__((noinline)) inline void park(const void* place, Site site) {
  Block& block = armed_block();
  Lane& lane = block.lanes[block.current];
  Warp& warp = block.warps[block.current / warp_size];
  lane.operation = Operation::phase;
  lane.mask = Mask();
  lane.value = u64(place);
  lane.site = site;
  warp.runnable &= ~(1ull << (block.current % warp_size));
  wait_for_turn(block);
  lane.operation = Operation::none;
}
TOKITAI_UNSANITIZED __attribute__((noinline)) inline void wake(const void* place) {
  Block& block = armed_block();
  for (unsigned t = 0; t < block.threads; t++) {
    const Lane& lane = block.lanes[t];
    if (!lane.returned && lane.operation == Operation::phase && lane.value == u64(place))
      block.warps[t / warp_size].runnable |= 1ull << (t % warp_size);
  }
}

struct Copy {
  void* to;
  const void* from;
  size_t bytes, zeros;
};

// Copies of a thread that have not landed: those that a barrier's phase ends, and others, in batches. Those
// of another block are none of its own.
struct Copies {
  u64 block = 0;
  std::vector<Copy> bound;
  std::vector<Copy> open;
  std::vector<std::vector<Copy>> batches;
};
inline void land(const Copy& copy) {
  memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
  if (copy.zeros) memset(static_cast<char*>(copy.to) + copy.bytes - copy.zeros, 0, copy.zeros);
}
// Of each thread of a block, on the OS thread that runs it. The pointer has an initial value, as .tbss is
// filled like shared memory.
inline Copies* const no_copies = reinterpret_cast<Copies*>(alignof(Copies));
inline __thread Copies* copies_of_threads = reinterpret_cast<Copies*>(alignof(Copies));
inline Copies& own_copies() {
  if (copies_of_threads == no_copies) copies_of_threads = new Copies[block_limit];
  Copies& found = copies_of_threads[linear_thread()];
  if (found.block != current_block->number) {
    found.block = current_block->number;
    found.bound.clear(), found.open.clear(), found.batches.clear();
  }
  return found;
}
inline void copy_later(void* to, const void* from, size_t bytes, size_t zeros, bool bound = false) {
  const Copy copy = {to, from, bytes, zeros};
  Copies& own = own_copies();
  if (current_block->reversed)
    land(copy);
  else
    (bound ? own.bound : own.open).push_back(copy);
}
inline void land_bound_copies() {
  Copies& own = own_copies();
  for (const Copy& copy : own.bound) land(copy);
  own.bound.clear();
}
// The calling thread's share of what a group of threads copies.
template <class Group>
inline void copy_share(const Group& group, void* to, const void* from, size_t bytes, bool bound) {
  const size_t share = (bytes + group.size() - 1) / group.size(), begin = share * group.thread_rank();
  if (begin >= bytes) return;
  const size_t count = begin + share > bytes ? bytes - begin : share;
  copy_later(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, count, 0, bound);
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

}  // namespace tokitai

namespace cuda {

template <size_t n>
struct aligned_size_t {
  static constexpr size_t align = n;
  size_t value;
  explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {}
  constexpr operator size_t() const { return value; }
};

namespace tokitai_detail {
struct nothing {
  void operator()() const {}
};
}  // namespace tokitai_detail

// Threads of a block that count down to a phase's end, and wait for it.
template <thread_scope scope, class Completion = tokitai_detail::nothing>
class barrier {
  static_assert(scope == thread_scope_block || scope == thread_scope_thread,
                "a barrier of more than a block waits for other blocks, and the cpu device runs blocks one "
                "after another: choose another device");
  static constexpr int of_block = __HIP_MEMORY_SCOPE_WORKGROUP;

 public:
  class arrival_token {
    friend barrier;
    unsigned phase;
  };
  barrier() = default;
  barrier(ptrdiff_t expected, Completion done = Completion()) : done_(done) { tokitai_set(expected); }
  barrier(const barrier&) = delete;
  static constexpr ptrdiff_t max() { return (1 << 20) - 1; }

  // A thread's own copies have landed when it arrives, so that a phase ends behind all of them.
  arrival_token arrive(ptrdiff_t update = 1) {
    tokitai::land_bound_copies();
    arrival_token token;
    token.phase = tokitai::hip_atomic_load(&phase_, __ATOMIC_ACQUIRE, of_block);
    const unsigned before =
        tokitai::hip_atomic_fetch_sub(&left_, unsigned(update), __ATOMIC_ACQ_REL, of_block);
    if (before == unsigned(update)) {
      done_();
      const unsigned expected = tokitai::hip_atomic_load(&expected_, __ATOMIC_ACQUIRE, of_block);
      tokitai::hip_atomic_store(&left_, expected, __ATOMIC_RELEASE, of_block);
      tokitai::hip_atomic_fetch_add(&phase_, 1u, __ATOMIC_ACQ_REL, of_block);
      tokitai::wake(this);
    }
    return token;
  }
  void wait(arrival_token&& token, TOKITAI_HERE) const {
    auto* self = const_cast<barrier*>(this);
    while (tokitai::hip_atomic_load(&self->phase_, __ATOMIC_ACQUIRE, of_block) == token.phase)
      tokitai::park(this, TOKITAI_SITE);
    tokitai::hip_atomic_load(&self->left_, __ATOMIC_ACQUIRE, of_block);  // behind what all have done
  }
  bool try_wait(arrival_token&& token) const {
    auto* self = const_cast<barrier*>(this);
    return tokitai::hip_atomic_load(&self->phase_, __ATOMIC_ACQUIRE, of_block) != token.phase;
  }
  void arrive_and_wait(TOKITAI_HERE) { wait(arrive(), file, line); }
  void arrive_and_drop() {
    tokitai::hip_atomic_fetch_sub(&expected_, 1u, __ATOMIC_ACQ_REL, of_block);
    (void)arrive();
  }
  void tokitai_set(ptrdiff_t expected) {
    __atomic_store_n(&expected_, unsigned(expected), __ATOMIC_SEQ_CST);
    __atomic_store_n(&left_, unsigned(expected), __ATOMIC_SEQ_CST);
    __atomic_store_n(&phase_, 0u, __ATOMIC_SEQ_CST);
  }

 private:
  unsigned expected_, left_, phase_;
  [[no_unique_address]] Completion done_;
};

template <thread_scope scope, class Completion>
inline void init(barrier<scope, Completion>* made, ptrdiff_t expected) {
  made->tokitai_set(expected);
}
template <thread_scope scope, class Completion>
inline void init(barrier<scope, Completion>* made, ptrdiff_t expected, Completion) {
  made->tokitai_set(expected);
}

template <class Size, thread_scope scope, class Completion>
inline void memcpy_async(void* to, const void* from, Size bytes, barrier<scope, Completion>&) {
  tokitai::copy_later(to, from, size_t(bytes), 0, true);
}
template <class Group, class Size, thread_scope scope, class Completion>
inline void memcpy_async(const Group& group, void* to, const void* from, Size bytes,
                         barrier<scope, Completion>&) {
  tokitai::copy_share(group, to, from, size_t(bytes), true);
}

// Stages of copies of one thread. Those of a block would need a barrier for each stage.
template <thread_scope scope>
class pipeline {
  static_assert(scope == thread_scope_thread,
                "a pipeline of more than a thread is not known to the cpu device: choose another device");

 public:
  void producer_acquire() const {}
  void producer_commit() const { tokitai::commit_copies(); }
  void consumer_wait() const {
    const size_t waiting = tokitai::own_copies().batches.size();
    tokitai::wait_for_copies(waiting ? waiting - 1 : 0);
  }
  void consumer_release() const {}
  bool quit() const { return true; }
};
inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <unsigned left, thread_scope scope>
inline void pipeline_consumer_wait_prior(pipeline<scope>&) {
  tokitai::wait_for_copies(left);
}
template <class Size, thread_scope scope>
inline void memcpy_async(void* to, const void* from, Size bytes, pipeline<scope>&) {
  tokitai::copy_later(to, from, size_t(bytes), 0);
}
template <class Group, class Size, thread_scope scope>
inline void memcpy_async(const Group& group, void* to, const void* from, Size bytes, pipeline<scope>&) {
  tokitai::copy_share(group, to, from, size_t(bytes), false);
}

}  // namespace cuda

// The same without C++: copies of 4, 8 or 16 bytes to shared memory, of which `zeros` at the end are none.
inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
  assert((bytes == 4 || bytes == 8 || bytes == 16) && zeros <= bytes);
  assert(size_t(to) % bytes == 0 && size_t(from) % bytes == 0);
  tokitai::copy_later(to, from, bytes, zeros);
}
inline void __pipeline_commit() { tokitai::commit_copies(); }
inline void __pipeline_wait_prior(size_t left) { tokitai::wait_for_copies(left); }

namespace cooperative_groups {

// A batch of each call; `wait` is for all threads of the group.
template <class Group, class Size>
inline void memcpy_async(const Group& group, void* to, const void* from, Size bytes) {
  tokitai::copy_share(group, to, from, size_t(bytes), false);
  tokitai::commit_copies();
}
template <class Group>
inline void wait(const Group& group, TOKITAI_HERE) {
  tokitai::wait_for_copies(0);
  group.sync(file, line);
}
template <unsigned left, class Group>
inline void wait_prior(const Group& group, TOKITAI_HERE) {
  tokitai::wait_for_copies(left);
  group.sync(file, line);
}

}  // namespace cooperative_groups
