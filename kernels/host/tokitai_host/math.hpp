// Device functions that C's <math.h> lacks.
//
// The fast intrinsics (__expf and their like) are the accurate functions here: how far a GPU's are
// off is that GPU's property, and a kernel that is right with an accurate one is all that this
// device can tell.
#pragma once

#include <float.h>
#include <limits.h>
#include <time.h>

#include "language.hpp"

namespace tokitai {
constexpr double pi = 3.14159265358979323846;
}

// --- single precision -------------------------------------------------------------------------
// Through double, so that they are rounded once but for rare ties.
inline float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
inline float rcbrtf(float x) { return float(1.0 / cbrt(double(x))); }
inline float rhypotf(float x, float y) { return float(1.0 / hypot(double(x), double(y))); }
inline float norm3df(float x, float y, float z) {
  return float(sqrt(double(x) * x + double(y) * y + double(z) * z));
}
inline float norm4df(float x, float y, float z, float w) {
  return float(sqrt(double(x) * x + double(y) * y + double(z) * z + double(w) * w));
}
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

// --- double precision -------------------------------------------------------------------------
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
inline double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
inline float rsqrt(float x) { return rsqrtf(x); }

// sin(pi x) and cos(pi x): the reduction to |r| <= 1/4 is exact.
inline double sinpi(double x) {
  const double r = fmod(x, 2.0), nearest = rint(2 * r), rest = (r - nearest / 2) * tokitai::pi;
  switch (int(nearest) & 3) {
    case 0: return sin(rest);
    case 1: return cos(rest);
    case 2: return -sin(rest);
    default: return -cos(rest);
  }
}
inline double cospi(double x) {
  const double r = fmod(x, 2.0), nearest = rint(2 * r), rest = (r - nearest / 2) * tokitai::pi;
  switch (int(nearest) & 3) {
    case 0: return cos(rest);
    case 1: return -sin(rest);
    case 2: return -cos(rest);
    default: return sin(rest);
  }
}
inline float sinpif(float x) { return float(sinpi(double(x))); }
inline float cospif(float x) { return float(cospi(double(x))); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline double normcdf(double x) { return 0.5 * erfc(-x * sqrt(0.5)); }
inline float normcdff(float x) { return float(normcdf(double(x))); }
inline double erfcx(double x) { return exp(x * x) * erfc(x); }

// --- minimum and maximum ----------------------------------------------------------------------
#define TOKITAI_MIN_MAX(T)                                                                        \
  inline T min(T a, T b) { return b < a ? b : a; }                                                \
  inline T max(T a, T b) { return a < b ? b : a; }
TOKITAI_MIN_MAX(int)
TOKITAI_MIN_MAX(unsigned)
TOKITAI_MIN_MAX(long)
TOKITAI_MIN_MAX(unsigned long)
TOKITAI_MIN_MAX(long long)
TOKITAI_MIN_MAX(unsigned long long)
#undef TOKITAI_MIN_MAX
inline unsigned min(int a, unsigned b) { return min(unsigned(a), b); }
inline unsigned min(unsigned a, int b) { return min(a, unsigned(b)); }
inline unsigned max(int a, unsigned b) { return max(unsigned(a), b); }
inline unsigned max(unsigned a, int b) { return max(a, unsigned(b)); }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// --- bits ---------------------------------------------------------------------------------------
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __ffsll(unsigned long long x) { return __builtin_ffsll((long long)x); }
inline unsigned __brev(unsigned x) {
  x = __builtin_bswap32(x);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  return (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
}
inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i++)
    result |= unsigned(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline int __mul24(int x, int y) {
  return int(unsigned(int(unsigned(x) << 8) >> 8) * unsigned(int(unsigned(y) << 8) >> 8));
}
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
inline int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return unsigned((unsigned long long)x * y >> 32);
}
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline unsigned __sad(int x, int y, unsigned z) {
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
inline int __float_as_int(float x) { return tokitai::reinterpret<int>(x); }
inline unsigned __float_as_uint(float x) { return tokitai::reinterpret<unsigned>(x); }
inline float __int_as_float(int x) { return tokitai::reinterpret<float>(x); }
inline float __uint_as_float(unsigned x) { return tokitai::reinterpret<float>(x); }
inline long long __double_as_longlong(double x) { return tokitai::reinterpret<long long>(x); }
inline double __longlong_as_double(long long x) { return tokitai::reinterpret<double>(x); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)((unsigned long long)unsigned(high) << 32 | unsigned(low)));
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
  if (is_signed ? x < -above : x <= Float(-1)) return is_signed ? Integer(-largest - 1) : Integer(0);
  return Integer(x);
}
}  // namespace tokitai
#define TOKITAI_TO_INTEGER(FROM, SHORT, TO, T)                                                    \
  inline T __##SHORT##2##TO##_rn(FROM x) { return tokitai::to_integer<T>(rint(x)); }              \
  inline T __##SHORT##2##TO##_rz(FROM x) { return tokitai::to_integer<T>(trunc(x)); }             \
  inline T __##SHORT##2##TO##_ru(FROM x) { return tokitai::to_integer<T>(ceil(x)); }              \
  inline T __##SHORT##2##TO##_rd(FROM x) { return tokitai::to_integer<T>(floor(x)); }
TOKITAI_TO_INTEGER(float, float, int, int)
TOKITAI_TO_INTEGER(float, float, uint, unsigned)
TOKITAI_TO_INTEGER(float, float, ll, long long)
TOKITAI_TO_INTEGER(float, float, ull, unsigned long long)
TOKITAI_TO_INTEGER(double, double, int, int)
TOKITAI_TO_INTEGER(double, double, uint, unsigned)
TOKITAI_TO_INTEGER(double, double, ll, long long)
TOKITAI_TO_INTEGER(double, double, ull, unsigned long long)
#undef TOKITAI_TO_INTEGER
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return double(x); }
inline double __ull2double_rn(unsigned long long x) { return double(x); }
inline float __double2float_rn(double x) { return float(x); }

// --- intrinsics ----------------------------------------------------------------------------------
// Macros, because the C library keeps functions of these names.
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __exp2f(x) exp2f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __sincosf(x, s, c) sincosf(x, s, c)
inline float __fdividef(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __drcp_rn(double x) { return 1.0 / x; }

// --- memory, clocks ------------------------------------------------------------------------------
template <class T>
inline T __ldg(const T* address) {
  return *address;
}
template <class T>
inline T __ldcs(const T* address) {
  return *address;
}
template <class T>
inline T __ldcg(const T* address) {
  return *address;
}
template <class T>
inline void __stcs(T* address, T value) {
  *address = value;
}

inline long long wall_clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}
inline long long clock64() { return wall_clock64(); }
inline long long __clock64() { return wall_clock64(); }
inline void __nanosleep(unsigned) {}
