// Rules of operations on blocks of tracked numbers (tokitai_cli/oracles/formula: parts, arithmetic,
// unary, bounds), where all is finite and nothing overflows or is flushed; numpy has all other blocks.
#pragma once

#include "tokitai_bits.hpp"

namespace tokitai {

constexpr double OWN = 0x1p-52;        // parts.OWN
constexpr double BOUNDS_OWN = 0x1p-50;  // bounds._OWN

// One operand: its values and both ends, with the distance in elements between rows and within them.
struct Operand {
  const double *v, *lo, *hi;
  std::int64_t outer, inner;
};

// What a rounding may do.
struct Permit {
  double relative;  // OWN + extra u
  double unit;      // u and a little
  double half;      // half a step of subnormal numbers
  double ceiling;   // least magnitude that overflows
};

enum Outcome : int { BY_NUMPY = 0, POINT = 1, INTERVAL = 2 };

// exact: 1.0 where the result needs no rounding, else 0.0. Conditions are numbers here, and chosen by
// selects alone, since compilers put no mixed masks into vectors.
struct Ends {
  double lo, hi, exact;
};

struct Seen {
  std::int64_t other = 0, rounded = 0;  // numbers that numpy must see to, and inexact ones
};

inline double lowered(double low, const Permit& p) {
  const double down = low - most_of(p.unit * std::fabs(low), p.half);
  const double inside = down < 0 ? 0.0 : down;
  return low >= 0 ? inside : down;
}

inline void put(const Ends& e, const Permit& p, double& lo, double& hi, Seen& seen) {
  const double low = e.lo - p.relative * std::fabs(e.lo);
  const double high = e.hi + p.relative * std::fabs(e.hi);
  const double down = lowered(low, p), up = -lowered(-high, p);
  seen.other += (low > -p.ceiling ? 0 : 1) + (high < p.ceiling ? 0 : 1) + large(e.lo) + large(e.hi);
  seen.rounded += e.exact != 0 ? 0 : 1;
  lo = e.exact != 0 ? e.lo : down;
  hi = e.exact != 0 ? e.hi : up;
}

struct Add {
  static double value(double a, double b) { return a + b; }
  static Ends ends(double, double, double al, double ah, double bl, double bh) {
    const double lo = al + bl, hi = ah + bh, back = lo - al;
    const double off = (al - (lo - back)) + (bl - back);
    double exact = al == ah ? 1.0 : 0.0;
    exact = bl == bh ? exact : 0.0;
    exact = lo == hi ? exact : 0.0;
    exact *= is_float(lo);
    exact = off == 0 ? exact : 0.0;
    return {lo, hi, exact};
  }
};

struct Subtract {
  static double value(double a, double b) { return a - b; }
  static Ends ends(double a, double b, double al, double ah, double bl, double bh) {
    return Add::ends(a, -b, al, ah, -bh, -bl);
  }
};

struct Multiply {
  static double value(double a, double b) { return a * b; }
  static Ends ends(double, double, double al, double ah, double bl, double bh) {
    const double ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
    const double lo = least_of(least_of(ll, lh), least_of(hl, hh));
    const double hi = most_of(most_of(ll, lh), most_of(hl, hh));
    const double single = is_float(lo);
    return {lo, hi, lo == hi ? single : 0.0};
  }
};

// Both points: exact by a division and by a reciprocal. Else nothing is exact.
template <bool POINTS>
struct Divide {
  static double value(double a, double b) { return a / b; }
  static Ends ends(double a, double b, double al, double ah, double bl, double bh) {
    if (POINTS) {
      const double v = a / b;
      const double power = number(bits(b) & 0xFFF0000000000000ull);  // of two, and the sign
      double exact = power == b ? 1.0 : 0.0;
      exact = a == 0 ? 1.0 : exact;
      exact *= is_float(v);
      return {v, v, v * b == a ? exact : 0.0};
    }
    const double ll = al / bl, lh = al / bh, hl = ah / bl, hh = ah / bh;
    return {least_of(least_of(ll, lh), least_of(hl, hh)), most_of(most_of(ll, lh), most_of(hl, hh)),
            0.0};
  }
};

// A and B: 1 where the operand has a number for each element, 0 for one number. Not put into its
// caller, where compilers forget that results overlap no operand.
template <class Rule, int A, int B>
[[gnu::noinline]] void row(const Operand& a, const Operand& b, std::int64_t at, std::int64_t bt, std::int64_t n,
         double* __restrict v, double* __restrict lo, double* __restrict hi, const Permit& permit,
         Seen& seen) {
  const double *av = a.v + at, *al = a.lo + at, *ah = a.hi + at;
  const double *bv = b.v + bt, *bl = b.lo + bt, *bh = b.hi + bt;
  const double av0 = *av, al0 = *al, ah0 = *ah, bv0 = *bv, bl0 = *bl, bh0 = *bh;
  const Permit p = permit;
  Seen here;
  for (std::int64_t i = 0; i < n; i++) {
    const double x = A ? av[i] : av0, xl = A ? al[i] : al0, xh = A ? ah[i] : ah0;
    const double y = B ? bv[i] : bv0, yl = B ? bl[i] : bl0, yh = B ? bh[i] : bh0;
    v[i] = Rule::value(x, y);
    here.other += large(xl) + large(xh) + large(yl) + large(yh);
    put(Rule::ends(x, y, xl, xh, yl, yh), p, lo[i], hi[i], here);
  }
  seen.other += here.other;
  seen.rounded += here.rounded;
}

template <class Rule>
int binary(const Operand& a, const Operand& b, std::int64_t rows, std::int64_t n, double* v, double* lo,
           double* hi, const Permit& p) {
  Seen seen;
  for (std::int64_t r = 0; r < rows; r++) {
    const std::int64_t to = r * n, at = r * a.outer, bt = r * b.outer;
    if (a.inner && b.inner)
      row<Rule, 1, 1>(a, b, at, bt, n, v + to, lo + to, hi + to, p, seen);
    else if (a.inner)
      row<Rule, 1, 0>(a, b, at, bt, n, v + to, lo + to, hi + to, p, seen);
    else
      row<Rule, 0, 1>(a, b, at, bt, n, v + to, lo + to, hi + to, p, seen);
    if (seen.other != 0) return BY_NUMPY;
  }
  const bool points = a.lo == a.v && a.hi == a.v && b.lo == b.v && b.hi == b.v;
  return points && seen.rounded == 0 ? POINT : INTERVAL;
}

// Whether all of a divisor is above 0, or below.
inline bool one_sign(const Operand& b, std::int64_t rows, std::int64_t n) {
  const std::int64_t across = b.inner ? n : 1, down = b.outer ? rows : 1;
  std::int64_t positive = 0, negative = 0;
  for (std::int64_t r = 0; r < down; r++)
    for (std::int64_t i = 0; i < across; i++) {
      positive += b.lo[r * b.outer + i] > 0 ? 0 : 1;
      negative += b.hi[r * b.outer + i] < 0 ? 0 : 1;
    }
  return positive == 0 || negative == 0;
}

// unary.Monotone, of which numpy has computed the function at both ends.
struct Function {
  double relative, least, ceiling;  // error of the function, and where it overflows
  double bottom, top, flat;         // values that it cannot leave; see Monotone
  double tail, normal;
  double exact[3];
  std::int64_t exacts, flushes;
};

}  // namespace tokitai

extern "C" {

// Kinds: + - * /. Returns an Outcome.
int tokitai_binary(int kind, const tokitai::Operand* a, const tokitai::Operand* b, std::int64_t rows,
                   std::int64_t n, double* v, double* lo, double* hi, const tokitai::Permit* p) {
  using namespace tokitai;
  switch (kind) {
    case 0: return binary<Add>(*a, *b, rows, n, v, lo, hi, *p);
    case 1: return binary<Subtract>(*a, *b, rows, n, v, lo, hi, *p);
    case 2: return binary<Multiply>(*a, *b, rows, n, v, lo, hi, *p);
    default: break;
  }
  if (!one_sign(*b, rows, n)) return BY_NUMPY;
  const bool points = a->lo == a->v && a->hi == a->v && b->lo == b->v && b->hi == b->v;
  return points ? binary<Divide<true>>(*a, *b, rows, n, v, lo, hi, *p)
                : binary<Divide<false>>(*a, *b, rows, n, v, lo, hi, *p);
}

int tokitai_square(const tokitai::Operand* a, std::int64_t n, double* __restrict v, double* __restrict lo,
                   double* __restrict hi, const tokitai::Permit* permit) {
  using namespace tokitai;
  const double *av = a->v, *al = a->lo, *ah = a->hi;
  const Permit p = *permit;
  Seen seen;
  for (std::int64_t i = 0; i < n; i++) {
    const double low = std::fabs(al[i]), high = std::fabs(ah[i]);
    const double closer = least_of(low, high), within = ah[i] >= 0 ? 0.0 : closer;
    const double near = al[i] <= 0 ? within : closer;
    const double far = most_of(low, high), least = near * near, most = far * far;
    v[i] = av[i] * av[i];
    seen.other += large(al[i]) + large(ah[i]);
    const double single = is_float(least);
    put({least, most, least == most ? single : 0.0}, p, lo[i], hi[i], seen);
  }
  if (seen.other != 0) return BY_NUMPY;
  return al == av && ah == av && seen.rounded == 0 ? POINT : INTERVAL;
}

// parts.rounded of ends that are finite, none of them exact.
int tokitai_rounded(const double* __restrict a, const double* __restrict b, std::int64_t n,
                    double* __restrict lo, double* __restrict hi, const tokitai::Permit* permit) {
  using namespace tokitai;
  const Permit p = *permit;
  Seen seen;
  for (std::int64_t i = 0; i < n; i++) put({a[i], b[i], 0.0}, p, lo[i], hi[i], seen);
  return seen.other != 0 ? BY_NUMPY : INTERVAL;
}

// low and high: the function at from and to.
int tokitai_function(const double* __restrict from, const double* __restrict to,
                     const double* __restrict low, const double* __restrict high, std::int64_t n,
                     double* __restrict lo, double* __restrict hi, const tokitai::Function* function) {
  using namespace tokitai;
  const Function f = *function;
  std::int64_t other = 0;
  for (std::int64_t i = 0; i < n; i++) {
    double down = low[i] - (f.relative * std::fabs(low[i]) + f.least);
    double up = high[i] + (f.relative * std::fabs(high[i]) + f.least);
    other += (up < f.ceiling ? 0 : 1) + large(from[i]) + large(to[i]) + large(low[i]) + large(high[i]);
    down = least_of(down, f.ceiling);
    down = f.flushes && (down < f.normal) & (down > 0) ? 0.0 : down;
    down = most_of(down, f.bottom);
    up = least_of(up, f.top);
    const bool sole = from[i] == to[i];
    for (int k = 0; k < 3; k++) {
      const bool used = k < f.exacts;
      down = used & (from[i] == f.exact[k]) & (sole | (low[i] == 0)) ? low[i] : down;
      up = used & (to[i] == f.exact[k]) & (sole | (high[i] == 0)) ? high[i] : up;
    }
    down = from[i] >= f.flat ? low[i] - f.tail : down;
    up = to[i] <= -f.flat ? high[i] + f.tail : up;
    lo[i] = least_of(down, low[i]);
    hi[i] = most_of(up, high[i]);
  }
  return other != 0 ? BY_NUMPY : INTERVAL;
}

// bounds._sides.
void tokitai_sides(const double* __restrict v, const double* __restrict lo, const double* __restrict hi,
                   std::int64_t n, double* __restrict below, double* __restrict above) {
  for (std::int64_t i = 0; i < n; i++) {
    const double slack = std::fabs(v[i]) * (4 * 0x1p-53), under = v[i] - lo[i], over = hi[i] - v[i];
    below[i] = under > 0 ? under * (1 + tokitai::BOUNDS_OWN) + slack : 0.0;
    above[i] = over > 0 ? over * (1 + tokitai::BOUNDS_OWN) + slack : 0.0;
  }
}

}  // extern "C"
