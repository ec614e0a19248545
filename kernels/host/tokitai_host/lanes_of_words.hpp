// Functions of the two halves or four bytes of a word, as the CUDA Math API has them (SIMD intrinsics;
// the rounded signed average is PTX's vavrg2 and vavrg4: half of what is odd goes away from zero).
#pragma once

#include "language.hpp"

namespace tokitai {

// `FUNCTION` of the parts of two words, each as a `PART`; what it gives is cut to the part's bits.
template <class PART, class FUNCTION>
inline unsigned by_parts(unsigned a, unsigned b, FUNCTION function) {
  constexpr unsigned bits = 8 * sizeof(PART), mask = (1u << bits) - 1;
  unsigned result = 0;
  for (unsigned at = 0; at < 32; at += bits)
    result |= (unsigned(function(int(PART(a >> at)), int(PART(b >> at)))) & mask) << at;
  return result;
}
template <class PART>
inline int saturated(int value) {
  constexpr bool is_signed = PART(-1) < PART(0);
  constexpr int bits = int(8 * sizeof(PART)) - is_signed;
  constexpr int largest = (1 << bits) - 1, least = is_signed ? -largest - 1 : 0;
  return value > largest ? largest : value < least ? least : value;
}
// Sum of the parts of a word.
template <class PART>
inline unsigned sum_of_parts(unsigned word) {
  constexpr unsigned bits = 8 * sizeof(PART), mask = (1u << bits) - 1;
  unsigned sum = 0;
  for (unsigned at = 0; at < 32; at += bits) sum += word >> at & mask;
  return sum;
}

}  // namespace tokitai

#define TOKITAI_BY_PARTS(NAME, PART, EXPRESSION)                                                  \
  TOKITAI_OURS unsigned NAME(unsigned x, unsigned y) {                                            \
    return tokitai::by_parts<PART>(x, y, [](int a, int b) { return EXPRESSION; });                \
  }
#define TOKITAI_OF_ONE(NAME, PART, EXPRESSION)                                                    \
  TOKITAI_OURS unsigned NAME(unsigned x) {                                                        \
    return tokitai::by_parts<PART>(x, x, [](int a, int) { return EXPRESSION; });                  \
  }
#define TOKITAI_COMPARED(NAME, N, PART, OP)                                                       \
  TOKITAI_BY_PARTS(__vcmp##NAME##N, PART, a OP b ? -1 : 0)                                        \
  TOKITAI_BY_PARTS(__vset##NAME##N, PART, a OP b ? 1 : 0)
#define TOKITAI_ORDERED(NAME, N, SIGNED, UNSIGNED, OP)                                            \
  TOKITAI_COMPARED(NAME##s, N, SIGNED, OP)                                                        \
  TOKITAI_COMPARED(NAME##u, N, UNSIGNED, OP)
#define TOKITAI_WORD_LANES(N, SIGNED, UNSIGNED)                                                   \
  TOKITAI_OF_ONE(__vabs##N, SIGNED, a < 0 ? -a : a)                                               \
  TOKITAI_OF_ONE(__vabsss##N, SIGNED, tokitai::saturated<SIGNED>(a < 0 ? -a : a))                 \
  TOKITAI_OF_ONE(__vneg##N, SIGNED, -a)                                                           \
  TOKITAI_OF_ONE(__vnegss##N, SIGNED, tokitai::saturated<SIGNED>(-a))                             \
  TOKITAI_BY_PARTS(__vadd##N, UNSIGNED, a + b)                                                    \
  TOKITAI_BY_PARTS(__vaddss##N, SIGNED, tokitai::saturated<SIGNED>(a + b))                        \
  TOKITAI_BY_PARTS(__vaddus##N, UNSIGNED, tokitai::saturated<UNSIGNED>(a + b))                    \
  TOKITAI_BY_PARTS(__vsub##N, UNSIGNED, a - b)                                                    \
  TOKITAI_BY_PARTS(__vsubss##N, SIGNED, tokitai::saturated<SIGNED>(a - b))                        \
  TOKITAI_BY_PARTS(__vsubus##N, UNSIGNED, tokitai::saturated<UNSIGNED>(a - b))                    \
  TOKITAI_BY_PARTS(__vabsdiffs##N, SIGNED, a < b ? b - a : a - b)                                 \
  TOKITAI_BY_PARTS(__vabsdiffu##N, UNSIGNED, a < b ? b - a : a - b)                               \
  TOKITAI_BY_PARTS(__vavgs##N, SIGNED, (a + b + (a + b >= 0)) >> 1)                               \
  TOKITAI_BY_PARTS(__vavgu##N, UNSIGNED, (a + b + 1) >> 1)                                        \
  TOKITAI_BY_PARTS(__vhaddu##N, UNSIGNED, (a + b) >> 1)                                           \
  TOKITAI_BY_PARTS(__vmaxs##N, SIGNED, a < b ? b : a)                                             \
  TOKITAI_BY_PARTS(__vmaxu##N, UNSIGNED, a < b ? b : a)                                           \
  TOKITAI_BY_PARTS(__vmins##N, SIGNED, b < a ? b : a)                                             \
  TOKITAI_BY_PARTS(__vminu##N, UNSIGNED, b < a ? b : a)                                           \
  TOKITAI_COMPARED(eq, N, UNSIGNED, ==)                                                           \
  TOKITAI_COMPARED(ne, N, UNSIGNED, !=)                                                           \
  TOKITAI_ORDERED(ge, N, SIGNED, UNSIGNED, >=)                                                    \
  TOKITAI_ORDERED(gt, N, SIGNED, UNSIGNED, >)                                                     \
  TOKITAI_ORDERED(le, N, SIGNED, UNSIGNED, <=)                                                    \
  TOKITAI_ORDERED(lt, N, SIGNED, UNSIGNED, <)                                                     \
  TOKITAI_OURS unsigned __vsads##N(unsigned x, unsigned y) {                                      \
    return tokitai::sum_of_parts<UNSIGNED>(__vabsdiffs##N(x, y));                                 \
  }                                                                                               \
  TOKITAI_OURS unsigned __vsadu##N(unsigned x, unsigned y) {                                      \
    return tokitai::sum_of_parts<UNSIGNED>(__vabsdiffu##N(x, y));                                 \
  }
TOKITAI_WORD_LANES(2, short, unsigned short)
TOKITAI_WORD_LANES(4, signed char, unsigned char)
#undef TOKITAI_WORD_LANES
#undef TOKITAI_ORDERED
#undef TOKITAI_COMPARED
#undef TOKITAI_OF_ONE
#undef TOKITAI_BY_PARTS
