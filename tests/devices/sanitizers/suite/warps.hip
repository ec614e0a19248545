// Operations of a warp: what they order, who takes part, and their masks.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void
#define ALL 0xffffffffu

// 1 32
KERNEL vote_between(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[32];
  box[threadIdx.x] = x[threadIdx.x];
  __all_sync(ALL, 1);
  if (!wrong) __syncwarp();
  y[threadIdx.x] = box[31 - threadIdx.x];  // <- race
}

// 1 32
KERNEL shuffle_between(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[32];
  box[threadIdx.x] = x[threadIdx.x];
  const float v = __shfl_sync(ALL, x[threadIdx.x], 0);
  if (!wrong) __syncwarp();
  y[threadIdx.x] = box[31 - threadIdx.x] + v;  // <- race
}

// 1 32
KERNEL ballot_between(const float* x, float* y, float* ws, int* flags, int n) {
  ws[threadIdx.x] = x[threadIdx.x];
  const unsigned set = unsigned(__ballot_sync(ALL, x[threadIdx.x] > 0.0f));
  if (!wrong) __syncwarp();
  y[threadIdx.x] = ws[31 - threadIdx.x] + float(set & 1);  // <- race
}

// 1 64
KERNEL warp_is_no_block(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[64];
  box[threadIdx.x] = x[threadIdx.x];
  if (wrong)
    __syncwarp();
  else
    __syncthreads();
  y[threadIdx.x] = box[63 - threadIdx.x];  // <- race
}

// 1 32
KERNEL half_of_a_warp(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[32];
  box[threadIdx.x] = x[threadIdx.x];
  const unsigned half = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  if (wrong)
    __syncwarp(half);
  else
    __syncwarp();
  y[threadIdx.x] = box[31 - threadIdx.x];  // <- race
}

// 1 32
KERNEL in_step(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[32];
  const int lane = threadIdx.x;
  box[lane] = x[lane];
  for (int s = 16; s > 0; s /= 2) {
    if (!wrong) __syncwarp();
    if (lane < s) box[lane] += box[lane + s];  // <- race
  }
  if (lane == 0) y[0] = box[0];
}

// 1 32 warns amd-mask
KERNEL across_a_branch(const float* x, float* y, float* ws, int* flags, int n) {
  float got;
  if (threadIdx.x < 16)
    got = __shfl_xor_sync(wrong ? 0xffffu : ALL, x[threadIdx.x], 16);  // <- inactive-lane
  else
    got = __shfl_xor_sync(wrong ? 0xffff0000u : ALL, x[threadIdx.x], 16);
  y[threadIdx.x] = got;
}

// 1 32
KERNEL mask_names_who_waits(const float* x, float* y, float* ws, int* flags, int n) {
  float v = x[threadIdx.x];
  if (threadIdx.x < 16 || !wrong) {
    v += __shfl_xor_sync(ALL, v, 1);  // <- mask
  }
  __syncthreads();
  y[threadIdx.x] = v;
}

// 1 32
KERNEL mask_without_caller(const float* x, float* y, float* ws, int* flags, int n) {
  float v = x[threadIdx.x];
  if (threadIdx.x < 16) v += __shfl_xor_sync(wrong ? 0xfffeu : 0xffffu, v, 1);  // <- mask
  y[threadIdx.x] = v;
}

// 1 32
KERNEL vote_elsewhere(const float* x, float* y, float* ws, int* flags, int n) {
  int any = 0;
  if (threadIdx.x < 8)
    any = __any_sync(wrong ? ALL : 0xffu, x[threadIdx.x] > 0.0f);  // <- mask
  __syncwarp();
  y[threadIdx.x] = float(any);
}

// 1 32
KERNEL value_of_who_returned(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x >= 24) {
    y[threadIdx.x] = 0.0f;
    return;
  }
  const float v = __shfl_sync(0xffffffu, x[threadIdx.x], wrong ? 30 : 3);  // <- inactive-lane
  y[threadIdx.x] = v;
}

// 1 64
KERNEL barrier_on_one_side(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[64];
  box[threadIdx.x] = x[threadIdx.x];
  if (!wrong || threadIdx.x < 32) __syncthreads();  // <- barrier
  if (wrong) __syncthreads();
  y[threadIdx.x] = box[threadIdx.x];
}

// 1 64
KERNEL returned_before_the_barrier(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[64];
  if (wrong && threadIdx.x == 63) return;
  box[threadIdx.x] = x[threadIdx.x];
  __syncthreads();  // <- barrier
  y[threadIdx.x] = box[threadIdx.x];
}

// 1 32
KERNEL matched(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int box[32];
  box[threadIdx.x] = 0;
  __syncwarp();
  const unsigned peers = unsigned(__match_any_sync(ALL, int(threadIdx.x % 4)));
  const int leader = __ffs(int(peers)) - 1;
  if (wrong)
    box[leader] += 1;  // <- race
  else if (int(threadIdx.x) == leader)
    box[leader] += __popc(peers);
  __syncwarp();
  y[threadIdx.x] = float(box[threadIdx.x]);
}
