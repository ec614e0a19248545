// Stands for <hip/hip_complex.h>, on the cpu device and on cuda. The formulas are HIP's, without
// care for overflow.
#pragma once

#include <hip/hip_runtime.h>

#define TOKITAI_COMPLEX(T, V, TYPE, S, SQRT)                                                      \
  using TYPE = V;                                                                                 \
  TOKITAI_OURS TYPE make_##TYPE(T a, T b) { return make_##V(a, b); }                              \
  TOKITAI_OURS T hipCreal##S(TYPE z) { return z.x; }                                              \
  TOKITAI_OURS T hipCimag##S(TYPE z) { return z.y; }                                              \
  TOKITAI_OURS TYPE hipConj##S(TYPE z) { return make_##V(z.x, -z.y); }                            \
  TOKITAI_OURS T hipCsqabs##S(TYPE z) { return z.x * z.x + z.y * z.y; }                           \
  TOKITAI_OURS T hipCabs##S(TYPE z) { return SQRT(hipCsqabs##S(z)); }                             \
  TOKITAI_OURS TYPE hipCadd##S(TYPE p, TYPE q) { return make_##V(p.x + q.x, p.y + q.y); }         \
  TOKITAI_OURS TYPE hipCsub##S(TYPE p, TYPE q) { return make_##V(p.x - q.x, p.y - q.y); }         \
  TOKITAI_OURS TYPE hipCmul##S(TYPE p, TYPE q) {                                                  \
    return make_##V(p.x * q.x - p.y * q.y, p.y * q.x + p.x * q.y);                                \
  }                                                                                               \
  TOKITAI_OURS TYPE hipCdiv##S(TYPE p, TYPE q) {                                                  \
    const T square = hipCsqabs##S(q);                                                             \
    return make_##V((p.x * q.x + p.y * q.y) / square, (p.y * q.x - p.x * q.y) / square);          \
  }                                                                                               \
  TOKITAI_OURS TYPE hipCfma##S(TYPE p, TYPE q, TYPE r) {                                          \
    return make_##V(-(p.y * q.y) + (p.x * q.x + r.x), p.x * q.y + (q.x * p.y + r.y));             \
  }
TOKITAI_COMPLEX(float, float2, hipFloatComplex, f, sqrtf)
TOKITAI_COMPLEX(double, double2, hipDoubleComplex, , sqrt)
#undef TOKITAI_COMPLEX

using hipComplex = hipFloatComplex;
TOKITAI_OURS hipComplex make_hipComplex(float a, float b) { return make_float2(a, b); }
TOKITAI_OURS hipFloatComplex hipComplexDoubleToFloat(hipDoubleComplex z) {
  return make_float2(float(z.x), float(z.y));
}
TOKITAI_OURS hipDoubleComplex hipComplexFloatToDouble(hipFloatComplex z) {
  return make_double2(z.x, z.y);
}
