// One small kernel for each thing that the cpu device must do; the expected values are in
// test_features.py.
#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

__device__ unsigned linear_thread_of_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// --- geometry --------------------------------------------------------------------------------
__global__ void coordinates(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const dim3 t = threadIdx;
  int* row = out + 8 * (block * threads + linear_thread_of_block());
  row[0] = blockIdx.x, row[1] = blockIdx.y, row[2] = blockIdx.z;
  row[3] = t.x, row[4] = t.y, row[5] = t.z;
  row[6] = gridDim.x * 100 + gridDim.y * 10 + gridDim.z;
  row[7] = blockDim.x * 100 + blockDim.y * 10 + blockDim.z;
}

// The same after a barrier, where every thread has a stack of its own.
__global__ void coordinates_after_barrier(int* out) {
  __syncthreads();
  coordinates(out);
  __syncthreads();
}

// --- barriers and shared memory ----------------------------------------------------------------
__global__ void reverse_static(const int* in, int* out, int n) {
  __shared__ int tile[1024];
  const int t = threadIdx.x;
  tile[t] = in[blockIdx.x * n + t];
  __syncthreads();
  out[blockIdx.x * n + t] = tile[n - 1 - t];
}

__global__ void reverse_dynamic(const float* in, float* out, int n) {
  extern __shared__ float dynamic_tile[];
  const int t = threadIdx.x;
  dynamic_tile[t] = in[t];
  __syncthreads();
  out[t] = dynamic_tile[n - 1 - t];
}

// What shared memory holds before anything is written to it: static, template, dynamic.
template <class T>
__global__ void uninitialised(T* out) {
  __shared__ T fixed[8];
  extern __shared__ __align__(16) unsigned char raw[];
  const T* dynamic = reinterpret_cast<const T*>(raw);
  const int t = threadIdx.x;
  T* row = out + blockIdx.x * 16;
  row[t] = fixed[t];
  row[8 + t] = dynamic[t];
  __syncthreads();
  fixed[t] = T(0);
  reinterpret_cast<T*>(raw)[t] = T(0);
}

__global__ void dynamic_overrun(int* out) {
  extern __shared__ int overrun_tile[];
  overrun_tile[threadIdx.x] = 1;
  out[threadIdx.x] = overrun_tile[threadIdx.x];
}

__global__ void barrier_votes(const int* in, int* out) {
  const int value = in[threadIdx.x];
  const int count = __syncthreads_count(value > 2);
  const int all = __syncthreads_and(value >= 0);
  const int some = __syncthreads_or(value == 7);
  const int none = __syncthreads_or(value == 99);
  const int not_all = __syncthreads_and(value > 2);
  int* row = out + 5 * threadIdx.x;
  row[0] = count, row[1] = all, row[2] = some, row[3] = none, row[4] = not_all;
}

// Threads that have returned do not count at a barrier.
__global__ void early_exit(int* out, int n) {
  __shared__ int tile[256];
  const int t = threadIdx.x;
  if (t >= n) return;
  tile[t] = t;
  __syncthreads();
  out[t] = tile[n - 1 - t];
}

// Each step reads what another thread wrote in the step before.
__global__ void many_barriers(int* out, int steps) {
  __shared__ int tile[2][1024];
  const int t = threadIdx.x, n = blockDim.x;
  tile[0][t] = t;
  for (int i = 0; i < steps; ++i) {
    __syncthreads();
    tile[(i + 1) & 1][t] = tile[i & 1][(t + 1) % n] + 1;
  }
  out[t] = tile[steps & 1][t];
}

// Values kept in registers must survive a switch; the odd sizes misalign what is saved.
__global__ void registers_survive(const double* in, double* out) {
  const int t = threadIdx.x;
  double a = in[t], b = a * 2, c = a * 3, d = a * 5, e = a * 7, f = a * 11, g = a * 13, h = a * 17;
  const long i = t * 3l, j = t * 5l, k = t * 7l, l = t * 11l, m = t * 13l, n = t * 17l;
  __syncthreads();
  out[t] = a + b + c + d + e + f + g + h + double(i + j + k + l + m + n);
}

// --- warps ---------------------------------------------------------------------------------------
__global__ void warp_facts(int* out) {
  const int t = linear_thread_of_block();
  out[2 * t] = warpSize;
  out[2 * t + 1] = __lane_id();
}

template <class T>
__global__ void shuffles(const T* in, T* out, int n) {
  const int t = threadIdx.x;
  const T v = in[t];
  const unsigned long long all = warpSize == 64 ? ~0ull : 0xffffffffull;
  out[0 * n + t] = __shfl(v, 5);
  out[1 * n + t] = __shfl_up(v, 3);
  out[2 * n + t] = __shfl_down(v, 3);
  out[3 * n + t] = __shfl_xor(v, 6);
  out[4 * n + t] = __shfl_sync(all, v, 1, 8);
  out[5 * n + t] = __shfl_up_sync(all, v, 2, 8);
  out[6 * n + t] = __shfl_down_sync(all, v, 2, 8);
  out[7 * n + t] = __shfl_xor_sync(all, v, 9, 8);
}

__global__ void votes(const int* in, unsigned long long* out) {
  const int t = threadIdx.x;
  const unsigned long long all = warpSize == 64 ? ~0ull : 0xffffffffull;
  unsigned long long* row = out + 8 * t;
  row[0] = __ballot(in[t] & 1);
  row[1] = __any(in[t] == 3);
  row[2] = __all(in[t] >= 0);
  row[3] = __ballot_sync(all, in[t] & 2);
  row[4] = __any_sync(all, in[t] == 99);
  row[5] = __all_sync(all, in[t] & 1);
  row[6] = __match_any_sync(all, in[t] & 3);
  int same = 0;
  row[7] = __match_all_sync(all, 5, &same) + (same ? 0 : 1);
}

// The sides of a branch are active one after the other, and together again behind it.
__global__ void active_lanes(unsigned long long* out) {
  const int t = threadIdx.x;
  unsigned long long* row = out + 4 * t;
  if (t % 4 == 0) {
    row[0] = __activemask();
  } else {
    row[0] = __activemask();
  }
  row[1] = __activemask();
  unsigned long long last = 0;
  for (int i = 0; i <= t % 3; ++i) last = __ballot(1);
  row[2] = last;
  row[3] = __ballot(1);
}

// Each half of a warp reduces on its own, by a mask that holds it alone.
__global__ void partial_masks(const int* in, int* out) {
  const int lane = __lane_id(), half = warpSize / 2;
  const unsigned long long low = (1ull << half) - 1;
  int v = in[threadIdx.x];
  if (lane < half) {
    for (int d = half / 2; d; d >>= 1) v += __shfl_xor_sync(low, v, d);
    __syncwarp(low);
  } else {
    for (int d = half / 2; d; d >>= 1) v = max(v, __shfl_xor_sync(low << half, v, d));
    __syncwarp(low << half);
  }
  __syncwarp();
  out[threadIdx.x] = v;
}

// A lane that takes no part has no value to give.
__global__ void shuffle_from_outside(unsigned* out) {
  if (threadIdx.x < 4) out[threadIdx.x] = __shfl_sync(0xf, 7u, threadIdx.x < 2 ? 1 : 9);
}

// --- atomics -------------------------------------------------------------------------------------
template <class T>
__global__ void integer_atomics(T* cells, T* old_values) {
  const T one = 1, t = T(blockIdx.x * blockDim.x + threadIdx.x);
  old_values[t] = atomicAdd(&cells[0], one);
  atomicSub(&cells[1], one);
  atomicMin(&cells[2], t);
  atomicMax(&cells[3], t);
  atomicOr(&cells[4], T(one << (t % 16)));
  atomicAnd(&cells[5], T(~(one << (t % 16))));
  atomicXor(&cells[6], t);
  atomicExch(&cells[7], T(77));
  T seen = cells[8], expected;
  do {
    expected = seen;
    seen = atomicCAS(&cells[8], expected, T(expected + 2));
  } while (seen != expected);
}

template <class T>
__global__ void float_atomics(T* cells) {
  const T t = T(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&cells[0], T(1));
  unsafeAtomicAdd(&cells[1], T(0.5));
  atomicMin(&cells[2], -t);
  atomicMax(&cells[3], t);
  atomicExch(&cells[4], T(3));
}

__global__ void narrow_atomics(unsigned short* cells, __half* halves, __half2* pairs,
                               unsigned* counters) {
  unsigned short seen = cells[0], expected;
  do {
    expected = seen;
    seen = atomicCAS(&cells[0], expected, (unsigned short)(expected + 1));
  } while (seen != expected);
  atomicAdd(&halves[1], __float2half(1.0f));
  atomicAdd(&pairs[0], __floats2half2_rn(1.0f, 2.0f));
  atomicInc(&counters[0], 9u);
  atomicDec(&counters[1], 9u);
}

// --- half and bfloat16 ---------------------------------------------------------------------------
__global__ void half_functions(const __half* a, const __half* b, const __half* c, __half* out,
                               int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[0 * n + i] = __hadd(a[i], b[i]);
  out[1 * n + i] = a[i] - b[i];
  out[2 * n + i] = __hmul(a[i], b[i]);
  out[3 * n + i] = a[i] / b[i];
  out[4 * n + i] = __hfma(a[i], b[i], c[i]);
  out[5 * n + i] = hsqrt(__habs(a[i]));
  out[6 * n + i] = __hneg(a[i]);
  out[7 * n + i] = __hmax(a[i], b[i]);
  __half2 x = __halves2half2(a[i], b[i]);
  x = __hfma2(x, __half2half2(c[i]), __float2half2_rn(1.0f));
  out[8 * n + i] = __low2half(x);
  out[9 * n + i] = __high2half(x);
  out[10 * n + i] = __hlt(a[i], b[i]) ? __float2half(1.0f) : __half(0.0f);
  out[11 * n + i] = hexp(c[i]);
}

__global__ void half_conversions(const float* in, __half* to, float* back, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  to[i] = __float2half(in[i]);
  back[i] = __half2float(to[i]);
}

__global__ void double_to_half(const double* in, __half* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = __half(in[i]);
}

__global__ void bfloat16_functions(const __hip_bfloat16* a, const __hip_bfloat16* b,
                                   __hip_bfloat16* out, const float* in, hip_bfloat16* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[0 * n + i] = __hadd(a[i], b[i]);
  out[1 * n + i] = a[i] * b[i];
  out[2 * n + i] = __hfma(a[i], b[i], a[i]);
  out[3 * n + i] = __float2bfloat16(__bfloat162float(a[i]) + 1.0f);
  to[i] = hip_bfloat16(in[i]);
}

// --- mathematics ---------------------------------------------------------------------------------
__global__ void functions(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  const float x = in[i];
  out[0 * n + i] = expf(x);
  out[1 * n + i] = __expf(x);
  out[2 * n + i] = rsqrtf(x);
  out[3 * n + i] = tanhf(x);
  out[4 * n + i] = erff(x);
  out[5 * n + i] = fmaf(x, x, -1.0f);
  out[6 * n + i] = __fdividef(x, 3.0f);
  out[7 * n + i] = __frcp_rn(x);
  out[8 * n + i] = __fmaf_rn(x, x, 1.0f);
  out[9 * n + i] = sinpif(x);
  out[10 * n + i] = cospif(x);
  out[11 * n + i] = __logf(x);
  out[12 * n + i] = max(min(x, 2.0f), 1.0f);
  out[13 * n + i] = exp10f(x);
  out[14 * n + i] = __powf(x, 1.5f);
  out[15 * n + i] = sqrt(x) + abs(-x);
}

__global__ void bit_functions(const unsigned* in, int* out, int n) {
  const int i = threadIdx.x;
  const unsigned x = in[i];
  const unsigned long long wide = (unsigned long long)x << 32 | x;
  out[0 * n + i] = __popc(x);
  out[1 * n + i] = __popcll(wide);
  out[2 * n + i] = __clz(int(x));
  out[3 * n + i] = __ffs(x);
  out[4 * n + i] = int(__brev(x));
  out[5 * n + i] = __clzll((long long)wide);
  out[6 * n + i] = int(__umulhi(x, x));
  out[7 * n + i] = int(__byte_perm(x, 0x44556677u, 0x5140));
  out[8 * n + i] = int(__funnelshift_l(x, 0xffu, 8));
  out[9 * n + i] = __float_as_int(__uint_as_float(x));
}

__global__ void saturating_conversions(const float* in, int* out, unsigned* out_unsigned) {
  const int i = threadIdx.x;
  out[i] = __float2int_rn(in[i]);
  out_unsigned[i] = __float2uint_rz(in[i]);
}

// --- language ------------------------------------------------------------------------------------
__constant__ float table[4] = {9, 9, 9, 9};
__device__ int offset_of_device = 9;

__global__ void symbols(float* out) {
  out[threadIdx.x] = table[threadIdx.x] + float(offset_of_device);
}

namespace scaling {
template <class T, int width>
__global__ void __launch_bounds__(256) scale(const T* in, T* out, T factor, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
#pragma unroll
  for (int j = 0; j < width; ++j)
    if (i * width + j < n) out[i * width + j] = __ldg(&in[i * width + j]) * factor;
}
}  // namespace scaling

static __global__ void vectors(const float4* in, float4* out, uchar bytes, bool negate, short n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  float4 v = in[i] * 2.0f + make_float4(1, 2, 3, 4);
  v.w += float(bytes);
  if (negate) v = make_float4(0, 0, 0, 0) - v;
  out[i] = v;
}

// Reads of an array of one type through a pointer of another, as vectorised loads do.
__global__ void punned_loads(const __half* in, __half* out) {
  __half part[8];
  *reinterpret_cast<float4*>(part) = reinterpret_cast<const float4*>(in)[threadIdx.x];
  for (int i = 0; i < 4; ++i) {
    const __half swap = part[i];
    part[i] = part[7 - i];
    part[7 - i] = swap;
  }
  reinterpret_cast<float4*>(out)[threadIdx.x] = *reinterpret_cast<float4*>(part);
}

__global__ void prints(int* out) {
  printf("thread %d of block %d\n", int(threadIdx.x), int(blockIdx.x));
  assert(out);
  out[blockIdx.x * blockDim.x + threadIdx.x] = clock64() > 0;
}

// --- order of execution ----------------------------------------------------------------------------
// Position at which each block, or each warp of a block after a barrier, came to run.
__global__ void order_of_blocks(int* out, int* counter) {
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(counter, 1);
}

__global__ void order_of_warps(int* out) {
  __shared__ int counter;
  if (threadIdx.x == 0) counter = 0;
  __syncthreads();
  const int position = atomicAdd(&counter, 1);
  out[threadIdx.x] = position;
}

// A block's sum that returns before all have read it: the next use of `partial` may come first.
__device__ float racy_sum(float value, float* partial) {
  for (int d = warpSize / 2; d; d >>= 1) value += __shfl_down(value, d);
  const int warp = threadIdx.x / warpSize, warps = blockDim.x / warpSize;
  if (threadIdx.x % warpSize == 0) partial[warp] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < warps; ++i) sum += partial[i];
  return sum;
}

__global__ void racy_sums(const float* in, float* out) {
  __shared__ float partial[32];
  const float first = racy_sum(in[threadIdx.x], partial);
  const float second = racy_sum(2 * in[threadIdx.x], partial);
  out[2 * threadIdx.x] = first;
  out[2 * threadIdx.x + 1] = second;
}

int main() { return 1; }
