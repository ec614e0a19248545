// Device functions that C's <math.h> lacks.
//
// The fast intrinsics (__expf and their like) are the accurate functions here: how far a GPU's are
// off is that GPU's property, and a kernel that is right with an accurate one is all that this
// device can tell.
#pragma once

#ifdef TOKITAI_DEVICE_GFX
#include <tokitai_gfx/math.hpp>
#else

#include <float.h>
#include <limits.h>
#include <time.h>

#include <type_traits>

#include "integers.hpp"

namespace tokitai {
constexpr double pi = 3.14159265358979323846;
}  // namespace tokitai

// --- single precision -------------------------------------------------------------------------
// Through double, so that they are rounded once but for rare ties.
TOKITAI_OURS float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
TOKITAI_OURS float rcbrtf(float x) { return float(1.0 / cbrt(double(x))); }
TOKITAI_OURS float rhypotf(float x, float y) { return float(1.0 / hypot(double(x), double(y))); }
TOKITAI_OURS float norm3df(float x, float y, float z) {
  return float(sqrt(double(x) * x + double(y) * y + double(z) * z));
}
TOKITAI_OURS float norm4df(float x, float y, float z, float w) {
  return float(sqrt(double(x) * x + double(y) * y + double(z) * z + double(w) * w));
}
TOKITAI_OURS float fdividef(float x, float y) { return x / y; }
TOKITAI_OURS float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

// --- double precision -------------------------------------------------------------------------
TOKITAI_OURS double rsqrt(double x) { return 1.0 / sqrt(x); }
TOKITAI_OURS double rcbrt(double x) { return 1.0 / cbrt(x); }
TOKITAI_OURS double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
TOKITAI_OURS double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
TOKITAI_OURS float rsqrt(float x) { return rsqrtf(x); }

// sin(pi x) and cos(pi x): the reduction to |r| <= 1/4 is exact.
TOKITAI_OURS double sinpi(double x) {
  const double r = fmod(x, 2.0), nearest = rint(2 * r), rest = (r - nearest / 2) * tokitai::pi;
  switch (int(nearest) & 3) {
    case 0: return sin(rest);
    case 1: return cos(rest);
    case 2: return -sin(rest);
    default: return -cos(rest);
  }
}
TOKITAI_OURS double cospi(double x) {
  const double r = fmod(x, 2.0), nearest = rint(2 * r), rest = (r - nearest / 2) * tokitai::pi;
  switch (int(nearest) & 3) {
    case 0: return cos(rest);
    case 1: return -sin(rest);
    case 2: return -cos(rest);
    default: return sin(rest);
  }
}
TOKITAI_OURS float sinpif(float x) { return float(sinpi(double(x))); }
TOKITAI_OURS float cospif(float x) { return float(cospi(double(x))); }
TOKITAI_OURS void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
TOKITAI_OURS void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
TOKITAI_OURS double normcdf(double x) { return 0.5 * erfc(-x * sqrt(0.5)); }
TOKITAI_OURS float normcdff(float x) { return float(normcdf(double(x))); }
TOKITAI_OURS double erfcx(double x) { return exp(x * x) * erfc(x); }

// --- intrinsics
// ---------------------------------------------------------------------------------- Macros,
// because the C library keeps functions of these names.
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
TOKITAI_OURS float __fdividef(float x, float y) { return x / y; }
TOKITAI_OURS float __fadd_rn(float x, float y) { return x + y; }
TOKITAI_OURS float __fsub_rn(float x, float y) { return x - y; }
TOKITAI_OURS float __fmul_rn(float x, float y) { return x * y; }
TOKITAI_OURS float __fdiv_rn(float x, float y) { return x / y; }
TOKITAI_OURS float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
TOKITAI_OURS float __fsqrt_rn(float x) { return sqrtf(x); }
TOKITAI_OURS float __frcp_rn(float x) { return 1.0f / x; }
TOKITAI_OURS float __frsqrt_rn(float x) { return rsqrtf(x); }
TOKITAI_OURS double __dadd_rn(double x, double y) { return x + y; }
TOKITAI_OURS double __dsub_rn(double x, double y) { return x - y; }
TOKITAI_OURS double __dmul_rn(double x, double y) { return x * y; }
TOKITAI_OURS double __ddiv_rn(double x, double y) { return x / y; }
TOKITAI_OURS double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
TOKITAI_OURS double __dsqrt_rn(double x) { return sqrt(x); }
TOKITAI_OURS double __drcp_rn(double x) { return 1.0 / x; }

// --- memory, clocks
// ------------------------------------------------------------------------------
#include "cached_accesses.hpp"

TOKITAI_OURS long long wall_clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}
TOKITAI_OURS long long clock64() { return wall_clock64(); }
TOKITAI_OURS long long __clock64() { return wall_clock64(); }
TOKITAI_OURS void __nanosleep(unsigned) {}
TOKITAI_OURS void __trap() { abort(); }

#endif
