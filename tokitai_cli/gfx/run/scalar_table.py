"""What scalar instructions do, and those that steer a wave, in the form of vector_table.

Sources are a, b and, where the destination is read too, `old`; scc is the wave's condition bit. Other
words name what translation.py does by itself.
"""

TABLE = """
16.1
s_add_u32           u32 : u32 u32 : const u64 t = u64(a) + b; d = u32(t); scc = t >> 32;
s_sub_u32           u32 : u32 u32 : d = a - b; scc = b > a;
s_add_i32           i32 : i32 i32 : scc = __builtin_add_overflow(a, b, &d);
s_sub_i32           i32 : i32 i32 : scc = __builtin_sub_overflow(a, b, &d);
s_addc_u32          u32 : u32 u32 : const u64 t = u64(a) + b + scc; d = u32(t); scc = t >> 32;
s_subb_u32          u32 : u32 u32 : const u64 t = u64(a) - b - scc; d = u32(t); scc = t >> 63;
s_absdiff_i32       u32 : i32 i32 : d = u32(a > b ? i64(a) - b : i64(b) - a); scc = d != 0;
s_lshl_b32          u32 : u32 u32 : d = a << (b & 31); scc = d != 0;
s_lshr_b32          u32 : u32 u32 : d = a >> (b & 31); scc = d != 0;
s_ashr_i32          i32 : i32 u32 : d = a >> (b & 31); scc = d != 0;
s_lshl_b64          u64 : u64 u32 : d = a << (b & 63); scc = d != 0;
s_lshr_b64          u64 : u64 u32 : d = a >> (b & 63); scc = d != 0;
s_ashr_i64          i64 : i64 u32 : d = a >> (b & 63); scc = d != 0;
s_lshl1_add_u32     u32 : u32 u32 : const u64 t = (u64(a) << 1) + b; d = u32(t); scc = t >> 32 != 0;
s_lshl2_add_u32     u32 : u32 u32 : const u64 t = (u64(a) << 2) + b; d = u32(t); scc = t >> 32 != 0;
s_lshl3_add_u32     u32 : u32 u32 : const u64 t = (u64(a) << 3) + b; d = u32(t); scc = t >> 32 != 0;
s_lshl4_add_u32     u32 : u32 u32 : const u64 t = (u64(a) << 4) + b; d = u32(t); scc = t >> 32 != 0;
s_min_i32           i32 : i32 i32 : scc = a < b; d = scc ? a : b;
s_min_u32           u32 : u32 u32 : scc = a < b; d = scc ? a : b;
s_max_i32           i32 : i32 i32 : scc = a > b; d = scc ? a : b;
s_max_u32           u32 : u32 u32 : scc = a > b; d = scc ? a : b;
s_and_b32           u32 : u32 u32 : d = a & b; scc = d != 0;
s_and_b64           u64 : u64 u64 : d = a & b; scc = d != 0;
s_or_b32            u32 : u32 u32 : d = a | b; scc = d != 0;
s_or_b64            u64 : u64 u64 : d = a | b; scc = d != 0;
s_xor_b32           u32 : u32 u32 : d = a ^ b; scc = d != 0;
s_xor_b64           u64 : u64 u64 : d = a ^ b; scc = d != 0;
s_nand_b32          u32 : u32 u32 : d = ~(a & b); scc = d != 0;
s_nand_b64          u64 : u64 u64 : d = ~(a & b); scc = d != 0;
s_nor_b32           u32 : u32 u32 : d = ~(a | b); scc = d != 0;
s_nor_b64           u64 : u64 u64 : d = ~(a | b); scc = d != 0;
s_xnor_b32          u32 : u32 u32 : d = ~(a ^ b); scc = d != 0;
s_xnor_b64          u64 : u64 u64 : d = ~(a ^ b); scc = d != 0;
s_and_not1_b32      u32 : u32 u32 : d = a & ~b; scc = d != 0;
s_and_not1_b64      u64 : u64 u64 : d = a & ~b; scc = d != 0;
s_or_not1_b32       u32 : u32 u32 : d = a | ~b; scc = d != 0;
s_or_not1_b64       u64 : u64 u64 : d = a | ~b; scc = d != 0;
s_bfe_u32           u32 : u32 u32 : d = u32(low_bits(a >> (b & 31), b >> 16 & 127)); scc = d != 0;
s_bfe_i32           i32 : i32 u32 : d = i32(extracted64(a, b & 31, b >> 16 & 127)); scc = d != 0;
s_bfe_u64           u64 : u64 u32 : d = low_bits(a >> (b & 63), b >> 16 & 127); scc = d != 0;
s_bfe_i64           i64 : i64 u32 : d = extracted64(a, b & 63, b >> 16 & 127); scc = d != 0;
s_bfm_b32           u32 : u32 u32 : d = ((1u << (a & 31)) - 1) << (b & 31);
s_bfm_b64           u64 : u32 u32 : d = ((u64(1) << (a & 63)) - 1) << (b & 63);
s_mul_i32           u32 : u32 u32 : d = a * b;
s_mul_hi_u32        u32 : u32 u32 : d = u32(u64(a) * b >> 32);
s_mul_hi_i32        u32 : i32 i32 : d = u32(u64(i64(a) * b) >> 32);
s_cselect_b32       u32 : u32 u32 : d = scc ? a : b;
s_cselect_b64       u64 : u64 u64 : d = scc ? a : b;
s_pack_ll_b32_b16   u32 : u32 u32 : d = (a & 0xffff) | b << 16;
s_pack_lh_b32_b16   u32 : u32 u32 : d = (a & 0xffff) | (b & 0xffff0000);
s_pack_hh_b32_b16   u32 : u32 u32 : d = a >> 16 | (b & 0xffff0000);
s_pack_hl_b32_b16   u32 : u32 u32 : d = a >> 16 | b << 16;
16.2
s_movk_i32          i32 : i16 : d = a;
s_cmovk_i32         i32 : i16 : d = scc ? a : old;
s_addk_i32          i32 : i16 : scc = __builtin_add_overflow(old, a, &d);
s_mulk_i32          u32 : i16 : d = old * u32(a);
s_cmpk_eq_i32       : i32 i16 : scc = a == b;
s_cmpk_lg_i32       : i32 i16 : scc = a != b;
s_cmpk_gt_i32       : i32 i16 : scc = a > b;
s_cmpk_ge_i32       : i32 i16 : scc = a >= b;
s_cmpk_lt_i32       : i32 i16 : scc = a < b;
s_cmpk_le_i32       : i32 i16 : scc = a <= b;
s_cmpk_eq_u32       : u32 u16 : scc = a == b;
s_cmpk_lg_u32       : u32 u16 : scc = a != b;
s_cmpk_gt_u32       : u32 u16 : scc = a > b;
s_cmpk_ge_u32       : u32 u16 : scc = a >= b;
s_cmpk_lt_u32       : u32 u16 : scc = a < b;
s_cmpk_le_u32       : u32 u16 : scc = a <= b;
s_version           none
s_waitcnt_vscnt     none
s_waitcnt_vmcnt     none
s_waitcnt_expcnt    none
s_waitcnt_lgkmcnt   none
16.3
s_mov_b32           u32 : u32 : d = a;
s_mov_b64           u64 : u64 : d = a;
s_cmov_b32          u32 : u32 : d = scc ? a : old;
s_cmov_b64          u64 : u64 : d = scc ? a : old;
s_not_b32           u32 : u32 : d = ~a; scc = d != 0;
s_not_b64           u64 : u64 : d = ~a; scc = d != 0;
s_wqm_b32           u32 : u32 : d = whole_quads(a); scc = d != 0;
s_brev_b32          u32 : u32 : d = reversed(a);
s_brev_b64          u64 : u64 : d = u64(reversed(u32(a))) << 32 | reversed(u32(a >> 32));
s_ctz_i32_b32       u32 : u32 : d = a ? u32(__builtin_ctz(a)) : ~0u;
s_ctz_i32_b64       u32 : u64 : d = a ? u32(__builtin_ctzll(a)) : ~0u;
s_clz_i32_u32       u32 : u32 : d = a ? u32(__builtin_clz(a)) : ~0u;
s_clz_i32_u64       u32 : u64 : d = a ? u32(__builtin_clzll(a)) : ~0u;
s_cls_i32           u32 : i32 : d = a == 0 || a == -1 ? ~0u : u32(__builtin_clz(u32(a < 0 ? ~a : a)));
s_sext_i32_i8       i32 : u32 : d = i8(a);
s_sext_i32_i16      i32 : u32 : d = i16(a);
s_bitset0_b32       u32 : u32 : d = old & ~(1u << (a & 31));
s_bitset1_b32       u32 : u32 : d = old | 1u << (a & 31);
s_bitset0_b64       u64 : u32 : d = old & ~(u64(1) << (a & 63));
s_bitset1_b64       u64 : u32 : d = old | u64(1) << (a & 63);
s_abs_i32           u32 : i32 : d = a < 0 ? 0 - u32(a) : u32(a); scc = d != 0;
s_bcnt0_i32_b32     u32 : u32 : d = u32(__builtin_popcount(~a)); scc = d != 0;
s_bcnt0_i32_b64     u32 : u64 : d = u32(__builtin_popcountll(~a)); scc = d != 0;
s_bcnt1_i32_b32     u32 : u32 : d = u32(__builtin_popcount(a)); scc = d != 0;
s_bcnt1_i32_b64     u32 : u64 : d = u32(__builtin_popcountll(a)); scc = d != 0;
s_getpc_b64         getpc
s_setpc_b64         jump
s_swappc_b64        call
16.4
s_cmp_eq_i32        : i32 i32 : scc = a == b;
s_cmp_lg_i32        : i32 i32 : scc = a != b;
s_cmp_gt_i32        : i32 i32 : scc = a > b;
s_cmp_ge_i32        : i32 i32 : scc = a >= b;
s_cmp_lt_i32        : i32 i32 : scc = a < b;
s_cmp_le_i32        : i32 i32 : scc = a <= b;
s_cmp_eq_u32        : u32 u32 : scc = a == b;
s_cmp_lg_u32        : u32 u32 : scc = a != b;
s_cmp_gt_u32        : u32 u32 : scc = a > b;
s_cmp_ge_u32        : u32 u32 : scc = a >= b;
s_cmp_lt_u32        : u32 u32 : scc = a < b;
s_cmp_le_u32        : u32 u32 : scc = a <= b;
s_cmp_eq_u64        : u64 u64 : scc = a == b;
s_cmp_lg_u64        : u64 u64 : scc = a != b;
s_bitcmp0_b32       : u32 u32 : scc = !(a >> (b & 31) & 1);
s_bitcmp1_b32       : u32 u32 : scc = a >> (b & 31) & 1;
s_bitcmp0_b64       : u64 u32 : scc = !(a >> (b & 63) & 1);
s_bitcmp1_b64       : u64 u32 : scc = a >> (b & 63) & 1;
16.5
s_nop               none
s_sleep             none
s_delay_alu         none
s_clause            none
s_waitcnt           none
s_waitcnt_depctr    none
s_wait_idle         none
s_wait_event        none
s_set_inst_prefetch_distance none
s_icache_inv        none
s_inst_prefetch     none
s_sendmsg           sendmsg
s_setprio           none
s_ttracedata        none
s_code_end          end
s_endpgm            end
s_barrier           barrier
s_branch            branch 1
s_cbranch_scc0      branch !w.scc
s_cbranch_scc1      branch w.scc
s_cbranch_vccz      branch !w.s[106]
s_cbranch_vccnz     branch w.s[106]
s_cbranch_execz     branch !w.exec
s_cbranch_execnz    branch w.exec
s_trap              trap
16.6
s_load_b32          smem 1
s_load_b64          smem 2
s_load_b128         smem 4
s_load_b256         smem 8
s_load_b512         smem 16
s_dcache_inv        none
s_gl1_inv           none
16.16
buffer_gl0_inv      none
buffer_gl1_inv      none
"""

# Each saves EXEC in the destination and then makes it of the source a and what it was, e.
SAVED = {
    "and": "a & e",
    "or": "a | e",
    "xor": "a ^ e",
    "nand": "~(a & e)",
    "nor": "~(a | e)",
    "xnor": "~(a ^ e)",
    "and_not0": "~a & e",
    "or_not0": "~a | e",
    "and_not1": "a & ~e",
    "or_not1": "a | ~e",
}
