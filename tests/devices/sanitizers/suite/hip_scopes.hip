// Orders and scopes as HIP's own atomic operations state them.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void
#define BLOCK __HIP_MEMORY_SCOPE_WORKGROUP
#define DEVICE __HIP_MEMORY_SCOPE_AGENT

// 2 1
KERNEL released_and_acquired(const float* x, float* y, float* ws, int* flags, int n) {
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    __hip_atomic_store(&flags[0], 1, wrong ? __ATOMIC_RELAXED : __ATOMIC_RELEASE, DEVICE);
  } else if (__hip_atomic_load(&flags[0], __ATOMIC_ACQUIRE, DEVICE) == 1) {
    y[0] = ws[0];  // <- race
  }
}

// 2 1
KERNEL acquired_too_weakly(const float* x, float* y, float* ws, int* flags, int n) {
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    __hip_atomic_store(&flags[0], 1, __ATOMIC_RELEASE, DEVICE);
  } else if (__hip_atomic_load(&flags[0], wrong ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE, DEVICE) == 1) {
    y[0] = ws[0];  // <- missing-acquire
  }
}

// 2 1
KERNEL released_in_the_block(const float* x, float* y, float* ws, int* flags, int n) {
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    if (wrong) __hip_atomic_store(&flags[0], 1, __ATOMIC_RELEASE, BLOCK);
    if (!wrong) __hip_atomic_store(&flags[0], 1, __ATOMIC_RELEASE, DEVICE);
  } else if (__hip_atomic_load(&flags[0], __ATOMIC_ACQUIRE, DEVICE) == 1) {  // <- scoped-race
    y[0] = ws[0];
  }
}

// 2 1
KERNEL fence_of_a_workgroup(const float* x, float* y, float* ws, int* flags, int n) {
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    if (wrong) __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    if (!wrong) __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    __hip_atomic_store(&flags[0], 1, __ATOMIC_RELAXED, DEVICE);
  } else if (__hip_atomic_load(&flags[0], __ATOMIC_RELAXED, DEVICE) == 1) {
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    y[0] = ws[0];  // <- scoped-race
  }
}

// 1 64
KERNEL warps_at_block_scope(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    ws[0] = x[0];
    __hip_atomic_store(&ready, 1, __ATOMIC_RELEASE, wrong ? __HIP_MEMORY_SCOPE_WAVEFRONT : BLOCK);
  } else if (threadIdx.x == 32) {
    while (__hip_atomic_load(&ready, __ATOMIC_ACQUIRE, BLOCK) == 0) {  // <- scoped-race
    }
    y[0] = ws[0];
  }
}

// 4 1
KERNEL lock_by_orders(const float* x, float* y, float* ws, int* flags, int n) {
  int free = 0;
  while (!__hip_atomic_compare_exchange_strong(&flags[0], &free, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                               DEVICE))
    free = 0;
  flags[9] += int(100.0f * x[blockIdx.x]);  // <- race
  __hip_atomic_store(&flags[0], 0, wrong ? __ATOMIC_RELAXED : __ATOMIC_RELEASE, DEVICE);
}

// 4 1
KERNEL ticket_of_one_operation(const float* x, float* y, float* ws, int* flags, int n) {
  ws[blockIdx.x] = x[blockIdx.x];
  const int order = wrong ? __ATOMIC_RELEASE : __ATOMIC_ACQ_REL;
  if (__hip_atomic_fetch_add(&flags[0], 1, order, DEVICE) != int(gridDim.x) - 1) return;
  for (int i = 0; i < int(gridDim.x); i++) y[i] = ws[i];  // <- missing-acquire
}
