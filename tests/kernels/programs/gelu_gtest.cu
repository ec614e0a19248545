// A unit test beside its kernels.
#include <gtest/gtest.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include "hip/hip_runtime.h"

namespace nn {
namespace detail {
__device__ inline float cube(float x) { return x * x * x; }
}  // namespace detail

__global__ void gelu_tanh(const float* x, float* y, size_t n) {
  const float k = 0.7978845608f;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    y[i] = 0.5f * x[i] * (1.f + tanhf(k * (x[i] + 0.044715f * detail::cube(x[i]))));
}
}  // namespace nn

class GeluTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { n = GetParam(); }
  int n;
};

TEST_P(GeluTest, Zero) {
  thrust::device_vector<float> x(n, 0.f), y(n);
  nn::gelu_tanh<<<4, 64>>>(thrust::raw_pointer_cast(x.data()), thrust::raw_pointer_cast(y.data()), n);
  EXPECT_EQ(y[0], 0.f);
}
INSTANTIATE_TEST_SUITE_P(Sizes, GeluTest, ::testing::Values(1, 100));
