// Orders and scopes in inline PTX.
#include <cuda_runtime.h>

#define KERNEL template <bool wrong> __global__ void

// 2 32 warns resident-blocks
KERNEL released_by_a_store(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    if (wrong)
      asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
    else
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
  } else {
    int seen;
    do {
      asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(flags) : "memory");
    } while (!seen);
    y[0] = ws[0];  // <- race
  }
}

// 2 32 warns resident-blocks
KERNEL released_for_the_block(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    if (wrong)
      asm volatile("st.release.cta.b32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
    else
      asm volatile("st.release.sys.b32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
  } else {
    int seen;
    do {
      asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(flags) : "memory");
    } while (!seen);
    y[0] = ws[0];  // <- scoped-race
  }
}

// 2 32 warns resident-blocks
KERNEL fences_around_relaxed_ones(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
  } else {
    int seen;
    do {
      asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flags) : "memory");
    } while (!seen);
    if (!wrong) asm volatile("fence.sc.gpu;" ::: "memory");
    y[0] = ws[0];  // <- missing-acquire
  }
}

// 4 32
KERNEL last_block_sums(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  ws[blockIdx.x] = x[blockIdx.x];
  int before;
  if (wrong)
    asm volatile("atom.relaxed.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(flags) : "memory");
  else
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(flags) : "memory");
  if (before < 3) return;
  float sum = 0.0f;
  for (int i = 0; i < 4; i++) sum += ws[i];  // <- race
  y[0] = sum;
}

// 4 32
KERNEL counter_of_a_scope(const float* x, float* y, float* ws, int* flags, int n) {
  if (wrong)
    asm volatile("red.relaxed.cta.global.inc.u32 [%0], 1000;" ::"l"(flags) : "memory");  // <- scoped-race
  else
    asm volatile("red.global.inc.u32 [%0], 1000;" ::"l"(flags) : "memory");
}

// 2 32 warns resident-blocks
KERNEL volatile_of_ptx(const float* x, float* y, float* ws, int* flags, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    if (!wrong) asm volatile("membar.gl;" ::: "memory");
    asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
  } else {
    int seen;
    do {
      asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags) : "memory");
    } while (!seen);
    asm volatile("membar.gl;" ::: "memory");
    y[0] = ws[0];  // <- race
  }
}
