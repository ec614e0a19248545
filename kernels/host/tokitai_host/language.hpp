// The words that HIP adds to C++, for a host compiler: qualifiers, coordinates, warp size.
#pragma once

#ifdef TOKITAI_DEVICE_GFX
#include <tokitai_gfx/language.hpp>
#else

// Assertions of a kernel count whatever a compiler's driver makes of optimisation (zig's would drop
// them); a source that defines NDEBUG itself still has its way.
#undef NDEBUG
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKITAI_DEVICE_CPU 1

#ifndef TOKITAI_WARP_SIZE
#define TOKITAI_WARP_SIZE 32
#endif
static_assert(TOKITAI_WARP_SIZE == 32 || TOKITAI_WARP_SIZE == 64, "a warp has 32 or 64 lanes");

// `static __global__` is legal HIP, so a kernel's qualifier must leave nothing behind.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)  // which the tool reads (build/launch_bounds.py)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))

#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name

// A function of ours that a source may define itself: between equal conversions C++ prefers what is no
// template, whatever its parameters are called.
#define TOKITAI_OURS template <int = 0> inline

// Shared memory is one copy per OS thread, because an OS thread runs one block at a time. The same
// word serves `extern __shared__ T name[]`, whose symbol the harness defines. Without the promise of
// constant initialisation an access to such an array asks first whether there is anything to do. Clang
// takes that promise for no class, even one whose constructor does nothing.
#if defined(__GNUC__) && !defined(__clang__)
#define __shared__ __constinit thread_local
#elif defined(TOKITAI_DYNAMIC_SHARED) && !defined(TOKITAI_SHARED_CLASSES)
#define __shared__ __attribute__((require_constant_initialization)) thread_local
#else
#define __shared__ thread_local
#endif

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace tokitai {

using u64 = unsigned long long;
constexpr unsigned warp_size = TOKITAI_WARP_SIZE;
constexpr unsigned block_limit = 1024;  // threads of a block, on every AMD GPU

// Coordinates of a thread or block, or an extent; the type of threadIdx and its like.
struct Coordinates {
  unsigned x, y, z;
  operator dim3() const { return dim3(x, y, z); }
};

}  // namespace tokitai

// Thread-local, as blocks run on several OS threads at once. With initial values they lie in .tdata,
// and .tbss is left to shared memory. __thread promises a constant initial value, so that the unit that
// serves kernels and the unit of the kernels reach them without a call.
inline __thread tokitai::Coordinates threadIdx = {1, 1, 1}, blockIdx = {1, 1, 1},
                                     blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

#include "coordinate_names.hpp"

static constexpr int warpSize = TOKITAI_WARP_SIZE;

#endif
