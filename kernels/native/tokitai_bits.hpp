// Formats, rounding and sums as numpy and the tool's own numpy code have them, to the bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tokitai {

inline std::uint64_t bits(double x) {
  std::uint64_t b;
  std::memcpy(&b, &x, 8);
  return b;
}

inline double number(std::uint64_t b) {
  double x;
  std::memcpy(&x, &b, 8);
  return x;
}

// The power of two at or below a positive number, and a least one.
inline double power_below(double x, double least) {
  const double power = number(bits(x) & 0x7FF0000000000000ull);
  return power > least ? power : least;
}

inline double least_of(double a, double b) { return a < b ? a : b; }
inline double most_of(double a, double b) { return a > b ? a : b; }

// 1.0 for a number of float32, else 0.0. By adding and taking away 1.5 2^52 of its ulp, which rounds to
// a multiple of that: compilers put no conversion to float and back into vectors here.
inline double is_float(double x) {
  const double c = power_below(x, 0x1p-126) * 0x1.8p29;
  const double same = (x + c) - c == x ? 1.0 : 0.0;
  return std::fabs(x) < 0x1p128 ? same : 0.0;
}

// 0 where sums of a block of such numbers are finite too, 1 elsewhere and for NaN.
inline std::int64_t large(double x) { return std::fabs(x) <= 1e290 ? 0 : 1; }

constexpr int LEAF = 128;

// numpy's sum of up to 128 contiguous numbers: eight accumulators.
inline double leaf_sum(const double* a, std::int64_t n) {
  if (n < 8) {
    double s = 0;
    for (std::int64_t i = 0; i < n; i++) s += a[i];
    return s;
  }
  double v[8];
  for (int k = 0; k < 8; k++) v[k] = a[k];
  std::int64_t i = 8;
  for (; i < n - n % 8; i += 8)
    for (int k = 0; k < 8; k++) v[k] += a[i + k];
  double s = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
  for (; i < n; i++) s += a[i];
  return s;
}

// Where numpy cuts a longer sum in two.
inline std::int64_t half_of(std::int64_t n) { return n / 2 - (n / 2) % 8; }

inline double pairwise_sum(const double* a, std::int64_t n) {
  if (n <= LEAF) return leaf_sum(a, n);
  const std::int64_t half = half_of(n);
  return pairwise_sum(a, half) + pairwise_sum(a + half, n - half);
}

}  // namespace tokitai
