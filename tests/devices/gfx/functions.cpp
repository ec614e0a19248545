// The functions of kernels/gfx in host code: over arrays of floats, by number.
#include <cmath>
#define TOKITAI_DEVICE_ONLY inline
#define __builtin_amdgcn_rsqf(x) (1.0f / __builtin_sqrtf(x))
#define __builtin_amdgcn_exp2f __builtin_exp2f
#define __builtin_amdgcn_logf __builtin_log2f
#define __builtin_amdgcn_sinf(x) __builtin_sinf(6.28318531f * (x))
#define __builtin_amdgcn_cosf(x) __builtin_cosf(6.28318531f * (x))
#define __builtin_amdgcn_fractf(x) ((x) - __builtin_floorf(x))
#define __builtin_readcyclecounter() 0
#if !defined(__clang__)
#define __builtin_bit_cast(T, x) \
  ([](auto from) { T to; __builtin_memcpy(&to, &from, sizeof to); return to; }(x))
#endif
namespace gfx {
#include "tokitai_gfx/functions.hpp"
}

#define ONE(NAME, EXPRESSION)                                                        \
  extern "C" void call_##NAME(const float* x, const float* y, float* z, long n) {    \
    (void)y;                                                                         \
    for (long i = 0; i < n; i++) z[i] = EXPRESSION;                                  \
  }
ONE(tanh, gfx::tanhf(x[i]))
ONE(erf, gfx::erff(x[i]))
ONE(sin, gfx::sinf(x[i]))
ONE(cos, gfx::cosf(x[i]))
ONE(tan, gfx::tanf(x[i]))
ONE(log1p, gfx::log1pf(x[i]))
ONE(expm1, gfx::expm1f(x[i]))
ONE(atan, gfx::atanf(x[i]))
ONE(asin, gfx::asinf(x[i]))
ONE(acos, gfx::acosf(x[i]))
ONE(sinh, gfx::sinhf(x[i]))
ONE(cosh, gfx::coshf(x[i]))
ONE(cbrt, gfx::cbrtf(x[i]))
ONE(pow, gfx::powf(x[i], y[i]))
ONE(arctan2, gfx::atan2f(x[i], y[i]))
ONE(hypot, gfx::hypotf(x[i], y[i]))
ONE(arcsinh, gfx::asinhf(x[i]))
ONE(arccosh, gfx::acoshf(x[i]))
ONE(arctanh, gfx::atanhf(x[i]))
ONE(fmod, gfx::fmodf(x[i], y[i]))
