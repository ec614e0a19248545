// Device functions that C's <math.h> lacks, by those of functions.hpp.
#pragma once

#include <tokitai_host/integers.hpp>

// Operations that are rounded to nearest anyway.
#define TOKITAI_NEAREST(LETTER, T, FMA, SQRT)                                                     \
  TOKITAI_OURS T __##LETTER##add_rn(T x, T y) { return x + y; }                                   \
  TOKITAI_OURS T __##LETTER##sub_rn(T x, T y) { return x - y; }                                   \
  TOKITAI_OURS T __##LETTER##mul_rn(T x, T y) { return x * y; }                                   \
  TOKITAI_OURS T __##LETTER##div_rn(T x, T y) { return x / y; }                                   \
  TOKITAI_OURS T __##LETTER##rcp_rn(T x) { return T(1) / x; }                                     \
  TOKITAI_OURS T __##LETTER##sqrt_rn(T x) { return SQRT(x); }                                     \
  TOKITAI_OURS T FMA(T x, T y, T z) { return fma(x, y, z); }
TOKITAI_NEAREST(f, float, __fmaf_rn, sqrtf)
TOKITAI_NEAREST(d, double, __fma_rn, sqrt)
#undef TOKITAI_NEAREST
TOKITAI_OURS float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
TOKITAI_OURS float __fdividef(float x, float y) { return x / y; }
TOKITAI_OURS int __dp4a(int a, int b, int c) {
#ifdef __GFX9__
  return __builtin_amdgcn_sdot4(a, b, c, false);
#else
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#endif
}
TOKITAI_OURS unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return __builtin_amdgcn_udot4(a, b, c, false);
}
#include <tokitai_host/cached_accesses.hpp>

TOKITAI_OURS float rcbrtf(float x) { return 1.0f / cbrtf(x); }
TOKITAI_OURS float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
TOKITAI_OURS float norm3df(float x, float y, float z) { return hypotf(hypotf(x, y), z); }
TOKITAI_OURS float fdividef(float x, float y) { return x / y; }
TOKITAI_OURS float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
TOKITAI_OURS float rsqrt(float x) { return rsqrtf(x); }
// Not there: a kernel that calls them does not link.
template <int = 0>
__host__ __device__ double sinpi(double x);
template <int = 0>
__host__ __device__ double cospi(double x);
TOKITAI_OURS double rsqrt(double x) { return 1.0 / sqrt(x); }
// The reduction to |r| <= 1/4 is exact.
TOKITAI_OURS float sinpif(float x) { return sinf(float(tokitai::pi) * (x - 2.0f * rintf(0.5f * x))); }
TOKITAI_OURS float cospif(float x) { return cosf(float(tokitai::pi) * (x - 2.0f * rintf(0.5f * x))); }
