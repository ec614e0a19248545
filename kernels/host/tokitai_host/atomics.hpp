// Atomic functions of every width. Relaxed, as on the device; what they return is the old value. Those that
// change nothing again and again wait for others (block.hpp).
#pragma once

#include "language.hpp"
#include "memory_order.hpp"

#ifdef TOKITAI_DEVICE_GFX
#define TOKITAI_ATOMIC_HERE
#define TOKITAI_ATOMIC_PASSED
#define TOKITAI_POLLED(address, changed) ((void)0)
#else
#include "waiting.hpp"
#define TOKITAI_ATOMIC_HERE , const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define TOKITAI_ATOMIC_PASSED , file, line
#define TOKITAI_POLLED(address, changed) tokitai::polled(address, changed, tokitai::Site{file, line})
#endif

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

// `CHANGED`: whether another value is left; `EXPRESSION`: what `old` is changed into.
#define TOKITAI_ATOMIC_FETCH(NAME, BUILTIN, T, CHANGED)                                           \
  TOKITAI_OURS T tokitai_##NAME(tokitai::Stated as, T* address, T value TOKITAI_ATOMIC_HERE) {    \
    tokitai::expect_aligned(address);                                                             \
    tokitai::used(value);                                                                         \
    T old;                                                                                        \
    {                                                                                             \
      tokitai::AtomicScope of(as);                                                                \
      (void)of;                                                                                   \
      old = BUILTIN(address, value, __ATOMIC_RELAXED);                                            \
    }                                                                                             \
    TOKITAI_POLLED(address, CHANGED);                                                             \
    return old;                                                                                   \
  }                                                                                               \
  TOKITAI_ATOMIC_FORMS(NAME, T)

#define TOKITAI_ATOMIC_UPDATE(NAME, T, BITS, EXPRESSION)                                          \
  TOKITAI_OURS T tokitai_##NAME(tokitai::Stated as, T* address, T value TOKITAI_ATOMIC_HERE) {    \
    T old;                                                                                        \
    {                                                                                             \
      tokitai::AtomicScope of(as);                                                                \
      (void)of;                                                                                   \
      old = tokitai::atomic_update<BITS>(address,                                                 \
                                         [value](T old) -> T { return EXPRESSION; });             \
    }                                                                                             \
    const T now = EXPRESSION;                                                                     \
    TOKITAI_POLLED(address, memcmp(&now, &old, sizeof now) != 0);                                 \
    return old;                                                                                   \
  }                                                                                               \
  TOKITAI_ATOMIC_FORMS(NAME, T)

#define TOKITAI_ATOMIC_FORMS(NAME, T)                                                             \
  TOKITAI_OURS T NAME(T* address, T value TOKITAI_ATOMIC_HERE) {                                  \
    return tokitai_##NAME(tokitai::Scope::device, address, value TOKITAI_ATOMIC_PASSED);          \
  }                                                                                               \
  TOKITAI_OURS T NAME##_system(T* address, T value TOKITAI_ATOMIC_HERE) {                         \
    return tokitai_##NAME(tokitai::Scope::system, address, value TOKITAI_ATOMIC_PASSED);          \
  }                                                                                               \
  TOKITAI_OURS T NAME##_block(T* address, T value TOKITAI_ATOMIC_HERE) {                          \
    return tokitai_##NAME(tokitai::Scope::block, address, value TOKITAI_ATOMIC_PASSED);           \
  }

#define TOKITAI_ATOMIC_INTEGER(T, BITS)                                                           \
  TOKITAI_ATOMIC_FETCH(atomicAdd, __atomic_fetch_add, T, value != 0)                              \
  TOKITAI_ATOMIC_FETCH(atomicSub, __atomic_fetch_sub, T, value != 0)                              \
  TOKITAI_ATOMIC_FETCH(atomicAnd, __atomic_fetch_and, T, (old & value) != old)                    \
  TOKITAI_ATOMIC_FETCH(atomicOr, __atomic_fetch_or, T, (old | value) != old)                      \
  TOKITAI_ATOMIC_FETCH(atomicXor, __atomic_fetch_xor, T, value != 0)                              \
  TOKITAI_ATOMIC_FETCH(atomicExch, __atomic_exchange_n, T, old != value)                          \
  TOKITAI_ATOMIC_UPDATE(atomicMin, T, BITS, value < old ? value : old)                            \
  TOKITAI_ATOMIC_UPDATE(atomicMax, T, BITS, old < value ? value : old)                            \
  TOKITAI_ATOMIC_CAS(T, BITS)

#define TOKITAI_ATOMIC_CAS(T, BITS)                                                               \
  TOKITAI_OURS T tokitai_atomicCAS(tokitai::Stated as, T* address, T compare,                     \
                                   T value TOKITAI_ATOMIC_HERE) {                                 \
    tokitai::expect_aligned(address);                                                             \
    tokitai::used(value);                                                                         \
    bool swapped;                                                                                 \
    {                                                                                             \
      tokitai::AtomicScope of(as);                                                                \
      (void)of;                                                                                   \
      swapped = __atomic_compare_exchange(address, &compare, &value, false, __ATOMIC_RELAXED,     \
                                          __ATOMIC_RELAXED);                                      \
    }                                                                                             \
    (void)swapped;                                                                                \
    TOKITAI_POLLED(address, swapped && memcmp(&compare, &value, sizeof value) != 0);              \
    return compare;                                                                               \
  }                                                                                               \
  TOKITAI_OURS T atomicCAS(T* address, T compare, T value TOKITAI_ATOMIC_HERE) {                  \
    return tokitai_atomicCAS(tokitai::Scope::device, address, compare,                            \
                             value TOKITAI_ATOMIC_PASSED);                                        \
  }                                                                                               \
  TOKITAI_OURS T atomicCAS_system(T* address, T compare, T value TOKITAI_ATOMIC_HERE) {           \
    return tokitai_atomicCAS(tokitai::Scope::system, address, compare,                            \
                             value TOKITAI_ATOMIC_PASSED);                                        \
  }                                                                                               \
  TOKITAI_OURS T atomicCAS_block(T* address, T compare, T value TOKITAI_ATOMIC_HERE) {            \
    return tokitai_atomicCAS(tokitai::Scope::block, address, compare,                             \
                             value TOKITAI_ATOMIC_PASSED);                                        \
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
