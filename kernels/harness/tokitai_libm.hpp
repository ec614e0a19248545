// Device functions that newer C libraries declare in <math.h> too.
//
// Where they do, a kernel's call goes to the C library's function, since a function that is no template is
// preferred. The library that is linked may be older than its headers, as with zig, and another one may
// round otherwise: the calls come here, whatever the library has.
#pragma once

#include "tokitai_host/math.hpp"

#define TOKITAI_LIBM(type, name)                                                   \
  extern "C" __attribute__((weak)) type tokitai_libm_##name(type) __asm__(#name); \
  extern "C" __attribute__((weak)) type tokitai_libm_##name(type x) { return ::name<0>(x); }

TOKITAI_LIBM(float, rsqrtf)
TOKITAI_LIBM(float, sinpif)
TOKITAI_LIBM(float, cospif)
TOKITAI_LIBM(double, sinpi)
TOKITAI_LIBM(double, cospi)
extern "C" __attribute__((weak)) double tokitai_libm_rsqrt(double) __asm__("rsqrt");
extern "C" __attribute__((weak)) double tokitai_libm_rsqrt(double x) { return 1.0 / sqrt(x); }
#undef TOKITAI_LIBM
