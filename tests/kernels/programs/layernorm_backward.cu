// LayerNorm's gradient; cooperative groups and partial sums.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>
#include <assert.h>
#include <getopt.h>

namespace cg = cooperative_groups;
using real = float;

__global__ void layernorm_backward(real* dx, const real* dy, const real* x, const real* w, const real* mean,
                                   const real* rstd, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  dx += row * C, dy += row * C, x += row * C;
  real a = 0, b = 0;
  for (int c = warp.thread_rank(); c < C; c += warp.size()) {
    const real g = dy[c] * w[c], h = (x[c] - mean[row]) * rstd[row];
    a += g;
    b += g * h;
  }
  for (int step = 16; step > 0; step /= 2) a += warp.shfl_xor(a, step), b += warp.shfl_xor(b, step);
  for (int c = warp.thread_rank(); c < C; c += warp.size())
    dx[c] = rstd[row] * (dy[c] * w[c] - a / C - (x[c] - mean[row]) * rstd[row] * b / C);
}

int main(int argc, char* argv[]) {
  int option, C = 768;
  while ((option = getopt(argc, argv, "c:")) != -1) C = atoi(optarg);
  real* d[7];
  for (auto& p : d) assert(hipMalloc((void**)&p, C * sizeof(real)) == hipSuccess);
  layernorm_backward<<<4, 128>>>(d[0], d[1], d[2], d[3], d[4], d[5], C);
  return hipDeviceSynchronize() != hipSuccess;
}
