// Rotary position embedding in place: pairs of numbers of each head, turned by the angle of their token's
// position, whose cosine and sine stand in tables [positions, dim / 2].
//
// x is [tokens, heads, dim], row-major and contiguous, dim even. Pair p of a head is (p, p + dim/2) in the
// split layout (GPT-NeoX, Llama) and (2p, 2p + 1) in the interleaved one (GPT-J). One thread a pair; grid
// (tokens, ceil(heads dim / 2 / 256)), blocks of 256 threads.
#include "storage.hpp"

template <typename T, bool interleaved>
__global__ void rotary(T* x, const int* positions, const float* cosines, const float* sines,
                       int heads, int dim) {
  const int pairs = dim / 2;
  const int at = blockIdx.y * blockDim.x + threadIdx.x;
  if (at >= heads * pairs) return;
  const int head = at / pairs;
  const int pair = at % pairs;
  const size_t start = (static_cast<size_t>(blockIdx.x) * heads + head) * dim;
  const size_t first = start + (interleaved ? 2 * pair : pair);
  const size_t second = first + (interleaved ? 1 : pairs);
  const size_t angle = static_cast<size_t>(positions[blockIdx.x]) * pairs + pair;
  const float a = load(x, first);
  const float b = load(x, second);
  store(x, first, a * cosines[angle] - b * sines[angle]);
  store(x, second, b * cosines[angle] + a * sines[angle]);
}
