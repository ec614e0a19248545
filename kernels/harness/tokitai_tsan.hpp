// The functions that compilers call for -fsanitize=thread, and the C library's that copy memory.
#pragma once

#include "tokitai_blocks.hpp"

namespace tokitai {

// A thread that reads one place by one instruction again and again, and finds the same there, waits.
inline void before_poll(const void* address, size_t size, const void* pc) {
  if (!watched_now() || order.stated || size > 8 || on_own_stack(address)) return;
  if (!area_of(static_cast<const unsigned char*>(address))) return;
  const unsigned thread = linear_thread();
  auto& latest = accesses.latest_look[thread];
  uint64_t value = 0;
  memcpy(&value, address, size);
  const bool again = latest.pc == pc && latest.address == address && latest.value == value;
  latest = {pc, address, value};
  if (again) polled(address, false, {nullptr, 0}, pc);
}

}  // namespace tokitai

#define TOKITAI_CALLER \
  __builtin_return_address(0), static_cast<void* const*>(__builtin_frame_address(0))
#define TOKITAI_ACCESS(NAME, SIZE, WRITES) \
  void NAME(void* address) {                                                     \
    if (!WRITES) tokitai::before_poll(address, SIZE, __builtin_return_address(0)); \
    tokitai::on_access(address, SIZE, WRITES, TOKITAI_CALLER);                   \
  }
#define TOKITAI_VOLATILE(NAME, SIZE, WRITES)                                     \
  void NAME(void* address) {                                                     \
    if (!WRITES) tokitai::before_poll(address, SIZE, __builtin_return_address(0)); \
    tokitai::on_volatile(address, SIZE, WRITES, TOKITAI_CALLER);                 \
  }
#define TOKITAI_ACCESSES(SIZE)                               \
  TOKITAI_ACCESS(__tsan_read##SIZE, SIZE, false)             \
  TOKITAI_ACCESS(__tsan_write##SIZE, SIZE, true)             \
  TOKITAI_ACCESS(__tsan_unaligned_read##SIZE, SIZE, false)   \
  TOKITAI_ACCESS(__tsan_unaligned_write##SIZE, SIZE, true)   \
  TOKITAI_VOLATILE(__tsan_volatile_read##SIZE, SIZE, false)  \
  TOKITAI_VOLATILE(__tsan_volatile_write##SIZE, SIZE, true)  \
  TOKITAI_VOLATILE(__tsan_unaligned_volatile_read##SIZE, SIZE, false) \
  TOKITAI_VOLATILE(__tsan_unaligned_volatile_write##SIZE, SIZE, true)
// An operation that reads its place, and writes it unless it compares in vain.
#define TOKITAI_ATOMICALLY(T, READS, WRITES, SWAPS, CHANGES)                                    \
  tokitai::before_poll(const_cast<const T*>(address), sizeof(T), __builtin_return_address(0));  \
  tokitai::on_atomic(const_cast<const T*>(address), sizeof(T),                                  \
                     {READS, WRITES, SWAPS, CHANGES, order, tokitai::Scope::system}, TOKITAI_CALLER);
#define TOKITAI_FETCH(NAME, T, EXPRESSION)          \
  T NAME(volatile T* address, T value, int order) { \
    auto changes = [=]() mutable {                  \
      volatile T copy = *address;                   \
      address = &copy;                              \
      const T before = EXPRESSION;                  \
      return before != T(copy);                     \
    };                                              \
    TOKITAI_ATOMICALLY(T, true, true, false, changes()) \
    return EXPRESSION;                              \
  }
#define TOKITAI_SWAP(NAME, T, EXPECTED, WANTED, RESULT)                          \
  RESULT NAME(volatile T* address, EXPECTED expected, T value, int order, int) { \
    TOKITAI_ATOMICALLY(T, true, *address == WANTED, true, value != WANTED)       \
    return tokitai_swap<T>(address, expected, value);                            \
  }
#define TOKITAI_ATOMICS(BITS, T)                                              \
  T __tsan_atomic##BITS##_load(const volatile T* address, int order) {        \
    TOKITAI_ATOMICALLY(T, true, false, false, false)                          \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                        \
  }                                                                           \
  void __tsan_atomic##BITS##_store(volatile T* address, T value, int order) { \
    TOKITAI_ATOMICALLY(T, false, true, false, true)                           \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                       \
  }                                                                           \
  TOKITAI_FETCH(__tsan_atomic##BITS##_exchange, T,                            \
                __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST))        \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_add, T,                           \
                __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST))         \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_sub, T,                           \
                __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST))         \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_and, T,                           \
                __atomic_fetch_and(address, value, __ATOMIC_SEQ_CST))         \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_or, T,                            \
                __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST))          \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_xor, T,                           \
                __atomic_fetch_xor(address, value, __ATOMIC_SEQ_CST))         \
  TOKITAI_FETCH(__tsan_atomic##BITS##_fetch_nand, T,                          \
                __atomic_fetch_nand(address, value, __ATOMIC_SEQ_CST))        \
  TOKITAI_SWAP(__tsan_atomic##BITS##_compare_exchange_strong, T, T*, *expected, int) \
  TOKITAI_SWAP(__tsan_atomic##BITS##_compare_exchange_weak, T, T*, *expected, int)   \
  TOKITAI_SWAP(__tsan_atomic##BITS##_compare_exchange_val, T, T, expected, T)

template <class T>
int tokitai_swap(volatile T* address, T* expected, T value) {
  return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}
template <class T>
T tokitai_swap(volatile T* address, T expected, T value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

extern "C" {
TOKITAI_ACCESSES(1)
TOKITAI_ACCESSES(2)
TOKITAI_ACCESSES(4)
TOKITAI_ACCESSES(8)
TOKITAI_ACCESSES(16)
TOKITAI_ATOMICS(8, uint8_t)
TOKITAI_ATOMICS(16, uint16_t)
TOKITAI_ATOMICS(32, uint32_t)
TOKITAI_ATOMICS(64, uint64_t)
void __tsan_read_range(void* address, size_t size) {
  tokitai::on_access(address, size, false, TOKITAI_CALLER);
}
void __tsan_write_range(void* address, size_t size) {
  tokitai::on_access(address, size, true, TOKITAI_CALLER);
}
// Clang's names for the C library's functions, and what a unit of kernels calls where g++ compiles it
// (tokitai_kernel.hpp).
#define TOKITAI_COPY(PREFIX, NAME)                                          \
  void* PREFIX##NAME(void* to, const void* from, size_t size) {             \
    tokitai::on_copy(to, from, size, TOKITAI_CALLER);                       \
    return NAME(to, from, size);                                            \
  }
#define TOKITAI_SET(PREFIX)                                                 \
  void* PREFIX##memset(void* to, int value, size_t size) {                  \
    tokitai::on_set(to, size, TOKITAI_CALLER);                              \
    return memset(to, value, size);                                         \
  }
TOKITAI_COPY(__tsan_, memcpy)
TOKITAI_COPY(__tsan_, memmove)
TOKITAI_COPY(tokitai_watched_, memcpy)
TOKITAI_COPY(tokitai_watched_, memmove)
TOKITAI_SET(__tsan_)
TOKITAI_SET(tokitai_watched_)
void __tsan_atomic_thread_fence(int order) {
  tokitai::on_fence(order);
  if (order != __ATOMIC_RELAXED) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
}
