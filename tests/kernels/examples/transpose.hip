// Transpose through a tile of shared memory, so that both the loads and the stores run along rows.
// The tile has one column more than it needs, against conflicts of shared memory's banks.
#include <hip/hip_runtime.h>

template <class T, int tile_size>
__global__ void transpose(const T* in, T* out, int rows, int columns) {
  __shared__ T tile[tile_size][tile_size + 1];
  int column = blockIdx.x * tile_size + threadIdx.x;
  int row = blockIdx.y * tile_size + threadIdx.y;
  for (int i = 0; i < tile_size; i += blockDim.y)
    if (column < columns && row + i < rows)
      tile[threadIdx.y + i][threadIdx.x] = in[(row + i) * columns + column];
  __syncthreads();
  column = blockIdx.y * tile_size + threadIdx.x;
  row = blockIdx.x * tile_size + threadIdx.y;
  for (int i = 0; i < tile_size; i += blockDim.y)
    if (column < rows && row + i < columns)
      out[(row + i) * rows + column] = tile[threadIdx.x][threadIdx.y + i];
}
