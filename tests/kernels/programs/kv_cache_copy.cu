// Copies keys and values into pages of a cache; pointers to pointers in a sibling kernel.
#include <hip/hip_runtime.h>
#include <vector>
#include <string_view>

template <typename T>
__global__ void reshape_and_cache(const T* key, T* cache, const int64_t* slots, const int width, const int page) {
  const int64_t slot = slots[blockIdx.x];
  if (slot < 0) return;
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    cache[(slot / page * page + slot % page) * width + i] = key[int64_t(blockIdx.x) * width + i];
}

__global__ void copy_blocks(float** caches, const int* pairs, int elements) {
  float* cache = caches[blockIdx.x];
  for (int i = threadIdx.x; i < elements; i += blockDim.x)
    cache[pairs[2 * blockIdx.y + 1] * elements + i] = cache[pairs[2 * blockIdx.y] * elements + i];
}

void swap(std::vector<float*>& layers, const std::vector<int>& pairs, int elements, std::string_view why) {
  float** pointers;
  int* d_pairs;
  hipMalloc(reinterpret_cast<void**>(&pointers), layers.size() * sizeof(float*));
  hipMalloc(reinterpret_cast<void**>(&d_pairs), pairs.size() * sizeof(int));
  copy_blocks<<<dim3(layers.size(), pairs.size() / 2), std::min(1024, elements)>>>(pointers, d_pairs, elements);
  if (why.empty()) reshape_and_cache<float><<<1, 32>>>(layers[0], layers[1], nullptr, elements, 16);
}
