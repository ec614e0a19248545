// Stands for <helper_math.h> of CUDA's samples on the cpu device, where a program comes without it: functions of
// vectors, lane by lane. Operators are HIP's.
#pragma once

#include <hip/hip_runtime.h>

namespace tokitai {
template <class T, unsigned n>
using Lanes = HIP_vector_type<T, n>;
template <class T, unsigned n, class F>
inline Lanes<T, n> each_lane(F function) {
  Lanes<T, n> result;
  for (unsigned i = 0; i < n; i++) result.data[i] = function(i);
  return result;
}
}  // namespace tokitai

#define TOKITAI_MADE(T, NAME)                                                                             \
  template <class S, tokitai::Where<std::is_arithmetic<S>::value> = 0>                                    \
  inline T##2 make_##T##2(S s) { return make_##T##2(NAME(s), NAME(s)); }                                  \
  template <class S, tokitai::Where<std::is_arithmetic<S>::value> = 0>                                    \
  inline T##3 make_##T##3(S s) { return make_##T##3(NAME(s), NAME(s), NAME(s)); }                         \
  template <class S, tokitai::Where<std::is_arithmetic<S>::value> = 0>                                    \
  inline T##4 make_##T##4(S s) { return make_##T##4(NAME(s), NAME(s), NAME(s), NAME(s)); }                \
  template <class S, unsigned n, tokitai::Where<(n > 1)> = 0>                                             \
  inline T##2 make_##T##2(const HIP_vector_type<S, n>& v) { return make_##T##2(NAME(v.x), NAME(v.y)); }   \
  template <class S>                                                                                      \
  inline T##3 make_##T##3(const HIP_vector_type<S, 2>& v) { return make_##T##3(NAME(v.x), NAME(v.y), NAME(0)); } \
  template <class S, class U, tokitai::Where<std::is_arithmetic<U>::value> = 0>                           \
  inline T##3 make_##T##3(const HIP_vector_type<S, 2>& v, U z) {                                          \
    return make_##T##3(NAME(v.x), NAME(v.y), NAME(z));                                                    \
  }                                                                                                       \
  template <class S, unsigned n, tokitai::Where<(n > 2)> = 0>                                             \
  inline T##3 make_##T##3(const HIP_vector_type<S, n>& v) {                                               \
    return make_##T##3(NAME(v.x), NAME(v.y), NAME(v.z));                                                  \
  }                                                                                                       \
  template <class S>                                                                                      \
  inline T##4 make_##T##4(const HIP_vector_type<S, 3>& v) {                                               \
    return make_##T##4(NAME(v.x), NAME(v.y), NAME(v.z), NAME(0));                                         \
  }                                                                                                       \
  template <class S, class U, tokitai::Where<std::is_arithmetic<U>::value> = 0>                           \
  inline T##4 make_##T##4(const HIP_vector_type<S, 3>& v, U w) {                                          \
    return make_##T##4(NAME(v.x), NAME(v.y), NAME(v.z), NAME(w));                                         \
  }                                                                                                       \
  template <class S>                                                                                      \
  inline T##4 make_##T##4(const HIP_vector_type<S, 4>& v) {                                               \
    return make_##T##4(NAME(v.x), NAME(v.y), NAME(v.z), NAME(v.w));                                       \
  }
TOKITAI_MADE(float, float)
TOKITAI_MADE(int, int)
TOKITAI_MADE(uint, unsigned)
#undef TOKITAI_MADE

// Of one and of two vectors, lane by lane.
#define TOKITAI_LANES_OF_ONE(NAME, VALUE)                                     \
  template <unsigned n>                                                       \
  inline tokitai::Lanes<float, n> NAME(const HIP_vector_type<float, n>& v) {  \
    return tokitai::each_lane<float, n>([&](unsigned i) { return VALUE; });   \
  }
#define TOKITAI_LANES_OF_TWO(T, NAME, VALUE)                                                                \
  template <unsigned n>                                                                                     \
  inline tokitai::Lanes<T, n> NAME(const HIP_vector_type<T, n>& a, const HIP_vector_type<T, n>& b) {        \
    return tokitai::each_lane<T, n>([&](unsigned i) { return VALUE; });                                     \
  }
TOKITAI_LANES_OF_ONE(floorf, ::floorf(v.data[i]))
TOKITAI_LANES_OF_ONE(fabs, ::fabsf(v.data[i]))
TOKITAI_LANES_OF_ONE(fracf, v.data[i] - ::floorf(v.data[i]))
TOKITAI_LANES_OF_TWO(float, fminf, ::fminf(a.data[i], b.data[i]))
TOKITAI_LANES_OF_TWO(float, fmaxf, ::fmaxf(a.data[i], b.data[i]))
TOKITAI_LANES_OF_TWO(float, fmodf, ::fmodf(a.data[i], b.data[i]))
TOKITAI_LANES_OF_TWO(int, min, a.data[i] < b.data[i] ? a.data[i] : b.data[i])
TOKITAI_LANES_OF_TWO(int, max, a.data[i] > b.data[i] ? a.data[i] : b.data[i])
#undef TOKITAI_LANES_OF_ONE
#undef TOKITAI_LANES_OF_TWO

template <int = 0>
inline float fracf(float x) { return x - floorf(x); }
template <int = 0>
inline float lerp(float a, float b, float t) { return a + t * (b - a); }
template <unsigned n>
inline tokitai::Lanes<float, n> lerp(const HIP_vector_type<float, n>& a, const HIP_vector_type<float, n>& b, float t) {
  return tokitai::each_lane<float, n>([&](unsigned i) { return a.data[i] + t * (b.data[i] - a.data[i]); });
}
template <class T, tokitai::Where<std::is_arithmetic<T>::value> = 0>
inline T clamp(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
template <class T, unsigned n>
inline tokitai::Lanes<T, n> clamp(const HIP_vector_type<T, n>& v, T low, T high) {
  return tokitai::each_lane<T, n>([&](unsigned i) { return clamp(v.data[i], low, high); });
}
template <class T, unsigned n>
inline tokitai::Lanes<T, n> clamp(const HIP_vector_type<T, n>& v, const HIP_vector_type<T, n>& low,
                                  const HIP_vector_type<T, n>& high) {
  return tokitai::each_lane<T, n>([&](unsigned i) { return clamp(v.data[i], low.data[i], high.data[i]); });
}
template <int = 0>
inline float smoothstep(float a, float b, float x) {
  const float y = clamp((x - a) / (b - a), 0.0f, 1.0f);
  return y * y * (3.0f - 2.0f * y);
}
template <class T, unsigned n>
inline T dot(const HIP_vector_type<T, n>& a, const HIP_vector_type<T, n>& b) {
  T sum = a.data[0] * b.data[0];
  for (unsigned i = 1; i < n; i++) sum += a.data[i] * b.data[i];
  return sum;
}
template <unsigned n>
inline float length(const HIP_vector_type<float, n>& v) { return sqrtf(dot(v, v)); }
template <unsigned n>
inline tokitai::Lanes<float, n> normalize(const HIP_vector_type<float, n>& v) {
  const float by = rsqrtf(dot(v, v));
  return tokitai::each_lane<float, n>([&](unsigned i) { return v.data[i] * by; });
}
template <int = 0>
inline float3 cross(const float3& a, const float3& b) {
  return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <int = 0>
inline float3 reflect(const float3& i, const float3& normal) {
  const float twice = 2.0f * dot(normal, i);
  return make_float3(i.x - twice * normal.x, i.y - twice * normal.y, i.z - twice * normal.z);
}
