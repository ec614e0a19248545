// The mathematical functions of device code, in float, _Float16 and, where one or a few instructions
// do it, double. What the compiler knows for this target (exp, log, sqrt, fma, floor and their like) is
// left to it; the rest is written here. Errors in ulp, as tests/devices/gfx measures them: exp*, log* 1,
// tanh 2, erf 2, pow 2, sin and cos 2, tan 4, expm1 and log1p 3, sinh and cosh 3, atan and atan2 3,
// asin and acos 4, asinh, acosh and atanh 4, cbrt 2, hypot 2, fmod 0, rsqrt 1 (flushed where v_rsq_f32 does).
#pragma once

TOKITAI_DEVICE_ONLY void* memcpy(void* to, const void* from, __SIZE_TYPE__ bytes) {
  return __builtin_memcpy(to, from, bytes);
}
TOKITAI_DEVICE_ONLY void* memmove(void* to, const void* from, __SIZE_TYPE__ bytes) {
  return __builtin_memmove(to, from, bytes);
}
TOKITAI_DEVICE_ONLY void* memset(void* to, int byte, __SIZE_TYPE__ bytes) {
  return __builtin_memset(to, byte, bytes);
}

#define TOKITAI_BOTH(NAME)                                                                        \
  TOKITAI_DEVICE_ONLY float NAME##f(float x) { return __builtin_##NAME##f(x); }                   \
  TOKITAI_DEVICE_ONLY float NAME(float x) { return __builtin_##NAME##f(x); }                      \
  TOKITAI_DEVICE_ONLY double NAME(double x) { return __builtin_##NAME(x); }
TOKITAI_BOTH(fabs)
TOKITAI_BOTH(floor)
TOKITAI_BOTH(ceil)
TOKITAI_BOTH(trunc)
TOKITAI_BOTH(rint)
TOKITAI_BOTH(nearbyint)
TOKITAI_BOTH(round)
TOKITAI_BOTH(sqrt)
#undef TOKITAI_BOTH
#define TOKITAI_SINGLE(NAME, EXPRESSION)                                                          \
  TOKITAI_DEVICE_ONLY float NAME##f(float x) { return EXPRESSION; }                               \
  TOKITAI_DEVICE_ONLY float NAME(float x) { return NAME##f(x); }
TOKITAI_SINGLE(exp, __builtin_expf(x))
TOKITAI_SINGLE(exp2, __builtin_exp2f(x))
TOKITAI_SINGLE(log, __builtin_logf(x))
TOKITAI_SINGLE(log2, __builtin_log2f(x))
TOKITAI_SINGLE(log10, __builtin_log10f(x))
TOKITAI_DEVICE_ONLY float exp10f(float x) { return __builtin_exp10f(x); }
TOKITAI_DEVICE_ONLY float rsqrtf(float x) { return __builtin_amdgcn_rsqf(x); }

#define TOKITAI_OF_TWO(NAME)                                                                      \
  TOKITAI_DEVICE_ONLY float NAME##f(float x, float y) { return __builtin_##NAME##f(x, y); }       \
  TOKITAI_DEVICE_ONLY float NAME(float x, float y) { return __builtin_##NAME##f(x, y); }          \
  TOKITAI_DEVICE_ONLY double NAME(double x, double y) { return __builtin_##NAME(x, y); }
TOKITAI_OF_TWO(fmin)
TOKITAI_OF_TWO(fmax)
TOKITAI_OF_TWO(copysign)
#undef TOKITAI_OF_TWO
TOKITAI_DEVICE_ONLY float nanf(const char*) { return __builtin_nanf(""); }
TOKITAI_DEVICE_ONLY double nan(const char*) { return __builtin_nan(""); }
TOKITAI_DEVICE_ONLY float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TOKITAI_DEVICE_ONLY float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TOKITAI_DEVICE_ONLY double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
TOKITAI_DEVICE_ONLY float ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
TOKITAI_DEVICE_ONLY float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
TOKITAI_DEVICE_ONLY double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
TOKITAI_DEVICE_ONLY float scalbnf(float x, int n) { return __builtin_ldexpf(x, n); }
TOKITAI_DEVICE_ONLY float frexpf(float x, int* n) { return __builtin_frexpf(x, n); }
TOKITAI_DEVICE_ONLY float frexp(float x, int* n) { return __builtin_frexpf(x, n); }
TOKITAI_DEVICE_ONLY float fdimf(float x, float y) { return x > y ? x - y : x == x && y == y ? 0 : x + y; }
TOKITAI_DEVICE_ONLY float modff(float x, float* whole) {
  *whole = truncf(x);
  return copysignf(x - *whole == x - *whole ? x - *whole : 0.0f, x);
}
TOKITAI_DEVICE_ONLY float nextafterf(float x, float y) {
  int bits = __builtin_bit_cast(int, x);
  if (!(x == x && y == y)) return x + y;
  if (x == y) return y;
  if (x == 0) return copysignf(0x1p-149f, y);
  bits += (x < y) == (x > 0) ? 1 : -1;
  return __builtin_bit_cast(float, bits);
}

// Coefficients are those of minimax polynomials (Remez) for the relative error in the named range.
namespace tokitai {

template <unsigned n>
TOKITAI_DEVICE_ONLY float polynomial(float x, const float (&from_highest)[n]) {
  float sum = from_highest[0];
  for (unsigned i = 1; i < n; i++) sum = __builtin_fmaf(sum, x, from_highest[i]);
  return sum;
}

// |x| up to 0.63; beyond, 1 - 2 / (e^2|x| + 1).
TOKITAI_DEVICE_ONLY float tanh(float x) {
  const float a = fabsf(x), u = x * x;
  if (a < 0.625f) {
    const float p = polynomial(u, {0x1.163b8cp-9f, -0x1.0b43d8p-7f, 0x1.636964p-6f, -0x1.b9eba8p-5f,
                                   0x1.111058p-3f, -0x1.555554p-2f});
    return copysignf(fmaf(x * u, p, x), x);
  }
  return copysignf(a == a ? 1.0f - 2.0f / (expf(2.0f * a) + 1.0f) : a, x);
}

// Up to 0.927; beyond, 1 - e^-p(|x|).
TOKITAI_DEVICE_ONLY float erf(float x) {
  const float a = fabsf(x), u = x * x;
  if (a < 0.927f) {
    const float p = polynomial(u, {0x1.5d47bcp-14f, -0x1.aa6a2ep-11f, 0x1.54cde6p-8f, -0x1.b80f5p-6f,
                                   0x1.ce2e14p-4f, -0x1.812744p-2f, 0x1.06eba8p-3f});
    return fmaf(x, p, x);
  }
  const float b = fminf(a, 3.95f);
  const float p = polynomial(b, {-0x1.377ab4p-19f, 0x1.361848p-15f, -0x1.eba90ep-13f, 0x1.2bee9p-11f,
                                 0x1.b87d06p-10f, -0x1.59bb54p-6f, 0x1.aa33aap-4f, 0x1.45b4e6p-1f,
                                 0x1.20e27ap+0f});
  return copysignf(a == a ? 1.0f - expf(-b * p) : a, x);
}

// x reduced by multiples of pi/2 (Cody and Waite in three parts; beyond 2^15 with as many digits of 2/pi
// as the exponent asks for, Payne and Hanek), and the number of the quarter.
TOKITAI_DEVICE_ONLY float reduced(float x, unsigned& quarter) {
  const float a = fabsf(x);
  if (a < 32768.0f) {
    const float n = rintf(x * 0x1.45f306p-1f);
    quarter = unsigned(int(n));
    return fmaf(n, 0x1.ee59dap-50f, fmaf(n, 0x1.777a5cp-25f, fmaf(n, -0x1.921fb6p+0f, x)));
  }
  const unsigned bits = __builtin_bit_cast(unsigned, a), power = (bits >> 23) - 120;
  const unsigned long long m = (bits & 0x7fffffu) | 0x800000u;
  unsigned words[4];
  for (unsigned i = 0; i < 4; i++) {
    const unsigned at = power / 32 + i;
    words[i] = at == 0   ? 0
               : at == 1 ? 0xa2f9836eu
               : at == 2 ? 0x4e441529u
               : at == 3 ? 0xfc2757d1u
               : at == 4 ? 0xf534ddc0u
               : at == 5 ? 0xdb629599u
               : at == 6 ? 0x3c439041u
                         : 0xfe5163abu;
  }
  const unsigned shift = power & 31;
  unsigned window[3];
  for (unsigned i = 0; i < 3; i++)
    window[i] = unsigned(((unsigned long long)words[i] << 32 | words[i + 1]) << shift >> 32);
  const unsigned long long low = m * window[2], middle = m * window[1] + (low >> 32);
  const unsigned high = unsigned(m) * window[0] + unsigned(middle >> 32);
  unsigned long long fraction = (unsigned long long)high << 32 | unsigned(middle);
  quarter = high >> 30;
  fraction <<= 2;
  // To nearest: what is above a half counts from the next quarter.
  const bool above = fraction >> 63;
  if (above) quarter++, fraction = 0 - fraction;
  const int zeros = fraction ? __builtin_clzll(fraction) : 63;
  const unsigned digits = unsigned(fraction << zeros >> 32);
  const float upper = float(digits & ~0xffu), lower = float(digits & 0xffu);
  const float whole = fmaf(lower, 0x1.921fb6p+0f, upper * -0x1.777a5cp-25f);
  const float r = ldexpf(fmaf(upper, 0x1.921fb6p+0f, whole), -32 - zeros);
  if (x < 0) quarter = 0 - quarter;
  return above != (x < 0) ? -r : r;
}
TOKITAI_DEVICE_ONLY float sine_of(float x, unsigned turn) {
  if (!(fabsf(x) < __builtin_inff())) return x - x;
  if (x == 0 && turn == 0) return x;  // and its sign
  unsigned quarter;
  const float r = reduced(x, quarter), u = r * r;
  quarter += turn;
  const float s = fmaf(r * u, polynomial(u, {0x1.6cd86p-19f, -0x1.a00f9ep-13f, 0x1.111108p-7f,
                                             -0x1.555556p-3f}), r);
  const float c = fmaf(u * u, polynomial(u, {0x1.9a023ap-16f, -0x1.6c0c8cp-10f, 0x1.55554ap-5f}),
                       fmaf(u, -0.5f, 1.0f));
  const float y = quarter & 1 ? c : s;
  return quarter & 2 ? -y : y;
}

// e^(y log x): log2 x as a sum of two floats, so that its product with y keeps its last digits.
TOKITAI_DEVICE_ONLY float power_of(float x, float y) {
  int e;
  float m = __builtin_frexpf(x, &e);
  if (m < 0x1.6a09e6p-1f) m *= 2, e--;
  const float f = m - 1.0f, s = 2.0f + f, s_low = f - (s - 2.0f), r = f / s;
  const float r_low = fmaf(-r, s_low, fmaf(-r, s, f)) / s, u = r * r;
  const float p = polynomial(u, {0x1.e2f99cp-4f, 0x1.2438c4p-3f, 0x1.999a7ap-3f, 0x1.555554p-2f});
  const float tail = 2.0f * fmaf(r * u, p, r_low), high = 2.0f * r + tail,
              low = tail - (high - 2.0f * r);
  const float l = high * 0x1.715476p+0f;
  const float l_low = fmaf(high, 0x1.715476p+0f, -l) + fmaf(high, 0x1.4ae0cp-26f, low * 0x1.715476p+0f);
  const float sum = float(e) + l, sum_low = (float(e) - sum) + l + l_low;
  const float z = fmaxf(fminf(y * sum, 300.0f), -300.0f);
  const float z_low = fabsf(z) < 300.0f ? fmaf(y, sum, -z) + y * sum_low : 0.0f;
  const float n = rintf(z);
  return ldexpf(__builtin_exp2f((z - n) + z_low), int(n));
}
// IEEE 754-2019, 9.2.1, has the exceptional cases.
TOKITAI_DEVICE_ONLY float pow(float x, float y) {
  const float a = fabsf(x), infinity = __builtin_inff();
  if (x == 1.0f || y == 0.0f) return 1.0f;
  if (!(x == x && y == y)) return x + y;
  const bool whole = rintf(y) == y, odd = whole && fabsf(y) < 0x1p24f && (int(y) & 1);
  float z;
  if (x < 0 && !whole && a < infinity)
    z = __builtin_nanf("");
  else if (a == 1.0f)
    z = 1.0f;
  else if (fabsf(y) == infinity)
    z = (a > 1.0f) == (y > 0) ? infinity : 0.0f;
  else if (a == 0 || a == infinity)
    z = (a == 0) == (y < 0) ? infinity : 0.0f;
  else
    z = power_of(a, y);
  return x < 0 || (x == 0 && __builtin_signbit(x)) ? (odd ? -z : z) : z;
}

TOKITAI_DEVICE_ONLY float log1p(float x) {
  const float u = 1.0f + x;
  if (u == 1.0f || u == __builtin_inff()) return x;
  return logf(u) * (x / (u - 1.0f));
}
TOKITAI_DEVICE_ONLY float expm1(float x) {
  const float u = expf(x);
  if (u == 1.0f) return x;
  if (u - 1.0f == -1.0f || u == __builtin_inff()) return u - 1.0f;
  return fabsf(x) < 1.0f ? (u - 1.0f) * (x / logf(u)) : u - 1.0f;
}
TOKITAI_DEVICE_ONLY float atan(float x) {
  const float a = fabsf(x);
  const bool is_large = a > 1.0f;
  const float t = is_large ? 1.0f / a : a, u = t * t;
  const float p = fmaf(t * u, polynomial(u, {0x1.85e21ap-9f, -0x1.0faa36p-6f, 0x1.64ca1ep-5f,
                                             -0x1.367ffep-4f, 0x1.b568bep-4f, -0x1.231b62p-3f,
                                             0x1.997adcp-3f, -0x1.5554e6p-2f}), t);
  return copysignf(is_large ? 0x1.921fb6p+0f - p : p, x);
}
TOKITAI_DEVICE_ONLY float atan2(float y, float x) {
  const float a = fabsf(x), b = fabsf(y);
  if (!(x == x && y == y)) return x + y;
  const bool steep = b > a;
  const float t = a == b ? (a == 0 ? 0.0f : 1.0f) : steep ? a / b : b / a;
  float r = atan(t);
  if (steep) r = 0x1.921fb6p+0f - r;
  if (__builtin_signbit(x)) r = 0x1.921fb6p+1f - r;
  return copysignf(r, y);
}
TOKITAI_DEVICE_ONLY float asin(float x) { return atan2(x, sqrtf((1.0f - x) * (1.0f + x))); }
TOKITAI_DEVICE_ONLY float acos(float x) {
  return 2.0f * atan2(sqrtf(1.0f - x), sqrtf(1.0f + x));
}
TOKITAI_DEVICE_ONLY float sinh(float x) {
  const float a = fabsf(x), e = expm1(a);
  const float h = a > 80.0f ? expf(0.5f * a) : 0.0f;
  return copysignf(a > 80.0f ? 0.5f * h * h : 0.5f * (e + e / (e + 1.0f)), x);
}
TOKITAI_DEVICE_ONLY float cosh(float x) {
  const float a = fabsf(x), h = expf(a > 80.0f ? 0.5f * a : a);
  return a > 80.0f ? 0.5f * h * h : fmaf(0.5f, h, 0.5f / h);
}
TOKITAI_DEVICE_ONLY float cbrt(float x) {
  const float a = fabsf(x);
  if (!(a > 0 && a < __builtin_inff())) return x + x;
  const float scaled = a < 0x1p-100f ? a * 0x1p66f : a;
  float y = __builtin_exp2f(__builtin_log2f(scaled) * 0x1.555556p-2f);
  y -= (y - scaled / (y * y)) * 0x1.555556p-2f;
  return copysignf(a < 0x1p-100f ? y * 0x1p-22f : y, x);
}
TOKITAI_DEVICE_ONLY float hypot(float x, float y) {
  const float a = fmaxf(fabsf(x), fabsf(y)), b = fminf(fabsf(x), fabsf(y));
  if (a == __builtin_inff()) return a;
  if (!(x == x && y == y)) return x + y;
  if (a == 0) return a;
  const int e = int(__builtin_bit_cast(unsigned, a) >> 23) - 127;
  const float p = ldexpf(a, -e), q = ldexpf(b, -e);
  return ldexpf(sqrtf(fmaf(p, p, q * q)), e);
}

TOKITAI_DEVICE_ONLY int exponent_of(float a) {  // of a positive number
  const float b = a < 0x1p-126f ? a * 0x1p64f : a;
  return int(__builtin_bit_cast(unsigned, b) >> 23) - 127 - (a < 0x1p-126f ? 64 : 0);
}
// Exact: each difference of two floats within a factor of 2 of each other is one.
TOKITAI_DEVICE_ONLY float fmod(float x, float y) {
  const float b = fabsf(y);
  float a = fabsf(x);
  if (!(b > 0 && a < __builtin_inff())) return __builtin_nanf("");
  while (a >= b && b < __builtin_inff()) {
    const float t = ldexpf(b, exponent_of(a) - exponent_of(b));
    a -= t > a ? 0.5f * t : t;
  }
  return copysignf(a, x);
}
TOKITAI_DEVICE_ONLY float asinh(float x) {
  const float a = fabsf(x);
  if (a > 0x1p60f) return copysignf(a < __builtin_inff() ? logf(a) + 0x1.62e43p-1f : a, x);
  return copysignf(log1p(a + a * a / (1.0f + sqrtf(fmaf(a, a, 1.0f)))), x);
}
TOKITAI_DEVICE_ONLY float acosh(float x) {
  const float t = x - 1.0f;
  if (x > 0x1p60f) return x < __builtin_inff() ? logf(x) + 0x1.62e43p-1f : x;
  return t >= 0 ? log1p(t + sqrtf(fmaf(t, t, 2.0f * t))) : __builtin_nanf("");
}
TOKITAI_DEVICE_ONLY float atanh(float x) {
  const float a = fabsf(x);
  return copysignf(0.5f * log1p(2.0f * a / (1.0f - a)), x);
}

}  // namespace tokitai

TOKITAI_SINGLE(asinh, tokitai::asinh(x))
TOKITAI_SINGLE(acosh, tokitai::acosh(x))
TOKITAI_SINGLE(atanh, tokitai::atanh(x))
TOKITAI_SINGLE(tanh, tokitai::tanh(x))
TOKITAI_SINGLE(erf, tokitai::erf(x))
TOKITAI_SINGLE(sin, tokitai::sine_of(x, 0))
TOKITAI_SINGLE(cos, tokitai::sine_of(x, 1))
TOKITAI_SINGLE(tan, tokitai::sine_of(x, 0) / tokitai::sine_of(x, 1))
TOKITAI_SINGLE(log1p, tokitai::log1p(x))
TOKITAI_SINGLE(expm1, tokitai::expm1(x))
TOKITAI_SINGLE(atan, tokitai::atan(x))
TOKITAI_SINGLE(asin, tokitai::asin(x))
TOKITAI_SINGLE(acos, tokitai::acos(x))
TOKITAI_SINGLE(sinh, tokitai::sinh(x))
TOKITAI_SINGLE(cosh, tokitai::cosh(x))
TOKITAI_SINGLE(cbrt, tokitai::cbrt(x))
#undef TOKITAI_SINGLE
#define TOKITAI_SINGLE_OF_TWO(NAME)                                                               \
  TOKITAI_DEVICE_ONLY float NAME##f(float x, float y) { return tokitai::NAME(x, y); }             \
  TOKITAI_DEVICE_ONLY float NAME(float x, float y) { return tokitai::NAME(x, y); }
TOKITAI_SINGLE_OF_TWO(pow)
TOKITAI_SINGLE_OF_TWO(atan2)
TOKITAI_SINGLE_OF_TWO(hypot)
TOKITAI_SINGLE_OF_TWO(fmod)
#undef TOKITAI_SINGLE_OF_TWO
TOKITAI_DEVICE_ONLY int abs(int x) { return __builtin_abs(x); }
TOKITAI_DEVICE_ONLY long abs(long x) { return __builtin_labs(x); }
TOKITAI_DEVICE_ONLY long long abs(long long x) { return __builtin_llabs(x); }
TOKITAI_DEVICE_ONLY long lrintf(float x) { return long(rintf(x)); }
TOKITAI_DEVICE_ONLY long lroundf(float x) { return long(roundf(x)); }
TOKITAI_DEVICE_ONLY long long llrintf(float x) { return (long long)rintf(x); }
TOKITAI_DEVICE_ONLY long long llroundf(float x) { return (long long)roundf(x); }
TOKITAI_DEVICE_ONLY void sincosf(float x, float* s, float* c) {
  *s = tokitai::sine_of(x, 0), *c = tokitai::sine_of(x, 1);
}

// The fast intrinsics as AMD's headers have them: by v_exp_f32, v_log_f32 and their like alone.
TOKITAI_DEVICE_ONLY float __exp2f(float x) { return __builtin_amdgcn_exp2f(x); }
TOKITAI_DEVICE_ONLY float __expf(float x) { return __exp2f(x * 0x1.715476p+0f); }
TOKITAI_DEVICE_ONLY float __exp10f(float x) { return __exp2f(x * 0x1.a934f0p+1f); }
TOKITAI_DEVICE_ONLY float __log2f(float x) { return __builtin_amdgcn_logf(x); }
TOKITAI_DEVICE_ONLY float __logf(float x) { return __log2f(x) * 0x1.62e43p-1f; }
TOKITAI_DEVICE_ONLY float __log10f(float x) { return __log2f(x) * 0x1.344136p-2f; }
TOKITAI_DEVICE_ONLY float __powf(float x, float y) { return __exp2f(y * __log2f(x)); }
TOKITAI_DEVICE_ONLY float __sinf(float x) {
  return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0x1.45f306p-3f));
}
TOKITAI_DEVICE_ONLY float __cosf(float x) {
  return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0x1.45f306p-3f));
}
TOKITAI_DEVICE_ONLY float __tanf(float x) { return __sinf(x) / __cosf(x); }
TOKITAI_DEVICE_ONLY void __sincosf(float x, float* s, float* c) { *s = __sinf(x), *c = __cosf(x); }

TOKITAI_DEVICE_ONLY long long wall_clock64() { return (long long)__builtin_readcyclecounter(); }
TOKITAI_DEVICE_ONLY long long clock64() { return wall_clock64(); }
TOKITAI_DEVICE_ONLY long long __clock64() { return wall_clock64(); }
TOKITAI_DEVICE_ONLY void __nanosleep(unsigned) {}

// By the names that C++ has for them. The C++ library leaves alone what is there already for devices.
namespace std {
using ::acos, ::acosh, ::asin, ::asinh, ::atan, ::atanh, ::atan2, ::cbrt, ::ceil, ::copysign, ::cos, ::cosh, ::erf, ::exp,
    ::exp2, ::expm1, ::fabs, ::floor, ::fma, ::fmax, ::fmin, ::fmod, ::frexp, ::hypot, ::ldexp, ::log,
    ::log10, ::log1p, ::log2, ::nearbyint, ::pow, ::rint, ::round, ::sin, ::sinh, ::sqrt, ::tan,
    ::tanh, ::trunc;
}  // namespace std
