// Direct convolution with constant weights; host code in a namespace of its own.
#include <hip/hip_runtime.h>
#include <array>
#include <fstream>
#include <map>

namespace config {
const int KERNEL = 3;
enum { PAD = KERNEL / 2 };
static std::map<std::string, int> options = {{"seed", 1}};
}  // namespace config

__constant__ float filter[config::KERNEL * config::KERNEL];

__global__ void conv2d(const float* image, float* out, int height, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0.f;
  for (int dy = 0; dy < config::KERNEL; dy++)
    for (int dx = 0; dx < config::KERNEL; dx++) {
      const int u = x + dx - config::PAD, v = y + dy - config::PAD;
      if (u >= 0 && u < width && v >= 0 && v < height) sum += filter[dy * config::KERNEL + dx] * image[v * width + u];
    }
  out[y * width + x] = sum;
}

namespace host {
void read(const char* path, float* to) {
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(to), sizeof(float) * config::options["seed"]);
}
void run(const float* image, float* out, int h, int w, const std::array<float, 9>& weights) {
  hipMemcpyToSymbol(HIP_SYMBOL(filter), weights.data(), sizeof(filter));
  dim3 block(16, 16);
  dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
  hipLaunchKernelGGL(conv2d, grid, block, 0, nullptr, image, out, h, w);
}
}  // namespace host
