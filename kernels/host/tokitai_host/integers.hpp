// Functions of integers, bits and conversions, the same on every device that these headers serve:
// nothing here rounds but a conversion.
#pragma once

#include <limits.h>

#include <type_traits>

#include "language.hpp"
#include "lanes_of_words.hpp"

// --- minimum and maximum ----------------------------------------------------------------------
#define TOKITAI_MIN_MAX(T)                                                                        \
  TOKITAI_OURS T min(T a, T b) { return b < a ? b : a; }                                          \
  TOKITAI_OURS T max(T a, T b) { return a < b ? b : a; }
TOKITAI_MIN_MAX(int)
TOKITAI_MIN_MAX(unsigned)
TOKITAI_MIN_MAX(long)
TOKITAI_MIN_MAX(unsigned long)
TOKITAI_MIN_MAX(long long)
TOKITAI_MIN_MAX(unsigned long long)
#undef TOKITAI_MIN_MAX
TOKITAI_OURS unsigned min(int a, unsigned b) { return min(unsigned(a), b); }
TOKITAI_OURS unsigned min(unsigned a, int b) { return min(a, unsigned(b)); }
TOKITAI_OURS unsigned max(int a, unsigned b) { return max(unsigned(a), b); }
TOKITAI_OURS unsigned max(unsigned a, int b) { return max(a, unsigned(b)); }
TOKITAI_OURS float min(float a, float b) { return fminf(a, b); }
TOKITAI_OURS float max(float a, float b) { return fmaxf(a, b); }
TOKITAI_OURS double min(double a, double b) { return fmin(a, b); }
TOKITAI_OURS double max(double a, double b) { return fmax(a, b); }
// Of two types as HIP has it: in double.
#define TOKITAI_MIN_MAX(NAME, FUNCTION)                                                           \
  template <class T, class U>                                                                     \
  inline typename std::enable_if<std::is_arithmetic<T>::value && std::is_arithmetic<U>::value &&  \
                                     !std::is_same<T, U>::value,                                  \
                                 double>::type NAME(T a, U b) {                                   \
    return FUNCTION(double(a), double(b));                                                        \
  }
TOKITAI_MIN_MAX(min, fmin)
TOKITAI_MIN_MAX(max, fmax)
#undef TOKITAI_MIN_MAX

// --- bits ---------------------------------------------------------------------------------------
TOKITAI_OURS int __popc(unsigned x) { return __builtin_popcount(x); }
TOKITAI_OURS int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
TOKITAI_OURS int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
TOKITAI_OURS int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
TOKITAI_OURS int __ffs(int x) { return __builtin_ffs(x); }
TOKITAI_OURS int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
TOKITAI_OURS int __ffsll(long long x) { return __builtin_ffsll(x); }
TOKITAI_OURS int __ffsll(unsigned long long x) { return __builtin_ffsll((long long)x); }
TOKITAI_OURS unsigned __brev(unsigned x) {
  x = __builtin_bswap32(x);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  return (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
}
TOKITAI_OURS unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
TOKITAI_OURS unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i++)
    result |= unsigned(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}
TOKITAI_OURS unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
TOKITAI_OURS unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) >> (shift & 31));
}
// Their shifts end at the whole word.
TOKITAI_OURS unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return unsigned((((unsigned long long)high << 32 | low) << (shift < 32 ? shift : 32)) >> 32);
}
TOKITAI_OURS unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) >> (shift < 32 ? shift : 32));
}
TOKITAI_OURS int __mul24(int x, int y) {
  return int(unsigned(int(unsigned(x) << 8) >> 8) * unsigned(int(unsigned(y) << 8) >> 8));
}
TOKITAI_OURS unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xffffffu) * (y & 0xffffffu);
}
TOKITAI_OURS int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
TOKITAI_OURS unsigned __umulhi(unsigned x, unsigned y) {
  return unsigned((unsigned long long)x * y >> 32);
}
TOKITAI_OURS long long __mul64hi(long long x, long long y) {
  return (long long)((__int128)x * y >> 64);
}
TOKITAI_OURS unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
TOKITAI_OURS unsigned __sad(int x, int y, unsigned z) {
  return (x > y ? unsigned(x) - unsigned(y) : unsigned(y) - unsigned(x)) + z;
}

// --- reinterpretation and conversion ------------------------------------------------------------
namespace tokitai {
template <class To, class From>
inline To reinterpret(From value) {
  static_assert(sizeof(To) == sizeof(From), "equal sizes");
  To result;
  memcpy(&result, &value, sizeof result);
  return result;
}
}  // namespace tokitai
TOKITAI_OURS int __float_as_int(float x) { return tokitai::reinterpret<int>(x); }
TOKITAI_OURS unsigned __float_as_uint(float x) { return tokitai::reinterpret<unsigned>(x); }
TOKITAI_OURS float __int_as_float(int x) { return tokitai::reinterpret<float>(x); }
TOKITAI_OURS float __uint_as_float(unsigned x) { return tokitai::reinterpret<float>(x); }
TOKITAI_OURS long long __double_as_longlong(double x) {
  return tokitai::reinterpret<long long>(x);
}
TOKITAI_OURS double __longlong_as_double(long long x) { return tokitai::reinterpret<double>(x); }
TOKITAI_OURS int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
TOKITAI_OURS int __double2loint(double x) { return int(__double_as_longlong(x)); }
TOKITAI_OURS double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      (long long)((unsigned long long)unsigned(high) << 32 | unsigned(low)));
}

// Float to integer saturates and takes a NaN to zero, as GPUs do; in C++ it would be undefined.
namespace tokitai {
template <class Integer, class Float>
inline Integer to_integer(Float x) {
  constexpr bool is_signed = Integer(-1) < Integer(0);
  constexpr int bits = int(sizeof(Integer) * CHAR_BIT) - is_signed;
  const Float above = Float(1ull << (bits - 1)) * 2;
  if (!(x == x)) return 0;
  const Integer largest = Integer(~0ull >> (64 - bits));
  if (x >= above) return largest;
  if (is_signed ? x < -above : x <= Float(-1))
    return is_signed ? Integer(-largest - 1) : Integer(0);
  return Integer(x);
}
}  // namespace tokitai
#define TOKITAI_TO_INTEGER(FROM, SHORT, TO, T)                                                    \
  TOKITAI_OURS T __##SHORT##2##TO##_rn(FROM x) { return tokitai::to_integer<T>(rint(x)); }        \
  TOKITAI_OURS T __##SHORT##2##TO##_rz(FROM x) { return tokitai::to_integer<T>(trunc(x)); }       \
  TOKITAI_OURS T __##SHORT##2##TO##_ru(FROM x) { return tokitai::to_integer<T>(ceil(x)); }        \
  TOKITAI_OURS T __##SHORT##2##TO##_rd(FROM x) { return tokitai::to_integer<T>(floor(x)); }
TOKITAI_TO_INTEGER(float, float, int, int)
TOKITAI_TO_INTEGER(float, float, uint, unsigned)
TOKITAI_TO_INTEGER(float, float, ll, long long)
TOKITAI_TO_INTEGER(float, float, ull, unsigned long long)
TOKITAI_TO_INTEGER(double, double, int, int)
TOKITAI_TO_INTEGER(double, double, uint, unsigned)
TOKITAI_TO_INTEGER(double, double, ll, long long)
TOKITAI_TO_INTEGER(double, double, ull, unsigned long long)
#undef TOKITAI_TO_INTEGER
TOKITAI_OURS float __int2float_rn(int x) { return float(x); }
TOKITAI_OURS float __uint2float_rn(unsigned x) { return float(x); }
TOKITAI_OURS float __ll2float_rn(long long x) { return float(x); }
TOKITAI_OURS float __ull2float_rn(unsigned long long x) { return float(x); }
TOKITAI_OURS double __int2double_rn(int x) { return x; }
TOKITAI_OURS double __uint2double_rn(unsigned x) { return x; }
TOKITAI_OURS double __ll2double_rn(long long x) { return double(x); }
TOKITAI_OURS double __ull2double_rn(unsigned long long x) { return double(x); }
TOKITAI_OURS float __double2float_rn(double x) { return float(x); }

// Averages, rounded down and (r) up, without overflow; and sums of absolute differences.
TOKITAI_OURS int __hadd(int x, int y) { return int(((long long)x + y) >> 1); }
TOKITAI_OURS int __rhadd(int x, int y) { return int(((long long)x + y + 1) >> 1); }
TOKITAI_OURS unsigned __uhadd(unsigned x, unsigned y) {
  return unsigned(((unsigned long long)x + y) >> 1);
}
TOKITAI_OURS unsigned __urhadd(unsigned x, unsigned y) {
  return unsigned(((unsigned long long)x + y + 1) >> 1);
}
TOKITAI_OURS unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return (x > y ? x - y : y - x) + z;
}
// A double that rounds to fewer digits as the whole number does: one that is not exact gets an odd last
// digit (round to odd; Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
namespace tokitai {
template <class Integer>
inline double odd_double(Integer x) {
  if constexpr (sizeof(Integer) < 8) {
    return double(x);
  } else {
    const bool negative = x < 0;
    unsigned long long size = negative ? 0 - (unsigned long long)x : (unsigned long long)x;
    if (size >> 53) {
      const int cut = 11 - __builtin_clzll(size);
      const bool rest = size & ((1ull << cut) - 1);
      size = ((size >> cut) | rest) << cut;
    }
    return negative ? -double(size) : double(size);
  }
}
}  // namespace tokitai
// `width` bits from `offset` on, taken out or put in; both count modulo the size.
#define TOKITAI_BIT_FIELD(T, BITS)                                                                \
  TOKITAI_OURS T __bitextract_u##BITS(T x, unsigned offset, unsigned width) {                     \
    return x >> (offset & (BITS - 1)) & (((T)1 << (width & (BITS - 1))) - 1);                     \
  }                                                                                               \
  TOKITAI_OURS T __bitinsert_u##BITS(T x, T field, unsigned offset, unsigned width) {             \
    offset &= BITS - 1, width &= BITS - 1;                                                        \
    const T mask = ((T)1 << width) - 1;                                                           \
    return (T)((x & ~(mask << offset)) | (field & mask) << offset);                               \
  }
TOKITAI_BIT_FIELD(unsigned, 32)
TOKITAI_BIT_FIELD(unsigned long long, 64)
#undef TOKITAI_BIT_FIELD
