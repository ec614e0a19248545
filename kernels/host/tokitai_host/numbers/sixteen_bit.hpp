// Functions that both 16-bit types have, taken in once for each: TOKITAI_T is the type, TOKITAI_T2
// its pair. Every operation is that of floats, rounded once more, which is harmless for sums,
// products, quotients and roots (see half.hpp).

#define TOKITAI_ARITHMETIC(OP, NAME, NAME2)                                                       \
  TOKITAI_OURS TOKITAI_T operator OP(TOKITAI_T a, TOKITAI_T b) {                                  \
    return TOKITAI_T(float(a) OP float(b));                                                       \
  }                                                                                               \
  TOKITAI_OURS TOKITAI_T& operator OP## = (TOKITAI_T & a, TOKITAI_T b) { return a = a OP b; }     \
  TOKITAI_OURS TOKITAI_T2 operator OP(TOKITAI_T2 a, TOKITAI_T2 b) {                               \
    return {a.x OP b.x, a.y OP b.y};                                                              \
  }                                                                                               \
  TOKITAI_OURS TOKITAI_T2& operator OP## = (TOKITAI_T2 & a, TOKITAI_T2 b) { return a = a OP b; }  \
  TOKITAI_OURS TOKITAI_T NAME(TOKITAI_T a, TOKITAI_T b) { return a OP b; }                        \
  TOKITAI_OURS TOKITAI_T2 NAME2(TOKITAI_T2 a, TOKITAI_T2 b) { return a OP b; }                    \
  TOKITAI_OURS TOKITAI_T NAME##_rn(TOKITAI_T a, TOKITAI_T b) { return a OP b; }                   \
  TOKITAI_OURS TOKITAI_T2 NAME2##_rn(TOKITAI_T2 a, TOKITAI_T2 b) { return a OP b; }               \
  TOKITAI_OURS TOKITAI_T NAME##_sat(TOKITAI_T a, TOKITAI_T b) {                                   \
    return TOKITAI_T(__saturatef(float(a OP b)));                                                 \
  }                                                                                               \
  TOKITAI_OURS TOKITAI_T2 NAME2##_sat(TOKITAI_T2 a, TOKITAI_T2 b) {                               \
    return {NAME##_sat(a.x, b.x), NAME##_sat(a.y, b.y)};                                          \
  }
TOKITAI_ARITHMETIC(+, __hadd, __hadd2)
TOKITAI_ARITHMETIC(-, __hsub, __hsub2)
TOKITAI_ARITHMETIC(*, __hmul, __hmul2)
TOKITAI_ARITHMETIC(/, __hdiv, __h2div)
#undef TOKITAI_ARITHMETIC

TOKITAI_OURS TOKITAI_T operator+(TOKITAI_T a) { return a; }
TOKITAI_OURS TOKITAI_T operator-(TOKITAI_T a) {
  return a.tokitai_with_bits(a.tokitai_bits() ^ 0x8000u);
}
TOKITAI_OURS TOKITAI_T2 operator+(TOKITAI_T2 a) { return a; }
TOKITAI_OURS TOKITAI_T2 operator-(TOKITAI_T2 a) { return {-a.x, -a.y}; }
#define TOKITAI_STEP(OP)                                                                          \
  TOKITAI_OURS TOKITAI_T& operator OP##OP(TOKITAI_T& a) { return a = a OP TOKITAI_T(1.0f); }      \
  TOKITAI_OURS TOKITAI_T operator OP##OP(TOKITAI_T& a, int) {                                     \
    const TOKITAI_T old = a;                                                                      \
    a = a OP TOKITAI_T(1.0f);                                                                     \
    return old;                                                                                   \
  }
TOKITAI_STEP(+)
TOKITAI_STEP(-)
#undef TOKITAI_STEP

TOKITAI_OURS TOKITAI_T __hneg(TOKITAI_T a) { return -a; }
TOKITAI_OURS TOKITAI_T2 __hneg2(TOKITAI_T2 a) { return -a; }
TOKITAI_OURS TOKITAI_T __habs(TOKITAI_T a) {
  return a.tokitai_with_bits(a.tokitai_bits() & 0x7fffu);
}
TOKITAI_OURS TOKITAI_T2 __habs2(TOKITAI_T2 a) { return {__habs(a.x), __habs(a.y)}; }
TOKITAI_OURS TOKITAI_T __hfma(TOKITAI_T a, TOKITAI_T b, TOKITAI_T c) {
  return tokitai::fused(a, b, c);
}
TOKITAI_OURS TOKITAI_T2 __hfma2(TOKITAI_T2 a, TOKITAI_T2 b, TOKITAI_T2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
TOKITAI_OURS TOKITAI_T __hfma_sat(TOKITAI_T a, TOKITAI_T b, TOKITAI_T c) {
  return TOKITAI_T(__saturatef(float(__hfma(a, b, c))));
}
TOKITAI_OURS TOKITAI_T __hfma_relu(TOKITAI_T a, TOKITAI_T b, TOKITAI_T c) {
  const float sum = __hfma(a, b, c);
  return TOKITAI_T(sum < 0 ? 0.0f : sum);
}
TOKITAI_OURS bool __hisnan(TOKITAI_T a) { return float(a) != float(a); }
TOKITAI_OURS TOKITAI_T2 __hisnan2(TOKITAI_T2 a) {
  return {TOKITAI_T(float(__hisnan(a.x))), TOKITAI_T(float(__hisnan(a.y)))};
}
// A number goes before a NaN; the _nan forms let a NaN through.
#define TOKITAI_EXTREME(NAME, FUNCTION)                                                           \
  TOKITAI_OURS TOKITAI_T NAME(TOKITAI_T a, TOKITAI_T b) {                                         \
    return TOKITAI_T(FUNCTION(float(a), float(b)));                                               \
  }                                                                                               \
  TOKITAI_OURS TOKITAI_T NAME##_nan(TOKITAI_T a, TOKITAI_T b) {                                   \
    return __hisnan(a) ? a : __hisnan(b) ? b : NAME(a, b);                                        \
  }                                                                                               \
  TOKITAI_OURS TOKITAI_T2 NAME##2(TOKITAI_T2 a, TOKITAI_T2 b) {                                   \
    return {NAME(a.x, b.x), NAME(a.y, b.y)};                                                      \
  }
TOKITAI_EXTREME(__hmax, fmaxf)
TOKITAI_EXTREME(__hmin, fminf)
#undef TOKITAI_EXTREME

// Each comparison ordered and, with u, unordered: true where either is a NaN. Of pairs by
// component as 1 and 0 (2), as all bits and none (2_mask), and of both at once (b...2).
#define TOKITAI_COMPARE(NAME, RESULT)                                                             \
  TOKITAI_OURS bool __h##NAME(TOKITAI_T a, TOKITAI_T b) { return RESULT; }                        \
  TOKITAI_OURS TOKITAI_T2 __h##NAME##2(TOKITAI_T2 a, TOKITAI_T2 b) {                              \
    return {TOKITAI_T(float(__h##NAME(a.x, b.x))), TOKITAI_T(float(__h##NAME(a.y, b.y)))};        \
  }                                                                                               \
  TOKITAI_OURS unsigned __h##NAME##2_mask(TOKITAI_T2 a, TOKITAI_T2 b) {                           \
    return (__h##NAME(a.x, b.x) ? 0xffffu : 0u) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0u);       \
  }                                                                                               \
  TOKITAI_OURS bool __hb##NAME##2(TOKITAI_T2 a, TOKITAI_T2 b) {                                   \
    return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y);                                            \
  }
#define TOKITAI_COMPARISON(OP, NAME)                                                              \
  TOKITAI_OURS bool operator OP(TOKITAI_T a, TOKITAI_T b) { return float(a) OP float(b); }        \
  TOKITAI_COMPARE(NAME, a OP b)                                                                   \
  TOKITAI_COMPARE(NAME##u, a OP b || __hisnan(a) || __hisnan(b))
TOKITAI_COMPARISON(==, eq)
TOKITAI_COMPARISON(!=, ne)
TOKITAI_COMPARISON(<, lt)
TOKITAI_COMPARISON(<=, le)
TOKITAI_COMPARISON(>, gt)
TOKITAI_COMPARISON(>=, ge)
#undef TOKITAI_COMPARISON
#undef TOKITAI_COMPARE
TOKITAI_OURS bool operator==(TOKITAI_T2 a, TOKITAI_T2 b) { return __hbeq2(a, b); }
TOKITAI_OURS bool operator!=(TOKITAI_T2 a, TOKITAI_T2 b) { return !(a == b); }

#define TOKITAI_FUNCTION(NAME, EXPRESSION)                                                        \
  TOKITAI_OURS TOKITAI_T h##NAME(TOKITAI_T a) {                                                   \
    const float x = a;                                                                            \
    return TOKITAI_T(EXPRESSION);                                                                 \
  }                                                                                               \
  TOKITAI_OURS TOKITAI_T2 h2##NAME(TOKITAI_T2 a) { return {h##NAME(a.x), h##NAME(a.y)}; }
TOKITAI_FUNCTION(sqrt, sqrtf(x))
TOKITAI_FUNCTION(rsqrt, rsqrtf(x))
TOKITAI_FUNCTION(rcp, 1.0f / x)
TOKITAI_FUNCTION(exp, expf(x))
TOKITAI_FUNCTION(exp2, exp2f(x))
TOKITAI_FUNCTION(exp10, exp10f(x))
TOKITAI_FUNCTION(log, logf(x))
TOKITAI_FUNCTION(log2, log2f(x))
TOKITAI_FUNCTION(log10, log10f(x))
TOKITAI_FUNCTION(sin, sinf(x))
TOKITAI_FUNCTION(cos, cosf(x))
TOKITAI_FUNCTION(tanh, tanhf(x))
TOKITAI_FUNCTION(trunc, truncf(x))
TOKITAI_FUNCTION(ceil, ceilf(x))
TOKITAI_FUNCTION(floor, floorf(x))
TOKITAI_FUNCTION(rint, rintf(x))
#undef TOKITAI_FUNCTION

TOKITAI_OURS float __low2float(TOKITAI_T2 v) { return float(v.x); }
TOKITAI_OURS float __high2float(TOKITAI_T2 v) { return float(v.y); }
TOKITAI_OURS TOKITAI_T2 __lowhigh2highlow(TOKITAI_T2 v) { return {v.y, v.x}; }

#define TOKITAI_ATOMIC(NAME)                                                                      \
  TOKITAI_OURS TOKITAI_T NAME(TOKITAI_T* address, TOKITAI_T value) {                              \
    return tokitai::atomic_update<unsigned short>(                                                \
        address, [value](TOKITAI_T old) -> TOKITAI_T { return old + value; });                    \
  }                                                                                               \
  TOKITAI_OURS TOKITAI_T2 NAME(TOKITAI_T2* address, TOKITAI_T2 value) {                           \
    return tokitai::atomic_update<unsigned>(                                                      \
        address, [value](TOKITAI_T2 old) -> TOKITAI_T2 { return old + value; });                  \
  }
TOKITAI_ATOMIC(atomicAdd)
TOKITAI_ATOMIC(unsafeAtomicAdd)
TOKITAI_ATOMIC(safeAtomicAdd)
#undef TOKITAI_ATOMIC
#undef TOKITAI_T
#undef TOKITAI_T2
