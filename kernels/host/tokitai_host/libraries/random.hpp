// Device generators of <hiprand/hiprand_kernel.h> and <curand_kernel.h>: XORWOW and Philox4x32-10,
// number by number as rocRAND and cuRAND give them (Marsaglia, "Xorshift RNGs", 2003; Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", 2011). The others are refused by name.
#pragma once

#ifndef TOKITAI_DEVICE_GFX
#include "../waiting.hpp"
#endif
#include "../numbers/half.hpp"

namespace tokitai {

// What every generator keeps beside its own state: the second number of a pair of normal ones.
struct NormalPair {
  bool has_float, has_double;
  float second_float;
  double second_double;
};

// 160 bits over which XORWOW's step is linear, and the powers of that step: step^(2^k) by
// squaring.
struct XorwowBits {
  unsigned word[5];
};
struct XorwowPowers {
  static constexpr int count = 67 + 64;
  XorwowBits columns[count][160];  // where each bit goes
  static XorwowBits apply(const XorwowBits* power, const XorwowBits& bits) {
    XorwowBits sum = {};
    for (int i = 0; i < 160; i++)
      if (bits.word[i / 32] >> i % 32 & 1)
        for (int w = 0; w < 5; w++) sum.word[w] ^= power[i].word[w];
    return sum;
  }
  static XorwowBits step(XorwowBits b) {
    const unsigned t = b.word[0] ^ b.word[0] >> 2, last = b.word[4];
    return {{b.word[1], b.word[2], b.word[3], last, (last ^ last << 4) ^ (t ^ t << 1)}};
  }
  XorwowPowers() {
    for (int i = 0; i < 160; i++) {
      XorwowBits one = {};
      one.word[i / 32] = 1u << i % 32;
      columns[0][i] = step(one);
    }
    for (int k = 1; k < count; k++)
      for (int i = 0; i < 160; i++) columns[k][i] = apply(columns[k - 1], columns[k - 1][i]);
  }
};

// How each library starts from a seed: what the halves are mixed with, and multiplied by.
struct RocrandSeed {
  static constexpr unsigned mixed[2] = {0x2c7f967fu, 0xa03697cbu};
  static constexpr unsigned factor[2] = {1228688033u, 2073658381u};
};
struct CurandSeed {
  static constexpr unsigned mixed[2] = {0xaad26b49u, 0xf7dcefddu};
  static constexpr unsigned factor[2] = {1099087573u, 2591861531u};
};

template <class Seed>
struct Xorwow {
  XorwowBits bits;
  unsigned weyl;
  NormalPair normal;
  unsigned long long unused = 0;  // a state has 48 bytes, as the libraries' own have
  static constexpr unsigned weyl_step = 362437;

  void init(unsigned long long seed, unsigned long long sequence, unsigned long long offset) {
    const unsigned t0 = Seed::factor[0] * (unsigned(seed) ^ Seed::mixed[0]);
    const unsigned t1 = Seed::factor[1] * (unsigned(seed >> 32) ^ Seed::mixed[1]);
    bits = {{123456789u + t0, 362436069u ^ t0, 521288629u + t1, 88675123u ^ t1, 5783321u + t0}};
    weyl = 6615241u + t1 + t0;
    normal = {};
    skip_sequences(sequence);
    skip(offset);
  }
  unsigned next() {
    bits = XorwowPowers::step(bits);
    weyl += weyl_step;
    return weyl + bits.word[4];
  }
  void skip(unsigned long long count) {
    jump(count, 0);
    weyl += unsigned(count) * weyl_step;
  }
  // A sequence has 2^67 numbers, over which the Weyl sequence comes back to itself.
  void skip_sequences(unsigned long long count) { jump(count, 67); }

 private:
  static const XorwowPowers* made_once() {
#ifndef TOKITAI_DEVICE_GFX
    Unstopped now;  // no clock stops the thread while they are made
    (void)now;
#endif
    static const XorwowPowers* powers = new XorwowPowers;
    return powers;
  }
  void jump(unsigned long long count, int first) {
    if (!count) return;
    const XorwowPowers* powers = made_once();
    for (int k = 0; count >> k; k++) {
      if (count >> k & 1) bits = XorwowPowers::apply(powers->columns[first + k], bits);
      if (k == 63) break;
    }
  }
};

struct Philox {
  uint4 counter, block;
  uint2 key;
  unsigned place;  // of the next number in the block
  NormalPair normal;

  void init(unsigned long long seed, unsigned long long sequence, unsigned long long offset) {
    key = uint2(unsigned(seed), unsigned(seed >> 32));
    counter = uint4(0);
    place = 0;
    normal = {};
    skip_sequences(sequence);
    skip(offset);
  }
  unsigned next() {
    const unsigned number = block.data[place];
    if (++place == 4) {
      place = 0;
      advance(1);
      block = rounds();
    }
    return number;
  }
  uint4 next4() {
    uint4 numbers(0);
    const uint4 before = block;
    advance(1);
    block = rounds();
    for (unsigned i = 0; i < 4; i++)
      numbers.data[i] = place + i < 4 ? before.data[place + i] : block.data[place + i - 4];
    return numbers;
  }
  void skip(unsigned long long count) {
    const unsigned whole = place + unsigned(count & 3);
    place = whole & 3;
    advance(count / 4 + whole / 4);
    block = rounds();
  }
  // A sequence has 2^66 numbers.
  void skip_sequences(unsigned long long count) {
    const unsigned long long high = (counter.z | (unsigned long long)counter.w << 32) + count;
    counter.z = unsigned(high), counter.w = unsigned(high >> 32);
    block = rounds();
  }

 private:
  void advance(unsigned long long blocks) {
    unsigned __int128 whole = 0;
    for (int i = 3; i >= 0; i--) whole = whole << 32 | counter.data[i];
    whole += blocks;
    for (int i = 0; i < 4; i++) counter.data[i] = unsigned(whole >> 32 * i);
  }
  uint4 rounds() const {
    uint4 c = counter;
    uint2 k = key;
    for (int i = 0; i < 10; i++) {
      const unsigned long long first = 0xd2511f53ull * c.x, second = 0xcd9e8d57ull * c.z;
      c = uint4(unsigned(second >> 32) ^ c.y ^ k.x, unsigned(second),
                unsigned(first >> 32) ^ c.w ^ k.y, unsigned(first));
      k = uint2(k.x + 0x9e3779b9u, k.y + 0xbb67ae85u);
    }
    return c;
  }
};

// Numbers above 0, up to and with 1, and Box and Muller's pairs.
struct RocrandNumbers {
  static float uniform(unsigned x) { return 0x1p-32f + float(x) * 0x1p-32f; }
  static double uniform_double(unsigned low, unsigned high) {
    const unsigned long long bits = low | (unsigned long long)(high >> 11) << 32;
    return 0x1p-53 + double(bits) * 0x1p-53;
  }
  template <class State>
  static double next_uniform_double(State& state) {
    const unsigned x = state.next(), y = state.next();
    return uniform_double(x, y);
  }
  static float2 normals(unsigned x, unsigned y) {
    constexpr float angle = 1.46291807e-09f;  // 2 pi / 2^32
    const float length = sqrtf(-2.0f * logf(uniform(x))), v = angle + float(y) * angle;
    return float2(sinf(v) * length, cosf(v) * length);
  }
  static double2 normals_double(uint4 v) {
    const double u = 0x1p-53 + joined(v.x, v.y) * 0x1p-53;
    const double w = 0x1p-52 + joined(v.z, v.w) * 0x1p-52;
    const double length = sqrt(-2.0 * log(u));
    return double2(sinpi(w) * length, cospi(w) * length);
  }
  static double joined(unsigned low, unsigned high) {
    return double(low ^ (unsigned long long)high << 21);
  }
};
// cuRAND's lie half a step higher or lower.
struct CurandNumbers {
  static float uniform(unsigned x) { return float(x) * 0x1p-32f + 0x1p-33f; }
  static double uniform_double(unsigned low, unsigned high) {
    return RocrandNumbers::joined(low, high) * 0x1p-53 + 0x1p-54;
  }
  // Of Philox it takes one number alone.
  static double next_uniform_double(Philox& state) {
    return double(state.next()) * 0x1p-32 + 0x1p-32;
  }
  template <class Seed>
  static double next_uniform_double(Xorwow<Seed>& state) {
    const unsigned x = state.next(), y = state.next();
    return uniform_double(x, y);
  }
  static float2 normals(unsigned x, unsigned y) {
    constexpr float angle = 0x1p-32f * 6.2831855f;  // 2 pi / 2^32
    const float length = sqrtf(-2.0f * logf(uniform(x))), v = float(y) * angle + angle / 2;
    return float2(sinf(v) * length, cosf(v) * length);
  }
  static double2 normals_double(uint4 v) {
    const double w = RocrandNumbers::joined(v.z, v.w) * 0x1p-52 + 0x1p-53;
    const double length = sqrt(-2.0 * log(uniform_double(v.x, v.y)));
    return double2(sinpi(w) * length, cospi(w) * length);
  }
};
template <class State>
inline uint4 four_of(State& state) {
  if constexpr (std::is_same<State, Philox>::value) {
    return state.next4();
  } else {
    const unsigned a = state.next(), b = state.next(), c = state.next(), d = state.next();
    return uint4(a, b, c, d);
  }
}

template <class State>
struct IsGenerator : std::false_type {};
template <class Seed>
struct IsGenerator<Xorwow<Seed>> : std::true_type {};
template <>
struct IsGenerator<Philox> : std::true_type {};
template <int n>
struct OtherGenerator {
  static_assert(n != n,
                "the cpu device has the XORWOW and Philox4x32-10 generators of hipRAND and cuRAND "
                "alone: use one of them, or choose another device");
};

}  // namespace tokitai

using hiprandStateXORWOW = tokitai::Xorwow<tokitai::RocrandSeed>;
using hiprandStateXORWOW_t = tokitai::Xorwow<tokitai::RocrandSeed>;
using hiprandState = tokitai::Xorwow<tokitai::RocrandSeed>;
using hiprandState_t = tokitai::Xorwow<tokitai::RocrandSeed>;
using hiprandStatePhilox4_32_10 = tokitai::Philox;
using hiprandStatePhilox4_32_10_t = tokitai::Philox;
using rocrand_state_xorwow = tokitai::Xorwow<tokitai::RocrandSeed>;
using rocrand_state_philox4x32_10 = tokitai::Philox;

#define TOKITAI_RANDOM(RESULT, NAME)                                                              \
  template <class State, tokitai::Where<tokitai::IsGenerator<State>::value> = 0>                  \
  inline RESULT NAME
#define TOKITAI_RANDOMS(PREFIX, NUMBERS)                                                          \
  TOKITAI_RANDOM(void, PREFIX##_init)                                                             \
  (unsigned long long seed, unsigned long long sequence, unsigned long long offset,               \
   State* state) {                                                                                \
    state->init(seed, sequence, offset);                                                          \
  }                                                                                               \
  TOKITAI_RANDOM(unsigned, PREFIX)(State * state) { return state->next(); }                       \
  TOKITAI_RANDOM(uint4, PREFIX##4)(State * state) { return tokitai::four_of(*state); }            \
  TOKITAI_RANDOM(float, PREFIX##_uniform)(State * state) {                                        \
    return NUMBERS::uniform(state->next());                                                       \
  }                                                                                               \
  TOKITAI_RANDOM(float2, PREFIX##_uniform2)(State * state) {                                      \
    const unsigned x = state->next(), y = state->next();                                          \
    return float2(NUMBERS::uniform(x), NUMBERS::uniform(y));                                      \
  }                                                                                               \
  TOKITAI_RANDOM(float4, PREFIX##_uniform4)(State * state) {                                      \
    const uint4 x = tokitai::four_of(*state);                                                     \
    return float4(NUMBERS::uniform(x.x), NUMBERS::uniform(x.y), NUMBERS::uniform(x.z),            \
                  NUMBERS::uniform(x.w));                                                         \
  }                                                                                               \
  TOKITAI_RANDOM(double, PREFIX##_uniform_double)(State * state) {                                \
    return NUMBERS::next_uniform_double(*state);                                                  \
  }                                                                                               \
  TOKITAI_RANDOM(double2, PREFIX##_uniform_double2)(State * state) {                              \
    const uint4 x = tokitai::four_of(*state);                                                     \
    return double2(NUMBERS::uniform_double(x.x, x.y), NUMBERS::uniform_double(x.z, x.w));         \
  }                                                                                               \
  TOKITAI_RANDOM(float2, PREFIX##_normal2)(State * state) {                                       \
    const unsigned x = state->next(), y = state->next();                                          \
    return NUMBERS::normals(x, y);                                                                \
  }                                                                                               \
  TOKITAI_RANDOM(float, PREFIX##_normal)(State * state) {                                         \
    tokitai::NormalPair& kept = state->normal;                                                    \
    if (kept.has_float) return kept.has_float = false, kept.second_float;                         \
    const float2 pair = PREFIX##_normal2(state);                                                  \
    kept.has_float = true, kept.second_float = pair.y;                                            \
    return pair.x;                                                                                \
  }                                                                                               \
  TOKITAI_RANDOM(float4, PREFIX##_normal4)(State * state) {                                       \
    const uint4 x = tokitai::four_of(*state);                                                     \
    const float2 a = NUMBERS::normals(x.x, x.y), b = NUMBERS::normals(x.z, x.w);                  \
    return float4(a.x, a.y, b.x, b.y);                                                            \
  }                                                                                               \
  TOKITAI_RANDOM(double2, PREFIX##_normal_double2)(State * state) {                               \
    return NUMBERS::normals_double(tokitai::four_of(*state));                                     \
  }                                                                                               \
  TOKITAI_RANDOM(double, PREFIX##_normal_double)(State * state) {                                 \
    tokitai::NormalPair& kept = state->normal;                                                    \
    if (kept.has_double) return kept.has_double = false, kept.second_double;                      \
    const double2 pair = PREFIX##_normal_double2(state);                                          \
    kept.has_double = true, kept.second_double = pair.y;                                          \
    return pair.x;                                                                                \
  }                                                                                               \
  TOKITAI_RANDOM(float, PREFIX##_log_normal)(State * state, float mean, float deviation) {        \
    return expf(mean + deviation * PREFIX##_normal(state));                                       \
  }                                                                                               \
  TOKITAI_RANDOM(double, PREFIX##_log_normal_double)                                              \
  (State * state, double mean, double deviation) {                                                \
    return exp(mean + deviation * PREFIX##_normal_double(state));                                 \
  }
TOKITAI_RANDOMS(hiprand, tokitai::RocrandNumbers)
TOKITAI_RANDOMS(rocrand, tokitai::RocrandNumbers)
TOKITAI_RANDOMS(curand, tokitai::CurandNumbers)
#undef TOKITAI_RANDOMS
TOKITAI_RANDOM(void, skipahead)(unsigned long long count, State* state) { state->skip(count); }
TOKITAI_RANDOM(void, skipahead_sequence)(unsigned long long count, State* state) {
  state->skip_sequences(count);
}
TOKITAI_RANDOM(void, skipahead_subsequence)(unsigned long long count, State* state) {
  state->skip_sequences(count);
}
#undef TOKITAI_RANDOM

// Named, so that a source that uses one is told why it does not build.
template <int n = 0>
using tokitai_other_generator = tokitai::OtherGenerator<n>;
#define hiprandStateMRG32k3a tokitai_other_generator<0>
#define hiprandStateMRG32k3a_t tokitai_other_generator<0>
#define hiprandStateMtgp32 tokitai_other_generator<0>
#define hiprandStateMtgp32_t tokitai_other_generator<0>
#define hiprandStateSobol32 tokitai_other_generator<0>
#define hiprandStateSobol32_t tokitai_other_generator<0>
