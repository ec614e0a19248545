// Causal attention in one pass over the keys (online softmax): o = softmax(mask(q k^T / sqrt(dim))) v.
//
// q and o are [heads, queries, dim], k and v [heads, keys, dim], row-major and contiguous, with
// queries <= keys and dim <= 128. Query i sees the keys up to i + keys - queries: the last query sees all.
// One block of 64 threads per query and head, grid (queries, heads). A tile of 64 keys at a time: thread t
// has the score of key t of the tile, and the columns t and t + 64 of the output.
#include "storage.hpp"

constexpr int kTile = 64;
constexpr int kParts = 2;  // columns a thread, so that dim is 128 at most

template <typename T>
__global__ void attention_causal_fwd(const T* q, const T* k, const T* v, T* o, int queries, int keys,
                                     int dim) {
  __shared__ float partial[kTile];
  __shared__ float weights[kTile];
  const int query = blockIdx.x;
  const int seen = query + keys - queries + 1;
  const T* own = q + (static_cast<size_t>(blockIdx.y) * queries + query) * dim;
  const size_t head = static_cast<size_t>(blockIdx.y) * keys * dim;
  const float scale = 1.0f / sqrtf(static_cast<float>(dim));
  float acc[kParts] = {};
  float largest = -INFINITY;
  float sum = 0.0f;
  for (int start = 0; start < seen; start += kTile) {
    const int key = start + threadIdx.x;
    float score = -INFINITY;
    if (key < seen) {
      float dot = 0.0f;
      for (int c = 0; c < dim; ++c)
        dot += load(own, c) * load(k, head + static_cast<size_t>(key) * dim + c);
      score = dot * scale;
    }
    const float next = fmaxf(largest, block_max(score, partial));
    const float rescale = expf(largest - next);  // 0 in front of the first tile
    const float weight = key < seen ? expf(score - next) : 0.0f;
    weights[threadIdx.x] = weight;  // block_max in front and block_sum behind have the barriers
    sum = sum * rescale + block_sum(weight, partial);
    for (int part = 0; part < kParts; ++part) {
      const int c = part * kTile + threadIdx.x;
      if (c >= dim) break;
      acc[part] *= rescale;
      for (int j = 0; j < kTile && start + j < seen; ++j)
        acc[part] += weights[j] * load(v, head + static_cast<size_t>(start + j) * dim + c);
    }
    largest = next;
  }
  for (int part = 0; part < kParts; ++part) {
    const int c = part * kTile + threadIdx.x;
    if (c < dim)
      store(o, (static_cast<size_t>(blockIdx.y) * queries + query) * dim + c, acc[part] / sum);
  }
}
