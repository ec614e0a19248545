// Kernels with one fault each where `wrong` is true, and none where it is not. A comment "<- KIND" marks
// the line that a finding of that kind must name. GRID BLOCK stand in front of each kernel.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 1 64
KERNEL missing_barrier(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[t];
  if (!wrong) __syncthreads();
  y[t] = tile[63 - t];  // <- race
}

__device__ inline float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// A sum of the block as many layernorm kernels have it.
__device__ inline float block_sum(float v, float* shared, bool again) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = warp_sum(v);
  if (again) __syncthreads();
  if (lane == 0) shared[warp] = v;  // <- race reused_reduction
  __syncthreads();
  v = lane < blockDim.x / 32 ? shared[lane] : 0.0f;
  return warp_sum(v);
}

// 1 64
KERNEL reused_reduction(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float shared[32];
  const float mean = block_sum(x[threadIdx.x], shared, false) / 64;
  const float rest = block_sum(x[threadIdx.x] - mean, shared, !wrong);
  y[threadIdx.x] = rest + mean;
}

// 1 64
KERNEL past_workspace(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  ws[t] = x[t];
  __syncthreads();
  y[t] = ws[wrong ? n + 100 + t : t];  // <- out-of-bounds
}

// 1 64
KERNEL past_by_one(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[wrong ? t + 1 : t];  // <- out-of-bounds
}

// 1 64
KERNEL past_by_pages(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[wrong ? t + 5000 : t];  // <- out-of-bounds
}

// 1 64
KERNEL far_past(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[wrong ? t + 100000000 : t];  // <- out-of-bounds
}

// 1 64
KERNEL in_front(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[wrong ? t - 1 : t];  // <- out-of-bounds
}

// 1 64
KERNEL write_past(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[t];
  if (wrong && t == 63) y[t + 1] = 0.0f;  // <- out-of-bounds
}

// 1 64
KERNEL past_shared(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float tile[64];
  float* p = tile;
  const int t = threadIdx.x;
  p[t] = x[t];
  __syncthreads();
  y[t] = p[wrong ? t + 1 + k[0] : t];  // <- out-of-bounds
}

// 1 64
KERNEL shared_index(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  y[t] = tile[wrong ? t + 1 + k[0] : t];  // <- index-out-of-bounds
}

// 1 64 256
KERNEL past_dynamic(const float* x, float* y, float* ws, const int* k, int n) {
  extern __shared__ float dynamic[];
  const int t = threadIdx.x;
  dynamic[t] = x[t];
  __syncthreads();
  y[t] = dynamic[wrong ? t + 1 : t];  // <- out-of-bounds
}

// 1 64
KERNEL past_by_ldg(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  const float v = __ldg(&x[wrong ? t + 1 : t]);  // <- out-of-bounds
  y[t] = v;
}

// 1 64
KERNEL past_local(const float* x, float* y, float* ws, const int* k, int n) {
  float kept[4] = {x[threadIdx.x], 2, 3, 4};
  const float* p = kept + k[0];
  y[threadIdx.x] = p[wrong ? 4 : 3] + x[threadIdx.x];  // <- stack-buffer-overflow
}

// 1 64
KERNEL stale_pointer(const float* x, float* y, float* ws, const int* k, int n) {
  const float* p;
  {
    float kept[4] = {x[threadIdx.x], 1, 2, 3};
    p = kept + k[0];
    if (!wrong) y[threadIdx.x] = *p;
  }
  if (wrong) y[threadIdx.x] = *p;  // <- stack-use-after-scope
}

// 1 64
KERNEL unset_bins(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ int bins[16];
  const int t = threadIdx.x;
  if (!wrong && t < 16) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[t % 16], 1);  // <- uninitialised-read
  __syncthreads();
  y[t] = bins[t % 16] + x[t];
}

// 1 64
KERNEL unset_output(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  if (!wrong) y[t] = 0.0f;
  y[t] += x[t];  // <- uninitialised-read
}

// 2 32
KERNEL unset_workspace(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = blockIdx.x * 32 + threadIdx.x;
  if (!wrong || t % 2) ws[t] = x[t];
  y[t] = ws[t];  // <- uninitialised-read
}

// 1 64
KERNEL unset_local(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  float v;
  if (!wrong || t % 2) v = x[t];
  y[t] = v;  // <- uninitialised-variable
}

// 1 64
KERNEL unset_sum(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  float sum;
  if (!wrong) sum = 0.0f;
  for (int i = 0; i < 4; i++) sum += x[(t + i) % n];
  y[t] = 1.0f;
  if (sum > 1.0f) y[t] = 2.0f;  // <- uninitialised-variable
}

// 1 64
KERNEL unset_index(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  int at[2];
  at[0] = t;
  if (!wrong) at[1] = 63 - t;
  y[t] = x[at[k[0] + 1] & 63];  // <- uninitialised-variable
}

// Registers of a tile, of which one is left out.
// 1 64
KERNEL unset_register(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  float part[4], sum = 0.0f;
  for (int i = 0; i < (wrong ? 3 : 4); i++) part[i] = x[(t + i) % n];
  for (int i = 0; i < 4; i++) sum += part[i];
  sum = warp_sum(sum);
  y[t] = sum;  // <- uninitialised-variable
}

// 1 32
KERNEL unset_lane(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  float v;
  if (t < 16) v = x[t];
  v = __shfl_down(v, wrong ? 16 : 0);
  y[t] = 0.0f;
  if (t < 16) y[t] = v;  // <- uninitialised-variable
}

// 1 64
KERNEL unset_through_shared(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  float v;
  if (!wrong || t != 5) v = x[t];
  tile[t] = v;
  __syncthreads();
  y[t] = tile[63 - t];  // <- uninitialised-variable
}

// 1 64
KERNEL unset_addend(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[t];
  int v;
  if (!wrong || t < 63) v = 1;
  atomicAdd(reinterpret_cast<int*>(ws), v);  // <- uninitialised-variable
}

// A value that is not there is passed on, and never looked at.
// 1 64
KERNEL unset_vote(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  float2 pair;
  pair.x = x[t];
  if (!wrong) pair.y = 0.0f;
  float2 copy = pair;
  y[t] = copy.x;
  if (__any(copy.y > 3.0f)) y[t] += 1.0f;  // <- uninitialised-variable
}

// 1 64
KERNEL divergent_barrier(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[t];
  if (!wrong || t < 40) __syncthreads();  // <- barrier
}

// 1 64
KERNEL uneven_loop(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  for (int i = 0; i < (wrong ? t / 32 + 1 : 2); i++) __syncthreads();  // <- barrier
  y[t] = x[t];
}

// 1 64
KERNEL early_return(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[t];
  if (wrong && t >= 50) return;
  __syncthreads();  // <- barrier
  y[t] = tile[63 - t];
}

// 1 64
KERNEL two_barriers(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[t];
  if (wrong && t < 32)
    __syncthreads();  // <- barrier
  else
    __syncthreads();
}

// 1 32
KERNEL inactive_lane(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  float v = x[t];
  if (!wrong || t < 16) v = __shfl_down(v, 8);  // <- inactive-lane
  y[t] = v;
}

// 1 64
KERNEL halves_race(const float* x, float* y, float* ws, const int* k, int n) {
  auto* out = reinterpret_cast<__half*>(y);
  const int t = threadIdx.x;
  out[t] = __float2half(x[t]);
  out[t + 64] = __float2half(0.0f);
  if (wrong && t == 5) out[t + 1] = __float2half(2.0f);  // <- race
}

// 2 64
KERNEL blocks_race(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  if (wrong || blockIdx.x == 0) y[t] = x[t] + float(blockIdx.x);  // <- race
}

// 2 32
KERNEL blocks_read_race(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = blockIdx.x * 32 + threadIdx.x;
  ws[t] = x[t];
  y[t] = wrong ? ws[(t + 1) % 64] : ws[t];  // <- race
}

// 1 64
KERNEL no_barrier_race(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[t];
  if (wrong) y[t / 2] = x[t];  // <- race
}

// 1 64
KERNEL loop_race(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float part[64];
  const int t = threadIdx.x;
  part[t] = x[t];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];  // <- race
    if (!wrong) __syncthreads();
  }
  __syncthreads();
  y[t] = part[0];
}

// 1 64
KERNEL overwritten_tile(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 2; i++) {
    if (t < 32) tile[t] = x[i * 32 + t];  // <- race
    __syncthreads();
    sum += tile[(t + 1) % 32];
    if (!wrong) __syncthreads();
  }
  y[t] = sum;
}

// 1 64
KERNEL warp_synchronous(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ float part[64];
  volatile float* p = part;
  const int t = threadIdx.x;
  p[t] = x[t];
  if (!wrong) __syncwarp();
  const float other = p[t ^ 1];  // <- race
  y[t] = other;
}

// 1 64
KERNEL bins_read_early(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ int bins[16];
  const int t = threadIdx.x;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[t % 16], 1);
  if (!wrong) __syncthreads();
  y[t] = bins[t % 16] + x[t];  // <- mixed-race
}

// 2 32
KERNEL ticket(const float* x, float* y, float* ws, const int* k, int n) {
  __shared__ int last;
  auto* tickets = reinterpret_cast<int*>(ws);
  const int t = threadIdx.x;
  if (blockIdx.x == 0) ws[32 + t] = x[t];
  else y[t + 32] = x[t];
  if (!wrong) __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(tickets, 1) == 1;
  __syncthreads();
  if (last) y[t] = ws[32 + t];  // <- race
}

// A lock that is read before it is tried, as compare-and-swap loops do.
// 2 32
KERNEL plain_first(const float* x, float* y, float* ws, const int* k, int n) {
  auto* bits = reinterpret_cast<int*>(ws);
  const int t = threadIdx.x;
  y[blockIdx.x * 32 + t] = x[t];
  int seen = bits[0], known;  // <- mixed-race
  do {
    known = seen;
    seen = atomicCAS(bits, known, known + 1);
  } while (seen != known);
  if (wrong) bits[1] = seen;  // <- race
}

// 1 64
KERNEL index_overflow(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  const int at = (t + 1) * (wrong ? 2000000000 : 1) + k[0];  // <- integer-overflow
  y[t] = x[t] + (at == 7);
}

// 1 64
KERNEL shift_by_all(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  const unsigned bit = 1u << (wrong ? t : t % 32);  // <- shift
  y[t] = x[t] + (bit == 8);
}

// 1 64
KERNEL zero_division(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  y[t] = x[t] + t / (wrong ? k[0] : k[0] + 1);  // <- integer-division
}

// 1 16
KERNEL misaligned_vector(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  const float4 v = *reinterpret_cast<const float4*>(x + 4 * (t % 15) + (wrong ? 1 : 0));  // <- misaligned
  y[t] = v.x + v.y + v.z + v.w;
}

// 1 64
KERNEL null_pointer(const float* x, float* y, float* ws, const int* k, int n) {
  const float* p = wrong && k[0] == 0 ? nullptr : x;
  y[threadIdx.x] = p[threadIdx.x];  // <- null-pointer
}
