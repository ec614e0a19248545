"""What vector instructions do: a line each, under the section of the RDNA3 manual that defines it.

`name  destinations : sources : C++`. Sources are a, b, c in their types and m, a fourth; `old` is
what the first destination held; the C++ is the value of destination d, or statements that set d and
e. mask: one bit of each lane. mix: f32, or f16 by op_sel. pk_: both halves of 16 bits, each for
itself. ~: an approximation of the hardware within 1 ulp, or ~~ within an absolute error. NAME_clamp is
what NAME does with clamp, where that is no float. Functions are those of
kernels/gfx/run/arithmetic.hpp. Other words name what translation.py does by itself.
"""

TABLE = """
16.7
v_add_f32           f32 : f32 f32     : a + b
v_sub_f32           f32 : f32 f32     : a - b
v_subrev_f32        f32 : f32 f32     : b - a
v_mul_f32           f32 : f32 f32     : a * b
v_mul_dx9_zero_f32  f32 : f32 f32     : a == 0 || b == 0 ? 0.0f : a * b
v_fmac_dx9_zero_f32 f32 : f32 f32     : a == 0 || b == 0 ? old : fma32(a, b, old)
v_fmac_f32          f32 : f32 f32     : fma32(a, b, old)
v_fmamk_f32         f32 : f32 f32 f32 : fma32(a, b, c)
v_fmaak_f32         f32 : f32 f32 f32 : fma32(a, b, c)
v_min_f32           f32 : f32 f32     : least(a, b)
v_max_f32           f32 : f32 f32     : greatest(a, b)
v_ldexp_f16         f16 : f16 i16     : ldexp32(a, b)
v_add_f16           f16 : f16 f16     : a + b
v_sub_f16           f16 : f16 f16     : a - b
v_subrev_f16        f16 : f16 f16     : b - a
v_mul_f16           f16 : f16 f16     : a * b
v_fmac_f16          f16 : f16 f16     : fma16(a, b, old)
v_fmamk_f16         f16 : f16 f16 f16 : fma16(a, b, c)
v_fmaak_f16         f16 : f16 f16 f16 : fma16(a, b, c)
v_min_f16           f16 : f16 f16     : least(a, b)
v_max_f16           f16 : f16 f16     : greatest(a, b)
v_pk_fmac_f16       pk_f16 : pk_f16 pk_f16 : fma16(a, b, old)
v_cvt_pk_rtz_f16_f32 u32 : f32 f32    : f16_towards_zero(a) | f16_towards_zero(b) << 16
v_cndmask_b32       u32 : u32 u32 mask : c ? b : a
v_add_nc_u32        u32 : u32 u32     : a + b
v_sub_nc_u32        u32 : u32 u32     : a - b
v_subrev_nc_u32     u32 : u32 u32     : b - a
v_add_co_ci_u32     u32 mask : u32 u32 mask : const u64 t = u64(a) + b + c; d = u32(t); e = t >> 32;
v_sub_co_ci_u32     u32 mask : u32 u32 mask : const u64 t = u64(a) - b - c; d = u32(t); e = t >> 63;
v_subrev_co_ci_u32  u32 mask : u32 u32 mask : const u64 t = u64(b) - a - c; d = u32(t); e = t >> 63;
v_min_i32           i32 : i32 i32     : a < b ? a : b
v_max_i32           i32 : i32 i32     : a > b ? a : b
v_min_u32           u32 : u32 u32     : a < b ? a : b
v_max_u32           u32 : u32 u32     : a > b ? a : b
v_lshlrev_b32       u32 : u32 u32     : b << (a & 31)
v_lshrrev_b32       u32 : u32 u32     : b >> (a & 31)
v_ashrrev_i32       i32 : u32 i32     : b >> (a & 31)
v_and_b32           u32 : u32 u32     : a & b
v_or_b32            u32 : u32 u32     : a | b
v_xor_b32           u32 : u32 u32     : a ^ b
v_xnor_b32          u32 : u32 u32     : ~(a ^ b)
v_mul_i32_i24       u32 : u32 u32     : u32(i64(signed24(a)) * signed24(b))
v_mul_hi_i32_i24    u32 : u32 u32     : u32(u64(i64(signed24(a)) * signed24(b)) >> 32)
v_mul_u32_u24       u32 : u32 u32     : u32(u64(a & 0xffffff) * (b & 0xffffff))
v_mul_hi_u32_u24    u32 : u32 u32     : u32(u64(a & 0xffffff) * (b & 0xffffff) >> 32)
v_dot2acc_f32_f16   f32 : u32 u32     : dot2_f16(a, b, old)
16.8
v_nop               none
v_mov_b32           u32 : u32         : a
v_mov_b16           u16 : u16         : a
v_not_b32           u32 : u32         : ~a
v_not_b16           u16 : u16         : ~a
v_bfrev_b32         u32 : u32         : reversed(a)
v_clz_i32_u32       u32 : u32         : a ? u32(__builtin_clz(a)) : ~0u
v_ctz_i32_b32       u32 : u32         : a ? u32(__builtin_ctz(a)) : ~0u
v_cls_i32           u32 : i32         : a == 0 || a == -1 ? ~0u : u32(__builtin_clz(u32(a < 0 ? ~a : a)))
v_swap_b32          swap
v_swap_b16          swap
v_cvt_f32_i32       f32 : i32         : float(a)
v_cvt_f32_u32       f32 : u32         : float(a)
v_cvt_i32_f32       i32 : f32         : to_i32(a)
v_cvt_u32_f32       u32 : f32         : to_u32(a)
v_cvt_nearest_i32_f32 i32 : f32       : to_i32(__builtin_floorf(a + 0.5f))
v_cvt_floor_i32_f32 i32 : f32         : to_i32(__builtin_floorf(a))
v_cvt_f16_f32       f16 : f32         : a
v_cvt_f32_f16       f32 : f16         : a
v_cvt_f32_ubyte0    f32 : u32         : float(a & 255)
v_cvt_f32_ubyte1    f32 : u32         : float(a >> 8 & 255)
v_cvt_f32_ubyte2    f32 : u32         : float(a >> 16 & 255)
v_cvt_f32_ubyte3    f32 : u32         : float(a >> 24)
v_cvt_off_f32_i4    f32 : u32         : float((i32(a << 28) >> 28)) * 0.0625f
v_cvt_f64_f32       f64 : f32         : a
v_cvt_f32_f64       f32 : f64         : float(a)
v_cvt_f64_i32       f64 : i32         : a
v_cvt_f64_u32       f64 : u32         : a
v_cvt_i32_f64       i32 : f64         : to_i32(a)
v_cvt_u32_f64       u32 : f64         : to_u32(a)
v_cvt_f16_u16       f16 : u16         : float(a)
v_cvt_f16_i16       f16 : i16         : float(a)
v_cvt_u16_f16       u16 : f16         : a > 65535 ? 65535u : to_u32(a)
v_cvt_i16_f16       i16 : f16         : a > 32767 ? 32767 : a < -32768 ? -32768 : to_i32(a)
v_cvt_i32_i16       i32 : i16         : a
v_cvt_u32_u16       u32 : u16         : a
v_sat_pk_u8_i16     u16 : u32         : saturated8(i16(a)) | saturated8(i16(a >> 16)) << 8
v_fract_f32         f32 : f32         : fraction(a, 0x1.fffffep-1f)
v_trunc_f32         f32 : f32         : __builtin_truncf(a)
v_ceil_f32          f32 : f32         : __builtin_ceilf(a)
v_rndne_f32         f32 : f32         : __builtin_rintf(a)
v_floor_f32         f32 : f32         : __builtin_floorf(a)
v_fract_f16         f16 : f16         : fraction(a, 0x1.ffcp-1f)
v_trunc_f16         f16 : f16         : __builtin_truncf(a)
v_ceil_f16          f16 : f16         : __builtin_ceilf(a)
v_rndne_f16         f16 : f16         : __builtin_rintf(a)
v_floor_f16         f16 : f16         : __builtin_floorf(a)
v_fract_f64         f64 : f64         : fraction(a, 0x1.fffffffffffffp-1)
v_trunc_f64         f64 : f64         : __builtin_trunc(a)
v_ceil_f64          f64 : f64         : __builtin_ceil(a)
v_rndne_f64         f64 : f64         : __builtin_rint(a)
v_floor_f64         f64 : f64         : __builtin_floor(a)
v_exp_f32           ~f32 : f32        : __builtin_exp2f(a)
v_log_f32           ~f32 : f32        : __builtin_log2f(a)
v_rcp_f32           ~f32 : f32        : 1 / a
v_rcp_iflag_f32     ~f32 : f32        : 1 / a
v_rsq_f32           ~f32 : f32        : float(1 / __builtin_sqrt(double(a)))
v_sqrt_f32          ~f32 : f32        : __builtin_sqrtf(a)
v_sin_f32           ~~f32 : f32       : turned(a, 0)
v_cos_f32           ~~f32 : f32       : turned(a, 1)
v_exp_f16           ~f16 : f16        : __builtin_exp2f(a)
v_log_f16           ~f16 : f16        : __builtin_log2f(a)
v_rcp_f16           ~f16 : f16        : 1 / a
v_rsq_f16           ~f16 : f16        : float(1 / __builtin_sqrt(double(a)))
v_sqrt_f16          ~f16 : f16        : __builtin_sqrtf(a)
v_sin_f16           ~~f16 : f16       : turned(a, 0)
v_cos_f16           ~~f16 : f16       : turned(a, 1)
v_frexp_exp_i32_f32 i32 : f32         : frexp_exponent(a)
v_frexp_mant_f32    f32 : f32         : frexp_mantissa(a)
v_frexp_exp_i16_f16 i16 : f16         : frexp_exponent(a)
v_frexp_mant_f16    f16 : f16         : frexp_mantissa(a)
v_frexp_exp_i32_f64 i32 : f64         : frexp_exponent(a)
v_frexp_mant_f64    f64 : f64         : frexp_mantissa(a)
v_readfirstlane_b32 readfirstlane
v_movrels_b32       movrel
v_movreld_b32       movrel
v_permlane64_b32    u32 : u32         : a
16.10
v_pk_add_f16        pk_f16 : pk_f16 pk_f16        : a + b
v_pk_mul_f16        pk_f16 : pk_f16 pk_f16        : a * b
v_pk_fma_f16        pk_f16 : pk_f16 pk_f16 pk_f16 : fma16(a, b, c)
v_pk_min_f16        pk_f16 : pk_f16 pk_f16        : least(a, b)
v_pk_max_f16        pk_f16 : pk_f16 pk_f16        : greatest(a, b)
v_pk_add_u16        pk_u16 : pk_u16 pk_u16        : a + b
v_pk_sub_u16        pk_u16 : pk_u16 pk_u16        : a - b
v_pk_add_i16        pk_i16 : pk_i16 pk_i16        : a + b
v_pk_sub_i16        pk_i16 : pk_i16 pk_i16        : a - b
v_pk_mul_lo_u16     pk_u16 : pk_u16 pk_u16        : a * b
v_pk_mad_u16        pk_u16 : pk_u16 pk_u16 pk_u16 : a * b + c
v_pk_mad_i16        pk_i16 : pk_i16 pk_i16 pk_i16 : a * b + c
v_pk_min_u16        pk_u16 : pk_u16 pk_u16        : a < b ? a : b
v_pk_max_u16        pk_u16 : pk_u16 pk_u16        : a > b ? a : b
v_pk_min_i16        pk_i16 : pk_i16 pk_i16        : a < b ? a : b
v_pk_max_i16        pk_i16 : pk_i16 pk_i16        : a > b ? a : b
v_pk_lshlrev_b16    pk_u16 : pk_u16 pk_u16        : b << (a & 15)
v_pk_lshrrev_b16    pk_u16 : pk_u16 pk_u16        : b >> (a & 15)
v_pk_ashrrev_i16    pk_i16 : pk_u16 pk_i16        : b >> (a & 15)
v_fma_mix_f32       f32 : mix mix mix : fma32(a, b, c)
v_fma_mixlo_f16     f16 : mix mix mix : fma32(a, b, c)
v_fma_mixhi_f16     f16_hi : mix mix mix : fma32(a, b, c)
v_dot2_f32_f16      f32 : pair_f16 pair_f16 f32 : dot2_f16(a, b, c)
v_dot2_f32_bf16     f32 : pair_bf16 pair_bf16 f32 : dot2_bf16(a, b, c)
v_dot4_u32_u8       u32 : u32 u32 u32 : dot4_u8(a, b, c)
16.12
v_fma_dx9_zero_f32  f32 : f32 f32 f32 : a == 0 || b == 0 ? c : fma32(a, b, c)
v_mad_i32_i24       u32 : u32 u32 u32 : u32(i64(signed24(a)) * signed24(b)) + c
v_mad_u32_u24       u32 : u32 u32 u32 : u32(u64(a & 0xffffff) * (b & 0xffffff)) + c
v_fma_f32           f32 : f32 f32 f32 : fma32(a, b, c)
v_fma_f64           f64 : f64 f64 f64 : __builtin_fma(a, b, c)
v_fma_f16           f16 : f16 f16 f16 : fma16(a, b, c)
v_add_f64           f64 : f64 f64     : a + b
v_mul_f64           f64 : f64 f64     : a * b
v_min_f64           f64 : f64 f64     : least(a, b)
v_max_f64           f64 : f64 f64     : greatest(a, b)
v_ldexp_f64         f64 : f64 i32     : ldexp64(a, b)
v_bfe_u32           u32 : u32 u32 u32 : a >> (b & 31) & ((1u << (c & 31)) - 1)
v_bfe_i32           i32 : i32 u32 u32 : extracted(a, b & 31, c & 31)
v_bfi_b32           u32 : u32 u32 u32 : (a & b) | (~a & c)
v_alignbit_b32      u32 : u32 u32 u32 : u32((u64(a) << 32 | b) >> (c & 31))
v_alignbyte_b32     u32 : u32 u32 u32 : u32((u64(a) << 32 | b) >> (8 * (c & 3)))
v_min3_f32          f32 : f32 f32 f32 : least(least(a, b), c)
v_max3_f32          f32 : f32 f32 f32 : greatest(greatest(a, b), c)
v_med3_f32          f32 : f32 f32 f32 : middle_float(a, b, c)
v_minmax_f32        f32 : f32 f32 f32 : greatest(least(a, b), c)
v_maxmin_f32        f32 : f32 f32 f32 : least(greatest(a, b), c)
v_min3_i32          i32 : i32 i32 i32 : low(low(a, b), c)
v_max3_i32          i32 : i32 i32 i32 : high(high(a, b), c)
v_med3_i32          i32 : i32 i32 i32 : middle(a, b, c)
v_minmax_i32        i32 : i32 i32 i32 : high(low(a, b), c)
v_maxmin_i32        i32 : i32 i32 i32 : low(high(a, b), c)
v_min3_u32          u32 : u32 u32 u32 : low(low(a, b), c)
v_max3_u32          u32 : u32 u32 u32 : high(high(a, b), c)
v_med3_u32          u32 : u32 u32 u32 : middle(a, b, c)
v_minmax_u32        u32 : u32 u32 u32 : high(low(a, b), c)
v_maxmin_u32        u32 : u32 u32 u32 : low(high(a, b), c)
v_min3_f16          f16 : f16 f16 f16 : least(least(a, b), c)
v_max3_f16          f16 : f16 f16 f16 : greatest(greatest(a, b), c)
v_med3_f16          f16 : f16 f16 f16 : middle_float(a, b, c)
v_minmax_f16        f16 : f16 f16 f16 : greatest(least(a, b), c)
v_maxmin_f16        f16 : f16 f16 f16 : least(greatest(a, b), c)
v_min3_i16          i16 : i16 i16 i16 : low(low(a, b), c)
v_max3_i16          i16 : i16 i16 i16 : high(high(a, b), c)
v_med3_i16          i16 : i16 i16 i16 : middle(a, b, c)
v_min3_u16          u16 : u16 u16 u16 : low(low(a, b), c)
v_max3_u16          u16 : u16 u16 u16 : high(high(a, b), c)
v_med3_u16          u16 : u16 u16 u16 : middle(a, b, c)
v_sad_u8            u32 : u32 u32 u32 : c + distance8(a, b)
v_sad_u32           u32 : u32 u32 u32 : c + (a > b ? a - b : b - a)
v_cvt_pk_u8_f32     u32 : f32 u32 u32 : packed8(a, b & 3, c)
v_div_fixup_f32     f32 : f32 f32 f32 : div_fixup(a, b, c)
v_div_fixup_f16     f16 : f16 f16 f16 : div_fixup(a, b, c)
v_div_fmas_f32      f32 : f32 f32 f32 mask : div_fmas(a, b, c, m)
v_div_scale_f32     f32 mask : f32 f32 f32 : d = div_scale(a, b, c, e);
v_add3_u32          u32 : u32 u32 u32 : a + b + c
v_lshl_or_b32       u32 : u32 u32 u32 : a << (b & 31) | c
v_and_or_b32        u32 : u32 u32 u32 : (a & b) | c
v_or3_b32           u32 : u32 u32 u32 : a | b | c
v_xor3_b32          u32 : u32 u32 u32 : a ^ b ^ c
v_xad_u32           u32 : u32 u32 u32 : (a ^ b) + c
v_lshl_add_u32      u32 : u32 u32 u32 : (a << (b & 31)) + c
v_add_lshl_u32      u32 : u32 u32 u32 : (a + b) << (c & 31)
v_perm_b32          u32 : u32 u32 u32 : permuted_bytes(a, b, c)
v_mad_u16           u16 : u16 u16 u16 : a * b + c
v_mad_i16           i16 : i16 i16 i16 : a * b + c
v_mad_u32_u16       u32 : u16 u16 u32 : a * b + c
v_mad_i32_i16       i32 : i16 i16 u32 : i32(u32(a * b) + c)
v_mad_u64_u32       u64 mask : u32 u32 u64 : d = u64(a) * b + c; e = d < c;
v_mad_i64_i32       u64 mask : i32 i32 u64 : e = added(i64(a) * b, i64(c), d);
v_cndmask_b16       u16 : u16 u16 mask : c ? b : a
v_permlane16_b32    permlane
v_permlanex16_b32   permlane
v_readlane_b32      readlane
v_writelane_b32     writelane
v_add_co_u32        u32 mask : u32 u32 : const u64 t = u64(a) + b; d = u32(t); e = t >> 32;
v_sub_co_u32        u32 mask : u32 u32 : d = a - b; e = a < b;
v_subrev_co_u32     u32 mask : u32 u32 : d = b - a; e = b < a;
v_add_nc_u16        u16 : u16 u16     : a + b
v_sub_nc_u16        u16 : u16 u16     : a - b
v_add_nc_i16        i16 : i16 i16     : a + b
v_sub_nc_i16        i16 : i16 i16     : a - b
v_add_nc_i32        i32 : u32 u32     : i32(a + b)
v_sub_nc_i32        i32 : u32 u32     : i32(a - b)
v_add_nc_u32_clamp  u32 : u32 u32     : a + b < a ? ~0u : a + b
v_sub_nc_u32_clamp  u32 : u32 u32     : a < b ? 0u : a - b
v_add_nc_u16_clamp  u16 : u16 u16     : low(a + b, 65535u)
v_sub_nc_u16_clamp  u16 : u16 u16     : a < b ? 0u : a - b
v_add_nc_i16_clamp  i16 : i16 i16     : limited(a + b, -32768, 32767)
v_sub_nc_i16_clamp  i16 : i16 i16     : limited(a - b, -32768, 32767)
v_add_nc_i32_clamp  i32 : i32 i32     : saturated32(i64(a) + b)
v_sub_nc_i32_clamp  i32 : i32 i32     : saturated32(i64(a) - b)
v_mul_lo_u16        u16 : u16 u16     : a * b
v_min_u16           u16 : u16 u16     : low(a, b)
v_max_u16           u16 : u16 u16     : high(a, b)
v_min_i16           i16 : i16 i16     : low(a, b)
v_max_i16           i16 : i16 i16     : high(a, b)
v_lshlrev_b16       u16 : u16 u16     : b << (a & 15)
v_lshrrev_b16       u16 : u16 u16     : b >> (a & 15)
v_ashrrev_i16       i16 : u16 i16     : b >> (a & 15)
v_and_b16           u16 : u16 u16     : a & b
v_or_b16            u16 : u16 u16     : a | b
v_xor_b16           u16 : u16 u16     : a ^ b
v_lshlrev_b64       u64 : u32 u64     : b << (a & 63)
v_lshrrev_b64       u64 : u32 u64     : b >> (a & 63)
v_ashrrev_i64       i64 : u32 i64     : b >> (a & 63)
v_mul_lo_u32        u32 : u32 u32     : a * b
v_mul_hi_u32        u32 : u32 u32     : u32(u64(a) * b >> 32)
v_mul_hi_i32        u32 : i32 i32     : u32(u64(i64(a) * b) >> 32)
v_ldexp_f32         f32 : f32 i32     : ldexp32(a, b)
v_bfm_b32           u32 : u32 u32     : ((1u << (a & 31)) - 1) << (b & 31)
v_bcnt_u32_b32      u32 : u32 u32     : u32(__builtin_popcount(a)) + b
v_mbcnt_lo_u32_b32  u32 : u32 u32     : u32(__builtin_popcount(a & ((1u << l) - 1))) + b
v_mbcnt_hi_u32_b32  u32 : u32 u32     : b
v_cvt_pk_i16_i32    u32 : i32 i32     : packed_i16(a, b)
v_cvt_pk_u16_u32    u32 : u32 u32     : low(a, 65535u) | low(b, 65535u) << 16
v_cvt_pk_i16_f32    u32 : f32 f32     : packed_i16(to_i32(a), to_i32(b))
v_cvt_pk_u16_f32    u32 : f32 f32     : low(to_u32(a), 65535u) | low(to_u32(b), 65535u) << 16
v_pack_b32_f16      u32 : b16 b16     : a | b << 16
"""
