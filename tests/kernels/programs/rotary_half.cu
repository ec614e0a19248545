// Rotary embedding in half precision, vectors of two.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <string>

typedef __half half_t;
enum class Layout { interleaved, halves };

template <Layout layout>
__global__ void rotary(half_t* q, const float* __restrict__ cosine, const float* __restrict__ sine, int heads, int dim) {
  const int token = blockIdx.x, head = blockIdx.y, pairs = dim / 2;
  half_t* mine = q + (size_t(token) * heads + head) * dim;
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    const int a = layout == Layout::interleaved ? 2 * i : i;
    const int b = layout == Layout::interleaved ? 2 * i + 1 : i + pairs;
    const float x = __half2float(mine[a]), y = __half2float(mine[b]);
    const float c = cosine[token * pairs + i], s = sine[token * pairs + i];
    mine[a] = __float2half(x * c - y * s);
    mine[b] = __float2half(x * s + y * c);
  }
}

std::string name_of(Layout layout) { return layout == Layout::halves ? "halves" : "interleaved"; }

void apply(half_t* q, float* c, float* s, int tokens, int heads, int dim, hipStream_t stream) {
  rotary<Layout::halves><<<dim3(tokens, heads), dim / 2, 0, stream>>>(q, c, s, heads, dim);
}
