// Casts of float to 8-bit floats with 4 bits of exponent and 3 of fraction, to nearest, ties to even.
//
// e4m3fn (OCP OFP8 1.0): bias 7, largest 448, NaN is 0x7f (or 0xff), no infinity.
// e4m3fnuz: bias 8, largest 240, NaN is 0x80 alone, no infinity and no -0.
// What lies beyond the largest number after rounding becomes that number with its sign where `saturates`,
// else NaN; so do infinities. NaN stays NaN. One thread an element, blocks of 256 threads.
#include <hip/hip_runtime.h>

#include <math.h>
#include <stdint.h>

template <bool fnuz, bool saturates>
__device__ inline uint8_t to_e4m3(float x) {
  constexpr int bias = fnuz ? 8 : 7;
  constexpr float largest = fnuz ? 240.0f : 448.0f;
  constexpr uint8_t nan = fnuz ? 0x80 : 0x7f;
  if (x != x) return nan;
  const uint8_t sign = signbit(x) ? 0x80 : 0;
  float magnitude = fabsf(x);
  // Half way to what would be the next number, 2^5 or 2^4 above the largest; the tie at it is even.
  const float beyond = largest + (fnuz ? 8.0f : 16.0f);
  if (fnuz ? magnitude >= beyond : magnitude > beyond) {
    if (!saturates) return nan;
    magnitude = largest;
  }
  int exponent;
  frexpf(magnitude, &exponent);  // magnitude in [2^(exponent - 1), 2^exponent)
  exponent = magnitude > 0.0f ? max(exponent - 1, 1 - bias) : 1 - bias;
  // In units of the last place: whole numbers below 16, 8 and more for normal numbers.
  const int units = static_cast<int>(rintf(ldexpf(magnitude, 3 - exponent)));
  const int code = ((exponent + bias - 1) << 3) + units;
  if (fnuz && code == 0) return 0;
  return static_cast<uint8_t>(code | sign);
}

template <bool fnuz, bool saturates>
__global__ void cast_e4m3(const float* x, uint8_t* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = to_e4m3<fnuz, saturates>(x[i]);
}
