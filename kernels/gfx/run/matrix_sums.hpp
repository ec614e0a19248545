// Elements and sums of products of matrices, of waves of 32 and of 64 lanes.
#pragma once

#include "buffers.hpp"

namespace tokitai::gfx {

// Elements of a register.
struct InF16 {
  using Value = float;
  static constexpr u32 bits = 16;
  static float of(u32 word, bool) { return flushed(f32_of_f16(word & 0xffff), 0x1p-14f); }
};
struct InBf16 {
  using Value = float;
  static constexpr u32 bits = 16;
  static float of(u32 word, bool) { return flushed(f32_of(word << 16), 0x1p-126f); }
};
template <u32 width>
struct InInteger {
  using Value = i32;
  static constexpr u32 bits = width;
  static i32 of(u32 word, bool is_signed) {
    const u32 part = word & ((1u << width) - 1);
    return is_signed && part >> (width - 1) ? i32(part) - (1 << width) : i32(part);
  }
};

inline float towards_zero(double odd) {
  const float nearest = float(odd);
  const bool beyond = __builtin_fabs(double(nearest)) > __builtin_fabs(odd) && odd - odd == 0;
  return beyond ? f32_of(bits_of(nearest) - 1) : nearest;
}

// The accumulator of a lane: c and what is left of it and a sum.
struct OutF32 {
  static float of(u32 word) { return f32_of(word); }
  static u32 put(u32, float value, bool) { return bits_of(value); }
};
template <u32 shift>
struct OutF16 {
  static float of(u32 word) { return f32_of_f16(word >> shift & 0xffff); }
  static u32 put(u32 old, float value, bool truncated) {
    const u32 half = truncated ? f16_towards_zero(value) : f16_of(value);
    return (old & ~(0xffffu << shift)) | half << shift;
  }
};
template <u32 shift>
struct OutBf16 {
  static float of(u32 word) { return f32_of(word >> shift << 16); }
  static u32 put(u32 old, float value, bool truncated) {
    return (old & ~(0xffffu << shift)) | (bf16_of(value, truncated) & 0xffff) << shift;
  }
};

// Sums of one row of the result. AMD states neither their order nor their roundings: here the exact sum rounded
// once, or products added one by one in order, or in pairs backwards, each sum rounded towards zero.
template <u32 depth, u32 width>
inline void sum_row(const float* a, const float (*b)[width], float* sums) {
  if (nearby == Nearby::up) {
    for (u32 k = 0; k < depth; k++)
      for (u32 n = 0; n < width; n++) sums[n] = fma32(a[k], b[k][n], sums[n]);
    return;
  }
  if (nearby == Nearby::down) {
    constexpr u32 step = depth == 1 ? 1 : 2;
    for (u32 k = depth; k; k -= step)
      for (u32 n = 0; n < width; n++) {
        const float first = step == 2 ? a[k - step] * b[k - step][n] : 0;
        const float pair = towards_zero(odd_fma(a[k - 1], b[k - 1][n], first));
        sums[n] = towards_zero(odd_fma(1, pair, sums[n]));
      }
    return;
  }
  double exact[width];
  for (u32 n = 0; n < width; n++) exact[n] = sums[n];
  for (u32 k = 0; k < depth; k++)
    for (u32 n = 0; n < width; n++) exact[n] += double(a[k]) * b[k][n];
  for (u32 n = 0; n < width; n++) sums[n] = float(exact[n]);
}
template <u32 depth, u32 width>
inline void sum_row(const i32* a, const i32 (*b)[width], i64* sums) {
  for (u32 k = 0; k < depth; k++)
    for (u32 n = 0; n < width; n++) sums[n] += i64(a[k]) * b[k][n];
}
// Of float64: each product added with one rounding, in order or backwards, or rounded by itself.
template <u32 depth, u32 width>
inline void sum_row(const double* a, const double (*b)[width], double* sums) {
  for (u32 i = 0; i < depth; i++)
    for (u32 n = 0; n < width; n++) {
      const u32 k = nearby == Nearby::up ? depth - 1 - i : i;
      sums[n] = nearby == Nearby::down ? a[k] * b[k][n] + sums[n] : __builtin_fma(a[k], b[k][n], sums[n]);
    }
}

}  // namespace tokitai::gfx
