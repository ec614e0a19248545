// Dropout with a counter-based generator, masks kept for the backward pass.
#include <hip/hip_runtime.h>
#include <mutex>

struct Philox {
  uint2 key;
  uint4 counter;
  __device__ Philox(unsigned long long seed, unsigned long long offset)
      : key{unsigned(seed), unsigned(seed >> 32)}, counter{unsigned(offset), unsigned(offset >> 32), 0, 0} {}
  __device__ unsigned next() {
    for (int round = 0; round < 10; round++) {
      const unsigned hi = __umulhi(0xD2511F53u, counter.x), lo = 0xD2511F53u * counter.x;
      counter.x = hi ^ counter.y ^ key.x;
      counter.y = lo;
      key.x += 0x9E3779B9u;
    }
    return counter.x;
  }
};

__global__ void dropout(const float* x, float* y, uint8_t* mask, float p, unsigned long long seed, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Philox random(seed, i);
  const bool keep = random.next() * 2.3283064e-10f >= p;
  mask[i] = keep;
  y[i] = keep ? x[i] / (1.f - p) : 0.f;
}

class Generator {
  std::mutex lock_;
  unsigned long long offset_ = 0;
 public:
  unsigned long long take(int n) {
    std::lock_guard<std::mutex> held(lock_);
    return offset_ += n;
  }
};
static Generator& generator() {
  static Generator made;
  return made;
}
void dropout_forward(const float* x, float* y, uint8_t* mask, int n) {
  dropout<<<(n + 127) / 128, 128>>>(x, y, mask, 0.1f, generator().take(n), n);
}
