// An extension of torch: RMSNorm with a bf16 and a float instantiation.
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>

#define DIVUP(a, b) (((a) + (b) - 1) / (b))

template <typename T>
__device__ __forceinline__ float to_float(T v) { return static_cast<float>(v); }

__device__ float block_sum(float v) {
  __shared__ float parts[32];
  for (int step = warpSize / 2; step > 0; step >>= 1) v += __shfl_down(v, step);
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = v;
  __syncthreads();
  v = threadIdx.x < DIVUP(blockDim.x, warpSize) ? parts[threadIdx.x] : 0.f;
  for (int step = warpSize / 2; step > 0; step >>= 1) v += __shfl_down(v, step);
  if (threadIdx.x == 0) parts[0] = v;
  __syncthreads();
  return parts[0];
}

template <typename T>
__global__ void rmsnorm(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, int cols, float eps) {
  const T* row = x + size_t(blockIdx.x) * cols;
  float square = 0.f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) square += to_float(row[c]) * to_float(row[c]);
  const float scale = rsqrtf(block_sum(square) / cols + eps);
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    y[size_t(blockIdx.x) * cols + c] = T(to_float(row[c]) * scale * to_float(weight[c]));
}

torch::Tensor rmsnorm_forward(torch::Tensor x, torch::Tensor weight, double eps) {
  TORCH_CHECK(x.is_cuda(), "x must be on the device");
  auto y = torch::empty_like(x);
  const int cols = x.size(-1), rows = x.numel() / cols;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rmsnorm", [&] {
    rmsnorm<scalar_t><<<rows, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), cols, eps);
  });
  return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &rmsnorm_forward, "RMSNorm"); }
