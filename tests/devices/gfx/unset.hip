// Kernels with one fault each where `wrong` is true, as tests/devices/sanitizers/faults.hip, of what only machine code shows:
// registers that nothing has written (an asm statement without code says that it writes one), and memory that
// blocks share.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

template <typename T>
__device__ inline T nothing_written() {
  T value;
  asm volatile("" : "={v90}"(value));  // a register that nothing else takes
  return value;
}
__device__ inline int nothing_written_scalar() {
  int value;
  asm volatile("" : "={s90}"(value));
  return value;
}

// 1 64
KERNEL unset_value(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  const float v = nothing_written<float>();
  y[t] = wrong ? x[t] + v : x[t];  // <- uninitialised-read
}

// Half of the lanes write it.
// 1 64
KERNEL unset_lanes(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  float v = nothing_written<float>();
  if (wrong ? t % 2 == 1 : t >= 0) v = x[t];
  y[t] = v;  // <- uninitialised-read
}

// The lower half of a register is written alone.
// 1 64
KERNEL unset_half(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  unsigned bits = nothing_written<unsigned>();
  asm volatile("v_cvt_f16_f32 %0, %1" : "+v"(bits) : "v"(x[t]));
  y[t] = __uint_as_float(wrong ? bits : bits & 0xffff);  // <- uninitialised-read
}

// 1 64
KERNEL unset_place(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x, at = nothing_written<int>();
  y[t] = x[(wrong ? at : at * 0 + t) & 63];  // <- uninitialised-read
}

// 1 64
KERNEL unset_condition(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x, flag = nothing_written_scalar();
  y[t] = x[t];
  if ((wrong ? flag : flag & 4) == 3) ws[t] = x[t];  // <- uninitialised-read
}

// 1 64
KERNEL unset_divergence(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  int count = nothing_written<int>() & 3;
  if (!wrong) count = t % 4;
  float sum = 0;
  for (int i = 0; i < count; i++) sum += x[(t + i) % n];  // <- uninitialised-read
  y[t] = sum;
}

// Copies, what is selected away, and a spill to memory of the lane are no use of it.
// 1 64
KERNEL unset_spilled(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  volatile float kept[4];
  for (int i = 0; i < 4; i++) kept[i] = nothing_written<float>();
  kept[1] = x[t];
  const float other = kept[k[0] + 2], good = kept[k[0] + 1];
  y[t] = (wrong || k[0] != 0) ? other : good;  // <- uninitialised-read
}

// 1 20
KERNEL unset_beyond_block(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  const float v = x[t], far = __uint_as_float(__builtin_amdgcn_readlane(__float_as_uint(v), wrong ? 25 : 5));
  y[t] = far;  // <- uninitialised-read
  for (int i = t + 20; i < n; i += 20) y[i] = 0;
}

// A block reads what another wrote in the launch; a launch of its own would order them.
// 2 32
KERNEL shared_by_blocks(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x, b = blockIdx.x;
  ws[32 * b + t] = x[t];
  y[32 * b + t] = ws[32 * (wrong ? 1 - b : b) + t];  // <- race
}

// Blocks add up into a word that one of them has set.
// 2 32
KERNEL set_beside_adds(const float* x, float* y, float* ws, const int* k, int n) {
  y[32 * blockIdx.x + threadIdx.x] = x[threadIdx.x];
  if (wrong && blockIdx.x == 0 && threadIdx.x == 0) ws[0] = 0;  // <- mixed-race
  atomicAdd(&ws[0], x[threadIdx.x]);
}

// A flag that is set behind a fence hands the part of a block to the next one.
// 2 32
KERNEL handed_on(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x, b = blockIdx.x;
  auto* flag = reinterpret_cast<int*>(ws + 40);
  if (b == 0) {
    ws[t] = x[t];
    if (!wrong) __threadfence();
    __syncthreads();
    if (t == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    y[t] = x[t];
  } else {
    const int order = wrong ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE;
    const int seen = __hip_atomic_load(flag, order, __HIP_MEMORY_SCOPE_AGENT);
    y[32 + t] = seen ? ws[t] : x[t];  // <- race
  }
}

// Waves of a block that write the same word of an output, with a barrier between them or without.
// 1 64
KERNEL shared_by_waves(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  if (t < 32) ws[t] = x[t];
  if (!wrong) __syncthreads();
  y[t] = ws[t % 32];  // <- race
}
