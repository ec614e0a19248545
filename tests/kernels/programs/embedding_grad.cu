// Embedding gradient by atomic additions, indices of either width.
#include <c10/cuda/CUDAException.h>
#include <hip/hip_runtime.h>

#define CUDA_1D_KERNEL_LOOP(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

template <typename scalar_t, typename index_t = int64_t>
__global__ void embedding_dense_backward(const scalar_t* grad, const index_t* index, scalar_t* weight_grad, int n,
                                         int width, index_t padding) {
  CUDA_1D_KERNEL_LOOP(i, n * width) {
    const index_t row = index[i / width];
    if (row != padding) atomicAdd(&weight_grad[row * width + i % width], grad[i]);
  }
}

template <typename index_t>
void launch(const float* grad, const index_t* index, float* out, int n, int width) {
  embedding_dense_backward<float, index_t><<<64, 256>>>(grad, index, out, n, width, index_t(-1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
template void launch<int>(const float*, const int*, float*, int, int);
template void launch<int64_t>(const float*, const int64_t*, float*, int, int);
