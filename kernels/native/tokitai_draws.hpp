// Words of a generator, normal numbers made of them (tokitai_cli/spec/inputs/transforms.py), and the
// rounding to 16-bit floats and back (tokitai_cli/core/rounding.py).
#pragma once

#include "tokitai_bits.hpp"

namespace tokitai {

// Horner's scheme, highest power first.
template <int N>
inline double polynomial(const double (&c)[N], double x) {
  double y = x * c[0] + c[1];
  for (int i = 2; i < N; i++) y = y * x + c[i];
  return y;
}

// AS 241, as numpy's code has it: numerators and denominators in the middle and in the tails.
constexpr double CENTRE_OVER[] = {2.5090809287301226727e3, 3.3430575583588128105e4,
                                  6.7265770927008700853e4, 4.5921953931549871457e4,
                                  1.3731693765509461125e4, 1.9715909503065514427e3,
                                  1.3314166789178437745e2, 3.3871328727963666080e0};
constexpr double CENTRE_UNDER[] = {5.2264952788528545610e3, 2.8729085735721942674e4,
                                   3.9307895800092710610e4, 2.1213794301586595867e4,
                                   5.3941960214247511077e3, 6.8718700749205790830e2,
                                   4.2313330701600911252e1, 1.0};
constexpr double TAIL_OVER[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                2.41780725177450611770e-1, 1.27045825245236838258e0,
                                3.64784832476320460504e0,  5.76949722146069140550e0,
                                4.63033784615654529590e0,  1.42343711074968357734e0};
constexpr double TAIL_UNDER[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                 1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                 6.89767334985100004550e-1, 1.67638483018380384940e0,
                                 2.05319162663775882187e0,  1.0};
constexpr double ARTANH[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                             1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0 / 1};
constexpr double LN2 = 0.693147180559945309417232121458;
constexpr double SQRT_HALF = 0.707106781186547524400844362105;
constexpr double CENTRE_HALF_WIDTH = 0.425, CENTRE_SHIFT = 0.180625, TAIL_SHIFT = 1.6, TAIL_END = 5.0;

// In (-1/2, 1/2) from the upper 52 bits.
inline double centred(std::uint64_t raw) {
  return (number((raw >> 12) | 0x3FF0000000000000ull) - 1.5) + 0x1p-53;
}

// Of a positive normal number.
inline double logarithm(double x) {
  const std::uint64_t b = bits(x);
  double m = number((b & 0x000FFFFFFFFFFFFFull) | 0x3FE0000000000000ull);  // in [1/2, 1)
  const bool small = m < SQRT_HALF;
  // The exponent as the last bits of 1.5 2^52, which vectors convert nothing for.
  const double field = number((b >> 52) + 0x4338000000000000ull) - 0x1.8p52;
  const double e = field - (small ? 1023.0 : 1022.0);
  m = small ? 2.0 * m : m;
  const double s = (m - 1.0) / (m + 1.0);
  return e * LN2 + 2.0 * (s * polynomial(ARTANH, s * s));
}

inline double of_the_tail(double q) {
  const double radius = least_of(std::sqrt(-logarithm(0.5 - std::fabs(q))), TAIL_END) - TAIL_SHIFT;
  return std::copysign(polynomial(TAIL_OVER, radius) / polynomial(TAIL_UNDER, radius), q);
}

// A 16-bit float format of P bits, whose least normal number has the exponent field LEAST of a double.
// The last bits of |x| + 1.5 2^52 ulp count the ulps in |x|, rounded to nearest even; a format's bits
// are that count, and more for the exponent. NaN gives infinity: how many there are is returned.
template <int P, int LEAST, int MOST>
std::int64_t rounded(const double* in, std::int64_t n, std::uint16_t* out) {
  const double top = number(static_cast<std::uint64_t>(MOST) << 52);
  const double normal = number(static_cast<std::uint64_t>(LEAST) << 52);
  const double far = 1.5 * number(static_cast<std::uint64_t>(1023 + 53 - P) << 52);
  std::int64_t unknown = 0;
  for (std::int64_t i = 0; i < n; i++) {
    const double x = in[i];
    const double size = least_of(std::fabs(x), top);
    const double power = power_below(size, normal);
    const double c = power * far;
    const std::uint64_t ulps = bits(size + c) - bits(c);
    const std::uint64_t more = ((bits(power) >> 52) - LEAST) << (P - 1);
    out[i] = static_cast<std::uint16_t>((ulps + more) | ((bits(x) >> 48) & 0x8000u));
    unknown += x != x ? 1 : 0;
  }
  return unknown;
}

inline float single(std::uint32_t b) {
  float x;
  std::memcpy(&x, &b, 4);
  return x;
}

// The number of a float16's bits: an exponent of another bias, or a count of the least number. Floats
// below float32's range are not multiplied, which takes processors a hundred cycles.
inline double of_half(std::uint16_t h) {
  const std::uint32_t b = h & 0x7FFFu;
  const double normal = single((b << 13) + (112u << 23));
  const double small = static_cast<double>(static_cast<std::int32_t>(b)) * 0x1p-24;
  const double special = number(0x7FF0000000000000ull | (static_cast<std::uint64_t>(b & 0x3FFu) << 42));
  const double size = b < 0x400u ? small : normal;
  const std::uint64_t sign = static_cast<std::uint64_t>(h & 0x8000u) << 48;
  return number(bits(b < 0x7C00u ? size : special) | sign);
}

}  // namespace tokitai

extern "C" {

// The next words of one of numpy's generators, by its own function.
void tokitai_words(std::uint64_t (*next)(void*), void* state, std::int64_t n, std::uint64_t* out) {
  for (std::int64_t i = 0; i < n; i++) out[i] = next(state);
}

void tokitai_normals(const std::uint64_t* raw, std::int64_t n, double* out) {
  using namespace tokitai;
  constexpr int BLOCK = 1024;
  double tails[BLOCK];
  std::int64_t places[BLOCK];
  for (std::int64_t start = 0; start < n; start += BLOCK) {
    const std::int64_t end = n - start < BLOCK ? n : start + BLOCK;
    for (std::int64_t i = start; i < end; i++) {
      const double q = centred(raw[i]), r = CENTRE_SHIFT - q * q;
      out[i] = polynomial(CENTRE_OVER, r) / polynomial(CENTRE_UNDER, r) * q;
    }
    // Tails one behind the other, so that they are put into vectors too.
    int count = 0;
    for (std::int64_t i = start; i < end; i++) {
      const double q = centred(raw[i]);
      tails[count] = q;
      places[count] = i;
      count += std::fabs(q) > CENTRE_HALF_WIDTH ? 1 : 0;
    }
    for (int k = 0; k < count; k++) tails[k] = of_the_tail(tails[k]);
    for (int k = 0; k < count; k++) out[places[k]] = tails[k];
  }
}

// To float16 (0) or bfloat16 (1); returns how many are NaN.
std::int64_t tokitai_round(int kind, const double* in, std::int64_t n, std::uint16_t* out) {
  return kind == 0 ? tokitai::rounded<11, 1009, 1039>(in, n, out)
                   : tokitai::rounded<8, 897, 1151>(in, n, out);
}

// From float16 (0) or bfloat16 (1).
void tokitai_widen(int kind, const std::uint16_t* __restrict in, std::int64_t n, double* __restrict out) {
  if (kind == 0)
    for (std::int64_t i = 0; i < n; i++) out[i] = tokitai::of_half(in[i]);
  else
    for (std::int64_t i = 0; i < n; i++) out[i] = tokitai::single(static_cast<std::uint32_t>(in[i]) << 16);
}

}  // extern "C"
