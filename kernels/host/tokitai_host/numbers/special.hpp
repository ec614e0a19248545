// Functions of HIP that C lacks and that are no formula: inverses of the error function by
// Newton's iteration, Bessel functions by their series, norms of arrays.
#pragma once

#include "../math.hpp"

namespace tokitai {

// y with erfc(y) = x, for 0 < x < 2: Giles's first value, then Newton's steps in the tail's own
// terms.
inline double inverse_erfc(double x) {
  if (!(x > 0 && x < 2)) return x == 0 ? HUGE_VAL : x == 2 ? -HUGE_VAL : __builtin_nan("");
  if (x == 1) return 0;
  const double tail = x < 1 ? x : 2 - x, root = sqrt(-2 * log(tail / 2));
  double y =
      (root - (2.30753 + 0.27061 * root) / (1 + root * (0.99229 + root * 0.04481))) / sqrt(2);
  for (int i = 0; i < 4; i++) {  // Halley's
    const double error = (erfc(y) - tail) / (2 / sqrt(pi) * exp(-y * y));
    y += error / (1 + y * error);
  }
  return x < 1 ? y : -y;
}
inline double inverse_erf(double x) {
  if (fabs(x) > 0.5) return x > 0 ? inverse_erfc(1 - x) : -inverse_erfc(1 + x);
  double y = x * sqrt(pi) / 2;
  for (int i = 0; i < 5; i++) y -= (erf(y) - x) / (2 / sqrt(pi) * exp(-y * y));
  return y;
}
// I0 or I1: all terms of the series have one sign.
inline double bessel_i(int order, double x) {
  double term = order ? x / 2 : 1, sum = term;
  for (int k = 1; k < 2000 && term != 0 && fabs(term) > fabs(sum) * 1e-18; k++) {
    term *= x * x / 4 / (double(k) * (k + order));
    sum += term;
  }
  return sum;
}
template <class T>
inline double norm_of(int count, const T* values) {
  double scale = 0, sum = 0;
  for (int i = 0; i < count; i++) scale = fmax(scale, fabs(double(values[i])));
  if (scale == 0 || scale > DBL_MAX) return scale;
  for (int i = 0; i < count; i++) sum += values[i] / scale * (values[i] / scale);
  return scale * sqrt(sum);
}

}  // namespace tokitai

#define TOKITAI_SPECIAL(NAME, EXPRESSION)                                                         \
  TOKITAI_OURS double NAME(double x) { return EXPRESSION; }                                       \
  TOKITAI_OURS float NAME##f(float value) {                                                       \
    const double x = value;                                                                       \
    return float(EXPRESSION);                                                                     \
  }
TOKITAI_SPECIAL(erfinv, tokitai::inverse_erf(x))
TOKITAI_SPECIAL(erfcinv, tokitai::inverse_erfc(x))
TOKITAI_SPECIAL(normcdfinv, -sqrt(2.0) * tokitai::inverse_erfc(2 * x))
TOKITAI_SPECIAL(cyl_bessel_i0, tokitai::bessel_i(0, x))
TOKITAI_SPECIAL(cyl_bessel_i1, tokitai::bessel_i(1, x))
#undef TOKITAI_SPECIAL
TOKITAI_OURS float erfcxf(float x) { return float(exp(double(x) * x) * erfc(double(x))); }
TOKITAI_OURS float powif(float x, int n) { return float(pow(double(x), n)); }
TOKITAI_OURS double powi(double x, int n) { return pow(x, n); }
TOKITAI_OURS double norm(int count, const double* values) {
  return tokitai::norm_of(count, values);
}
TOKITAI_OURS float normf(int count, const float* values) {
  return float(tokitai::norm_of(count, values));
}
TOKITAI_OURS double rnorm(int count, const double* values) { return 1 / norm(count, values); }
TOKITAI_OURS float rnormf(int count, const float* values) {
  return float(1 / tokitai::norm_of(count, values));
}
TOKITAI_OURS double norm4d(double x, double y, double z, double w) {
  return hypot(hypot(x, y), hypot(z, w));
}
TOKITAI_OURS double rnorm3d(double x, double y, double z) { return 1 / norm3d(x, y, z); }
TOKITAI_OURS double rnorm4d(double x, double y, double z, double w) {
  return 1 / norm4d(x, y, z, w);
}
TOKITAI_OURS float rnorm3df(float x, float y, float z) { return float(1 / norm3d(x, y, z)); }
TOKITAI_OURS float rnorm4df(float x, float y, float z, float w) {
  return float(1 / norm4d(x, y, z, w));
}
