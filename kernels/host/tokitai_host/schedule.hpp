// Orders of the blocks of a grid, each named by a seed, and the cores that they are spread over.
#pragma once

#include <sched.h>

#include "sanitizers.hpp"

namespace tokitai {

// Seeds that name an order of blocks, warps and threads; all others draw one.
constexpr unsigned long long natural_order = 0, reverse_order = ~0ull;

TOKITAI_UNSANITIZED inline unsigned long long next_random(unsigned long long& state) {
  // xorshift64 (Marsaglia, Xorshift RNGs, 2003); the state is never zero.
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

// Finalizer of splitmix64 (Steele, Lea, Flood, 2014): neighbouring seeds give unrelated states.
TOKITAI_UNSANITIZED inline unsigned long long mixed(unsigned long long value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

inline unsigned long long greatest_common_divisor(unsigned long long a, unsigned long long b) {
  while (b) {
    const unsigned long long rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// i -> (factor * i + offset) mod total is a permutation where factor and total have no common divisor, and
// needs no memory.
struct BlockOrder {
  unsigned long long factor, offset, total;
  unsigned long long operator()(unsigned long long i) const {
    return (unsigned long long)(((unsigned __int128)factor * i + offset) % total);
  }
};

inline BlockOrder block_order(unsigned long long seed, unsigned long long total) {
  if (seed == natural_order || total < 2) return {1, 0, total};
  if (seed == reverse_order) return {total - 1, total - 1, total};
  unsigned long long state = mixed(seed) | 1;
  BlockOrder order = {next_random(state) % total, next_random(state) % total, total};
  while (greatest_common_divisor(order.factor, total) != 1) order.factor = next_random(state) % total;
  return order;
}

inline unsigned usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  const int count = CPU_COUNT(&cores);
  return count > 0 ? unsigned(count) : 1;
}

}  // namespace tokitai
