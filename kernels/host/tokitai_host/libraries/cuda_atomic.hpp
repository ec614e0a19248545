// cuda::atomic and cuda::atomic_ref. On the host the strongest order serves for every one; the watch is
// told the order and the scope that are stated, as of HIP's atomics.
#pragma once

#include "cuda_std.hpp"

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;

// HIP's number of a scope.
constexpr int tokitai_scope(thread_scope scope) {
  return scope == thread_scope_system   ? __HIP_MEMORY_SCOPE_SYSTEM
         : scope == thread_scope_device ? __HIP_MEMORY_SCOPE_AGENT
         : scope == thread_scope_block  ? __HIP_MEMORY_SCOPE_WORKGROUP
                                        : __HIP_MEMORY_SCOPE_SINGLETHREAD;
}
inline void atomic_thread_fence(memory_order order, thread_scope scope = thread_scope_system) {
  tokitai::fence(tokitai::hip_scope(tokitai_scope(scope)), int(order));
}

// Operations on an object of which `Self` knows the address.
template <class Self, class T, thread_scope scope>
class atomic_operations {
 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = sizeof(T) <= 8;
  bool is_lock_free() const { return is_always_lock_free; }
  T load(memory_order order = memory_order_seq_cst, TOKITAI_HERE) const {
    return tokitai::hip_atomic_load(at(), int(order), tokitai_scope(scope), file, line);
  }
  void store(T value, memory_order order = memory_order_seq_cst) const {
    tokitai::hip_atomic_store(at(), value, int(order), tokitai_scope(scope));
  }
  T exchange(T value, memory_order order = memory_order_seq_cst, TOKITAI_HERE) const {
    return tokitai::hip_atomic_exchange(at(), value, int(order), tokitai_scope(scope), file, line);
  }
  bool compare_exchange_strong(T& expected, T value, memory_order order, memory_order failed,
                               TOKITAI_HERE) const {
    return tokitai::hip_atomic_compare_exchange(at(), &expected, value, int(order), int(failed),
                                                tokitai_scope(scope), file, line);
  }
  bool compare_exchange_strong(T& expected, T value, memory_order order = memory_order_seq_cst,
                               TOKITAI_HERE) const {
    return compare_exchange_strong(expected, value, order, order, file, line);
  }
  bool compare_exchange_weak(T& expected, T value, memory_order order, memory_order failed,
                             TOKITAI_HERE) const {
    return compare_exchange_strong(expected, value, order, failed, file, line);
  }
  bool compare_exchange_weak(T& expected, T value, memory_order order = memory_order_seq_cst,
                             TOKITAI_HERE) const {
    return compare_exchange_strong(expected, value, order, order, file, line);
  }
#define TOKITAI_FETCH(NAME)                                                                       \
  T fetch_##NAME(T value, memory_order order = memory_order_seq_cst, TOKITAI_HERE) const {        \
    return tokitai::hip_atomic_fetch_##NAME(at(), value, int(order), tokitai_scope(scope),        \
                                            file, line);                                          \
  }
  TOKITAI_FETCH(add)
  TOKITAI_FETCH(sub)
  TOKITAI_FETCH(and)
  TOKITAI_FETCH(or)
  TOKITAI_FETCH(xor)
  TOKITAI_FETCH(min)
  TOKITAI_FETCH(max)
#undef TOKITAI_FETCH
  operator T() const { return load(); }
  T operator=(T value) const {
    store(value);
    return value;
  }
  T operator++() const { return fetch_add(T(1)) + T(1); }
  T operator++(int) const { return fetch_add(T(1)); }
  T operator--() const { return fetch_sub(T(1)) - T(1); }
  T operator--(int) const { return fetch_sub(T(1)); }
  T operator+=(T value) const { return fetch_add(value) + value; }
  T operator-=(T value) const { return fetch_sub(value) - value; }
  T operator&=(T value) const { return fetch_and(value) & value; }
  T operator|=(T value) const { return fetch_or(value) | value; }
  T operator^=(T value) const { return fetch_xor(value) ^ value; }

 private:
  T* at() const { return static_cast<const Self*>(this)->tokitai_address(); }
};

template <class T, thread_scope scope = thread_scope_system>
class atomic_ref : public atomic_operations<atomic_ref<T, scope>, T, scope> {
 public:
  static constexpr size_t required_alignment = sizeof(T);
  explicit atomic_ref(T& object) : object_(&object) {}
  atomic_ref(const atomic_ref&) = default;
  using atomic_operations<atomic_ref, T, scope>::operator=;
  T* tokitai_address() const { return object_; }

 private:
  T* object_;
};

template <class T, thread_scope scope = thread_scope_system>
class atomic : public atomic_operations<atomic<T, scope>, T, scope> {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  using atomic_operations<atomic, T, scope>::operator=;
  T* tokitai_address() const { return const_cast<T*>(&value_); }

 private:
  alignas(sizeof(T)) T value_;
};

}  // namespace cuda
