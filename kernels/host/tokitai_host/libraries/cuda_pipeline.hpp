// cuda::pipeline of a thread and of a block, and the copies of cooperative groups.
#pragma once

#include "cuda_barrier.hpp"

namespace cuda {

enum class pipeline_role { producer, consumer };

// What the threads of a pipeline share: for each stage a barrier of those that fill it, and of those that
// use it up.
template <thread_scope scope, unsigned char stages>
struct pipeline_shared_state {
  static_assert(scope == thread_scope_block || scope == thread_scope_thread,
                "a pipeline of more than a block is not known to the cpu device: choose another device");
  barrier<thread_scope_block> tokitai_filled[stages], tokitai_used[stages];
  unsigned tokitai_producers;
};

// Stages that a thread passes: a stage is filled again when all consumers have released it, and used when
// all producers have committed it. A thread of a role that a pipeline of a block does not give it calls
// nothing of the other.
template <thread_scope scope>
class pipeline {
  static_assert(scope == thread_scope_block,
                "a pipeline of more than a block is not known to the cpu device: choose another device");

 public:
  pipeline(barrier<thread_scope_block>* filled, barrier<thread_scope_block>* used, unsigned stages,
           bool produces, bool consumes)
      : filled_(filled), used_(used), stages_(stages), produces_(produces), consumes_(consumes) {}
  pipeline(pipeline&& other) : pipeline(other.filled_, other.used_, other.stages_, other.produces_, other.consumes_) {
    acquired_ = other.acquired_, committed_ = other.committed_, released_ = other.released_;
    other.stages_ = 0;
  }
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;
  ~pipeline() { quit(); }

  void producer_acquire(TOKITAI_HERE) {
    used_[acquired_ % stages_].tokitai_wait(acquired_ / stages_, file, line);
    acquired_++;
  }
  void producer_commit() { (void)filled_[committed_++ % stages_].arrive(); }
  void consumer_wait(TOKITAI_HERE) {
    filled_[released_ % stages_].tokitai_wait(released_ / stages_ + 1, file, line);
  }
  void consumer_release() { (void)used_[released_++ % stages_].arrive(); }
  // Whose phase ends the copies of the stage that is being filled.
  const void* tokitai_barrier() const { return &filled_[committed_ % stages_]; }
  // The others go on without this thread.
  bool quit() {
    for (unsigned stage = 0; stage < stages_; stage++) {
      if (produces_) filled_[stage].arrive_and_drop();
      if (consumes_) used_[stage].arrive_and_drop();
    }
    return std::exchange(stages_, 0) != 0;
  }

 private:
  barrier<thread_scope_block>*filled_, *used_;
  unsigned stages_;
  bool produces_, consumes_;
  unsigned acquired_ = 0, committed_ = 0, released_ = 0;
};
template <>
class pipeline<thread_scope_thread> {
 public:
  void producer_acquire() const {}
  void producer_commit() const { tokitai::commit_copies(); }
  void consumer_wait() const {
    const size_t waiting = tokitai::own_copies().batches.size();
    tokitai::wait_for_copies(waiting ? waiting - 1 : 0);
  }
  void consumer_release() const {}
  const void* tokitai_barrier() const { return nullptr; }
  bool quit() const { return true; }
};

namespace tokitai_detail {
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> made_pipeline(const Group& group, pipeline_shared_state<scope, stages>* shared,
                                     size_t producers, bool all, bool produces) {
  const size_t threads = group.size();
  if (group.thread_rank() == 0)
    for (unsigned stage = 0; stage < stages; stage++) {
      init(&shared->tokitai_filled[stage], ptrdiff_t(producers));
      init(&shared->tokitai_used[stage], ptrdiff_t(all ? threads : threads - producers));
    }
  group.sync();
  return pipeline<scope>(shared->tokitai_filled, shared->tokitai_used, stages, all || produces, all || !produces);
}
}  // namespace tokitai_detail

inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* shared) {
  if constexpr (scope == thread_scope_thread)
    return {};
  else
    return tokitai_detail::made_pipeline(group, shared, group.size(), true, true);
}
// The first threads of the group produce, the others consume.
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* shared,
                                     size_t producers) {
  return tokitai_detail::made_pipeline(group, shared, producers, false, group.thread_rank() < producers);
}
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* shared,
                                     pipeline_role role) {
  if (group.thread_rank() == 0) __atomic_store_n(&shared->tokitai_producers, 0u, __ATOMIC_SEQ_CST);
  group.sync();
  const bool produces = role == pipeline_role::producer;
  if (produces) atomicAdd(&shared->tokitai_producers, 1u);
  group.sync();
  return tokitai_detail::made_pipeline(group, shared, atomicAdd(&shared->tokitai_producers, 0u), false, produces);
}
template <unsigned left, thread_scope scope>
inline void pipeline_consumer_wait_prior(pipeline<scope>&) {
  static_assert(scope == thread_scope_thread, "only a thread's own pipeline knows its prior stages");
  tokitai::wait_for_copies(left);
}
template <class Size, thread_scope scope>
inline void memcpy_async(void* to, const void* from, Size bytes, pipeline<scope>& stages) {
  tokitai::copy_later(to, from, size_t(bytes), 0, stages.tokitai_barrier());
}
template <class Group, class Size, thread_scope scope>
inline void memcpy_async(const Group& group, void* to, const void* from, Size bytes, pipeline<scope>& stages) {
  tokitai::copy_share(group, to, from, size_t(bytes), stages.tokitai_barrier());
}

}  // namespace cuda

namespace cooperative_groups {

// A batch of each call; `wait` is for all threads of the group.
template <class Group, class Size>
inline void memcpy_async(const Group& group, void* to, const void* from, Size bytes) {
  tokitai::copy_share(group, to, from, size_t(bytes));
  tokitai::commit_copies();
}
// The same, with the room and what there is in elements.
template <class Group, class T, class Room, class Count>
inline void memcpy_async(const Group& group, T* to, Room room, const T* from, Count count) {
  const size_t least = size_t(room) < size_t(count) ? size_t(room) : size_t(count);
  memcpy_async(group, static_cast<void*>(to), static_cast<const void*>(from), least * sizeof(T));
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
