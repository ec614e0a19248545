// The same in the words of CUDA's own headers.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cuda/atomic>
#include <cuda/barrier>

namespace cg = cooperative_groups;

#define KERNEL template <bool wrong> __global__ void

// 1 64
KERNEL sums_of_tiles(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float s[64];
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int t = threadIdx.x;
  s[t] = x[t];
  tile.sync();
  for (int by = 16; by > 0; by /= 2) {
    if (tile.thread_rank() < by) s[t] += s[t + by];  // <- race
    if (!wrong) tile.sync();
  }
  if (tile.thread_rank() == 0) y[t / 32] = s[t];
}

// 4 32
KERNEL counter_of_a_scope(const float* x, float* y, float* ws, int* flags, int n) {
  constexpr auto scope = wrong ? cuda::thread_scope_block : cuda::thread_scope_device;
  cuda::atomic_ref<int, scope> count(flags[0]);
  count.fetch_add(1, cuda::memory_order_relaxed);  // <- scoped-race
}

// 1 64
KERNEL flag_of_an_order(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int ready;
  __shared__ float box;
  const int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> flag(ready);
  if (t == 32) {
    box = x[5];
    flag.store(1, wrong ? cuda::memory_order_relaxed : cuda::memory_order_release);
  } else if (t == 0) {
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    y[0] = box;  // <- race
  }
}

// 1 32
KERNEL copies_of_a_pipeline(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float stage[2][32];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &x[t], sizeof(float));
  __pipeline_commit();
  float sum = 0.0f;
  for (int i = 0; i < 4; i++) {
    if (i + 1 < 4) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &x[(i * 9 + t) % 64], sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    if (!wrong) __syncthreads();
    sum += stage[i % 2][31 - t];  // <- race
    __syncthreads();
  }
  y[t] = sum;
}

// 1 64
KERNEL barrier_object(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> meeting;
  __shared__ float s[64];
  const int t = threadIdx.x;
  if (t == 0) init(&meeting, blockDim.x);
  __syncthreads();
  s[t] = x[t];
  auto token = meeting.arrive();
  if (!wrong) meeting.wait(cuda::std::move(token));
  y[t] = s[63 - t];  // <- race
}

// 2 32
KERNEL threads_that_meet(const float* x, float* y, float* ws, int* flags, int n) {
  const int t = threadIdx.x;
  if (t % 4 == 2) {
    const auto group = cg::coalesced_threads();
    int base = 0;
    if (wrong) {
      base = flags[0];  // <- race
      flags[0] = base + 1;
    } else {
      if (group.thread_rank() == 0) base = atomicAdd(&flags[0], int(group.size()));
      base = group.shfl(base, 0) + group.thread_rank();
    }
    y[base] = x[t];
  }
}

// 1 32
KERNEL copy_of_a_group(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float s[32];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, x, sizeof(s));
  if (!wrong) cg::wait(block);
  y[threadIdx.x] = s[31 - threadIdx.x];  // <- race
}

// 4 32
KERNEL lock_of_orders(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> lock(flags[0]);
  while (lock.exchange(1, cuda::memory_order_acquire) == 1) __nanosleep(20);
  y[0] += x[blockIdx.x];  // <- race
  lock.store(0, wrong ? cuda::memory_order_relaxed : cuda::memory_order_release);
}
