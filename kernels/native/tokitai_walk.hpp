// One pass over a chunk of an output beside its reference (tokitai_cli/judge/native_walk.py), where
// every element takes part and is finite on both sides.
#pragma once

#include "tokitai_bits.hpp"

namespace tokitai {

// A float format: its numbers as a double, and what its last rounding does.
struct Half {
  using Stored = std::uint16_t;
  static constexpr int precision = 11;
  static constexpr double unit = 0x1p-11, half = 0x1p-25, normal = 0x1p-14;
  static constexpr bool last = true;
  static double wide(Stored h) {
    std::uint32_t m = (h & 0x7FFFu) << 13;
    float f;
    std::memcpy(&f, &m, 4);
    f *= 0x1p112f;
    std::uint32_t c;
    std::memcpy(&c, &f, 4);
    c |= static_cast<std::uint32_t>(h & 0x8000u) << 16;
    std::memcpy(&f, &c, 4);
    return f;
  }
};

struct Brain {
  using Stored = std::uint16_t;
  static constexpr int precision = 8;
  static constexpr double unit = 0x1p-8, half = 0x1p-134, normal = 0x1p-126;
  static constexpr bool last = true;
  static double wide(Stored h) {
    const std::uint32_t c = static_cast<std::uint32_t>(h) << 16;
    float f;
    std::memcpy(&f, &c, 4);
    return f;
  }
};

// The accumulator's own format: there is no rounding behind it.
struct Single {
  using Stored = float;
  static constexpr int precision = 24;
  static constexpr double unit = 0x1p-24, half = 0x1p-150, normal = 0x1p-126;
  static constexpr bool last = false;
  static double wide(Stored f) { return f; }
};

constexpr int LEAST_EXPONENT = -20, BINS = 1025, MOST_FURTHER = 2;

struct Given {
  const double *reference, *below, *above;
  const void* got;
  const double* further[MOST_FURTHER];  // other errors e, as those that other outputs leave
  std::int64_t size, stride;            // elements, and of how many sizes one is kept
};

struct Made {
  double* over;                   // error over the bound
  double* over_further[MOST_FURTHER];
  double *ulp_sizes, *relative_sizes;  // samples of the bound's size
  double *signs, *outs;           // room for errors of inexact elements
  std::uint8_t* inexact;          // null where they are not asked for
  std::int64_t *ulp_bins, *over_bins;
};

struct Found {
  double max_abs, max_rel, max_ulp, max_over, max_allowance, max_further[MOST_FURTHER];
  double signed_sum, outward_sum, total, squares;
  double anchor_bound, anchor_ulp, largest_ulps, largest_relative, lean_signed, lean_outward;
  std::int64_t exact, anchor, ulp_count, relative_count, misrounded;
};

template <class F>
struct Walk {
  const Given& g;
  const Made& m;
  Found& f;
  bool some_exact;      // errors of 0 among them
  std::int64_t normals = 0, leaning = 0;
  struct Sums {
    double bias, outward, total, squares;
  };

  static double rounding(double e, double size, double own) {
    const double error = std::fabs(e);
    if (!F::last) return error;
    const double w = F::unit * (size + error), bound = error + (w > F::half ? w : F::half);
    return error == 0 ? own : bound;
  }

  static double over(double a, double bound) {
    const double q = a / bound;
    return q == q ? q : (a == 0 ? 0.0 : INFINITY);
  }

  static double top(const double* a, int n) {
    double v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    int i = 0;
    for (; i + 8 <= n; i += 8)
      for (int k = 0; k < 8; k++) v[k] = v[k] > a[i + k] ? v[k] : a[i + k];
    for (; i < n; i++) v[0] = v[0] > a[i] ? v[0] : a[i];
    double most = v[0];
    for (int k = 1; k < 8; k++) most = most > v[k] ? most : v[k];
    return most;
  }

  static std::int64_t exponent(double x) { return static_cast<std::int64_t>((bits(x) - 1) >> 52) - 1022; }

  Sums leaf(std::int64_t at, int n) {
    alignas(64) double got[LEAF], bias[LEAF], out[LEAF], sq[LEAF], ulps[LEAF], rel[LEAF], err[LEAF],
        bound[LEAF], steps[LEAF], wants[LEAF], allow[LEAF], bu[LEAF], br[LEAF], wrong[LEAF], mags[LEAF];
    const double *r = g.reference + at, *below = g.below + at, *above = g.above + at;
    const typename F::Stored* stored = static_cast<const typename F::Stored*>(g.got) + at;
    double* ov = m.over + at;
    for (int i = 0; i < n; i++) got[i] = F::wide(stored[i]);
    constexpr double to_magic = 1.5 * static_cast<double>(1ull << (53 - F::precision));
    constexpr double to_ulp = 1.0 / static_cast<double>(1ull << (F::precision - 1));
    const double exact_counts = some_exact ? 1.0 : 0.0;
    for (int i = 0; i < n; i++) {
      const double x = r[i], y = got[i], lo = below[i], hi = above[i];
      const double c = power_below(x, F::normal) * to_magic, want = (x + c) - c;
      const double step = power_below(want, F::normal) * to_ulp;
      const double back = number(0x7FE0000000000000ull - bits(step));  // a power of two's reciprocal
      const double s = y - x, size = std::fabs(x), a = std::fabs(s), own = std::fabs(want - x);
      const double side = s < 0 ? lo : hi, larger = lo > hi ? lo : hi;
      const double e = rounding(larger, size, own), es = rounding(side, size, own);
      double w = side == 0 ? exact_counts : 0.0;
      w = y != want ? w : 0.0;
      w = a == own ? w : 0.0;
      double q = a / es;
      q = a == 0 ? 0.0 : q;
      double relative = a / size;
      relative = a == 0 ? 0.0 : relative;
      double least = a;
      if (F::last) {
        const double by_unit = (a - F::unit * size) / (1 + F::unit), by_half = a - F::half;
        least = by_unit < by_half ? by_unit : by_half;
        least = least > 0 ? least : 0.0;
      }
      double allowance = least / side;
      allowance = least == 0 ? 0.0 : allowance;
      double sign = want > 0 ? 1.0 : 0.0;
      sign = want < 0 ? -1.0 : sign;
      const double t = s * back;
      bias[i] = t;
      out[i] = t * sign;
      sq[i] = x * x;
      ulps[i] = std::fabs(y - want) * back;
      rel[i] = relative;
      err[i] = a;
      mags[i] = size;
      bound[i] = e;
      allow[i] = allowance;
      wants[i] = want;
      steps[i] = step;
      wrong[i] = w;
      ov[i] = w != 0 ? INFINITY : q;
      bu[i] = e * back;
      const double share = e / size;
      br[i] = size >= F::normal ? share : -1.0;
    }
    for (int i = 0; i < n; i++) f.misrounded += wrong[i] != 0;
    f.max_abs = most_of(f.max_abs, top(err, n));
    f.max_rel = most_of(f.max_rel, top(rel, n));
    f.max_ulp = most_of(f.max_ulp, top(ulps, n));
    f.max_over = most_of(f.max_over, top(ov, n));
    f.max_allowance = most_of(f.max_allowance, top(allow, n));
    f.largest_ulps = most_of(f.largest_ulps, top(bu, n));
    f.largest_relative = most_of(f.largest_relative, top(br, n));
    for (int k = 0; k < MOST_FURTHER; k++) {
      if (g.further[k] == nullptr) continue;
      const double* error = g.further[k] + at;
      double* to = m.over_further[k] + at;
      for (int i = 0; i < n; i++) to[i] = over(err[i], rounding(error[i], mags[i], std::fabs(wants[i] - r[i])));
      f.max_further[k] = most_of(f.max_further[k], top(to, n));
    }
    anchored(at, n, bound, steps);
    sampled(at, n, bu, br);
    counted(n, ulps, ov);
    if (m.inexact != nullptr) {
      std::uint8_t* mark = m.inexact + at;
      for (int i = 0; i < n; i++) {
        mark[i] = wants[i] != r[i];
        m.signs[leaning] = bias[i];
        m.outs[leaning] = bias[i] * (r[i] > 0 ? 1.0 : -1.0);
        leaning += mark[i];
      }
    }
    return {leaf_sum(bias, n), leaf_sum(out, n), leaf_sum(r, n), leaf_sum(sq, n)};
  }

  void anchored(std::int64_t at, int n, const double* bound, const double* steps) {
    double v[8];
    for (double& one : v) one = INFINITY;
    int i = 0;
    for (; i + 8 <= n; i += 8)
      for (int k = 0; k < 8; k++) v[k] = v[k] < bound[i + k] ? v[k] : bound[i + k];
    for (; i < n; i++) v[0] = v[0] < bound[i] ? v[0] : bound[i];
    double least = v[0];
    for (int k = 1; k < 8; k++) least = least < v[k] ? least : v[k];
    if (!(least < f.anchor_bound)) return;
    f.anchor_bound = least;
    for (i = 0; i < n && bound[i] != least;) i++;
    f.anchor = at + i;
    f.anchor_ulp = steps[i];
  }

  // Every stride-th of the sizes, of those relative to the reference among the normal ones.
  void sampled(std::int64_t at, int n, const double* bu, const double* br) {
    for (std::int64_t i = (g.stride - at % g.stride) % g.stride; i < n; i += g.stride)
      m.ulp_sizes[f.ulp_count++] = bu[i];
    int normal = 0;
    for (int i = 0; i < n; i++) normal += br[i] >= 0;
    if (normal == n) {
      for (std::int64_t i = (g.stride - normals % g.stride) % g.stride; i < n; i += g.stride)
        m.relative_sizes[f.relative_count++] = br[i];
      normals += n;
      return;
    }
    for (int i = 0; i < n; i++) {
      if (!(br[i] >= 0)) continue;
      if (normals++ % g.stride == 0) m.relative_sizes[f.relative_count++] = br[i];
    }
  }

  void counted(int n, const double* ulps, const double* ov) {
    std::int64_t eu[LEAF], eo[LEAF];
    for (int i = 0; i < n; i++) {
      std::int64_t e = exponent(ulps[i]);
      e = e < 0 ? 0 : e;
      e = e > BINS - 1 ? BINS - 1 : e;
      eu[i] = ulps[i] == 0 ? BINS : e;
      e = exponent(ov[i]);
      e = e < LEAST_EXPONENT ? LEAST_EXPONENT : e;
      e = e > BINS - 1 ? BINS - 1 : e;
      eo[i] = ov[i] == 0 ? BINS - LEAST_EXPONENT : e - LEAST_EXPONENT;
    }
    for (int i = 0; i < n; i++) {
      m.ulp_bins[eu[i]]++;
      m.over_bins[eo[i]]++;
    }
  }

  Sums all(std::int64_t at, std::int64_t n) {
    if (n <= LEAF) return leaf(at, static_cast<int>(n));
    const std::int64_t half = half_of(n);
    const Sums x = all(at, half), y = all(at + half, n - half);
    return {x.bias + y.bias, x.outward + y.outward, x.total + y.total, x.squares + y.squares};
  }
};

template <class F>
void walk(const Given& g, const Made& m, Found& f) {
  std::memset(&f, 0, sizeof f);
  f.anchor_bound = INFINITY;
  f.anchor = -1;
  double zeros = 0;
  for (std::int64_t i = 0; i < g.size; i++)
    zeros += (g.below[i] > g.above[i] ? g.below[i] : g.above[i]) == 0 ? 1.0 : 0.0;
  Walk<F> w{g, m, f, zeros != 0};
  const auto sums = w.all(0, g.size);
  f.signed_sum = sums.bias;
  f.outward_sum = sums.outward;
  f.total = sums.total;
  f.squares = sums.squares;
  f.exact = m.ulp_bins[BINS];
  if (m.inexact != nullptr) {
    f.lean_signed = pairwise_sum(m.signs, w.leaning);
    f.lean_outward = pairwise_sum(m.outs, w.leaning);
  }
}

}  // namespace tokitai

extern "C" {

// Kinds: float16, bfloat16, float32.
void tokitai_walk(int kind, const tokitai::Given* given, const tokitai::Made* made, tokitai::Found* found) {
  using namespace tokitai;
  if (kind == 0)
    walk<Half>(*given, *made, *found);
  else if (kind == 1)
    walk<Brain>(*given, *made, *found);
  else
    walk<Single>(*given, *made, *found);
}

}  // extern "C"
