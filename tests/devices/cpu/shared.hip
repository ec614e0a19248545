// Shared arrays of every kind, written to and read at any byte in front of them, in them or behind.
#include <hip/hip_runtime.h>

struct Pair {
  float value;
  int index;
};

static __shared__ int of_file[8];

__device__ Pair* pairs_of_function() {
  __shared__ Pair pairs[4];
  return pairs;
}

template <class T, int N>
__device__ T* items_of_template() {
  __shared__ T items[N];
  return items;
}

__device__ unsigned char* array(int which, unsigned char* dynamic, short (*rows)[5]) {
  switch (which) {
    case 0: return reinterpret_cast<unsigned char*>(of_file);
    case 1: return reinterpret_cast<unsigned char*>(pairs_of_function());
    case 2: return reinterpret_cast<unsigned char*>(items_of_template<float, 64>());
    case 3: return reinterpret_cast<unsigned char*>(items_of_template<double, 2>());
    case 4: return reinterpret_cast<unsigned char*>(rows);
    default: return dynamic;
  }
}

__global__ void write_byte(unsigned char* out, int which, int at, int block, int thread) {
  extern __shared__ unsigned char raw[];
  __shared__ short rows[3][5];
  unsigned char* const bytes = array(which, raw, rows);
  __syncthreads();
  if (int(blockIdx.x) == block && int(threadIdx.x) == thread) bytes[at] ^= 0x11;
  __syncthreads();
  out[threadIdx.x] = bytes[0];
}

__global__ void read_byte(unsigned char* out, int which, int at) {
  extern __shared__ unsigned char raw[];
  __shared__ short rows[3][5];
  out[threadIdx.x] = array(which, raw, rows)[at];
}
