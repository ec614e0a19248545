// Faults that were written from their kinds, without a look at what the watch does with them.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 2 64
KERNEL bins_set_late(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;  // <- mixed-race
  if (!wrong) __syncthreads();
  atomicAdd(&bins[threadIdx.x % 8], 1);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&flags[threadIdx.x], bins[threadIdx.x]);
}

// 1 64
KERNEL ping_pong(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float both[2][64];
  const int t = threadIdx.x;
  both[0][t] = x[t];
  __syncthreads();
  for (int turn = 0; turn < 4; turn++) {
    both[(turn + 1) % 2][t] = both[turn % 2][(t + 1) % 64];  // <- race
    if (!wrong) __syncthreads();
  }
  y[t] = both[0][t];
}

// 4 16
KERNEL sum_of_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x == 0) {
    if (wrong)
      y[0] += x[blockIdx.x];  // <- race
    else
      atomicAdd(&y[0], x[blockIdx.x]);
  }
}

// 4 1
KERNEL pushed_without_release(const float* x, float* y, float* ws, int* flags, int n) {
  const int slot = atomicAdd(&flags[0], 1);
  ws[slot] = x[blockIdx.x];
  if (!wrong) __threadfence();
  if (atomicAdd(&flags[1], 1) != 3) return;
  __threadfence();
  float sum = 0.0f;
  for (int i = 0; i < 4; i++) sum += ws[i];  // <- race
  y[0] = sum;
}

// 1 64
KERNEL warps_hand_over(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float value;
  if (threadIdx.x == 0) {
    value = x[3];
    if (!wrong) __threadfence_block();
    atomicExch(&flags[5], 1);
  }
  if (threadIdx.x == 32) {
    while (atomicAdd(&flags[5], 0) == 0) {
    }
    __threadfence_block();
    y[0] = value;  // <- race
  }
}

// 1 32
KERNEL warp_tree(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float part[32];
  const int lane = threadIdx.x;
  part[lane] = x[lane];
  __syncwarp();
  for (int s = 16; s > 0; s /= 2) {
    float other = 0.0f;
    if (lane < s) other = part[lane + s];
    if (!wrong) __syncwarp();
    if (lane < s) part[lane] += other;  // <- race
    if (!wrong) __syncwarp();
  }
  if (lane == 0) y[0] = part[0];
}

// 1 32
KERNEL half_a_warp_shuffles(const float* x, float* y, float* ws, int* flags, int n) {
  const int lane = threadIdx.x;
  float v = x[lane];
  if (lane < 16) {
    v += __shfl_sync(wrong ? 0xffffffffull : 0x0000ffffull, v, lane ^ 1);  // <- amd-mask
  } else {
    __syncwarp(0xffff0000ull);
  }
  y[lane] = v;
}

// 1 64
KERNEL one_warp_at_the_barrier(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  if (!wrong || threadIdx.x < 32) __syncthreads();
  if (wrong && threadIdx.x >= 32) {
    while (atomicAdd(&flags[0], 0) == 0) {  // <- deadlock
    }
  }
  if (!wrong) y[threadIdx.x] = tile[63 - threadIdx.x];
  atomicExch(&flags[0], 1);
}

// 2 64
KERNEL one_too_far(const float* x, float* y, float* ws, int* flags, int n) {
  const int i = blockIdx.x * 128 + 2 * threadIdx.x + (wrong ? 2 : 1);
  ws[i] = x[threadIdx.x];  // <- out-of-bounds
}

// 1 64
KERNEL neighbour_in_front(const float* x, float* y, float* ws, int* flags, int n) {
  const int i = threadIdx.x;
  const float left = wrong || i > 0 ? x[i - 1] : 0.0f;  // <- out-of-bounds
  y[i] = i > 0 ? x[i] - left : 0.0f;
}

// 1 64
KERNEL tile_without_halo(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i] = x[i];
  __syncthreads();
  const float next = wrong || i < 63 ? tile[i + 1] : 0.0f;  // <- out-of-bounds
  y[i] = i < 63 ? next : 0.0f;
}

// 1 64
KERNEL half_a_tile_set(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  if (!wrong || i < 32) tile[i] = x[i];
  __syncthreads();
  y[i] = tile[63 - i];  // <- uninitialised-read
}

// 1 64
KERNEL workspace_added_to(const float* x, float* y, float* ws, int* flags, int n) {
  const int i = threadIdx.x;
  if (!wrong) ws[i] = 0.0f;
  ws[i] += x[i];  // <- uninitialised-read
  y[i] = ws[i];
}

// 4 32 warns resident-blocks
KERNEL chain_without_acquire(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  const int b = blockIdx.x;
  float before = 0.0f;
  if (b > 0) {
    while (atomicAdd(&flags[b - 1], 0) == 0) {
    }
    if (!wrong) __threadfence();
    before = ws[b - 1];  // <- missing-acquire
  }
  ws[b] = before + x[b];
  __threadfence();
  atomicExch(&flags[b], 1);
}

// 4 32
KERNEL counted_by_block_atomics(const float* x, float* y, float* ws, int* flags, int n) {
  if (x[threadIdx.x] > -100.0f) {
    if (wrong)
      atomicAdd_block(&flags[2], 1);  // <- scoped-race
    else
      atomicAdd(&flags[2], 1);
  }
}

// 2 32 warns resident-blocks
KERNEL published_for_the_block(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    ws[7] = x[7];
    if (wrong)
      __threadfence_block();
    else
      __threadfence();
    atomicExch(&flags[0], 1);
  } else {
    while (atomicCAS(&flags[0], 1, 1) != 1) {
    }
    __threadfence();
    y[0] = ws[7];  // <- scoped-race
  }
}

struct Three {
  float a, b, c;
};

// 1 32
KERNEL structs_of_neighbours(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ Three all[32];
  const int t = threadIdx.x;
  all[t] = Three{x[t], 2.0f * x[t], 0.5f};
  if (!wrong) __syncthreads();
  const Three other = all[(t + 1) % 32];  // <- race
  y[t] = other.a + other.b + other.c;
}

// 1 32
KERNEL rows_that_overlap(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  memcpy(&ws[4 * t], &x[t], (wrong ? 5 : 4) * sizeof(float));  // <- race
}

// 1 32
KERNEL pairs_that_overlap(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  const int at = wrong ? t : 2 * t;
  ws[at] = x[t];
  ws[at + 1] = 2.0f * x[t + 1];  // <- race
}

// 1 64
KERNEL bits_of_a_word(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  if (wrong)
    flags[t / 32] |= 1 << t % 31;  // <- race
  else
    atomicOr(&flags[t / 32], 1 << t % 31);
}

// 1 64
KERNEL bytes_of_a_word(const float* x, float* y, float* ws, int* flags, int n) {
  auto* bytes = reinterpret_cast<unsigned char*>(flags);
  bytes[wrong ? threadIdx.x / 2 : threadIdx.x] = (unsigned char)(threadIdx.x);  // <- race
}

// 4 1
KERNEL looked_at_first(const float* x, float* y, float* ws, int* flags, int n) {
  if ((wrong ? flags[0] : atomicAdd(&flags[0], 0)) < 2) {  // <- mixed-race
    atomicAdd(&flags[0], 1);
  }
}

// 1 64
KERNEL turned_in_place(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  const float v = y[63 - t];
  if (!wrong) __syncthreads();
  y[t] = v + 1.0f;  // <- race
}

// 1 64
KERNEL barrier_in_a_loop(const float* x, float* y, float* ws, int* flags, int n) {
  const int turns = wrong && threadIdx.x < 32 ? 3 : 4;
  for (int i = 0; i < turns; i++) {
    y[threadIdx.x] += 1.0f;
    __syncthreads();
  }
  if (wrong && threadIdx.x < 32)
    while (atomicAdd(&flags[9], 0) == 0) {  // <- deadlock
    }
}

// 1 64
KERNEL least_read_early(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int least;
  if (threadIdx.x == 0) least = 1 << 20;
  __syncthreads();
  atomicMin(&least, int(1000.0f * x[threadIdx.x]));
  if (!wrong) __syncthreads();
  if (threadIdx.x == 40) flags[3] = least;  // <- mixed-race
}

// 1 64
KERNEL counter_reset_early(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int count;
  for (int turn = 0; turn < 2; turn++) {
    if (threadIdx.x == 0) count = 0;  // <- race
    __syncthreads();
    if (x[threadIdx.x] > 0.0f) atomicAdd(&count, 1);
    __syncthreads();
    y[threadIdx.x] = float(count);
    if (!wrong) __syncthreads();
  }
}

// 1 1
KERNEL taken_twice(const float* x, float* y, float* ws, int* flags, int n) {
  while (atomicCAS(&flags[0], 0, 1) != 0) {
  }
  if (wrong)
    while (atomicCAS(&flags[0], 0, 1) != 0) {  // <- deadlock
    }
  __threadfence();
  y[0] = x[0];
  __threadfence();
  atomicExch(&flags[0], 0);
}

// 2 32 warns resident-blocks
KERNEL nobody_sets_it(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 1) {
    while (atomicAdd(&flags[wrong ? 1 : 0], 0) == 0) {  // <- deadlock
    }
  } else {
    atomicExch(&flags[0], 1);
  }
}

// 1 32
KERNEL votes_of_others(const float* x, float* y, float* ws, int* flags, int n) {
  const int lane = threadIdx.x;
  if (lane % 2) {
    const auto mask = wrong ? 0x55555555ull : 0xaaaaaaaaull;
    y[lane] = __any_sync(mask, x[lane] > 0.0f);  // <- mask
  }
}

// 1 64
KERNEL scan_in_place(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float sums[64];
  const int t = threadIdx.x;
  sums[t] = x[t];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    const float left = t >= d ? sums[t - d] : 0.0f;
    if (!wrong) __syncthreads();
    sums[t] += left;  // <- race
    __syncthreads();
  }
  y[t] = sums[t];
}

// 1 64
KERNEL whichever_is_last(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  if (wrong ? x[t] > -100.0f : t == 5) y[0] = x[t];  // <- race
}
