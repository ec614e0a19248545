// Barriers of a block, shared and global memory without any.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 1 64
KERNEL turned(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  if (!wrong) __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];  // <- race
}

// 1 64
KERNEL second_use(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int turn = 0; turn < 2; turn++) {
    tile[threadIdx.x] = x[threadIdx.x] + turn;  // <- race
    __syncthreads();
    sum += tile[63 - threadIdx.x];
    if (!wrong) __syncthreads();
  }
  y[threadIdx.x] = sum;
}

// 1 64
KERNEL tree(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float part[64];
  const int t = threadIdx.x;
  part[t] = x[t];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];  // <- race
    if (!wrong || s > 32) __syncthreads();
  }
  if (t == 0) y[0] = part[0];
}

// 1 64
KERNEL scan_in_place(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float part[64];
  const int t = threadIdx.x;
  part[t] = x[t];
  __syncthreads();
  for (int s = 1; s < 64; s *= 2) {
    const float other = t >= s ? part[t - s] : 0.0f;
    if (!wrong) __syncthreads();
    part[t] += other;  // <- race
    __syncthreads();
  }
  y[t] = part[t];
}

// 1 64 512
KERNEL dynamic_halves(const float* x, float* y, float* ws, int* flags, int n) {
  extern __shared__ float halves[];
  float *here = halves, *there = halves + (wrong ? 32 : 64);
  here[threadIdx.x] = x[threadIdx.x];
  there[threadIdx.x] = 2.0f * x[threadIdx.x];  // <- race
  __syncthreads();
  y[threadIdx.x] = here[threadIdx.x] + there[threadIdx.x];
}

// 1 64
KERNEL neighbours_in_global(const float* x, float* y, float* ws, int* flags, int n) {
  ws[threadIdx.x] = x[threadIdx.x];
  if (!wrong) __syncthreads();
  y[threadIdx.x] = ws[(threadIdx.x + 1) % 64];  // <- race
}

// 2 64
KERNEL same_place_of_two_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  const int at = wrong ? threadIdx.x : blockIdx.x * 64 + threadIdx.x;
  ws[at] = x[threadIdx.x] + float(blockIdx.x);  // <- race
}

// 2 64
KERNEL halo_of_two_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  if (wrong) {
    ws[at] = x[threadIdx.x];
    if (at > 0) y[threadIdx.x / 2 + 32 * blockIdx.x] = 0.0f + ws[at - 1];  // <- race
  } else {
    ws[at] = x[threadIdx.x];
  }
}

// 1 64
KERNEL bytes_of_a_word(const float* x, float* y, float* ws, int* flags, int n) {
  auto* bytes = reinterpret_cast<unsigned char*>(flags);
  if (wrong)
    flags[threadIdx.x / 2] = int(threadIdx.x);  // <- race
  else
    bytes[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
}

// 1 64
KERNEL bits_of_a_word(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong)
    flags[0] |= 1 << threadIdx.x % 32;  // <- race
  else
    atomicOr(&flags[0], 1 << threadIdx.x % 32);
}

// 1 64
KERNEL count_plainly(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int bins[4];
  if (threadIdx.x < 4) bins[threadIdx.x] = 0;
  __syncthreads();
  if (wrong)
    bins[threadIdx.x % 4]++;  // <- race
  else
    atomicAdd(&bins[threadIdx.x % 4], 1);
  __syncthreads();
  if (threadIdx.x < 4) y[threadIdx.x] = float(bins[threadIdx.x]);
}

// 1 64
KERNEL look_beside_adds(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int all;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  atomicAdd(&all, 1);
  if (!wrong) __syncthreads();
  if (threadIdx.x == 0) y[0] = float(all);  // <- mixed-race
}

// 1 96
KERNEL one_warp_behind(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float sums[3];
  float v = x[threadIdx.x % 64];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  if (!wrong) __syncthreads();
  if (threadIdx.x == 0) y[0] = sums[0] + sums[1] + sums[2];  // <- race
}

// 1 64
KERNEL double_buffer(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[2][64];
  float sum = 0.0f;
  for (int k = 0; k < 4; k++) {
    tile[wrong ? 0 : k % 2][threadIdx.x] = x[(threadIdx.x + k) % 64];  // <- race
    __syncthreads();
    sum += tile[wrong ? 0 : k % 2][63 - threadIdx.x];
  }
  y[threadIdx.x] = sum;
}

// 1 64
KERNEL dead_store(const float* x, float* y, float* ws, int* flags, int n) {
  // A host compiler removes the first of two stores; a GPU's need not.
  __shared__ float box[2];
  if (threadIdx.x < 2) box[threadIdx.x] = 1.0f;
  __syncthreads();
  if (wrong && threadIdx.x == 1) box[0] = 3.0f;  // <- race
  if (threadIdx.x == 0) box[0] = x[0];
  if (wrong && threadIdx.x == 1) box[0] = 4.0f;
  __syncthreads();
  y[threadIdx.x] = box[1];
}

// 1 64
KERNEL unused_read(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[64];
  box[threadIdx.x] = x[threadIdx.x];
  if (!wrong) __syncthreads();
  float seen = box[63 - threadIdx.x];  // <- race
  seen = 1.0f;
  y[threadIdx.x] = seen;
}

// 1 64
KERNEL same_value(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong)
    flags[0] = 7;  // <- same-value-race
  else
    atomicExch(&flags[0], 7);
}

// 3 32
KERNEL same_value_of_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong)
    ws[threadIdx.x] = x[threadIdx.x];  // <- same-value-race
  else if (blockIdx.x == 0)
    ws[threadIdx.x] = x[threadIdx.x];
}

// 1 64
KERNEL nearly_same_value(const float* x, float* y, float* ws, int* flags, int n) {
  const int at = wrong ? 0 : threadIdx.x;
  flags[at] = threadIdx.x == 63 ? 8 : 7;  // <- race
}
