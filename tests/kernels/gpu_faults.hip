// Kernels whose faults a GPU shows in its own way, and their right twins. All of them copy x [n] to y
// [n] or sum rows of it, and most give right numbers while they do something that they may not.
#include <hip/hip_runtime.h>

__device__ inline int element() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void copy(const float* x, float* y, int n) {
  const int i = element();
  if (i < n) y[i] = x[i];
}

// A launch that reads past its buffers, as a warm-up with the wrong extent does: 4 MiB and more behind
// them. What it reads changes nothing.
__global__ void reads_past(const float* x, float* y, int n, int beyond) {
  const int i = element();
  if (i >= n) return;
  const float other = x[static_cast<size_t>(beyond) + i];
  y[i] = other == 12345.678f ? other : x[i];
}

// Writes far outside of everything.
__global__ void writes_nowhere(const float* x, float* y, int n) {
  const int i = element();
  if (i < n) *reinterpret_cast<volatile float*>(static_cast<size_t>(i) * 4 + 16) = x[i];
}

// Waits for a value that nobody writes.
__global__ void waits(const float* x, float* y, int n) {
  const int i = element();
  const volatile float* flag = y;
  while (flag[0] != 12345.678f) {
  }
  if (i < n) y[i] = x[i];
}

// Reads a workspace that nobody wrote, in a way that leaves the numbers right.
__global__ void reads_unwritten(const float* x, float* y, float* work, int n) {
  const int i = element();
  if (i >= n) return;
  y[i] = work[i] == 12345.678f ? 0.0f : x[i];
}

// A barrier that only some threads of the block come to.
__global__ void half_a_barrier(const float* x, float* y, int n) {
  const int i = element();
  if (threadIdx.x < blockDim.x / 2) __syncthreads();
  if (i < n) y[i] = x[i];
}

// Sum over the block through one value per 32 threads. `apart` keeps one use of the shared values
// apart from the next; without it a slow thread reads the first result while a fast one already
// writes the second.
template <bool apart>
__device__ inline float block_sum(float value, float* shared) {
  const int thread = threadIdx.x;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down(value, offset, 32);
  if (thread % 32 == 0) shared[thread / 32] = value;
  __syncthreads();
  if (thread == 0) {
    float total = 0.0f;
    for (unsigned part = 0; part < blockDim.x / 32; part++) total += shared[part];
    shared[0] = total;
  }
  __syncthreads();
  const float total = shared[0];
  if (apart) __syncthreads();
  return total;
}

// sums[r] = sum of row r, squares[r] = sum of its squares; grid (rows), block (256).
template <bool apart>
__global__ void row_sums(const float* x, float* sums, float* squares, int columns) {
  __shared__ float shared[32];
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0.0f, square = 0.0f;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    sum += row[j];
    square += row[j] * row[j];
  }
  sum = block_sum<apart>(sum, shared);
  square = block_sum<apart>(square, shared);
  // The last thread is the one whom a fast first one overtakes.
  if (threadIdx.x == blockDim.x - 1) {
    sums[blockIdx.x] = sum;
    squares[blockIdx.x] = square;
  }
}
