// int8 GEMM with scales of rows and columns; launches from a class.
#include <hip/hip_runtime.h>
#include <memory>
#include <stdexcept>

constexpr int TILE = 16;

__global__ void int8_gemm(const int8_t* __restrict__ A, const int8_t* __restrict__ B, const float* a_scale,
                          const float* b_scale, float* C, int M, int N, int K) {
  __shared__ int8_t As[TILE][TILE + 1], Bs[TILE][TILE + 1];
  const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  int sum = 0;
  for (int k = 0; k < K; k += TILE) {
    As[threadIdx.y][threadIdx.x] = row < M && k + threadIdx.x < K ? A[row * K + k + threadIdx.x] : 0;
    Bs[threadIdx.y][threadIdx.x] = col < N && k + threadIdx.y < K ? B[(k + threadIdx.y) * N + col] : 0;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += int(As[threadIdx.y][i]) * int(Bs[i][threadIdx.x]);
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum * a_scale[row] * b_scale[col];
}

class Workspace {
 public:
  explicit Workspace(size_t bytes) {
    if (hipMalloc(&data_, bytes) != hipSuccess) throw std::runtime_error("no memory");
  }
  ~Workspace() { (void)hipFree(data_); }
  template <typename T> T* as() { return static_cast<T*>(data_); }
 private:
  void* data_ = nullptr;
};

struct Gemm {
  int m, n, k;
  std::unique_ptr<Workspace> space;
  void run(const int8_t* a, const int8_t* b, const float* as, const float* bs, float* c) {
    dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    int8_gemm<<<grid, block>>>(a, b, as, bs, c, m, n, k);
  }
};
