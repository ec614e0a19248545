"""What instructions do that gfx9 (MI200 to MI350) has and gfx11 has not, in the form of vector_table.

pk_f32: two floats of a pair of registers, each for itself. pick: the register of a pair that op_sel
picks. signs: signed bytes or nibbles. _ocp: where float8 are OCP's (gfx950). scalef32: with a scale of
1. Sources: the chapter
"Instructions" of AMD's "CDNA3" (2024) and "CDNA4" (2025) Instruction Set Architecture.
"""

TABLE = """
s_set_gpr_idx_on    index
v_subrev_u16        u16 : u16 u16 : b - a
v_fmac_f64          f64 : f64 f64 : __builtin_fma(a, b, old)
v_mad_f32           f32 : f32 f32 f32 : mad32(a, b, c)
v_mac_f32           f32 : f32 f32 : mad32(a, b, old)
v_mad[mk/ak]_f32    f32 : f32 f32 f32 : mad32(a, b, c)
v_mov_b64           u64 : u64 : a
v_lshl_add_u64      u64 : u64 u32 u64 : (a << (b & 7)) + c
v_pk_[add/mul]_f32  pk_f32 : pk_f32 pk_f32 : a [+/*] b
v_pk_fma_f32        pk_f32 : pk_f32 pk_f32 pk_f32 : fma32(a, b, c)
v_pk_mov_b32        u64 : pick pick : u64(a) | u64(b) << 32
v_[dot4_i32_i8/dot8_i32_i4] u32 : signs signs i32 : u32(dot_of<[8/4]>(a, b, c))
v_cvt_f32_[fp8/bf8]{/_ocp} f32 : u32 : f32_of_f8<[3/2]{/, true}>(a)
v_cvt_pk_f32_[fp8/bf8]{/_ocp} u64 : u32 : two_of_f8<[3/2]{/, true}>(a)
v_cvt_pk_[fp8/bf8]_f32{/_ocp} u16 : f32 f32 : f8_of<[3/2]{/, true}>(a) | f8_of<[3/2]{/, true}>(b) << 8
v_cvt_scalef32_pk_[fp8/bf8]_f32 u16 : f32 f32 : f8_of<[3/2], true>(a) | f8_of<[3/2], true>(b) << 8
v_cvt_scalef32_pk_f32_[fp8/bf8] u64 : u16 : two_of_f8<[3/2], true>(a)
v_cvt_scalef32_pk_f16_[fp8/bf8] u32 : u16 : f16_pair_of_f8<[3/2]>(a)
v_cvt_scalef32_pk_bf16_[fp8/bf8] u32 : u16 : bf16_pair_of_f8<[3/2]>(a)
v_cvt_f32_bf16      f32 : u16 : f32_of(a << 16)
v_cvt_pk_f16_f32    u32 : f32 f32 : f16_of(a) | f16_of(b) << 16
v_cvt_pk_bf16_f32   u32 : f32 f32 : bf16_of(a, false) | bf16_of(b, false) << 16
v_bitop3_[b32/b16]  [u32/u16] : = = = u32 : bits_by(a, b, c, m)
v_[minimum3/maximum3]_f32 f32 : = = = : [minimum/maximum]([minimum/maximum](a, b), c)
v_pk_[minimum3/maximum3]_f16 pk_f16 : = = = : [minimum/maximum]([minimum/maximum](a, b), c)
v_ashr_pk_[i8/u8]_i32 u16 : i32 i32 u32 : shifted_bytes(a, b, c & 31, [-128/0], [127/255])
v_prng_b32          u32 : u32 : a << 1 ^ (a >> 31 ? 197 : 0)
v_[permlane16/permlane32]_swap_b32 swaprows [16/32]
v_[dot4c_i32_i8/dot8c_i32_i4] u32 : signs signs : u32(dot_of<[8/4]>(a, b, i32(old)))
"""
