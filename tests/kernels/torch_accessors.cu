// A kernel of a PyTorch extension that gets views of tensors by value.
#include <torch/extension.h>

template <typename scalar_t>
__global__ void mixed(
    const torch::PackedTensorAccessor32<scalar_t, 3, torch::RestrictPtrTraits> parts,
    const at::PackedTensorAccessor64<scalar_t, 1> weight,
    torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> out) {
  const int row = blockIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col < parts.size(2)) {
    const auto here = parts[row];
    out[row][col] = parts[row][0][col] * weight[col] - parts[row][2][col] + here[1][col] * 0;
  }
}

torch::Tensor forward(torch::Tensor parts, torch::Tensor weight) {
  auto out = torch::empty({parts.size(0), parts.size(2)}, parts.options());
  const dim3 threads(64), blocks((parts.size(2) + 63) / 64, parts.size(0));
  AT_DISPATCH_FLOATING_TYPES(parts.scalar_type(), "mixed", [&] {
    mixed<scalar_t><<<blocks, threads>>>(
        parts.packed_accessor32<scalar_t, 3, torch::RestrictPtrTraits>(),
        weight.packed_accessor64<scalar_t, 1>(),
        out.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>());
  });
  return out;
}
