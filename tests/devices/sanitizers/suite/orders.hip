// Releases and acquires: fences beside relaxed operations, and what is amiss where one lacks.
#include <hip/hip_runtime.h>

#define KERNEL template <bool wrong> __global__ void

__device__ inline void lock_by_exchange(int* gate) {
  while (atomicExch(gate, 1) != 0) {
  }
}

// 4 1
KERNEL lock_without_release(const float* x, float* y, float* ws, int* flags, int n) {
  lock_by_exchange(&flags[0]);
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);  // <- race
  if (!wrong) __threadfence();
  atomicExch(&flags[0], 0);
}

// 4 1
KERNEL lock_without_acquire(const float* x, float* y, float* ws, int* flags, int n) {
  lock_by_exchange(&flags[0]);
  if (!wrong) __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);  // <- missing-acquire
  __threadfence();
  atomicExch(&flags[0], 0);
}

// 4 1
KERNEL lock_given_back_by_a_store(const float* x, float* y, float* ws, int* flags, int n) {
  while (atomicCAS(&flags[0], 0, 1) != 0) {
  }
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);
  __threadfence();
  if (wrong)
    flags[0] = 0;  // <- mixed-race
  else
    atomicExch(&flags[0], 0);
}

// 4 1
KERNEL lock_given_back_early(const float* x, float* y, float* ws, int* flags, int n) {
  lock_by_exchange(&flags[0]);
  __threadfence();
  const int sum = flags[9] + int(100.0f * x[blockIdx.x]);
  if (!wrong) flags[9] = sum;
  __threadfence();
  atomicExch(&flags[0], 0);
  if (wrong) flags[9] = sum;  // <- race
}

// 4 1
KERNEL two_locks(const float* x, float* y, float* ws, int* flags, int n) {
  int* gate = &flags[wrong ? blockIdx.x % 2 : 0];
  lock_by_exchange(gate);
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);  // <- race
  __threadfence();
  atomicExch(gate, 0);
}

// 4 1
KERNEL lock_left_out_by_one(const float* x, float* y, float* ws, int* flags, int n) {
  const bool locks = !wrong || blockIdx.x != 2;
  if (locks) lock_by_exchange(&flags[0]);
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);  // <- race
  __threadfence();
  if (locks) atomicExch(&flags[0], 0);
}

// 4 1
KERNEL ticket_lock(const float* x, float* y, float* ws, int* flags, int n) {
  const int mine = atomicAdd(&flags[0], 1);
  while (atomicAdd(&flags[1], 0) != mine) {
  }
  __threadfence();
  flags[9] += int(100.0f * x[blockIdx.x]);  // <- race
  if (!wrong) __threadfence();
  atomicAdd(&flags[1], 1);
}

// 4 64
KERNEL last_block(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ bool last;
  ws[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
  if (!wrong) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&flags[0], 1) == int(gridDim.x) - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) y[threadIdx.x] = ws[threadIdx.x] + ws[64 + threadIdx.x];  // <- race
}

// 4 64
KERNEL last_block_unacquired(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    ws[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    last = atomicAdd(&flags[0], 1) == int(gridDim.x) - 1;
    if (!wrong) __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x < gridDim.x) y[threadIdx.x] = ws[threadIdx.x];  // <- missing-acquire
}

// 2 64
KERNEL fence_behind_the_barrier(const float* x, float* y, float* ws, int* flags, int n) {
  ws[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
  if (!wrong) __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&flags[0], 1);
  }
  if (blockIdx.x == 1 && atomicAdd(&flags[0], 0) == 2) {
    __threadfence();
    y[threadIdx.x] = ws[threadIdx.x];  // <- race
  }
}

// 2 1
KERNEL data_behind_the_flag(const float* x, float* y, float* ws, int* flags, int n) {
  if (blockIdx.x == 0) {
    if (!wrong) ws[0] = x[0];
    __threadfence();
    atomicExch(&flags[0], 1);
    if (wrong) ws[0] = x[0];
  } else if (atomicAdd(&flags[0], 0) == 1) {
    __threadfence();
    y[0] = ws[0];  // <- race
  }
}

// 2 1
KERNEL read_in_front_of_the_flag(const float* x, float* y, float* ws, int* flags, int n) {
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    __threadfence();
    atomicExch(&flags[0], 1);
  } else {
    float value = 0.0f;
    if (wrong) value = ws[0];  // <- race
    if (atomicAdd(&flags[0], 0) == 1) {
      __threadfence();
      if (!wrong) value = ws[0];
    }
    y[0] = value;
  }
}

// 3 1
KERNEL passed_on(const float* x, float* y, float* ws, int* flags, int n) {
  // The third block learns of the first one's word by way of the second.
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    __threadfence();
    atomicExch(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    if (atomicAdd(&flags[0], 0) == 1) {
      __threadfence();
      if (wrong) atomicExch(&flags[2], 1);
      if (!wrong) atomicExch(&flags[1], 1);
    }
  } else if (wrong || atomicAdd(&flags[1], 0) == 1) {
    __threadfence();
    y[0] = ws[0];  // <- race
  }
}

// 2 1
KERNEL plain_flag(const float* x, float* y, float* ws, int* flags, int n) {
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    __threadfence();
    if (wrong)
      flags[0] = 1;
    else
      atomicExch(&flags[0], 1);
  } else if ((wrong ? flags[0] : atomicAdd(&flags[0], 0)) == 1) {  // <- race
    __threadfence();
    y[0] = ws[0];
  }
}

// 2 1
KERNEL volatile_flag(const float* x, float* y, float* ws, int* flags, int n) {
  volatile int* ready = flags;
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    if (!wrong) __threadfence();
    *ready = 1;
  } else if (*ready == 1) {
    __threadfence();
    y[0] = ws[0];  // <- race
  }
}

// 2 1
KERNEL volatile_flag_unacquired(const float* x, float* y, float* ws, int* flags, int n) {
  volatile int* ready = flags;
  if (blockIdx.x == 0) {
    ws[0] = x[0];
    __threadfence();
    *ready = 1;
  } else if (*ready == 1) {
    if (!wrong) __threadfence();
    y[0] = ws[0];  // <- missing-acquire
  }
}

// 1 32
KERNEL volatile_scan(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ volatile float part[32];
  const int lane = threadIdx.x;
  part[lane] = x[lane];
  for (int s = 16; s > 0; s /= 2) {
    if (!wrong) __syncwarp();
    float other = 0.0f;
    if (lane < s) other = part[lane + s];  // <- race
    if (!wrong) __syncwarp();
    if (lane < s) part[lane] = part[lane] + other;
  }
  if (lane == 0) y[0] = part[0];
}

// 1 64
KERNEL fence_is_no_barrier(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  if (wrong)
    __threadfence_block();
  else
    __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];  // <- race
}

// 4 64
KERNEL relaxed_counter(const float* x, float* y, float* ws, int* flags, int n) {
  // A counter alone orders nothing, which does not matter to who uses its number alone.
  const int mine = atomicAdd(&flags[0], 1);
  ws[wrong ? mine / 2 : mine] = x[threadIdx.x] + float(mine);  // <- race
}

// 2 32 warns resident-blocks
KERNEL value_behind_its_flag(const float* x, float* y, float* ws, int* flags, int n) {
  volatile int* ready = flags;
  volatile float* value = ws;
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    if (!wrong) *value = x[0];
    __threadfence();
    *ready = 1;
    if (wrong) *value = x[0];
  } else {
    while (*ready == 0) {
    }
    __threadfence();
    y[0] = *value;  // <- race
  }
}

// 4 32 warns resident-blocks
KERNEL look_back_by_two_words(const float* x, float* y, float* ws, int* flags, int n) {
  volatile int* ready = flags;
  volatile float* sums = ws;
  if (threadIdx.x) return;
  const int b = blockIdx.x;
  float sum = x[b];
  if (b) {
    while (ready[b - 1] == 0) {
    }
    __threadfence();
    sum += sums[b - 1];  // <- race
  }
  if (wrong) __threadfence();
  sums[b] = sum;
  if (!wrong) __threadfence();
  ready[b] = 1;
  y[b] = sum;
}

// 3 32 warns resident-blocks
KERNEL flags_for_two_blocks(const float* x, float* y, float* ws, int* flags, int n) {
  volatile int* ready = flags;
  if (threadIdx.x) return;
  const int b = blockIdx.x;
  if (b == 0) {
    ws[0] = x[0];
    if (!wrong) __threadfence();
    ready[0] = 1;
    ready[1] = 1;
  } else {
    while (ready[b - 1] == 0) {
    }
    __threadfence();
    y[b] = ws[0];  // <- race
  }
}
