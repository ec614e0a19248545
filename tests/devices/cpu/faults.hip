// Kernels that go wrong, each in one way.
#include <hip/hip_fp16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

__global__ void null_write(int* out, size_t null, int block, int thread) {
  if (int(blockIdx.x) == block && int(threadIdx.x) == thread)
    *reinterpret_cast<volatile int*>(null) = 1;
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void far_write(int* out, long long offset) { out[offset] = 1; }

__global__ void near_write(int* out, int offset) { out[offset] = 1; }

__global__ void input_write(int* in, int* out, int offset) {
  out[0] = in[0];
  in[offset] = 99;
}

__device__ __attribute__((noinline)) int deep(volatile int* out, int depth) {
  volatile int large[1024];
  large[depth % 1024] = depth;
  return depth == 0 ? out[0] : deep(out, depth - 1) + large[depth % 1024];
}

__global__ void stack_overflow(int* out, int depth, int after_barrier) {
  if (after_barrier) __syncthreads();
  out[threadIdx.x] = deep(out, depth);
}

__global__ void integer_division(int* out, int divisor) { out[threadIdx.x] = 100 / divisor; }

__global__ void failed_assertion(int* out, int limit) {
  assert(int(threadIdx.x) < limit);
  out[threadIdx.x] = 1;
}

__global__ void leaves(int* out, int code) {
  out[0] = code;
  exit(code);
}

__global__ void barrier_in_branch(int* out, int n) {
  if (int(threadIdx.x) < n) {
    __syncthreads();  // line of the barrier in the branch
  } else {
    while (__shfl_sync(1ull << __lane_id(), 1, int(__lane_id())) == 0) {
    }
    __syncthreads();  // line of the barrier on the other side
  }
  out[threadIdx.x] = 1;
}

__global__ void shuffle_without_partner(int* out) {
  int v = 0;
  if (threadIdx.x != 3) v = __shfl_sync(0xffffffffull, 1, 0);  // line of the shuffle
  __syncthreads();  // line of the barrier behind the shuffle
  out[threadIdx.x] = v;
}

__global__ void shuffles_of_two_sides(int* out, int apart) {
  int v;
  if (threadIdx.x < 16)
    v = __shfl_xor_sync(0xffffffffull, 1, 1);  // line of the first side
  else
    v = apart ? __any_sync(0xffffffffull, 1) : __shfl_xor_sync(0xffffffffull, 2, 1);  // line of the second side
  out[threadIdx.x] = v;
}

__device__ volatile int told = 0;

// The first block waits for the second by loads that no compiler tells of.
__global__ void waits_by_plain_loads(int* out) {
  if (blockIdx.x == 1) {
    out[1] = 2;
    __threadfence();
    told = 1;
  } else {
    while (told == 0) {
    }
    __threadfence();
    out[0] = out[1] + 1;
    told = 0;
  }
}

// Every block waits for all others, three times.
__global__ void meets(int* out) {
  for (int turn = 0; turn < 3; turn++) {
    if (threadIdx.x == 0 && turn == 0) out[blockIdx.x] = 1;
    cooperative_groups::this_grid().sync();
    int sum = 0;
    for (unsigned b = 0; b < gridDim.x; b++) sum += out[b];
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}

__global__ void shuffle_of_no_lane(int* out) {
  out[threadIdx.x] = __shfl_xor_sync(0u, 1, 1);  // line of the shuffle of no lane
}

__global__ void never_written(int* out, int n) {
  if (int(threadIdx.x) < n) out[threadIdx.x] = 7;
}

__global__ void add_to(int* values, int* work) {
  values[threadIdx.x] += 1;
  work[threadIdx.x] += 1;
}

__global__ void counts_blocks(unsigned long long* counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1ull);
}

struct __attribute__((packed)) Packed {
  char tag;
  int value;
};

// An access of each kind, any number of bytes above a page.
__global__ void reaches(unsigned char* bytes, int kind, int offset) {
  unsigned char* at = bytes + offset;
  int value = 7;
  switch (kind) {
    case 0: reinterpret_cast<float4*>(bytes)[4] = *reinterpret_cast<const float4*>(at); break;
    case 1: *reinterpret_cast<float4*>(at) = make_float4(1, 2, 3, 4); break;
    case 2: *reinterpret_cast<int2*>(at) = make_int2(1, 2); break;
    case 3: *reinterpret_cast<__half2*>(at) = __floats2half2_rn(1, 2); break;
    case 4: *reinterpret_cast<unsigned*>(at) = 1; break;
    case 5: *reinterpret_cast<__half*>(at) = __float2half(1); break;
    case 6: *reinterpret_cast<double*>(at) = 1; break;
    case 7: atomicAdd(reinterpret_cast<int*>(at), 1); break;
    case 8: atomicMax(reinterpret_cast<float*>(at), 1.0f); break;
    case 9: atomicCAS(reinterpret_cast<unsigned long long*>(at), 0ull, 1ull); break;
    case 10: reinterpret_cast<Packed*>(at)->value = value; break;
    case 11: memcpy(at, &value, sizeof value); break;
    case 12: reinterpret_cast<float3*>(at)->z = 1; break;
    default: *at = 1;
  }
}
