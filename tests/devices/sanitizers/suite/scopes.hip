// Fences and atomic operations whose scopes hold the other thread, and such that leave it out.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 4 32
KERNEL count_between_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong)
    atomicAdd_block(&flags[threadIdx.x % 4], 1);  // <- scoped-race
  else
    atomicAdd(&flags[threadIdx.x % 4], 1);
}

// 4 32
KERNEL largest_between_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  const int value = blockIdx.x * 32 + threadIdx.x;
  if (wrong)
    atomicMax_block(&flags[0], value);  // <- scoped-race
  else
    atomicMax(&flags[0], value);
}

// 1 64
KERNEL count_in_a_block(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int all;
  if (threadIdx.x == 0) all = 0;
  if (!wrong) __syncthreads();
  atomicAdd_block(&all, 1);  // <- mixed-race
  __syncthreads();
  y[threadIdx.x] = float(all);
}

// 3 32
KERNEL block_and_device(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong && blockIdx.x == 1)
    atomicAdd_block(&flags[0], 1);  // <- scoped-race
  else
    atomicAdd(&flags[0], 1);
}

// 4 32
KERNEL ticket_fence(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    ws[blockIdx.x] = x[blockIdx.x];
    if (wrong)
      __threadfence_block();
    else
      __threadfence();
    last = atomicAdd(&flags[0], 1) == int(gridDim.x) - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  float sum = 0.0f;
  for (int i = 0; i < int(gridDim.x); i++) sum += ws[i];  // <- scoped-race
  if (threadIdx.x == 0) y[0] = sum;
}

// 4 32
KERNEL ticket_count(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    ws[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    if (wrong)
      last = atomicAdd_block(&flags[0], 1) == int(gridDim.x) - 1;  // <- scoped-race
    else
      last = atomicAdd(&flags[0], 1) == int(gridDim.x) - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last || threadIdx.x) return;
  float sum = 0.0f;
  for (int i = 0; i < int(gridDim.x); i++) sum += ws[i];
  y[0] = sum;
}

// 4 32
KERNEL ticket_acquire_scope(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  ws[blockIdx.x] = x[blockIdx.x];
  __threadfence();
  if (atomicAdd(&flags[0], 1) != int(gridDim.x) - 1) return;
  if (wrong)
    __threadfence_block();
  else
    __threadfence();
  float sum = 0.0f;
  for (int i = 0; i < int(gridDim.x); i++) sum += ws[i];  // <- scoped-race
  y[0] = sum;
}

// 2 32
KERNEL flag_between_warps(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int ready;
  __shared__ float box;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    box = x[blockIdx.x];
    if (!wrong) __threadfence_block();
    atomicExch_block(&ready, 1);
  } else if (threadIdx.x == 31) {
    while (atomicAdd_block(&ready, 0) == 0) {
    }
    __threadfence_block();
    y[blockIdx.x] = box;  // <- race
  }
}

// 4 1
KERNEL lock_of_a_block(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong)
    while (atomicCAS_block(&flags[0], 0, 1) != 0) {  // <- scoped-race
    }
  else
    while (atomicCAS(&flags[0], 0, 1) != 0) {
    }
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);
  __threadfence();
  atomicExch(&flags[0], 0);
}

// 4 1
KERNEL lock_fence_of_a_block(const float* x, float* y, float* ws, int* flags, int n) {
  while (atomicCAS(&flags[0], 0, 1) != 0) {
  }
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);  // <- scoped-race
  if (wrong)
    __threadfence_block();
  else
    __threadfence();
  atomicExch(&flags[0], 0);
}

// 2 64
KERNEL relayed(const float* x, float* y, float* ws, int* flags, int n) {
  // One warp tells the next one of its block, which tells the other block.
  __shared__ int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    ws[0] = x[0];
    __threadfence_block();
    atomicExch_block(&ready, 1);
  }
  if (blockIdx.x == 0 && threadIdx.x == 32) {
    while (atomicAdd_block(&ready, 0) == 0) {
    }
    if (wrong)
      __threadfence_block();
    else
      __threadfence();
    atomicExch(&flags[0], 1);
  }
  if (blockIdx.x == 1 && threadIdx.x == 0 && atomicAdd(&flags[0], 0) == 1) {
    __threadfence();
    y[0] = ws[0];  // <- scoped-race
  }
}

// 4 32
KERNEL system_scope(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  ws[blockIdx.x] = x[blockIdx.x];
  if (!wrong) __threadfence_system();
  if (atomicAdd_system(&flags[0], 1) != int(gridDim.x) - 1) return;
  __threadfence_system();
  for (int i = 0; i < int(gridDim.x); i++) y[i] = ws[i];  // <- race
}
