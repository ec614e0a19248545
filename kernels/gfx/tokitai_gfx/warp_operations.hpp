// Shuffles, votes and barriers by the instructions that ROCm's own headers lead to: ds_bpermute, a
// comparison into a mask, s_barrier. As there, masks of lanes are not waited for.
#pragma once

#include <tokitai_host/language.hpp>

// The cpu device tells operations apart by their places in the source; a wave needs none.
#define TOKITAI_HERE const char *file = nullptr, int line = 0
#define TOKITAI_SITE tokitai::Site()

namespace tokitai {

struct Site {
  const char* file = nullptr;
  int line = 0;
};

TOKITAI_DEVICE_ONLY unsigned linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
TOKITAI_DEVICE_ONLY unsigned lane_index() {
  const unsigned below = __builtin_amdgcn_mbcnt_lo(~0u, 0u);
  return warp_size == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, below) : below;
}

// A value of any size from another lane, word by word.
template <class T>
TOKITAI_DEVICE_ONLY T shuffle_any(u64, T value, unsigned source, Site = {}) {
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  int parts[words] = {};
  __builtin_memcpy(parts, &value, sizeof value);
  for (unsigned i = 0; i < words; i++)
    parts[i] = __builtin_amdgcn_ds_bpermute(int(source << 2), parts[i]);
  __builtin_memcpy(&value, parts, sizeof value);
  return value;
}
template <class T>
TOKITAI_DEVICE_ONLY T shuffle(u64 mask, T value, unsigned source, Site = {}) {
  return shuffle_any(mask, value, source);
}

// Source lanes in segments of `width` lanes.
TOKITAI_DEVICE_ONLY unsigned source_at(int lane, int width) {
  return (lane_index() & ~unsigned(width - 1)) + (unsigned(lane) & unsigned(width - 1));
}
TOKITAI_DEVICE_ONLY unsigned source_up(unsigned delta, int width) {
  const int self = int(lane_index()), other = self - int(delta);
  return unsigned(other < (self & ~(width - 1)) ? self : other);
}
TOKITAI_DEVICE_ONLY unsigned source_down(unsigned delta, int width) {
  const int self = int(lane_index());
  return unsigned((self & (width - 1)) + int(delta) >= width ? self : self + int(delta));
}
TOKITAI_DEVICE_ONLY unsigned source_xor(int lanes, int width) {
  const int self = int(lane_index()), other = self ^ lanes;
  return unsigned(other >= ((self + width) & ~(width - 1)) ? self : other);
}

}  // namespace tokitai

#define TOKITAI_SHUFFLE(NAME, DISTANCE, SOURCE)                                                   \
  template <class T>                                                                              \
  TOKITAI_DEVICE_ONLY T NAME(T value, DISTANCE at, int width = warpSize, TOKITAI_HERE) {          \
    return tokitai::shuffle_any(0, value, tokitai::SOURCE(at, width));                            \
  }                                                                                               \
  template <class T>                                                                              \
  TOKITAI_DEVICE_ONLY T NAME##_sync(tokitai::u64, T value, DISTANCE at, int width = warpSize,     \
                                    TOKITAI_HERE) {                                               \
    return NAME(value, at, width);                                                                \
  }
TOKITAI_SHUFFLE(__shfl, int, source_at)
TOKITAI_SHUFFLE(__shfl_up, unsigned, source_up)
TOKITAI_SHUFFLE(__shfl_down, unsigned, source_down)
TOKITAI_SHUFFLE(__shfl_xor, int, source_xor)
#undef TOKITAI_SHUFFLE

// HIP's ballots are 64 bits wide whatever the size of a wave.
TOKITAI_DEVICE_ONLY unsigned long long __ballot(int predicate, TOKITAI_HERE) {
#if TOKITAI_WAVE_SIZE == 64
  return __builtin_amdgcn_ballot_w64(predicate != 0);
#else
  return __builtin_amdgcn_ballot_w32(predicate != 0);
#endif
}
TOKITAI_DEVICE_ONLY unsigned long long __activemask(TOKITAI_HERE) { return __ballot(1); }
TOKITAI_DEVICE_ONLY int __any(int predicate, TOKITAI_HERE) { return __ballot(predicate) != 0; }
TOKITAI_DEVICE_ONLY int __all(int predicate, TOKITAI_HERE) { return __ballot(!predicate) == 0; }
TOKITAI_DEVICE_ONLY unsigned long long __ballot_sync(tokitai::u64 mask, int predicate,
                                                     TOKITAI_HERE) {
  return __ballot(predicate) & mask;
}
TOKITAI_DEVICE_ONLY int __any_sync(tokitai::u64 mask, int predicate, TOKITAI_HERE) {
  return (__ballot(predicate) & mask) != 0;
}
TOKITAI_DEVICE_ONLY int __all_sync(tokitai::u64 mask, int predicate, TOKITAI_HERE) {
  return (__ballot(!predicate) & mask) == 0;
}
TOKITAI_DEVICE_ONLY unsigned __lane_id() { return tokitai::lane_index(); }
TOKITAI_DEVICE_ONLY tokitai::u64 __lanemask_lt() { return (1ull << tokitai::lane_index()) - 1; }
TOKITAI_DEVICE_ONLY tokitai::u64 __lanemask_eq() { return 1ull << tokitai::lane_index(); }
TOKITAI_DEVICE_ONLY tokitai::u64 __lanemask_gt() {
  return ~0ull >> (64 - tokitai::warp_size) & ~(__lanemask_lt() | __lanemask_eq());
}
// One turn for each value that is there: the first lane that is left names it.
template <class T>
TOKITAI_DEVICE_ONLY unsigned long long __match_any_sync(tokitai::u64 mask, T value, TOKITAI_HERE) {
  for (;;) {
    int parts[(sizeof(T) + 3) / 4] = {}, first[(sizeof(T) + 3) / 4] = {};
    __builtin_memcpy(parts, &value, sizeof value);
    bool equal = true;
    for (unsigned i = 0; i < sizeof parts / 4; i++) {
      first[i] = __builtin_amdgcn_readfirstlane(parts[i]);
      equal = equal && first[i] == parts[i];
    }
    if (equal) return __ballot(1) & mask;
  }
}
template <class T>
TOKITAI_DEVICE_ONLY unsigned long long __match_all_sync(tokitai::u64 mask, T value, int* all,
                                                        TOKITAI_HERE) {
  const tokitai::u64 active = __activemask() & mask;
  int parts[(sizeof(T) + 3) / 4] = {};
  __builtin_memcpy(parts, &value, sizeof value);
  bool equal = true;
  for (int part : parts) equal = equal && __builtin_amdgcn_readfirstlane(part) == part;
  *all = (__ballot(!equal) & mask) == 0;
  return *all ? active : 0;
}

TOKITAI_DEVICE_ONLY void __syncwarp(tokitai::u64 = ~0ull, TOKITAI_HERE) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
TOKITAI_DEVICE_ONLY void __syncthreads(TOKITAI_HERE) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
namespace tokitai {
TOKITAI_DEVICE_ONLY void block_barrier(bool, Site) { __syncthreads(); }
}  // namespace tokitai
// The sum over a block by a word of shared memory, which is free again when all have read it.
TOKITAI_DEVICE_ONLY int __syncthreads_count(int predicate, TOKITAI_HERE) {
  __shared__ unsigned tokitai_count;
  if (tokitai::linear_thread() == 0) tokitai_count = 0;
  __syncthreads();
  const unsigned mine = unsigned(__builtin_popcountll(__ballot(predicate)));
  if (tokitai::lane_index() == unsigned(__builtin_ctzll(__activemask())))
    __hip_atomic_fetch_add(&tokitai_count, mine, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads();
  const int all = int(tokitai_count);
  __syncthreads();
  return all;
}
TOKITAI_DEVICE_ONLY int __syncthreads_or(int predicate, TOKITAI_HERE) {
  return __syncthreads_count(predicate) != 0;
}
TOKITAI_DEVICE_ONLY int __syncthreads_and(int predicate, TOKITAI_HERE) {
  return __syncthreads_count(!predicate) == 0;
}

TOKITAI_DEVICE_ONLY void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
TOKITAI_DEVICE_ONLY void __threadfence_block() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
TOKITAI_DEVICE_ONLY void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }
