// HIP's language and runtime API over CUDA's, so that nvcc builds HIP sources unchanged.
//
// The types stay CUDA's own. Masks of lanes are 64 bits wide in HIP; here a warp has 32 lanes and the
// upper half of a mask names none. The warp operations without a mask speak of the whole warp, as
// HIP's do: lanes that have returned do not count, and all others must come to them.
#pragma once

#include <cuda_runtime.h>

// These declare functions of the names that become macros below, so they must come before.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hip_runtime_api.h"

#define __HIP_PLATFORM_NVIDIA__ 1
#define __HIP_PLATFORM_NVCC__ 1
#define __HIPCC__ 1
#ifdef __CUDA_ARCH__
#define __HIP_DEVICE_COMPILE__ 1
#endif
// nvcc leaves this attribute of clang's out without a word, which makes a scalar of a vector.
#define ext_vector_type(lanes) aligned(nvcc_leaves_out_the_attribute_ext_vector_type)
// A function of ours that a source may define itself, as on the cpu device.
#define TOKITAI_OURS template <int = 0> __host__ __device__ inline
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
  ((kernel)<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__))

#include "../../host/tokitai_host/coordinate_names.hpp"

// A source may give masks in 64 bits; CUDA's functions take the lower half.
#pragma nv_diag_suppress 69  // integer conversion resulted in truncation

#ifdef __CUDACC__
// Macros lead to these functions: CUDA's headers still declare the old names in the pass for the host.
namespace tokitai_cuda {
constexpr unsigned whole_warp = 0xffffffffu;
template <class T>
__device__ inline T shfl(T value, int lane, int width = 32) {
  return __shfl_sync(whole_warp, value, lane, width);
}
template <class T>
__device__ inline T shfl_up(T value, unsigned distance, int width = 32) {
  return __shfl_up_sync(whole_warp, value, distance, width);
}
template <class T>
__device__ inline T shfl_down(T value, unsigned distance, int width = 32) {
  return __shfl_down_sync(whole_warp, value, distance, width);
}
template <class T>
__device__ inline T shfl_xor(T value, int bits, int width = 32) {
  return __shfl_xor_sync(whole_warp, value, bits, width);
}
__device__ inline unsigned long long ballot(int predicate) {
  return __ballot_sync(whole_warp, predicate);
}
__device__ inline int any(int predicate) { return __any_sync(whole_warp, predicate); }
__device__ inline int all(int predicate) { return __all_sync(whole_warp, predicate); }
}  // namespace tokitai_cuda
#define __shfl(...) tokitai_cuda::shfl(__VA_ARGS__)
#define __shfl_up(...) tokitai_cuda::shfl_up(__VA_ARGS__)
#define __shfl_down(...) tokitai_cuda::shfl_down(__VA_ARGS__)
#define __shfl_xor(...) tokitai_cuda::shfl_xor(__VA_ARGS__)
#define __ballot(predicate) tokitai_cuda::ballot(predicate)
#define __any(predicate) tokitai_cuda::any(predicate)
#define __all(predicate) tokitai_cuda::all(predicate)

__device__ inline unsigned __lane_id() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
__device__ inline long long wall_clock64() {
  long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

// HIP's names for additions that hardware does; CUDA's atomicAdd is one already.
template <class T>
__device__ inline T unsafeAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
__device__ inline T safeAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
__device__ inline void atomicAddNoRet(T* address, T value) {
  atomicAdd(address, value);
}

// HIP's atomics with an order and a scope. CUDA's are relaxed; a fence on both sides is the strongest order.
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5
namespace tokitai_cuda {
template <class T>
__device__ inline T hip_atomic_load(const T* address, int, int) {
  __threadfence_system();
  const T value = *const_cast<const volatile T*>(address);
  __threadfence_system();
  return value;
}
template <class T, class U>
__device__ inline void hip_atomic_store(T* address, U value, int, int) {
  __threadfence_system();
  *const_cast<volatile T*>(address) = T(value);
  __threadfence_system();
}
template <class T, class U>
__device__ inline bool hip_atomic_compare_exchange(T* address, T* expected, U value, int, int, int) {
  __threadfence_system();
  const T want = *expected, old = atomicCAS(address, want, T(value));
  __threadfence_system();
  *expected = old;
  return old == want;
}
#define TOKITAI_HIP_ATOMIC(NAME, FUNCTION)                                       \
  template <class T, class U>                                                    \
  __device__ inline T hip_atomic_##NAME(T* address, U value, int, int) {         \
    __threadfence_system();                                                      \
    const T old = FUNCTION(address, T(value));                                   \
    __threadfence_system();                                                      \
    return old;                                                                  \
  }
TOKITAI_HIP_ATOMIC(exchange, atomicExch)
TOKITAI_HIP_ATOMIC(fetch_add, atomicAdd)
TOKITAI_HIP_ATOMIC(fetch_sub, atomicSub)
TOKITAI_HIP_ATOMIC(fetch_and, atomicAnd)
TOKITAI_HIP_ATOMIC(fetch_or, atomicOr)
TOKITAI_HIP_ATOMIC(fetch_xor, atomicXor)
TOKITAI_HIP_ATOMIC(fetch_min, atomicMin)
TOKITAI_HIP_ATOMIC(fetch_max, atomicMax)
#undef TOKITAI_HIP_ATOMIC
}  // namespace tokitai_cuda
#define __hip_atomic_load tokitai_cuda::hip_atomic_load
#define __hip_atomic_store tokitai_cuda::hip_atomic_store
#define __hip_atomic_exchange tokitai_cuda::hip_atomic_exchange
#define __hip_atomic_compare_exchange_strong tokitai_cuda::hip_atomic_compare_exchange
#define __hip_atomic_compare_exchange_weak tokitai_cuda::hip_atomic_compare_exchange
#define __hip_atomic_fetch_add tokitai_cuda::hip_atomic_fetch_add
#define __hip_atomic_fetch_sub tokitai_cuda::hip_atomic_fetch_sub
#define __hip_atomic_fetch_and tokitai_cuda::hip_atomic_fetch_and
#define __hip_atomic_fetch_or tokitai_cuda::hip_atomic_fetch_or
#define __hip_atomic_fetch_xor tokitai_cuda::hip_atomic_fetch_xor
#define __hip_atomic_fetch_min tokitai_cuda::hip_atomic_fetch_min
#define __hip_atomic_fetch_max tokitai_cuda::hip_atomic_fetch_max
#define __builtin_nontemporal_load(address) __ldcs(address)
#define __builtin_nontemporal_store(value, address) __stcs(address, value)
#endif
