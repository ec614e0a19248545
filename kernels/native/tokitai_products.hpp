// Products of matrices that add their terms in order (tokitai_cli/oracles/sequential.py).
#pragma once

#include <cstdint>

extern "C" {

// out[top .. bottom, left .. right] of x^T y, with one accumulator of float32 each, term by term.
// x: [terms][rows], y: [terms][columns], out: [rows][columns].
void tokitai_sequential(const float* __restrict x, const float* __restrict y, std::int64_t terms,
                        std::int64_t rows, std::int64_t columns, std::int64_t top, std::int64_t bottom,
                        std::int64_t left, std::int64_t right, float* __restrict out) {
  constexpr std::int64_t HEIGHT = 8, WIDTH = 512;  // in a core's first-level cache
  float sums[HEIGHT][WIDTH];
  for (std::int64_t row = top; row < bottom; row += HEIGHT)
    for (std::int64_t column = left; column < right; column += WIDTH) {
      const std::int64_t height = bottom - row < HEIGHT ? bottom - row : HEIGHT;
      const std::int64_t width = right - column < WIDTH ? right - column : WIDTH;
      for (std::int64_t i = 0; i < height; i++)
        for (std::int64_t j = 0; j < width; j++) sums[i][j] = 0.0f;
      for (std::int64_t k = 0; k < terms; k++) {
        const float* __restrict line = y + k * columns + column;
        for (std::int64_t i = 0; i < height; i++) {
          const float factor = x[k * rows + row + i];
          float* __restrict sum = sums[i];
          for (std::int64_t j = 0; j < width; j++) sum[j] = sum[j] + factor * line[j];
        }
      }
      for (std::int64_t i = 0; i < height; i++)
        for (std::int64_t j = 0; j < width; j++) out[(row + i) * columns + column + j] = sums[i][j];
    }
}

}  // extern "C"
