// Builtins and macros of AMD's compiler that have a meaning on the host. Those that are not
// defined here are refused by name (tokitai_cli/build/scan.py reads this file's names).
#pragma once

#include "address_spaces.hpp"
#include "block_barrier.hpp"
#include "math.hpp"
#include "vector_types.hpp"

// --- promises and hints
// ---------------------------------------------------------------------------- Left out: an
// assumption that is wrong must not change what is judged.
#undef __builtin_assume
#define __builtin_assume(condition) ((void)0)
// Empty, because the C++ library has it inside of attributes.
#define __noinline__
#define __maxnreg__(count)
#define __cluster_dims__(...)

#if !defined(__clang__)
template <class T>
inline T __builtin_nontemporal_load(const T* address) {
  return *address;
}
template <class T, class U>
inline void __builtin_nontemporal_store(T value, U* address) {
  *address = U(value);
}
#endif
#define __builtin_amdgcn_s_sleep(cycles) ((void)0)
#define __builtin_amdgcn_s_setprio(priority) ((void)0)
#define __builtin_amdgcn_s_waitcnt(counters) ((void)0)
#define __builtin_amdgcn_sched_barrier(mask) ((void)0)
#define __builtin_amdgcn_sched_group_barrier(...) ((void)0)
#define __builtin_amdgcn_iglp_opt(which) ((void)0)

// --- places, barriers, clocks
// ------------------------------------------------------------------------
#define __builtin_amdgcn_workitem_id_x() int(threadIdx.x)
#define __builtin_amdgcn_workitem_id_y() int(threadIdx.y)
#define __builtin_amdgcn_workitem_id_z() int(threadIdx.z)
#define __builtin_amdgcn_workgroup_id_x() int(blockIdx.x)
#define __builtin_amdgcn_workgroup_id_y() int(blockIdx.y)
#define __builtin_amdgcn_workgroup_id_z() int(blockIdx.z)
#define __builtin_amdgcn_workgroup_size_x() ((unsigned short)blockDim.x)
#define __builtin_amdgcn_workgroup_size_y() ((unsigned short)blockDim.y)
#define __builtin_amdgcn_workgroup_size_z() ((unsigned short)blockDim.z)
#define __builtin_amdgcn_grid_size_x() (gridDim.x * blockDim.x)
#define __builtin_amdgcn_grid_size_y() (gridDim.y * blockDim.y)
#define __builtin_amdgcn_grid_size_z() (gridDim.z * blockDim.z)
#define __builtin_amdgcn_wavefrontsize() unsigned(warpSize)
#define __builtin_amdgcn_s_barrier() __syncthreads()
#define __builtin_amdgcn_wave_barrier() tokitai::wave_barrier()
#define __builtin_amdgcn_fence(order, scope, ...) \
  tokitai::fence(tokitai::fence_scope(scope), order)
#define __builtin_amdgcn_s_memtime() ((unsigned long long)clock64())
#define __builtin_amdgcn_s_memrealtime() ((unsigned long long)wall_clock64())

// --- lanes
// -------------------------------------------------------------------------------------------
namespace tokitai {

inline void wave_barrier(TOKITAI_HERE) {
  warp_operation(Operation::warp_barrier, Mask(), 0, 0, TOKITAI_SITE);
}

template <class T>
inline T first_active(T value, Site site) {
  const u64 active = warp_operation(Operation::active_mask, Mask(), 0, 0, site).members;
  return shuffle(Mask(), value, unsigned(__builtin_ctzll(active)), site);
}

// Source lane of a data-parallel primitive within rows of 16 lanes, or -1 where there is none.
inline int dpp_source(int control, int lane) {
  const int row = lane & ~15, place = lane & 15, count = control & 15;
  if (control <= 0xff) return (lane & ~3) + (control >> 2 * (lane & 3) & 3);  // quad_perm
  switch (control & 0x1f0) {
    case 0x100: return place + count < 16 ? lane + count : -1;  // row_shl
    case 0x110: return place - count >= 0 ? lane - count : -1;  // row_shr
    case 0x120: return row + ((place - count) & 15);            // row_ror
    case 0x150: return row + count;                             // row_share
    case 0x160: return row + (place ^ count);                   // row_xmask
  }
  switch (control) {
    case 0x130: return lane + 1 < int(warp_size) ? lane + 1 : -1;     // wave_shl
    case 0x134: return (lane + 1) % int(warp_size);                   // wave_rol
    case 0x138: return lane - 1;                                      // wave_shr
    case 0x13c: return (lane + int(warp_size) - 1) % int(warp_size);  // wave_ror
    case 0x140: return row + 15 - place;                              // row_mirror
    case 0x141: return (lane & ~7) + 7 - (lane & 7);                  // row_half_mirror
    case 0x142: return row ? row - 1 : -1;                            // row_bcast:15
    case 0x143: return lane >= 32 ? 31 : -1;                          // row_bcast:31
  }
  return -1;
}
inline int update_dpp(int old, int value, int control, int rows, int banks, bool zero, Site site) {
  const int lane = int(lane_index()), source = dpp_source(control, lane);
  const int got = shuffle(Mask(), value, unsigned(source < 0 ? lane : source), site);
  if (!(rows >> lane / 16 & 1) || !(banks >> lane % 16 / 4 & 1)) return old;
  return source < 0 ? (zero ? 0 : old) : got;
}
// A pattern of two bits for each lane of four, or and-, or- and xor-masks of lanes within 32.
inline int ds_swizzle(int value, int pattern, Site site) {
  const int lane = int(lane_index());
  const int within = ((lane & pattern & 31) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  const int source =
      pattern & 0x8000 ? (lane & ~3) + (pattern >> 2 * (lane & 3) & 3) : (lane & ~31) + within;
  return shuffle(Mask(), value, unsigned(source), site);
}

}  // namespace tokitai

inline int __builtin_amdgcn_readfirstlane(int value, TOKITAI_HERE) {
  return tokitai::first_active(value, TOKITAI_SITE);
}
inline int __builtin_amdgcn_readlane(int value, int lane, TOKITAI_HERE) {
  return tokitai::shuffle(tokitai::Mask(), value, unsigned(lane) % tokitai::warp_size, TOKITAI_SITE);
}
inline int __builtin_amdgcn_ds_bpermute(int bytes, int value, TOKITAI_HERE) {
  return tokitai::shuffle(tokitai::Mask(), value, unsigned(bytes >> 2) % tokitai::warp_size, TOKITAI_SITE);
}
inline int __builtin_amdgcn_ds_swizzle(int value, int pattern, TOKITAI_HERE) {
  return tokitai::ds_swizzle(value, pattern, TOKITAI_SITE);
}
inline int __builtin_amdgcn_update_dpp(int old, int value, int control, int rows, int banks,
                                       bool zero, TOKITAI_HERE) {
  return tokitai::update_dpp(old, value, control, rows, banks, zero, TOKITAI_SITE);
}
inline int __builtin_amdgcn_mov_dpp(int value, int control, int rows, int banks, bool zero,
                                    TOKITAI_HERE) {
  return tokitai::update_dpp(0, value, control, rows, banks, zero, TOKITAI_SITE);
}
#define __hip_ds_bpermute(bytes, value) __builtin_amdgcn_ds_bpermute(bytes, value)
#define __hip_ds_swizzle(value, pattern) __builtin_amdgcn_ds_swizzle(value, pattern)
#define __hip_move_dpp(value, control, rows, banks, zero)                                         \
  __builtin_amdgcn_mov_dpp(value, control, rows, banks, zero)
inline float __hip_ds_bpermutef(int bytes, float value, TOKITAI_HERE) {
  return tokitai::shuffle(tokitai::Mask(), value, unsigned(bytes >> 2) % tokitai::warp_size, TOKITAI_SITE);
}
inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned base) {
  return base + unsigned(__builtin_popcountll(mask & __lanemask_lt()));
}
inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned base) {
  return base + unsigned(__builtin_popcountll((tokitai::u64(mask) << 32) & __lanemask_lt()));
}
inline unsigned __builtin_amdgcn_ballot_w32(bool predicate, TOKITAI_HERE) {
  return unsigned(__ballot(predicate, file, line));
}
inline tokitai::u64 __builtin_amdgcn_ballot_w64(bool predicate, TOKITAI_HERE) {
  return __ballot(predicate, file, line);
}

// --- arithmetic
// -------------------------------------------------------------------------------------- Accurate
// where the hardware's are approximations, as the fast functions of math.hpp are.
#define __builtin_amdgcn_rcpf(x) (1.0f / (x))
#define __builtin_amdgcn_rcp(x) (1.0 / (x))
#define __builtin_amdgcn_rsqf(x) rsqrtf(x)
#define __builtin_amdgcn_rsq(x) rsqrt(double(x))
#define __builtin_amdgcn_sqrtf(x) sqrtf(x)
#define __builtin_amdgcn_sqrt(x) sqrt(double(x))
#define __builtin_amdgcn_exp2f(x) exp2f(x)
#define __builtin_amdgcn_logf(x) log2f(x)
#define __builtin_amdgcn_sinf(x) sinpif(2.0f * (x))
#define __builtin_amdgcn_cosf(x) cospif(2.0f * (x))
#define __builtin_amdgcn_ldexpf(x, exponent) ldexpf(x, exponent)
#define __builtin_amdgcn_ldexp(x, exponent) ldexp(x, exponent)
inline float __builtin_amdgcn_fractf(float x) { return fminf(x - floorf(x), 0x1.fffffep-1f); }
inline float __builtin_amdgcn_fmed3f(float x, float y, float z) {
  return fmaxf(fminf(x, y), fminf(fmaxf(x, y), z));
}
inline unsigned __builtin_amdgcn_perm(unsigned high, unsigned low, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)high << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i++) {
    const unsigned select = selector >> 8 * i & 0xff;
    const unsigned sign = select < 8 ? 0 : unsigned(bytes >> (16 * (select - 8) + 15) & 1) * 0xff;
    const unsigned byte = select < 8    ? unsigned(bytes >> 8 * select & 0xff)
                          : select < 12 ? sign
                                        : (select == 12 ? 0u : 0xffu);
    result |= byte << 8 * i;
  }
  return result;
}
inline unsigned __builtin_amdgcn_alignbit(unsigned high, unsigned low, unsigned shift) {
  return __funnelshift_r(low, high, shift);
}
inline unsigned __builtin_amdgcn_alignbyte(unsigned high, unsigned low, unsigned bytes) {
  return __funnelshift_r(low, high, 8 * (bytes & 3));
}
inline unsigned __builtin_amdgcn_ubfe(unsigned x, unsigned offset, unsigned width) {
  width &= 31;
  return width ? x >> (offset & 31) & ((1u << width) - 1) : 0;
}
inline int __builtin_amdgcn_sbfe(int x, unsigned offset, unsigned width) {
  const unsigned bits = __builtin_amdgcn_ubfe(unsigned(x), offset, width);
  width &= 31;
  return width && bits >> (width - 1) & 1 ? int(bits | ~0u << width) : int(bits);
}

namespace tokitai {
// Sum of the products of `count` signed or unsigned parts of two words, and c.
template <unsigned count, bool a_signed, bool b_signed>
inline long long dot(unsigned a, unsigned b, long long c) {
  constexpr unsigned bits = 32 / count;
  for (unsigned i = 0; i < count; i++) {
    const long long x = (a_signed ? (long long)int(a << (32 - bits - bits * i)) >> (32 - bits)
                                  : (long long)(a << (32 - bits - bits * i) >> (32 - bits)));
    const long long y = (b_signed ? (long long)int(b << (32 - bits - bits * i)) >> (32 - bits)
                                  : (long long)(b << (32 - bits - bits * i) >> (32 - bits)));
    c += x * y;
  }
  return c;
}
template <bool is_signed>
inline long long clamped(long long x, bool clamp) {
  constexpr long long least = is_signed ? INT_MIN : 0, most = is_signed ? INT_MAX : UINT_MAX;
  return !clamp ? x : x < least ? least : x > most ? most : x;
}
}  // namespace tokitai
#define TOKITAI_DOT(NAME, COUNT, A, B, T)                                                         \
  inline T NAME(T a, T b, T c, bool clamp) {                                                      \
    return T(tokitai::clamped<A>(tokitai::dot<COUNT, A, B>(unsigned(a), unsigned(b), c), clamp)); \
  }
TOKITAI_DOT(__builtin_amdgcn_sdot4, 4, true, true, int)
TOKITAI_DOT(__builtin_amdgcn_udot4, 4, false, false, unsigned)
TOKITAI_DOT(__builtin_amdgcn_sdot8, 8, true, true, int)
TOKITAI_DOT(__builtin_amdgcn_udot8, 8, false, false, unsigned)
#undef TOKITAI_DOT
inline int __builtin_amdgcn_sudot4(bool a_signed, int a, bool b_signed, int b, int c, bool clamp) {
  const unsigned x = unsigned(a), y = unsigned(b);
  const long long sum = a_signed ? (b_signed ? tokitai::dot<4, true, true>(x, y, c)
                                             : tokitai::dot<4, true, false>(x, y, c))
                                 : (b_signed ? tokitai::dot<4, false, true>(x, y, c)
                                             : tokitai::dot<4, false, false>(x, y, c));
  return int(tokitai::clamped<true>(sum, clamp));
}
// CUDA's names; bytes as the sign of the other operand's type says.
TOKITAI_OURS int __dp4a(int a, int b, int c) {
  return int(tokitai::dot<4, true, true>(unsigned(a), unsigned(b), c));
}
TOKITAI_OURS unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return unsigned(tokitai::dot<4, false, false>(a, b, c));
}
// Vectors of four bytes are words too.
#define TOKITAI_DOT_OF(NAME, A, B, T)                                                             \
  TOKITAI_OURS T NAME(A a, B b, T c) {                                                            \
    return NAME(tokitai::reinterpret<T>(a), tokitai::reinterpret<T>(b), c);                       \
  }
TOKITAI_DOT_OF(__dp4a, char4, char4, int)
TOKITAI_DOT_OF(__dp4a, uchar4, uchar4, unsigned)
// Halves by two of the bytes.
namespace tokitai {
template <class Half, class Byte>
inline unsigned half_dot(unsigned a, unsigned b, unsigned c) {
  return c + unsigned(int(Half(a)) * int(Byte(b))) + unsigned(int(Half(a >> 16)) * int(Byte(b >> 8)));
}
}  // namespace tokitai
#define TOKITAI_HALF_DOT(NAME, SHIFT)                                                             \
  TOKITAI_OURS int NAME(int a, int b, int c) {                                                    \
    return int(tokitai::half_dot<short, signed char>(unsigned(a), unsigned(b) >> SHIFT, unsigned(c))); \
  }                                                                                               \
  TOKITAI_OURS unsigned NAME(unsigned a, unsigned b, unsigned c) {                                \
    return tokitai::half_dot<unsigned short, unsigned char>(a, b >> SHIFT, c);                    \
  }                                                                                               \
  TOKITAI_DOT_OF(NAME, short2, char4, int)                                                        \
  TOKITAI_DOT_OF(NAME, ushort2, uchar4, unsigned)
TOKITAI_HALF_DOT(__dp2a_lo, 0)
TOKITAI_HALF_DOT(__dp2a_hi, 16)
#undef TOKITAI_HALF_DOT
#undef TOKITAI_DOT_OF

// --- atomics with an order and a scope
// -------------------------------------------------------------
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5

namespace tokitai {
template <size_t bytes>
struct AtomicBits;
template <>
struct AtomicBits<1> {
  using Type = unsigned char;
};
template <>
struct AtomicBits<2> {
  using Type = unsigned short;
};
template <>
struct AtomicBits<4> {
  using Type = unsigned;
};
template <>
struct AtomicBits<8> {
  using Type = unsigned long long;
};
// On the host the strongest order serves for every one.
inline Scope hip_scope(int scope) { return Scope(scope - __HIP_MEMORY_SCOPE_SINGLETHREAD); }
inline int hip_number(Scope scope) { return int(scope) + __HIP_MEMORY_SCOPE_SINGLETHREAD; }

template <class T>
inline auto hip_bits(T* address) {
  expect_aligned(address);
  return reinterpret_cast<typename AtomicBits<sizeof(T)>::Type*>(const_cast<std::remove_cv_t<T>*>(address));
}
template <class T>
inline T of_hip_bits(typename AtomicBits<sizeof(T)>::Type bits) {
  std::remove_cv_t<T> value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
inline std::remove_cv_t<T> hip_atomic_load(T* address, int order, int scope, TOKITAI_HERE) {
  typename AtomicBits<sizeof(T)>::Type bits;
  {
    AtomicScope of(hip_scope(scope), order);
    (void)of;
    bits = __atomic_load_n(hip_bits(address), __ATOMIC_SEQ_CST);
  }
  polled(const_cast<std::remove_cv_t<T>*>(address), false, TOKITAI_SITE);
  return of_hip_bits<std::remove_cv_t<T>>(bits);
}
template <class T, class U>
inline void hip_atomic_store(T* address, U value, int order, int scope) {
  AtomicScope of(hip_scope(scope), order);
  (void)of;
  typename AtomicBits<sizeof(T)>::Type bits;
  const std::remove_cv_t<T> given = std::remove_cv_t<T>(value);
  memcpy(&bits, &given, sizeof bits);
  __atomic_store_n(hip_bits(address), bits, __ATOMIC_SEQ_CST);
}
template <class T, class U>
inline bool hip_atomic_compare_exchange(T* address, T* expected, U value, int order, int, int scope,
                                        TOKITAI_HERE) {
  const T given = T(value);
  typename AtomicBits<sizeof(T)>::Type known, bits;
  memcpy(&known, expected, sizeof known);
  memcpy(&bits, &given, sizeof bits);
  bool swapped;
  {
    AtomicScope of(hip_scope(scope), order);
    (void)of;
    swapped = __atomic_compare_exchange_n(hip_bits(address), &known, bits, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST);
  }
  memcpy(expected, &known, sizeof known);
  polled(address, swapped, TOKITAI_SITE);
  return swapped;
}
#define TOKITAI_HIP_ATOMIC(NAME, EXPRESSION)                                                      \
  template <class T, class U>                                                                     \
  inline T hip_atomic_##NAME(T* address, U given, int order, int scope, TOKITAI_HERE) {           \
    const T value = T(given);                                                                     \
    T old;                                                                                        \
    {                                                                                             \
      AtomicScope of(hip_scope(scope), order);                                                    \
      (void)of;                                                                                   \
      old = atomic_update<typename AtomicBits<sizeof(T)>::Type>(                                  \
          address, [value](T old) -> T { return (void(old), T(EXPRESSION)); });                   \
    }                                                                                             \
    const T now = (void(old), T(EXPRESSION));                                                     \
    polled(address, memcmp(&now, &old, sizeof now) != 0, TOKITAI_SITE);                           \
    return old;                                                                                   \
  }
TOKITAI_HIP_ATOMIC(exchange, value)
TOKITAI_HIP_ATOMIC(fetch_add, old + value)
TOKITAI_HIP_ATOMIC(fetch_sub, old - value)
TOKITAI_HIP_ATOMIC(fetch_and, old& value)
TOKITAI_HIP_ATOMIC(fetch_or, old | value)
TOKITAI_HIP_ATOMIC(fetch_xor, old ^ value)
TOKITAI_HIP_ATOMIC(fetch_min, value < old || old != old ? value : old)
TOKITAI_HIP_ATOMIC(fetch_max, old < value || old != old ? value : old)
#undef TOKITAI_HIP_ATOMIC

// The scope that __builtin_amdgcn_fence names ("LLVM user guide for AMDGPU", memory scopes).
inline Scope fence_scope(const char* name) {
  if (strncmp(name, "agent", 5) == 0) return Scope::device;
  if (strncmp(name, "workgroup", 9) == 0) return Scope::block;
  if (strncmp(name, "wavefront", 9) == 0) return Scope::warp;
  return strncmp(name, "singlethread", 12) == 0 ? Scope::thread : Scope::system;
}
}  // namespace tokitai
#define __hip_atomic_load tokitai::hip_atomic_load
#define __hip_atomic_store tokitai::hip_atomic_store
#define __hip_atomic_exchange tokitai::hip_atomic_exchange
#define __hip_atomic_compare_exchange_strong tokitai::hip_atomic_compare_exchange
#define __hip_atomic_compare_exchange_weak tokitai::hip_atomic_compare_exchange
#define __hip_atomic_fetch_add tokitai::hip_atomic_fetch_add
#define __hip_atomic_fetch_sub tokitai::hip_atomic_fetch_sub
#define __hip_atomic_fetch_and tokitai::hip_atomic_fetch_and
#define __hip_atomic_fetch_or tokitai::hip_atomic_fetch_or
#define __hip_atomic_fetch_xor tokitai::hip_atomic_fetch_xor
#define __hip_atomic_fetch_min tokitai::hip_atomic_fetch_min
#define __hip_atomic_fetch_max tokitai::hip_atomic_fetch_max
