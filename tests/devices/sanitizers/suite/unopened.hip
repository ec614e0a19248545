// Kinds that the other files do not have, written before any of them ran.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void
#define ALL 0xffffffffu

// 1 64
KERNEL reset_while_others_add(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int bins[8];
  const int t = threadIdx.x;
  if (t < 8) bins[t] = 0;
  __syncthreads();
  for (int pass = 0; pass < 2; pass++) {
    atomicAdd(&bins[(t + pass) % 8], 1);
    __syncthreads();
    if (t < 8) y[8 * pass + t] = float(bins[t]);
    if (t < 8) bins[t] = 0;  // <- mixed-race
    if (!wrong) __syncthreads();
  }
}

// 1 64
KERNEL totals_of_warps(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float totals[2];
  const int t = threadIdx.x, lane = t % 32;
  float sum = x[t];
  for (int step = 1; step < 32; step *= 2) {
    const float other = __shfl_up_sync(ALL, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) totals[t / 32] = sum;
  if (!wrong) __syncthreads();
  if (t >= 32) sum += totals[0];  // <- race
  y[t] = sum;
}

// 1 32
KERNEL base_of_the_leader(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int base;
  const int lane = threadIdx.x;
  const unsigned takers = unsigned(__ballot_sync(ALL, lane % 3 == 0));
  if (lane == 0) base = atomicAdd(&flags[0], __popc(takers));
  if (!wrong) __syncwarp();
  if (lane % 3 == 0) {
    const int at = base + __popc(takers & ((1u << lane) - 1));  // <- race
    ws[at] = x[lane];
  }
}

// 1 64
KERNEL swapped_by_both(const float* x, float* y, float* ws, int* flags, int n) {
  const int row = threadIdx.x / 8, column = threadIdx.x % 8;
  ws[8 * row + column] = x[8 * row + column];
  __syncthreads();
  if (wrong ? row != column : row < column) {
    const float kept = ws[8 * row + column];
    ws[8 * row + column] = ws[8 * column + row];  // <- race
    ws[8 * column + row] = kept;
  }
  __syncthreads();
  y[threadIdx.x] = ws[threadIdx.x];
}

// 1 64
KERNEL roots_joined(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  flags[t] = t;
  __syncthreads();
  const int from = t, to = (t * 7 + 3) % 64;
  const int low = min(from, to), high = max(from, to);
  if (wrong) {
    if (low < flags[high]) flags[high] = low;  // <- race
  } else {
    atomicMin(&flags[high], low);
  }
  __syncthreads();
  y[t] = float(flags[t]);
}

// 4 16
KERNEL frontier(const float* x, float* y, float* ws, int* flags, int n) {
  const int edge = blockIdx.x * 16 + threadIdx.x, node = 1 + (edge * 5) % 23;
  bool first = false;
  if (wrong) {
    if (flags[node] == 0) {
      flags[node] = edge + 1;  // <- race
      first = true;
    }
  } else {
    first = atomicCAS(&flags[node], 0, edge + 1) == 0;
  }
  if (first) ws[atomicAdd(&flags[0], 1)] = float(node);
}

// 1 96
KERNEL readers_and_a_writer(const float* x, float* y, float* ws, int* flags, int n) {
  // flags[0]: readers that are in, or -1 while the writer is.
  if (threadIdx.x % 32) return;
  if (threadIdx.x == 32) {
    if (!wrong)
      while (atomicCAS(&flags[0], 0, -1) != 0) {
      }
    __threadfence();
    flags[2] = 5;  // <- race
    flags[3] = 7;
    __threadfence();
    if (!wrong) atomicExch(&flags[0], 0);
    return;
  }
  for (;;) {
    const int seen = atomicAdd(&flags[0], 0);
    if (seen >= 0 && atomicCAS(&flags[0], seen, seen + 1) == seen) break;
  }
  __threadfence();
  y[threadIdx.x / 32] = float(flags[2] + flags[3]);
  __threadfence();
  atomicSub(&flags[0], 1);
}

// 1 64
KERNEL built_once(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int built;
  __shared__ float table[4];
  if (threadIdx.x == 0) built = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    if (atomicCAS(&built, 0, 1) == 0) {
      for (int i = 0; i < 4; i++) table[i] = x[i] * x[i];
      __threadfence_block();
      atomicExch(&built, 2);
    } else if (!wrong) {
      while (atomicAdd(&built, 0) != 2) {
      }
      __threadfence_block();
    }
    y[threadIdx.x] = table[0] + table[3];  // <- missing-acquire
  }
}

// 1 32
KERNEL ring_of_three(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float ring[3][64];
  const int t = threadIdx.x, other = 31 - t;
  float sum = 0.0f;
  ring[0][t] = x[t];
  ring[1][t] = x[t] + 1.0f;
  for (int k = 0; k < 6; k++) {
    __syncwarp();
    sum += ring[k % 3][other];
    ring[(k + (wrong ? 3 : 2)) % 3][t] = x[t] * float(k);  // <- race
  }
  y[t] = sum;
}

// 1 64
KERNEL barrier_in_a_function(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[64];
  const int t = threadIdx.x;
  struct Local {
    static __device__ float turned(const float* box, int t) {
      __syncthreads();  // <- barrier
      return box[63 - t];
    }
  };
  box[t] = x[t];
  if (!wrong || t < 40) y[t] = Local::turned(box, t);
  __syncthreads();
  if (t > 0) y[t] += box[t - 1];
}

// 1 32
KERNEL lanes_that_leave_a_loop(const float* x, float* y, float* ws, int* flags, int n) {
  const int lane = threadIdx.x;
  float sum = 0.0f;
  unsigned mask = ALL;
  for (int k = 0; k < 4; k++) {
    if (!wrong) mask = unsigned(__ballot_sync(mask, lane % 4 >= k));
    if (lane % 4 < k) break;
    sum += __shfl_sync(mask, x[lane], lane ^ 0);
  }
  __syncwarp();  // <- mask
  y[lane] = sum;
}

// 1 64
KERNEL wrapped_below_zero(const float* x, float* y, float* ws, int* flags, int n) {
  const unsigned t = threadIdx.x;
  const float left = wrong || t > 0 ? x[int(t) - 1] : 0.0f;  // <- out-of-bounds
  y[t] = x[t] - left;
}

// 1 64
KERNEL partials_of_absent_warps(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float partials[32];
  const int t = threadIdx.x, lane = t % 32;
  float sum = x[t];
  for (int step = 16; step; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (lane == 0) partials[t / 32] = sum;
  __syncthreads();
  if (t >= 32) return;
  sum = wrong || lane < int(blockDim.x / 32) ? partials[lane] : 0.0f;  // <- uninitialised-read
  for (int step = 16; step; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (lane == 0) y[0] = sum;
}

// 3 32 warns resident-blocks
KERNEL waits_for_one_too_many(const float* x, float* y, float* ws, int* flags, int n) {
  ws[blockIdx.x * 32 + threadIdx.x] = x[threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&flags[0], 1);
  if (blockIdx.x != gridDim.x - 1) return;
  if (threadIdx.x == 0)
    while (atomicAdd(&flags[0], 0) < int(gridDim.x) + (wrong ? 1 : 0)) {  // <- deadlock
    }
  __threadfence();
  __syncthreads();
  y[threadIdx.x] = ws[threadIdx.x] + ws[32 + threadIdx.x];
}

// 1 64
KERNEL gone_with_the_lock(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(&flags[0], 0, 1) != 0) {  // <- deadlock
  }
  __threadfence();
  ws[0] = flags[1] ? ws[0] + x[threadIdx.x] : x[threadIdx.x];
  flags[1] = 1;
  if (wrong && x[threadIdx.x] < 1e30f) return;
  __threadfence();
  atomicExch(&flags[0], 0);
}

// 1 64
KERNEL half_of_a_long(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ unsigned long long count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1ull << 32 | 1ull);
  if (!wrong) __syncthreads();
  if (threadIdx.x == 40) y[0] = float(*reinterpret_cast<unsigned*>(&count));  // <- mixed-race
}

// 1 96
KERNEL last_warp(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float sums[3];
  __shared__ int come;
  if (threadIdx.x == 0) come = 0;
  __syncthreads();
  float sum = threadIdx.x < 64 ? x[threadIdx.x] : 1.0f;
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
  if (threadIdx.x % 32) return;
  sums[threadIdx.x / 32] = sum;
  if (!wrong) __threadfence_block();
  if (atomicAdd(&come, 1) != 2) return;
  __threadfence_block();
  y[0] = sums[0] + sums[1] + sums[2];  // <- race
}

// 1 64
KERNEL compacted_in_place(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  ws[t] = x[t];
  __syncthreads();
  const bool kept = t % 3 != 1;
  const int at = t - (t + 1) / 3;
  const float own = ws[t];
  if (!wrong) __syncthreads();
  if (kept) ws[at] = own;  // <- race
  __syncthreads();
  if (t < 43) y[t] = ws[t];
}

__device__ float carried[4];

// 4 16
KERNEL device_variable(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x == 0) carried[blockIdx.x] = x[blockIdx.x];
  __syncthreads();
  const int which = wrong ? (blockIdx.x + 1) % 4 : blockIdx.x;
  y[blockIdx.x * 16 + threadIdx.x] = carried[which];  // <- race
}

// 1 64
KERNEL shared_of_a_function(const float* x, float* y, float* ws, int* flags, int n) {
  struct Local {
    static __device__ float turned(float value) {
      __shared__ float box[64];
      box[threadIdx.x] = value;  // <- race
      __syncthreads();
      const float other = box[63 - threadIdx.x];
      if (!wrong) __syncthreads();
      return other;
    }
  };
  y[threadIdx.x] = Local::turned(x[threadIdx.x]) + Local::turned(x[threadIdx.x] * 2.0f);
}

// 1 64
KERNEL buffer_of_two_types(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ unsigned char raw[512];
  float* numbers = reinterpret_cast<float*>(raw);
  double* wide = reinterpret_cast<double*>(raw);
  const int t = threadIdx.x;
  numbers[t] = x[t];
  __syncthreads();
  const float sum = numbers[t] + numbers[(t + 5) % 64];
  if (!wrong) __syncthreads();
  wide[t] = double(sum) * 2.0;  // <- race
  __syncthreads();
  y[t] = float(wide[63 - t]);
}

// 1 64
KERNEL cached_read(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  ws[t] = x[t] * 3.0f;
  if (!wrong) __syncthreads();
  y[t] = __ldg(&ws[63 - t]);  // <- race
}

// 1 32
KERNEL none_in_the_ballot(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[32];
  const int lane = threadIdx.x;
  box[lane] = x[lane];
  __syncwarp();
  const unsigned found = unsigned(__ballot_sync(ALL, x[lane] > 1e30f));
  const int first = __ffs(int(found)) - 1;
  y[lane] = wrong || first >= 0 ? box[first] : 0.0f;  // <- out-of-bounds
}

// 1 48
KERNEL half_a_warp_at_the_end(const float* x, float* y, float* ws, int* flags, int n) {
  float sum = x[threadIdx.x];
  const unsigned mask = threadIdx.x < 32 || wrong ? ALL : 0xffffu;
  for (int step = threadIdx.x < 32 || wrong ? 16 : 8; step; step /= 2)
    sum += __shfl_xor_sync(mask, sum, step);  // <- inactive-lane
  y[threadIdx.x] = sum;
}
