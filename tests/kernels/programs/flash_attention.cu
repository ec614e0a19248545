// Online softmax attention over tiles, in the style of a minimal flash attention.
#include <torch/types.h>
#include <cuda_runtime.h>
#include <hip/hip_runtime.h>

__global__ void attention(const float* Q, const float* K, const float* V, int N, int d, float scale, bool causal, float* O) {
  extern __shared__ float tile[];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float most = -INFINITY, sum = 0.f;
  if (row < N)
    for (int c = 0; c < d; c++) O[row * d + c] = 0.f;
  for (int start = 0; start < N; start += blockDim.x) {
    const int mine = start + threadIdx.x;
    if (mine < N)
      for (int c = 0; c < d; c++) tile[threadIdx.x * d + c] = K[mine * d + c];
    __syncthreads();
    for (int j = 0; j < blockDim.x && start + j < N && row < N; j++) {
      if (causal && start + j > row) break;
      float s = 0.f;
      for (int c = 0; c < d; c++) s += Q[row * d + c] * tile[j * d + c];
      s *= scale;
      const float next = fmaxf(most, s), keep = __expf(most - next), p = __expf(s - next);
      for (int c = 0; c < d; c++) O[row * d + c] = O[row * d + c] * keep + p * V[(start + j) * d + c];
      sum = sum * keep + p;
      most = next;
    }
    __syncthreads();
  }
  if (row < N)
    for (int c = 0; c < d; c++) O[row * d + c] /= sum;
}

torch::Tensor forward(torch::Tensor Q, torch::Tensor K, torch::Tensor V) {
  const int N = Q.size(0), d = Q.size(1), Br = 32;
  auto O = torch::zeros_like(Q);
  int max_sram_size;
  cudaDeviceGetAttribute(&max_sram_size, cudaDevAttrMaxSharedMemoryPerBlock, 0);
  attention<<<(N + Br - 1) / Br, Br, Br * d * sizeof(float)>>>(Q.data_ptr<float>(), K.data_ptr<float>(),
      V.data_ptr<float>(), N, d, 1.0 / sqrt(d), true, O.data_ptr<float>());
  return O;
}
