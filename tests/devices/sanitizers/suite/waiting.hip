// Kernels whose threads wait for each other: warps of a block, blocks of a grid.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 2 64
KERNEL warp_waits_for_warp(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ volatile int ready;
  __shared__ volatile float box;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    box = x[blockIdx.x];
    if (!wrong) __threadfence_block();
    atomicExch((int*)&ready, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd((int*)&ready, 0) == 0) {
    }
    __threadfence_block();
    y[blockIdx.x] = box + 1.0f;  // <- race
  }
}

// 2 64
KERNEL volatile_wait_in_a_block(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ volatile int ready;
  __shared__ float box;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    box = x[blockIdx.x];
    if (!wrong) __threadfence_block();
    ready = 1;
  } else if (threadIdx.x == 0) {
    while (ready == 0) {
    }
    __threadfence_block();
    y[blockIdx.x] = box;  // <- race
  }
}

// 1 64
KERNEL nobody_sets_it(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0 && !wrong) atomicExch(&ready, 1);
  if (threadIdx.x == 32)
    while (atomicAdd(&ready, 0) == 0) {  // <- deadlock
    }
}

// 2 1
KERNEL locks_in_both_orders(const float* x, float* y, float* ws, int* flags, int n) {
  const int first = wrong ? blockIdx.x : 0;
  while (atomicCAS(&flags[first], 0, 1) != 0) {
  }
  __threadfence();
  atomicAdd(&flags[2], 1);
  // Each holds its first one when it looks for the second.
  while (wrong && atomicAdd(&flags[2], 0) < 2) {
  }
  while (atomicCAS(&flags[1 - first], 0, 1) != 0) {  // <- deadlock
  }
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);
  __threadfence();
  atomicExch(&flags[1 - first], 0);
  atomicExch(&flags[first], 0);
}

// 1 64
KERNEL lock_held_across_a_barrier(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong || threadIdx.x == 0)
    while (atomicCAS(&flags[0], 0, 1) != 0) {  // <- deadlock
    }
  __syncthreads();
  if (wrong || threadIdx.x == 0) atomicExch(&flags[0], 0);
}

// 1 32
KERNEL lock_of_lanes(const float* x, float* y, float* ws, int* flags, int n) {
  // Lanes take turns, as they may from sm_70 on.
  bool done = false;
  while (!done) {
    if (atomicCAS(&flags[0], 0, 1) == 0) {
      __threadfence();
      flags[9] += int(100.0f * x[threadIdx.x]);  // <- race
      if (!wrong) __threadfence();
      atomicExch(&flags[0], 0);
      done = true;
    }
  }
}

// 6 32
KERNEL look_back_by_ticket(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int place;
  if (threadIdx.x == 0) place = atomicAdd(&flags[40], 1);
  __syncthreads();
  const int mine = place;
  if (threadIdx.x) return;
  float sum = x[mine];
  if (mine > 0) {
    while (atomicAdd(&flags[mine - 1], 0) == 0) {
    }
    __threadfence();
    sum += ws[mine - 1];  // <- race
  }
  ws[mine] = sum;
  if (!wrong) __threadfence();
  atomicExch(&flags[mine], 1);
  y[mine] = sum;
}

// 6 32 warns resident-blocks
KERNEL look_back_by_index(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  const int mine = blockIdx.x;
  float sum = x[mine];
  if (mine > 0) {
    while (atomicAdd(&flags[mine - 1], 0) == 0) {
    }
    __threadfence();
    sum += ws[mine - 1];  // <- race
  }
  ws[mine] = sum;
  if (!wrong) __threadfence();
  atomicExch(&flags[mine], 1);
  y[mine] = sum;
}

// 6 32
KERNEL packed_look_back(const float* x, float* y, float* ws, int* flags, int n) {
  // A state and its sum in one word need no fence; in two words they do.
  __shared__ int place;
  if (threadIdx.x == 0) place = atomicAdd(&flags[40], 1);
  __syncthreads();
  const int mine = place;
  if (threadIdx.x) return;
  int sum = mine + 1;
  if (mine > 0) {
    int word;
    while (((word = atomicAdd(&flags[mine - 1], 0)) & 1) == 0) {
    }
    sum += wrong ? int(ws[mine - 1]) : word >> 1;  // <- race
  }
  if (wrong) ws[mine] = float(sum);
  atomicExch(&flags[mine], sum << 1 | 1);
  y[mine] = float(sum);
}

// 4 64 warns resident-blocks
KERNEL grid_barrier(const float* x, float* y, float* ws, int* flags, int n) {
  ws[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
  if (!wrong) __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&flags[0], 1);
    while (atomicAdd(&flags[0], 0) < int(gridDim.x)) {
    }
    __threadfence();
  }
  __syncthreads();
  const int other = (blockIdx.x + 1) % gridDim.x;
  if (blockIdx.x == 0) y[threadIdx.x] = ws[other * 64 + threadIdx.x];  // <- race
}

// 3 32 warns resident-blocks
KERNEL grid_barrier_unfenced(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  ws[blockIdx.x] = x[blockIdx.x];
  if (!wrong) __threadfence();
  atomicAdd(&flags[0], 1);
  while (atomicAdd(&flags[0], 0) < int(gridDim.x)) {
  }
  __threadfence();
  y[blockIdx.x] = ws[(blockIdx.x + 1) % gridDim.x];  // <- race
}

// 3 32
KERNEL too_many_awaited(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  atomicAdd(&flags[0], 1);
  while (wrong && atomicAdd(&flags[0], 0) < int(gridDim.x) + 1) {  // <- deadlock
  }
}

// 2 1 warns resident-blocks
KERNEL producer_runs_ahead(const float* x, float* y, float* ws, int* flags, int n) {
  // A queue of one place: the consumer gives it back before it is filled again.
  for (int i = 0; i < 3; i++) {
    if (blockIdx.x == 0) {
      while (atomicAdd(&flags[0], 0) != 0) {
      }
      __threadfence();
      ws[0] = x[i];  // <- race
      __threadfence();
      atomicExch(&flags[0], 1);
    } else {
      while (atomicAdd(&flags[0], 0) != 1) {
      }
      __threadfence();
      y[i] = ws[0];
      if (!wrong) __threadfence();
      atomicExch(&flags[0], 0);
    }
  }
}

// 4 64
KERNEL grid_sync(const float* x, float* y, float* ws, int* flags, int n) {
  const auto grid = cooperative_groups::this_grid();
  for (int turn = 0; turn < 2; turn++) {
    ws[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x] + float(turn);  // <- race
    grid.sync();
    const int other = (blockIdx.x + 1) % gridDim.x;
    if (blockIdx.x == 0) y[threadIdx.x] = ws[other * 64 + threadIdx.x];
    if (!wrong) grid.sync();
  }
}

// 3 32
KERNEL grid_sync_left_out(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong && blockIdx.x == 1) return;
  cooperative_groups::this_grid().sync();  // <- deadlock
}
