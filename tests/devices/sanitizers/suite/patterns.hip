// Patterns of public code, written from memory without a look at what the watch does with them.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 4 64
KERNEL fence_of_one_thread(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ bool last;
  const int t = threadIdx.x;
  ws[blockIdx.x * 64 + t] = x[t] * float(blockIdx.x + 1);
  if (!wrong || t == 0) __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(&flags[0], 1) == int(gridDim.x) - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  float sum = 0.0f;
  for (unsigned block = 0; block < gridDim.x; block++) sum += ws[block * 64 + t];  // <- race
  y[t] = sum;
}

// 4 16
KERNEL decoupled_look_back(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int tile;
  __shared__ float before;
  const int t = threadIdx.x;
  if (t == 0) tile = atomicAdd(&flags[0], 1);
  __syncthreads();
  if (t == 0) {
    float total = 0.0f, sum = 0.0f;
    for (int i = 0; i < 16; i++) total += x[tile * 16 + i];
    ws[tile] = total;
    __threadfence();
    atomicExch(&flags[1 + tile], 1);
    for (int at = tile - 1; at >= 0; at--) {
      int state;
      do {
        state = atomicAdd(&flags[1 + at], 0);
      } while (state == 0);
      __threadfence();
      if (state == 2) {
        sum += ws[8 + at];  // <- race
        break;
      }
      sum += ws[at];
    }
    ws[8 + tile] = sum + total;
    if (!wrong) __threadfence();
    atomicExch(&flags[1 + tile], 2);
    before = sum;
  }
  __syncthreads();
  y[tile * 16 + t] = x[tile * 16 + t] + before;
}

template <bool wrong>
__device__ void meet(int* count, int* generation) {
  if (!wrong) __syncthreads();
  if (threadIdx.x == 0) {
    const int seen = atomicAdd(generation, 0);
    __threadfence();
    if (atomicAdd(count, 1) == int(gridDim.x) - 1) {
      atomicExch(count, 0);
      __threadfence();
      atomicAdd(generation, 1);
    } else {
      while (atomicAdd(generation, 0) == seen) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

// 2 32 warns resident-blocks
KERNEL barrier_by_generations(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x, b = blockIdx.x;
  for (int turn = 0; turn < 2; turn++) {
    ws[b * 32 + t] = x[b * 32 + t] + turn;
    meet<wrong>(&flags[0], &flags[1]);
    y[b * 32 + t] += ws[(1 - b) * 32 + 31 - t];  // <- race
    meet<wrong>(&flags[0], &flags[1]);
  }
}

// 1 64
KERNEL segmented_scan(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float value[64];
  __shared__ int head[64];
  const int t = threadIdx.x;
  value[t] = x[t];
  head[t] = t % 5 == 0;
  __syncthreads();
  for (int by = 1; by < 64; by *= 2) {
    const int closed = head[t];
    const float other = t >= by ? value[t - by] : 0.0f;  // <- race
    const int also = t >= by ? head[t - by] : 1;
    if (!wrong) __syncthreads();
    if (!closed) value[t] += other;
    head[t] = closed | also;
    __syncthreads();
  }
  y[t] = value[t];
}

// 1 32
KERNEL scan_up_and_down(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tree[64];
  const int t = threadIdx.x;
  tree[2 * t] = x[2 * t];
  tree[2 * t + 1] = x[2 * t + 1];
  int by = 1;
  for (int left = 32; left > 0; left /= 2) {
    __syncthreads();
    if (t < left) tree[by * (2 * t + 2) - 1] += tree[by * (2 * t + 1) - 1];
    by *= 2;
  }
  if (t == 0) tree[63] = 0.0f;
  for (int left = 1; left < 64; left *= 2) {
    by /= 2;
    if (!wrong) __syncthreads();
    if (t < left) {
      const int a = by * (2 * t + 1) - 1, b = by * (2 * t + 2) - 1;
      const float kept = tree[a];
      tree[a] = tree[b];  // <- race
      tree[b] += kept;
    }
  }
  __syncthreads();
  y[2 * t] = tree[2 * t];
  y[2 * t + 1] = tree[2 * t + 1];
}

// 1 64
KERNEL bitonic_sort(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  for (int k = 2; k <= 64; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      if (!wrong || j == k / 2) __syncthreads();
      const int p = t ^ j;
      if (p > t) {
        const float a = s[t], b = s[p];  // <- race
        if ((a > b) == ((t & k) == 0)) {
          s[t] = b;
          s[p] = a;
        }
      }
    }
  __syncthreads();
  y[t] = s[t];
}

// 2 32
KERNEL bitonic_between_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = x[i];
  for (int k = 2; k <= (wrong ? 64 : 32); k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      const int p = i ^ j;
      if (p > i) {
        const float a = y[i], b = y[p];  // <- race
        if ((a > b) == ((i & k) == 0)) {
          y[i] = b;
          y[p] = a;
        }
      }
    }
}

// 1 64
KERNEL compaction_by_ballots(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int counts[2];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const bool keep = x[t] > 0.0f;
  const unsigned long long votes = __ballot(keep);
  if (lane == 0) counts[warp] = __popcll(votes);
  if (!wrong) __syncthreads();
  const int start = warp == 1 ? counts[0] : 0;  // <- race
  if (keep) y[start + __popcll(votes & ((1ull << lane) - 1))] = x[t];
}

// 2 64
KERNEL bins_of_warps(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int bins[2][8];
  const int t = threadIdx.x;
  for (int i = t; i < (wrong ? 8 : 16); i += blockDim.x) (&bins[0][0])[i] = 0;
  __syncthreads();
  atomicAdd(&bins[t / 32][t % 8], 1);  // <- uninitialised-read
  __syncthreads();
  if (t < 8) atomicAdd(&flags[t], bins[0][t] + bins[1][t]);
}

// 4 32
KERNEL bins_added_plainly(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int bins[16];
  const int t = threadIdx.x;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[(t * 5) % 16], 1);
  __syncthreads();
  if (t < 16) {
    if (wrong)
      flags[t] += bins[t];  // <- race
    else
      atomicAdd(&flags[t], bins[t]);
  }
}

// 1 32
KERNEL stages_of_a_pipeline(const float* x, float* y, float* ws, int* flags, int n) {
  constexpr int depth = wrong ? 2 : 3;
  __shared__ float stage[depth][32];
  const int t = threadIdx.x;
  stage[0][t] = x[t];
  stage[1][t] = x[32 + t];
  float sum = 0.0f;
  for (int i = 0; i < 6; i++) {
    __syncthreads();
    stage[(i + 2) % depth][t] = x[(i * 7 + t) % 64];
    sum += stage[i % depth][(t + 1) % 32];  // <- race
  }
  y[t] = sum;
}

// 1 64
KERNEL sequence_lock(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  if (t == 0) {
    int before, after, value;
    do {
      before = atomicAdd(&flags[0], 0);
      __threadfence();
      value = wrong ? flags[1] : atomicAdd(&flags[1], 0);
      __threadfence();
      after = atomicAdd(&flags[0], 0);
    } while (before != after || before % 2);
    y[0] = value;
  }
  if (t == 32) {
    atomicAdd(&flags[0], 1);
    __threadfence();
    if (wrong)
      flags[1] = 7;  // <- race
    else
      atomicExch(&flags[1], 7);
    __threadfence();
    atomicAdd(&flags[0], 1);
  }
}

// 1 64
KERNEL box_handed_back(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box;
  __shared__ int turn;
  const int t = threadIdx.x;
  if (t == 0) turn = 0;
  __syncthreads();
  if (t == 0)
    for (int i = 0; i < 4; i++) {
      while (atomicAdd(&turn, 0) != 2 * i) {
      }
      __threadfence_block();
      box = x[i];
      __threadfence_block();
      atomicExch(&turn, 2 * i + 1);
    }
  if (t == 32) {
    float sum = 0.0f;
    for (int i = 0; i < 4; i++) {
      while (atomicAdd(&turn, 0) != 2 * i + 1) {
      }
      __threadfence_block();
      sum += box;  // <- race
      if (!wrong) __threadfence_block();
      atomicExch(&turn, 2 * i + 2);
    }
    y[0] = sum;
  }
}

// 4 16 warns resident-blocks
KERNEL queue_of_items(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x < 3) {
    const int slot = atomicAdd(&flags[0], 1);
    ws[slot] = x[blockIdx.x];
    __threadfence();
    atomicExch(&flags[8 + slot], 1);
    return;
  }
  float sum = 0.0f;
  for (int i = 0; i < 3; i++) {
    while (wrong ? atomicAdd(&flags[0], 0) <= i : atomicAdd(&flags[8 + i], 0) == 0) {
    }
    __threadfence();
    sum += ws[i];  // <- race
  }
  y[0] = sum;
}

// 4 32
KERNEL sum_read_at_the_end(const float* x, float* y, float* ws, int* flags, int n) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  atomicAdd(&y[0], x[i % 64]);
  if (wrong) {
    if (i == 127) y[1] = y[0];  // <- mixed-race
  } else {
    __threadfence();
    if (atomicAdd(&flags[0], 1) == 127) {
      __threadfence();
      y[1] = atomicAdd(&y[0], 0.0f);
    }
  }
}

// 1 64
KERNEL tiled_product(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float a[8][4], b[4][8];
  const int t = threadIdx.x, row = t / 8, column = t % 8;
  float sum = 0.0f;
  for (int tile = 0; tile < 8; tile += 4) {
    if (t < 32)
      a[t / 4][t % 4] = x[(t / 4) * 8 + tile + t % 4];
    else
      b[(t - 32) / 8][t % 8] = x[(tile + (t - 32) / 8) * 8 + t % 8];
    __syncthreads();
    for (int k = 0; k < 4; k++) sum += a[row][k] * b[k][column];  // <- race
    if (!wrong) __syncthreads();
  }
  y[t] = sum;
}

// 4 16
KERNEL wide_stencil(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float s[20];
  const int t = threadIdx.x, i = blockIdx.x * 16 + t;
  s[t + 2] = x[i];
  if (wrong) __syncthreads();
  if (t < 2) {
    s[t] = i >= 2 ? x[i - 2] : 0.0f;
    s[t + 18] = i + 16 < n ? x[i + 16] : 0.0f;
  }
  if (!wrong) __syncthreads();
  y[i] = s[t] + s[t + 1] + s[t + 2] + s[t + 3] + s[t + 4];  // <- race
}

// 1 64
KERNEL pairs_read_past_the_end(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  if (t < n / 2 + wrong) {
    const float2 pair = reinterpret_cast<const float2*>(x)[t];  // <- out-of-bounds
    if (t < n / 2) y[2 * t] = pair.x + pair.y;
  }
}

// 1 64
KERNEL hole_of_who_returned(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  if (wrong && t >= 60) return;
  s[t] = t < 60 ? x[t] : 0.0f;
  __syncthreads();
  if (t < 60) y[t] = s[63 - t];  // <- uninitialised-read
}

// 1 64
KERNEL loop_until_all_are_done(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  int left = t < 32 ? 2 : 4;
  while (wrong ? __any(left > 0) : __syncthreads_or(left > 0)) {
    s[t] += 1.0f;
    left--;
    __syncthreads();
  }
  __syncthreads();  // <- barrier
  y[t] = s[63 - t];
}

// 2 32
KERNEL one_addition_of_a_warp(const float* x, float* y, float* ws, int* flags, int n) {
  const int lane = threadIdx.x;
  if (lane % 3 == 1) {
    const unsigned long long active = __ballot(1);
    const int leader = __ffsll(active) - 1;
    int base = 0;
    if (lane == leader) base = atomicAdd(&flags[0], __popcll(active));
    base = __shfl(base, wrong ? 0 : leader);  // <- inactive-lane
    y[base + __popcll(active & ((1ull << lane) - 1))] = x[lane];
  }
}

// 1 128
KERNEL arrivals_of_warps(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float part[4];
  __shared__ int arrived;
  const int t = threadIdx.x;
  if (t == 0) arrived = 0;
  __syncthreads();
  float v = x[t % 64];
  for (int by = 16; by > 0; by /= 2) v += __shfl_down(v, by);
  if (t % 32 == 0) {
    part[t / 32] = v;
    if (!wrong) __threadfence_block();
    if (atomicAdd(&arrived, 1) == 3) {
      __threadfence_block();
      y[0] = part[0] + part[1] + part[2] + part[3];  // <- race
    }
  }
}

// 1 64
KERNEL told_twice(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float s;
  const int t = threadIdx.x;
  if (t == 0) s = x[0];
  __syncthreads();
  const float first = s;  // <- race
  if (!wrong) __syncthreads();
  if (t == 0) s = x[1];
  __syncthreads();
  y[t] = first * s;
}

// 2 32 warns mixed-race
KERNEL largest_by_exchange(const float* x, float* y, float* ws, int* flags, int n) {
  const float mine = x[blockIdx.x * 32 + threadIdx.x];
  if (wrong) {
    if (mine > y[0]) y[0] = mine;  // <- race
    return;
  }
  int* at = reinterpret_cast<int*>(&y[0]);
  int old = *at, seen;
  do {
    seen = old;
    if (__int_as_float(seen) >= mine) break;
    old = atomicCAS(at, seen, __float_as_int(mine));
  } while (old != seen);
}

// 1 64
KERNEL steps_of_two_buffers(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float a[64], b[64];
  const int t = threadIdx.x;
  float *from = a, *to = b;
  from[t] = x[t];
  __syncthreads();
  for (int step = 0; step < 6; step++) {
    to[t] = 0.5f * (from[(t + 63) % 64] + from[(t + 1) % 64]);  // <- race
    if (!wrong || step % 2) __syncthreads();
    float* const other = from;
    from = to;
    to = other;
  }
  y[t] = from[t];
}

// 1 32 256
KERNEL two_arrays_in_one(const float* x, float* y, float* ws, int* flags, int n) {
  extern __shared__ float memory[];
  const int t = threadIdx.x;
  float* values = memory;
  int* order = reinterpret_cast<int*>(memory + (wrong ? 16 : 32));
  values[t] = x[t];
  order[t] = 31 - t;  // <- race
  __syncthreads();
  y[t] = values[order[t] & 31];
}

// 1 64
KERNEL two_pitches_of_a_tile(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[8][9];
  const int t = threadIdx.x;
  tile[t / 8][t % 8] = x[t];
  __syncthreads();
  y[t] = (&tile[0][0])[(t % 8) * (wrong ? 8 : 9) + t / 8];  // <- uninitialised-read
}

// 1 64
KERNEL shuffle_under_a_condition(const float* x, float* y, float* ws, int* flags, int n) {
  const int lane = threadIdx.x % 32;
  float v = x[threadIdx.x];
  for (int by = 1; by < 32; by *= 2) {
    if (wrong) {
      if (lane >= by) v += __shfl_up(v, by);  // <- inactive-lane
    } else {
      const float other = __shfl_up(v, by);
      if (lane >= by) v += other;
    }
  }
  y[threadIdx.x] = v;
}
