// float4, int2 and their like: layout and alignment as HIP has them, with componentwise operators.
#pragma once

#include "language.hpp"

using uchar = unsigned char;
using longlong = long long;
using ulonglong = unsigned long long;
namespace tokitai {
using schar = signed char;
using ushort = unsigned short;
using ulong = unsigned long;
}  // namespace tokitai

// The alignment is the vector's size up to 16 bytes; three components align as one.
#define TOKITAI_VECTORS(T, NAME)                                                                  \
  struct NAME##1 {                                                                                \
    T x;                                                                                          \
  };                                                                                              \
  struct alignas(2 * sizeof(T)) NAME##2 {                                                         \
    T x, y;                                                                                       \
  };                                                                                              \
  struct NAME##3 {                                                                                \
    T x, y, z;                                                                                    \
  };                                                                                              \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) NAME##4 {                               \
    T x, y, z, w;                                                                                 \
  };                                                                                              \
  inline NAME##1 make_##NAME##1(T x) { return {x}; }                                              \
  inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                      \
  inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                              \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }                      \
  TOKITAI_VECTOR_OPERATORS(T, NAME, +)                                                            \
  TOKITAI_VECTOR_OPERATORS(T, NAME, -)                                                            \
  TOKITAI_VECTOR_OPERATORS(T, NAME, *)                                                            \
  TOKITAI_VECTOR_OPERATORS(T, NAME, /)                                                            \
  TOKITAI_VECTOR_EQUALITY(NAME)

// The casts undo the promotion of narrow integers to int.
#define TOKITAI_VECTOR_OPERATORS(T, NAME, OP)                                                     \
  inline NAME##1 operator OP(NAME##1 a, NAME##1 b) { return {T(a.x OP b.x)}; }                    \
  inline NAME##2 operator OP(NAME##2 a, NAME##2 b) { return {T(a.x OP b.x), T(a.y OP b.y)}; }     \
  inline NAME##3 operator OP(NAME##3 a, NAME##3 b) {                                              \
    return {T(a.x OP b.x), T(a.y OP b.y), T(a.z OP b.z)};                                         \
  }                                                                                               \
  inline NAME##4 operator OP(NAME##4 a, NAME##4 b) {                                              \
    return {T(a.x OP b.x), T(a.y OP b.y), T(a.z OP b.z), T(a.w OP b.w)};                          \
  }                                                                                               \
  inline NAME##2 operator OP(NAME##2 a, T b) { return a OP NAME##2 {b, b}; }                      \
  inline NAME##3 operator OP(NAME##3 a, T b) { return a OP NAME##3 {b, b, b}; }                   \
  inline NAME##4 operator OP(NAME##4 a, T b) { return a OP NAME##4 {b, b, b, b}; }                \
  inline NAME##2 operator OP(T a, NAME##2 b) { return NAME##2 {a, a} OP b; }                      \
  inline NAME##3 operator OP(T a, NAME##3 b) { return NAME##3 {a, a, a} OP b; }                   \
  inline NAME##4 operator OP(T a, NAME##4 b) { return NAME##4 {a, a, a, a} OP b; }                \
  inline NAME##1 & operator OP##=(NAME##1 & a, NAME##1 b) { return a = a OP b; }                  \
  inline NAME##2 & operator OP##=(NAME##2 & a, NAME##2 b) { return a = a OP b; }                  \
  inline NAME##3 & operator OP##=(NAME##3 & a, NAME##3 b) { return a = a OP b; }                  \
  inline NAME##4 & operator OP##=(NAME##4 & a, NAME##4 b) { return a = a OP b; }                  \
  inline NAME##2 & operator OP##=(NAME##2 & a, T b) { return a = a OP b; }                        \
  inline NAME##3 & operator OP##=(NAME##3 & a, T b) { return a = a OP b; }                        \
  inline NAME##4 & operator OP##=(NAME##4 & a, T b) { return a = a OP b; }

#define TOKITAI_VECTOR_EQUALITY(NAME)                                                             \
  inline bool operator==(NAME##1 a, NAME##1 b) { return a.x == b.x; }                             \
  inline bool operator==(NAME##2 a, NAME##2 b) { return a.x == b.x && a.y == b.y; }               \
  inline bool operator==(NAME##3 a, NAME##3 b) {                                                  \
    return a.x == b.x && a.y == b.y && a.z == b.z;                                                \
  }                                                                                               \
  inline bool operator==(NAME##4 a, NAME##4 b) {                                                  \
    return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;                                  \
  }                                                                                               \
  inline bool operator!=(NAME##1 a, NAME##1 b) { return !(a == b); }                              \
  inline bool operator!=(NAME##2 a, NAME##2 b) { return !(a == b); }                              \
  inline bool operator!=(NAME##3 a, NAME##3 b) { return !(a == b); }                              \
  inline bool operator!=(NAME##4 a, NAME##4 b) { return !(a == b); }

TOKITAI_VECTORS(tokitai::schar, char)
TOKITAI_VECTORS(uchar, uchar)
TOKITAI_VECTORS(short, short)
TOKITAI_VECTORS(tokitai::ushort, ushort)
TOKITAI_VECTORS(int, int)
TOKITAI_VECTORS(unsigned, uint)
TOKITAI_VECTORS(long, long)
TOKITAI_VECTORS(tokitai::ulong, ulong)
TOKITAI_VECTORS(longlong, longlong)
TOKITAI_VECTORS(ulonglong, ulonglong)
TOKITAI_VECTORS(float, float)
TOKITAI_VECTORS(double, double)

#undef TOKITAI_VECTORS
#undef TOKITAI_VECTOR_OPERATORS
#undef TOKITAI_VECTOR_EQUALITY
