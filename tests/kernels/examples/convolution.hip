// Two-dimensional convolution with a 5 x 5 mask in constant memory and zeros around the image.
#include <hip/hip_runtime.h>

constexpr int mask_radius = 2;
constexpr int mask_width = 2 * mask_radius + 1;
__constant__ float convolution_mask[mask_width * mask_width];

__global__ void convolve(const float* image, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0.0f;
  for (int dy = -mask_radius; dy <= mask_radius; ++dy)
    for (int dx = -mask_radius; dx <= mask_radius; ++dx) {
      const int u = x + dx, v = y + dy;
      const bool inside = u >= 0 && u < width && v >= 0 && v < height;
      const float pixel = inside ? image[v * width + u] : 0.0f;
      const int tap = (dy + mask_radius) * mask_width + dx + mask_radius;
      sum = fmaf(convolution_mask[tap], pixel, sum);
    }
  out[y * width + x] = sum;
}
