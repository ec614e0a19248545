#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <class T>
struct Kept {
  using type = T;
};
template <>
struct Kept<wmma::precision::tf32> {
  using type = float;
};

// c = 2 a b + c, a tile of m x n a warp; A and B are row_major or col_major.
template <class T, class S, int m, int n, int k, class A, class B>
__device__ void tile(const typename Kept<T>::type* a, const typename Kept<T>::type* b, S* c, int depth) {
  wmma::fragment<wmma::matrix_a, m, n, k, T, A> fa;
  wmma::fragment<wmma::matrix_b, m, n, k, T, B> fb;
  wmma::fragment<wmma::accumulator, m, n, k, S> sum, old;
  wmma::fill_fragment(sum, S(0));
  for (int i = 0; i < depth; i += k) {
    const bool rows = std::is_same<A, wmma::row_major>::value, other = std::is_same<B, wmma::row_major>::value;
    wmma::load_matrix_sync(fa, rows ? a + i : a + i * m, rows ? depth : m);
    wmma::load_matrix_sync(fb, other ? b + i * n : b + i, other ? n : depth);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  wmma::load_matrix_sync(old, c, n, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; i++) old.x[i] = S(2) * sum.x[i] + old.x[i];
  wmma::store_matrix_sync(c, old, n, wmma::mem_row_major);
}

__global__ void halves(const half* a, const half* b, float* c, int depth) {
  tile<half, float, 16, 16, 16, wmma::row_major, wmma::col_major>(a, b, c, depth);
}
__global__ void half_sums(const half* a, const half* b, half* c, int depth) {
  tile<half, half, 32, 8, 16, wmma::col_major, wmma::row_major>(a, b, c, depth);
}
__global__ void brains(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int depth) {
  tile<__nv_bfloat16, float, 8, 32, 16, wmma::row_major, wmma::row_major>(a, b, c, depth);
}
__global__ void tensor_floats(const float* a, const float* b, float* c, int depth) {
  tile<wmma::precision::tf32, float, 16, 16, 8, wmma::col_major, wmma::col_major>(a, b, c, depth);
}
__global__ void bytes(const signed char* a, const signed char* b, int* c, int depth) {
  tile<signed char, int, 16, 16, 16, wmma::row_major, wmma::col_major>(a, b, c, depth);
}
__global__ void doubles(const double* a, const double* b, double* c, int depth) {
  tile<double, double, 8, 8, 4, wmma::row_major, wmma::col_major>(a, b, c, depth);
}

// Through shared memory, with a bias in one lane's element.
__global__ void shared(const half* a, const half* b, float* c, int depth) {
  __shared__ half tile_a[16 * 24];
  __shared__ float out[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < depth; i += 16) {
    for (int e = threadIdx.x; e < 256; e += 32) tile_a[e / 16 * 24 + e % 16] = a[e / 16 * depth + i + e % 16];
    __syncwarp();
    wmma::load_matrix_sync(fa, tile_a, 24);
    wmma::load_matrix_sync(fb, b + i, depth);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(out, sum, 16, wmma::mem_col_major);
  __syncwarp();
  for (int e = threadIdx.x; e < 256; e += 32) c[e] += 2 * out[e % 16 * 16 + e / 16];
}
