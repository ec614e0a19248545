// What plain PTX instructions do (NVIDIA, PTX ISA), for inline assembly that the build has translated.
#pragma once

#include <functional>
#include <limits>

#include "builtins.hpp"
#include "libraries/async_copies.hpp"
#include "numbers/bfloat16.hpp"
#include "numbers/half.hpp"

namespace tokitai {
namespace ptx {

// Registers hold bits: a value as another type of its size, or as its low bits.
template <class To, class From>
inline To as(From value) {
  if constexpr (std::is_same<To, From>::value) {
    return value;
  } else if constexpr (std::is_integral<To>::value && std::is_integral<From>::value) {
    return To(value);
  } else {
    To result = To();
    memcpy(&result, &value, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
    return result;
  }
}
// An operand as the register of its constraint, and back.
template <class To, class From>
inline To given(From value) {
  if constexpr (std::is_pointer<From>::value)
    return To(reinterpret_cast<uintptr_t>(value));
  else if constexpr (std::is_arithmetic<From>::value || std::is_enum<From>::value)
    return To(value);
  else
    return as<To>(value);
}
template <class To, class From>
inline void take(To& to, From value) {
  if constexpr (std::is_pointer<To>::value)
    to = reinterpret_cast<To>(uintptr_t(value));
  else if constexpr (std::is_arithmetic<To>::value && std::is_integral<To>::value == std::is_integral<From>::value)
    to = To(value);
  else
    to = as<To>(value);
}

// A function of each number of 16 bits that words hold.
template <class Number, class Word, class Function, class... Words>
inline Word on_lanes(Function function, Words... words) {
  Word result = 0;
  for (unsigned shift = 0; shift < 8 * sizeof(Word); shift += 16) {
    const Number lane = function(as<Number>((unsigned short)(words >> shift))...);
    result |= Word(Word(as<unsigned short>(lane)) << shift);
  }
  return result;
}
template <class Number>
inline Number not_below_0(Number x) {
  return float(x) < 0 ? Number(0.0f) : x;
}
// The 19 bits of a float that matrix units read: to nearest, a tie away from 0 or to even.
template <bool away>
inline unsigned tf32_bits(float x) {
  const unsigned bits = __float_as_uint(x), more = away ? 0x1000 : 0xfff + (bits >> 13 & 1);
  return (x - x == 0 ? bits + more : bits) & 0xffffe000u;
}

inline float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }
inline double flushed(double x) { return x; }
template <class T>
inline T within_one(T x) {
  return x > T(1) ? T(1) : x > T(0) ? x : T(0);  // NaN is 0
}
template <class T>
inline T quotient(T a, T b) {
  return a / b;
}
// Of whole numbers; the least of them by -1 wraps around.
template <class T>
inline T divided(T a, T b) {
  if (std::is_signed<T>::value && b == T(-1)) return T(0ull - (unsigned long long)a);
  return T(a / b);
}
template <class T>
inline T remainder(T a, T b) {
  return std::is_signed<T>::value && b == T(-1) ? T(0) : T(a % b);
}
template <class T>
inline T least(T a, T b) {
  if constexpr (std::is_floating_point<T>::value) return fmin(a, b);
  return b < a ? b : a;
}
template <class T>
inline T most(T a, T b) {
  if constexpr (std::is_floating_point<T>::value) return fmax(a, b);
  return a < b ? b : a;
}
template <class T>
inline T high_product(T a, T b) {
  if constexpr (sizeof(T) == 8)
    return T(std::is_signed<T>::value ? (__int128)a * b >> 64
                                      : (__int128)((unsigned __int128)a * b >> 64));
  else
    return T(((long long)a * (long long)b) >> (8 * sizeof(T)));
}
template <class T>
inline T left_shift(T a, unsigned by) {
  return by < 8 * sizeof(T) ? T(a << by) : T(0);
}
template <class T>
inline T right_shift(T a, unsigned by) {
  constexpr unsigned bits = 8 * sizeof(T);
  return by < bits ? T(a >> by) : a < T(0) ? T(-1) : T(0);
}
inline unsigned lop3(unsigned a, unsigned b, unsigned c, unsigned table) {
  unsigned result = 0;
  for (unsigned row = 0; row < 8; row++)
    if (table >> row & 1)
      result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
}
// The default mode: four bytes of eight, or (8 in the selector) the sign of each.
inline unsigned permuted(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i++) {
    const unsigned chosen = selector >> 4 * i & 15;
    unsigned byte = unsigned(bytes >> 8 * (chosen & 7)) & 0xff;
    if (chosen & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
// A field of bits, of which those behind the word's end are its sign (0 of an unsigned one).
template <class T>
inline T field_of(T a, unsigned position, unsigned length) {
  constexpr unsigned bits = 8 * sizeof(T);
  position &= 0xff, length &= 0xff;
  unsigned sign = 0;
  if (std::is_signed<T>::value && length) {
    const unsigned last = position + length - 1 < bits - 1 ? position + length - 1 : bits - 1;
    sign = unsigned(a >> last) & 1;
  }
  T result = 0;
  for (unsigned i = 0; i < bits; i++) {
    const bool bit = i < length && position + i < bits ? (a >> (position + i)) & 1 : sign;
    if (bit) result = T(result | T(T(1) << i));
  }
  return result;
}
template <class T>
inline T with_field(T field, T whole, unsigned position, unsigned length) {
  constexpr unsigned bits = 8 * sizeof(T);
  position &= 0xff, length &= 0xff;
  for (unsigned i = 0; i < length && position + i < bits; i++) {
    const T bit = T(T(1) << (position + i));
    whole = T((whole & ~bit) | (field >> i & 1 ? bit : 0));
  }
  return whole;
}
// A whole number cut to the ends of a type.
template <class To, class From>
inline To saturated_to(From value) {
  const __int128 wide = value, low = std::numeric_limits<To>::lowest(), high = std::numeric_limits<To>::max();
  return To(wide < low ? low : wide > high ? high : wide);
}
inline const void* shared_at(unsigned long long address) { return __cvta_shared_to_generic(size_t(unsigned(address))); }
template <class T>
inline T* element(const void* address, long long offset) {
  return reinterpret_cast<T*>(static_cast<char*>(const_cast<void*>(address)) + offset);
}
// With a scope and an order; such accesses are atomic.
template <class T>
inline T ordered_load(const void* address, long long offset, Scope scope, int order, TOKITAI_HERE) {
  return hip_atomic_load(element<T>(address, offset), order, hip_number(scope), file, line);
}
template <class T>
inline void ordered_store(const void* address, long long offset, T value, Scope scope, int order) {
  hip_atomic_store(element<T>(address, offset), value, order, hip_number(scope));
}
// cp.async to shared memory; what `count` leaves out of the bytes is 0.
inline void copy_later(const void* to, long long to_offset, const void* from, long long from_offset, size_t bytes,
                       size_t count) {
  copy_word_later(element<char>(to, to_offset), element<char>(from, from_offset), bytes,
                  count < bytes ? bytes - count : 0);
}

}  // namespace ptx
}  // namespace tokitai
