// The words that HIP adds to C++, for a clang whose target is an AMD GPU: qualifiers, coordinates,
// fences and barriers by the compiler's builtins. What waves do together is in warp_operations.hpp.
//
// Functions that are __device__ alone are what the compiler takes in device code, in place of the C
// library's of the same name, which are the host's.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(bytes) __attribute__((aligned(bytes)))

#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name

#define TOKITAI_OURS template <int = 0> __host__ __device__ __forceinline__
#define TOKITAI_DEVICE_ONLY __device__ __forceinline__

// Before the C++ library declares the host's functions of these names in namespace std.
#include "functions.hpp"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The host's, before anything makes functions of both sides.
#include <cmath>
#include <type_traits>
#include <utility>

#ifdef _LIBCPP_VERSION  // whose functions of the kinds of numbers are the host's
#define TOKITAI_KIND(NAME)                                                                        \
  TOKITAI_DEVICE_ONLY bool NAME(float x) { return __builtin_##NAME(x); }                          \
  TOKITAI_DEVICE_ONLY bool NAME(double x) { return __builtin_##NAME(x); }
TOKITAI_KIND(isnan)
TOKITAI_KIND(isinf)
TOKITAI_KIND(isfinite)
TOKITAI_KIND(signbit)
#undef TOKITAI_KIND
namespace std {
using ::isfinite, ::isinf, ::isnan, ::signbit;
}
#endif

// An assertion that fails traps, as on a GPU.
extern "C" __device__ __attribute__((noreturn)) inline void __assert_fail(const char*, const char*,
                                                                         unsigned, const char*) {
  __builtin_trap();
}

// What a kernel prints is told nowhere.
template <class... T>
TOKITAI_DEVICE_ONLY int printf(const char*, T...) {
  return 0;
}

struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
      : x(x_), y(y_), z(z_) {}
};

// Coordinates are read where they are named; nothing of these objects is in memory.
#define TOKITAI_COORDINATE(AXIS, EXPRESSION)                                                      \
  __declspec(property(get = tokitai_##AXIS)) unsigned AXIS;                                       \
  TOKITAI_DEVICE_ONLY unsigned tokitai_##AXIS() const { return unsigned(EXPRESSION); }
#define TOKITAI_COORDINATES(NAME, X, Y, Z)                                                        \
  struct tokitai_##NAME {                                                                         \
    TOKITAI_COORDINATE(x, X)                                                                      \
    TOKITAI_COORDINATE(y, Y)                                                                      \
    TOKITAI_COORDINATE(z, Z)                                                                      \
    TOKITAI_DEVICE_ONLY operator dim3() const { return dim3(x, y, z); }                           \
  };                                                                                              \
  extern const __device__ __attribute__((weak)) tokitai_##NAME NAME;
#define TOKITAI_OF(WHAT, AXIS) __builtin_amdgcn_##WHAT##_##AXIS()
TOKITAI_COORDINATES(threadIdx, TOKITAI_OF(workitem_id, x), TOKITAI_OF(workitem_id, y),
                    TOKITAI_OF(workitem_id, z))
TOKITAI_COORDINATES(blockIdx, TOKITAI_OF(workgroup_id, x), TOKITAI_OF(workgroup_id, y),
                    TOKITAI_OF(workgroup_id, z))
TOKITAI_COORDINATES(blockDim, TOKITAI_OF(workgroup_size, x), TOKITAI_OF(workgroup_size, y),
                    TOKITAI_OF(workgroup_size, z))
TOKITAI_COORDINATES(gridDim, TOKITAI_OF(grid_size, x) / TOKITAI_OF(workgroup_size, x),
                    TOKITAI_OF(grid_size, y) / TOKITAI_OF(workgroup_size, y),
                    TOKITAI_OF(grid_size, z) / TOKITAI_OF(workgroup_size, z))
#undef TOKITAI_COORDINATES
#undef TOKITAI_COORDINATE
#undef TOKITAI_OF

#include <tokitai_host/coordinate_names.hpp>

// Lanes of a wave; newer compilers have no macro for them.
#ifdef __GFX9__
#define TOKITAI_WAVE_SIZE 64
#else
#define TOKITAI_WAVE_SIZE 32
#endif
static constexpr int warpSize = TOKITAI_WAVE_SIZE;

namespace tokitai {
using u64 = unsigned long long;
constexpr unsigned warp_size = TOKITAI_WAVE_SIZE, block_limit = 1024;
constexpr double pi = 3.14159265358979323846;
// Atomics on an address that is no multiple of their size fault where they are executed.
template <class T>
TOKITAI_DEVICE_ONLY void expect_aligned(const T*) {}
}  // namespace tokitai
