"""What instructions do that gfx9 (MI200, MI300) has and gfx11 has not, in the form of vector_table.

pk_f32: two floats of a pair of registers, each for itself. pick: the register of a pair that op_sel
picks. signs: signed bytes or nibbles. Source: the chapter "Instructions" of AMD's
"CDNA3" Instruction Set Architecture (2024).
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
v_cvt_f32_[fp8/bf8] f32 : u32 : f32_of_f8<[3/2]>(a)
v_cvt_pk_f32_[fp8/bf8] u64 : u32 : two_of_f8<[3/2]>(a)
v_cvt_pk_[fp8/bf8]_f32 u16 : f32 f32 : f8_of<[3/2]>(a) | f8_of<[3/2]>(b) << 8
v_[dot4c_i32_i8/dot8c_i32_i4] u32 : signs signs : u32(dot_of<[8/4]>(a, b, i32(old)))
"""
