// cuda::barrier of a block, and copies that end with its phase.
#pragma once

#include <hip/hip_cooperative_groups.h>

#include "async_copies.hpp"
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

  arrival_token arrive(ptrdiff_t update = 1) {
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
  void wait(arrival_token&& token, TOKITAI_HERE) const { tokitai_wait(token.phase + 1, file, line); }
  bool try_wait(arrival_token&& token) const {
    auto* self = const_cast<barrier*>(this);
    const bool ended = tokitai::hip_atomic_load(&self->phase_, __ATOMIC_ACQUIRE, of_block) != token.phase;
    if (ended) self->tokitai_ended();
    return ended;
  }
  void arrive_and_wait(TOKITAI_HERE) { wait(arrive(), file, line); }
  void arrive_and_drop() {
    tokitai::hip_atomic_fetch_sub(&expected_, 1u, __ATOMIC_ACQ_REL, of_block);
    (void)arrive();
  }
  // Waits until so many phases have ended; at most one of those that a thread waits for is open.
  void tokitai_wait(unsigned phases, TOKITAI_HERE) const {
    auto* self = const_cast<barrier*>(this);
    while (int(tokitai::hip_atomic_load(&self->phase_, __ATOMIC_ACQUIRE, of_block) - phases) < 0)
      tokitai::park(this, TOKITAI_SITE);
    self->tokitai_ended();
  }
  // What all have done comes before, and so do the copies that the phase ends, which land here at the latest.
  void tokitai_ended() {
    tokitai::hip_atomic_load(&left_, __ATOMIC_ACQUIRE, of_block);
    tokitai::hip_atomic_load(&landed_, __ATOMIC_ACQUIRE, of_block);
    if (tokitai::land_bound_copies(this)) tokitai::hip_atomic_fetch_add(&landed_, 1u, __ATOMIC_RELEASE, of_block);
  }
  void tokitai_set(ptrdiff_t expected) {
    __atomic_store_n(&expected_, unsigned(expected), __ATOMIC_SEQ_CST);
    __atomic_store_n(&left_, unsigned(expected), __ATOMIC_SEQ_CST);
    __atomic_store_n(&phase_, 0u, __ATOMIC_SEQ_CST);
    __atomic_store_n(&landed_, 0u, __ATOMIC_SEQ_CST);
  }

 private:
  unsigned expected_, left_, phase_;
  unsigned landed_;  // how often copies have
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
inline void memcpy_async(void* to, const void* from, Size bytes, barrier<scope, Completion>& ends) {
  tokitai::copy_later(to, from, size_t(bytes), 0, &ends);
}
template <class Group, class Size, thread_scope scope, class Completion>
inline void memcpy_async(const Group& group, void* to, const void* from, Size bytes,
                         barrier<scope, Completion>& ends) {
  tokitai::copy_share(group, to, from, size_t(bytes), &ends);
}

}  // namespace cuda
