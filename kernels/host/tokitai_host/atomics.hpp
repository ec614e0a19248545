// Atomic functions of every width. Relaxed, as on the device; what they return is the old value.
#pragma once

#include "language.hpp"
#include "sanitizers.hpp"

namespace tokitai {

#ifndef TOKITAI_DEVICE_GFX
[[noreturn]] void die_of_misaligned_atomic(const void* address, size_t bytes);  // the harness's

// Compilers check plain accesses by themselves, but not these.
template <class T>
inline void expect_aligned(const T* address) {
  if (__builtin_expect(reinterpret_cast<uintptr_t>(address) % sizeof(T) != 0, 0))
    die_of_misaligned_atomic(address, sizeof(T));
}
#endif

// Replaces *address by change(*address). `Bits` is the unsigned integer of T's size.
template <class Bits, class T, class Change>
inline T atomic_update(T* address, Change change) {
  static_assert(sizeof(Bits) == sizeof(T), "the compare-and-swap must be as wide as the value");
  expect_aligned(address);
  Bits* bits = reinterpret_cast<Bits*>(address);
  Bits old_bits = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    T old_value;
    memcpy(&old_value, &old_bits, sizeof(T));
    const T new_value = change(old_value);
    Bits new_bits;
    memcpy(&new_bits, &new_value, sizeof(T));
    used(new_bits);
    if (__atomic_compare_exchange_n(bits, &old_bits, new_bits, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      return old_value;
  }
}

}  // namespace tokitai

#define TOKITAI_ATOMIC_FETCH(NAME, BUILTIN, T)                                                    \
  TOKITAI_OURS T NAME(T* address, T value) {                                                      \
    tokitai::expect_aligned(address);                                                             \
    tokitai::used(value);                                                                         \
    return BUILTIN(address, value, __ATOMIC_RELAXED);                                             \
  }                                                                                               \
  TOKITAI_OURS T NAME##_system(T* address, T value) { return NAME(address, value); }              \
  TOKITAI_OURS T NAME##_block(T* address, T value) { return NAME(address, value); }

#define TOKITAI_ATOMIC_UPDATE(NAME, T, BITS, EXPRESSION)                                          \
  TOKITAI_OURS T NAME(T* address, T value) {                                                      \
    return tokitai::atomic_update<BITS>(address, [value](T old) -> T { return EXPRESSION; });     \
  }                                                                                               \
  TOKITAI_OURS T NAME##_system(T* address, T value) { return NAME(address, value); }              \
  TOKITAI_OURS T NAME##_block(T* address, T value) { return NAME(address, value); }

#define TOKITAI_ATOMIC_INTEGER(T, BITS)                                                           \
  TOKITAI_ATOMIC_FETCH(atomicAdd, __atomic_fetch_add, T)                                          \
  TOKITAI_ATOMIC_FETCH(atomicSub, __atomic_fetch_sub, T)                                          \
  TOKITAI_ATOMIC_FETCH(atomicAnd, __atomic_fetch_and, T)                                          \
  TOKITAI_ATOMIC_FETCH(atomicOr, __atomic_fetch_or, T)                                            \
  TOKITAI_ATOMIC_FETCH(atomicXor, __atomic_fetch_xor, T)                                          \
  TOKITAI_ATOMIC_FETCH(atomicExch, __atomic_exchange_n, T)                                        \
  TOKITAI_ATOMIC_UPDATE(atomicMin, T, BITS, value < old ? value : old)                            \
  TOKITAI_ATOMIC_UPDATE(atomicMax, T, BITS, old < value ? value : old)                            \
  TOKITAI_ATOMIC_CAS(T, BITS)

#define TOKITAI_ATOMIC_CAS(T, BITS)                                                               \
  TOKITAI_OURS T atomicCAS(T* address, T compare, T value) {                                      \
    tokitai::expect_aligned(address);                                                             \
    tokitai::used(value);                                                                         \
    __atomic_compare_exchange(address, &compare, &value, false, __ATOMIC_RELAXED,                 \
                              __ATOMIC_RELAXED);                                                  \
    return compare;                                                                               \
  }                                                                                               \
  TOKITAI_OURS T atomicCAS_system(T* address, T compare, T value) {                               \
    return atomicCAS(address, compare, value);                                                    \
  }                                                                                               \
  TOKITAI_OURS T atomicCAS_block(T* address, T compare, T value) {                                \
    return atomicCAS(address, compare, value);                                                    \
  }

// Minimum and maximum of floating-point values are fmin and fmax: a NaN loses against a number.
#define TOKITAI_ATOMIC_FLOAT(T, BITS, SUFFIX)                                                     \
  TOKITAI_ATOMIC_UPDATE(atomicAdd, T, BITS, old + value)                                          \
  TOKITAI_ATOMIC_UPDATE(atomicSub, T, BITS, old - value)                                          \
  TOKITAI_ATOMIC_UPDATE(atomicExch, T, BITS, (void(old), value))                                  \
  TOKITAI_ATOMIC_UPDATE(atomicMin, T, BITS, fmin##SUFFIX(old, value))                             \
  TOKITAI_ATOMIC_UPDATE(atomicMax, T, BITS, fmax##SUFFIX(old, value))                             \
  TOKITAI_ATOMIC_CAS(T, BITS)                                                                     \
  TOKITAI_OURS T unsafeAtomicAdd(T* address, T value) { return atomicAdd(address, value); }       \
  TOKITAI_OURS T safeAtomicAdd(T* address, T value) { return atomicAdd(address, value); }         \
  TOKITAI_OURS T unsafeAtomicMin(T* address, T value) { return atomicMin(address, value); }       \
  TOKITAI_OURS T unsafeAtomicMax(T* address, T value) { return atomicMax(address, value); }       \
  TOKITAI_OURS T atomicAddNoRet(T* address, T value) { return atomicAdd(address, value); }

TOKITAI_ATOMIC_INTEGER(int, unsigned)
TOKITAI_ATOMIC_INTEGER(unsigned, unsigned)
TOKITAI_ATOMIC_INTEGER(long, unsigned long)
TOKITAI_ATOMIC_INTEGER(unsigned long, unsigned long)
TOKITAI_ATOMIC_INTEGER(long long, unsigned long long)
TOKITAI_ATOMIC_INTEGER(unsigned long long, unsigned long long)
TOKITAI_ATOMIC_CAS(unsigned short, unsigned short)
TOKITAI_ATOMIC_FLOAT(float, unsigned, f)
TOKITAI_ATOMIC_FLOAT(double, unsigned long long, )

// Counting up to `value` and round to zero, and down from it.
TOKITAI_ATOMIC_UPDATE(atomicInc, unsigned, unsigned, old >= value ? 0 : old + 1)
TOKITAI_ATOMIC_UPDATE(atomicDec, unsigned, unsigned, old == 0 || old > value ? value : old - 1)

#undef TOKITAI_ATOMIC_INTEGER
#undef TOKITAI_ATOMIC_FLOAT
