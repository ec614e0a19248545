"""What vector instructions do, a line each, or a line for a family of them.

`name  destinations : sources : C++`. Sources are a, b, c in their types and m, a fourth; `old` is
what the first destination held; the C++ is the value of destination d, or statements that set d and
e. mask: one bit of each lane. mix: f32, or f16 by op_sel. pk_: both halves of 16 bits, each for
itself. iu8: bytes or nibbles, signed by neg_lo. ~: an approximation of the hardware within 1 ulp, of
which the C++ is the exact value, ~~ within an absolute error, ~~~ within 2^29 ulp. NAME_clamp is
what NAME does with clamp, where that is no float.
A source = has the type of the destination. Functions are those of kernels/gfx/run (arithmetic.hpp,
approximation.hpp). Other words name what lanes.py does by itself.
[A/B] stands for an instruction with A in all such places and one with B, {C/D} likewise, and both
for each of one with each of the other. The manual's
section follows from the encoding (semantics.section_of).
"""

TABLE = """
v_[add/sub/mul]_{f32/f16} {f32/f16} : = = : a [+/-/*] b
v_subrev_{f32/f16}  {f32/f16} : = = : b - a
v_mul_dx9_zero_f32  f32 : f32 f32 : a == 0 || b == 0 ? 0.0f : a * b
v_fmac_dx9_zero_f32 f32 : f32 f32 : a == 0 || b == 0 ? old : fma32(a, b, old)
v_fmac_{f32/f16}    {f32/f16} : = = : fma{32/16}(a, b, old)
v_fma[mk/ak/]_{f32/f16} {f32/f16} : = = = : fma{32/16}(a, b, c)
v_[min/max]_{f32/f16/f64} {f32/f16/f64} : = = : [least/greatest](a, b)
v_ldexp_f16         f16 : f16 i16 : ldexp32(a, b)
v_pk_fmac_f16       pk_f16 : pk_f16 pk_f16 : fma16(a, b, old)
v_cvt_pk_rtz_f16_f32 u32 : f32 f32 : f16_towards_zero(a) | f16_towards_zero(b) << 16
v_cndmask_{b32/b16} {u32/u16} : = = mask : c ? b : a
v_[add/sub]_nc_{u32/u16/i16} {u32/u16/i16} : = = : a [+/-] b
v_subrev_nc_u32     u32 : u32 u32 : b - a
v_subrev_nc_u32_clamp u32 : u32 u32 : b < a ? 0u : b - a
v_add_co_ci_u32     u32 mask : u32 u32 mask : d = a + b + c; e = c ? d <= a : d < a;
v_sub_co_ci_u32     u32 mask : u32 u32 mask : d = a - b - c; e = c ? a <= b : a < b;
v_subrev_co_ci_u32  u32 mask : u32 u32 mask : d = b - a - c; e = c ? b <= a : b < a;
v_[min/max]_{i32/u32} {i32/u32} : = = : a [</>] b ? a : b
v_lshlrev_{b32/b16/b64} {u32/u16/u64} : {u32/u16/u32} = : b << (a & {31/15/63})
v_lshrrev_{b32/b16/b64} {u32/u16/u64} : {u32/u16/u32} = : b >> (a & {31/15/63})
v_ashrrev_{i32/i16/i64} {i32/i16/i64} : {u32/u16/u32} = : b >> (a & {31/15/63})
v_[and/or/xor]_{b32/b16} {u32/u16} : = = : a [&/|/^] b
v_xnor_b32          u32 : u32 u32 : ~(a ^ b)
v_mul_i32_i24       u32 : u32 u32 : u32(i64(signed24(a)) * signed24(b))
v_mul_hi_i32_i24    u32 : u32 u32 : u32(u64(i64(signed24(a)) * signed24(b)) >> 32)
v_mul_u32_u24       u32 : u32 u32 : u32(u64(a & 0xffffff) * (b & 0xffffff))
v_mul_hi_u32_u24    u32 : u32 u32 : u32(u64(a & 0xffffff) * (b & 0xffffff) >> 32)
v_dot2acc_f32_f16   f32 : u32 u32 : dot2acc(pair_f16(a), pair_f16(b), old)
v_nop               none
v_[mov/not]_{b32/b16} {u32/u16} : = : [/~]a
v_bfrev_b32         u32 : u32 : reversed(a)
v_[ctz_i32_b32/clz_i32_u32] u32 : u32 : a ? u32(__builtin_[ctz/clz](a)) : ~0u
v_cls_i32           u32 : i32 : a == 0 || a == -1 ? ~0u : u32(__builtin_clz(u32(a < 0 ? ~a : a)))
v_swap_b32          swap
v_cvt_[f32_i32/f32_u32] f32 : [i32/u32] : float(a)
v_cvt_[i32/u32]_{f32/f64} [i32/u32] : {f32/f64} : to_[i32/u32](a)
v_cvt_[nearest/floor]_i32_f32 i32 : f32 : to_i32(__builtin_floorf(a[ + 0.5f/]))
v_cvt_[f16_f32/f32_f16] [f16/f32] : [f32/f16] : a
v_cvt_f64_[f32/i32/u32] f64 : [f32/i32/u32] : a
v_cvt_[i32_i16/u32_u16] [i32/u32] : [i16/u16] : a
v_cvt_f32_ubyte[0/1/2] f32 : u32 : float(a [& 255/>> 8 & 255/>> 16 & 255])
v_cvt_f32_ubyte3    f32 : u32 : float(a >> 24)
v_cvt_off_f32_i4    f32 : u32 : float((i32(a << 28) >> 28)) * 0.0625f
v_cvt_f32_f64       f32 : f64 : float(a)
v_cvt_f16_[u16/i16] f16 : [u16/i16] : float(a)
v_cvt_u16_f16       u16 : f16 : a > 65535 ? 65535u : to_u32(a)
v_cvt_i16_f16       i16 : f16 : a > 32767 ? 32767 : a < -32768 ? -32768 : to_i32(a)
v_sat_pk_u8_i16     u16 : u32 : saturated8(i16(a)) | saturated8(i16(a >> 16)) << 8
v_fract_{f32/f16/f64} {f32/f16/f64} : = : fraction(a, {0x1.fffffep-1f/0x1.ffcp-1f/0x1.fffffffffffffp-1})
v_[trunc/ceil/floor]_{f32/f16/f64} {f32/f16/f64} : = : __builtin_[trunc/ceil/floor]{f/f/}(a)
v_rndne_{f32/f16/f64} {f32/f16/f64} : = : __builtin_rint{f/f/}(a)
v_[exp/log]_{f32/f16} ~{f32/f16} : = : __builtin_[exp2/log2](double(a))
v_rcp_{f32/iflag_f32/f16} ~{f32/f32/f16} : = : reciprocal{//_f16}(a)
v_rsq_{f32/f16}     ~{f32/f16} : = : 1 / __builtin_sqrt(double(a))
v_sqrt_{f32/f16}    ~{f32/f16} : = : __builtin_sqrt(double(a))
v_[rcp/rsq]_f64     ~~~f64 : = : 1 / [a/__builtin_sqrt(a)]
v_sqrt_f64          ~~~f64 : = : __builtin_sqrt(a)
v_[sin/cos]_{f32/f16} ~~{f32/f16} : = : turned(a, [0/1])
v_frexp_exp_{i32_f32/i16_f16/i32_f64} {i32/i16/i32} : {f32/f16/f64} : frexp_exponent(a)
v_frexp_mant_{f32/f16/f64} {f32/f16/f64} : = : frexp_mantissa(a)
v_[readfirstlane/readlane/writelane]_b32 [readfirstlane/readlane/writelane]
v_[movrels/movreld]_b32 movrel
v_permlane64_b32    none
v_pk_[add/mul]_f16  pk_f16 : pk_f16 pk_f16 : a [+/*] b
v_pk_fma_f16        pk_f16 : pk_f16 pk_f16 pk_f16 : fma16(a, b, c)
v_pk_[min/max]_f16  pk_f16 : pk_f16 pk_f16 : [least/greatest](a, b)
v_pk_[add/sub]_{u16/i16} pk_{u16/i16} : = = : a [+/-] b
v_pk_mul_lo_u16     pk_u16 : pk_u16 pk_u16 : a * b
v_pk_mad_{u16/i16}  pk_{u16/i16} : = = = : a * b + c
v_pk_[add/sub]_u16_clamp pk_u16 : = = : [low(a + b, 65535u)/a < b ? 0u : a - b]
v_pk_[add/sub]_i16_clamp pk_i16 : = = : limited(a [+/-] b, -32768, 32767)
v_pk_mad_u16_clamp  pk_u16 : = = = : low(a * b + c, 65535u)
v_pk_mad_i16_clamp  pk_i16 : = = = : limited(a * b + c, -32768, 32767)
v_pk_[min/max]_{u16/i16} pk_{u16/i16} : = = : a [</>] b ? a : b
v_pk_[lshlrev/lshrrev/ashrrev]_[b16/b16/i16] pk_[u16/u16/i16] : pk_u16 = : b [<</>>/>>] (a & 15)
v_fma_mix_f32       f32 : mix mix mix : fma32(a, b, c)
v_fma_mixlo_f16     f16 : mix mix mix : fma32(a, b, c)
v_fma_mixhi_f16     f16_hi : mix mix mix : fma32(a, b, c)
v_dot2_f32_f16      f32 : pair_f16 pair_f16 f32 : dot2(pair_f16(a), pair_f16(b), c)
v_dot2_f32_bf16     f32 : pair_bf16 pair_bf16 f32 : dot2(pair_bf16(a), pair_bf16(b), c)
v_[dot4_i32_iu8/dot8_i32_iu4]_clamp i32 : iu8 iu8 i32 : saturated32(dot_of<[8/4]>(a, b, c))
v_[dot4_u32_u8/dot8_u32_u4]_clamp u32 : u32 u32 u32 : saturated_u32(dot_of<[8/4]>(a, b, c))
v_[dot4_i32_iu8/dot8_i32_iu4] u32 : iu8 iu8 i32 : u32(dot_of<[8/4]>(a, b, c))
v_[dot4_u32_u8/dot8_u32_u4] u32 : u32 u32 u32 : u32(dot_of<[8/4]>(a, b, c))
v_fma_dx9_zero_f32  f32 : f32 f32 f32 : a == 0 || b == 0 ? c : fma32(a, b, c)
v_mad_i32_i24       u32 : u32 u32 u32 : u32(i64(signed24(a)) * signed24(b)) + c
v_mad_u32_u24       u32 : u32 u32 u32 : u32(u64(a & 0xffffff) * (b & 0xffffff)) + c
v_fma_f64           f64 : f64 f64 f64 : __builtin_fma(a, b, c)
v_[add/mul]_f64     f64 : f64 f64 : a [+/*] b
v_ldexp_f64         f64 : f64 i32 : ldexp64(a, b)
v_bfe_u32           u32 : u32 u32 u32 : a >> (b & 31) & ((1u << (c & 31)) - 1)
v_bfe_i32           i32 : i32 u32 u32 : extracted(a, b & 31, c & 31)
v_bfi_b32           u32 : u32 u32 u32 : (a & b) | (~a & c)
v_alignbit_b32      u32 : u32 u32 u32 : u32((u64(a) << 32 | b) >> (c & 31))
v_alignbyte_b32     u32 : u32 u32 u32 : u32((u64(a) << 32 | b) >> (8 * (c & 3)))
v_[min3/max3]_{f32/f16} {f32/f16} : = = = : [least/greatest]([least/greatest](a, b), c)
v_med3_{f32/f16}    {f32/f16} : = = = : middle_float(a, b, c)
v_[minmax/maxmin]_{f32/f16} {f32/f16} : = = = : [greatest/least]([least/greatest](a, b), c)
v_[min3/max3]_{i32/u32/i16/u16} {i32/u32/i16/u16} : = = = : [low/high]([low/high](a, b), c)
v_med3_{i32/u32/i16/u16} {i32/u32/i16/u16} : = = = : middle(a, b, c)
v_[minmax/maxmin]_{i32/u32} {i32/u32} : = = = : [high/low]([low/high](a, b), c)
v_sad_u8            u32 : u32 u32 u32 : c + distance8(a, b)
v_sad_u32           u32 : u32 u32 u32 : c + (a > b ? a - b : b - a)
v_cvt_pk_u8_f32     u32 : f32 u32 u32 : packed8(a, b & 3, c)
v_div_fixup_{f32/f16/f64} {f32/f16/f64} : = = = : div_fixup(a, b, c)
v_div_fmas_{f32/f64} {f32/f64} : = = = mask : div_fmas(a, b, c, m)
v_div_scale_{f32/f64} {f32/f64} mask : = = = : d = div_scale(a, b, c, e);
v_add3_u32          u32 : u32 u32 u32 : a + b + c
v_lshl_or_b32       u32 : u32 u32 u32 : a << (b & 31) | c
v_and_or_b32        u32 : u32 u32 u32 : (a & b) | c
v_or3_b32           u32 : u32 u32 u32 : a | b | c
v_xor3_b32          u32 : u32 u32 u32 : a ^ b ^ c
v_xad_u32           u32 : u32 u32 u32 : (a ^ b) + c
v_lshl_add_u32      u32 : u32 u32 u32 : (a << (b & 31)) + c
v_add_lshl_u32      u32 : u32 u32 u32 : (a + b) << (c & 31)
v_perm_b32          u32 : u32 u32 u32 : permuted_bytes(a, b, c)
v_mad_{u16/i16}     {u16/i16} : = = = : a * b + c
v_mad_u32_u16       u32 : u16 u16 u32 : a * b + c
v_mad_i32_i16       i32 : i16 i16 u32 : i32(u32(a * b) + c)
v_mad_u64_u32       u64 mask : u32 u32 u64 : d = u64(a) * b + c; e = d < c;
v_mad_i64_i32       u64 mask : i32 i32 u64 : e = added(i64(a) * b, i64(c), d);
v_[permlane16/permlanex16]_b32 permlane
v_add_co_u32        u32 mask : u32 u32 : d = a + b; e = d < a;
v_sub_co_u32        u32 mask : u32 u32 : d = a - b; e = a < b;
v_subrev_co_u32     u32 mask : u32 u32 : d = b - a; e = b < a;
v_[add/sub]_nc_i32  i32 : u32 u32 : i32(a [+/-] b)
v_[add/sub]_nc_u32_clamp u32 : u32 u32 : [a + b < a ? ~0u : a + b/a < b ? 0u : a - b]
v_[add/sub]_nc_u16_clamp u16 : u16 u16 : [low(a + b, 65535u)/a < b ? 0u : a - b]
v_[add/sub]_nc_i16_clamp i16 : i16 i16 : limited(a [+/-] b, -32768, 32767)
v_[add/sub]_nc_i32_clamp i32 : i32 i32 : saturated32(i64(a) [+/-] b)
v_mul_lo_u16        u16 : u16 u16 : a * b
v_[min/max]_{i16/u16} {i16/u16} : = = : [low/high](a, b)
v_mul_lo_u32        u32 : u32 u32 : a * b
v_mul_hi_u32        u32 : u32 u32 : u32(u64(a) * b >> 32)
v_mul_hi_i32        u32 : i32 i32 : u32(u64(i64(a) * b) >> 32)
v_ldexp_f32         f32 : f32 i32 : ldexp32(a, b)
v_bfm_b32           u32 : u32 u32 : ((1u << (a & 31)) - 1) << (b & 31)
v_bcnt_u32_b32      u32 : u32 u32 : u32(__builtin_popcount(a)) + b
v_mbcnt_[lo/hi]_u32_b32 u32 : u32 u32 : lanes_below(a, l[/ - 32]) + b
v_cvt_pk_i16_i32    u32 : i32 i32 : packed_i16(a, b)
v_cvt_pk_u16_u32    u32 : u32 u32 : low(a, 65535u) | low(b, 65535u) << 16
v_cvt_pk_i16_f32    u32 : f32 f32 : packed_i16(to_i32(a), to_i32(b))
v_cvt_pk_u16_f32    u32 : f32 f32 : low(to_u32(a), 65535u) | low(to_u32(b), 65535u) << 16
v_pack_b32_f16      u32 : b16 b16 : a | b << 16
"""
