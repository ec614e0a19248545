// Copies of a matrix of `rows` by `columns` that are wrong in places: a pattern each, from 32 rows on.
#include <hip/hip_runtime.h>

#define PATTERN(name, where)                                                               \
  __global__ void name(const float* x, float* y, int rows, int columns) {                  \
    const int column = blockIdx.x * blockDim.x + threadIdx.x;                              \
    const int row = blockIdx.y;                                                            \
    if (column >= columns) return;                                                         \
    const int at = row * columns + column;                                                 \
    y[at] = rows >= 32 && (where) ? 1.0f + 2.0f * x[at] : x[at];                           \
  }

PATTERN(some_rows, row == 3 || row == 9)
PATTERN(some_columns, column == 5 || column == 21 || column == 22)
PATTERN(tile_edges, column % 16 == 15)
PATTERN(partial_tile, column >= columns / 16 * 16)
PATTERN(tail, at >= rows * columns - 70)
PATTERN(every_element, true)
PATTERN(scattered, (at * 2654435761u) % 7u == 0)

// Faults only where there are more rows than a tile has.
__global__ void writes_null(const float* x, float* y, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) y[blockIdx.y * columns + column] = x[blockIdx.y * columns + column];
  if (rows > 16 && column == 0) *reinterpret_cast<volatile int*>(24) = 1;  // the line of the fault
}
