// Cross-entropy of rows of logits with integer labels, and its gradient.
//
// Logits are [rows, cols], row-major and contiguous. A row whose label is ignore_index, or outside of
// [0, cols), is left out: its loss and its gradient are 0, whatever its logits are. One block of 256
// threads per row, grid (rows). Thread t takes the columns t, t + 256, ... in turn, and the 256 partial
// results are combined pairwise.
#include "storage.hpp"

constexpr int kThreads = 256;

struct RowSoftmax {
  float largest;
  float sum;  // of exp(x - largest)
};

template <typename T>
__device__ inline RowSoftmax row_softmax(const T* x, int cols, float* partial) {
  RowSoftmax row = {load(x, 0), 0.0f};
  for (int j = threadIdx.x; j < cols; j += kThreads) row.largest = fmaxf(row.largest, load(x, j));
  row.largest = block_max(row.largest, partial);
  for (int j = threadIdx.x; j < cols; j += kThreads) row.sum += expf(load(x, j) - row.largest);
  row.sum = block_sum(row.sum, partial);
  return row;
}

__device__ inline bool counts(int label, int cols, int ignore_index) {
  return label != ignore_index && label >= 0 && label < cols;
}

// loss[i] = log(sum over j of exp(x[i,j] - max)) - (x[i,label] - max)
template <typename T>
__global__ void cross_entropy_fwd(const T* logits, const int* labels, float* loss, int cols,
                                  int ignore_index) {
  __shared__ float partial[kThreads];
  const T* x = logits + static_cast<size_t>(blockIdx.x) * cols;
  const int label = labels[blockIdx.x];
  if (!counts(label, cols, ignore_index)) {  // the whole block has this label
    if (threadIdx.x == 0) loss[blockIdx.x] = 0.0f;
    return;
  }
  const RowSoftmax row = row_softmax(x, cols, partial);
  if (threadIdx.x == 0) loss[blockIdx.x] = logf(row.sum) - (load(x, label) - row.largest);
}

// grad_logits[i,j] = grad_loss[i] (softmax(x[i,:])[j] - (j == label))
template <typename T>
__global__ void cross_entropy_bwd(const float* grad_loss, const T* logits, const int* labels,
                                  T* grad_logits, int cols, int ignore_index) {
  __shared__ float partial[kThreads];
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const int label = labels[blockIdx.x];
  if (!counts(label, cols, ignore_index)) {
    for (int j = threadIdx.x; j < cols; j += kThreads) store(grad_logits, start + j, 0.0f);
    return;
  }
  const RowSoftmax row = row_softmax(logits + start, cols, partial);
  for (int j = threadIdx.x; j < cols; j += kThreads) {
    const float probability = expf(load(logits, start + j) - row.largest) / row.sum;
    store(grad_logits, start + j, grad_loss[blockIdx.x] * (probability - (j == label ? 1.0f : 0.0f)));
  }
}
