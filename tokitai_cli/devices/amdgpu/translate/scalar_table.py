"""What scalar instructions do, and those that steer a wave, in the form of vector_table.

Sources are a, b, c and, where the destination is read too, `old`; scc is the wave's condition bit. Those
of float32 are of gfx1150 and gfx1151, by the manual of RDNA3.5. Other words name what control.py and
memory.py do by themselves.
"""

TABLE = """
s_add_u32           u32 : u32 u32 : const u64 t = u64(a) + b; d = u32(t); scc = t >> 32;
s_sub_u32           u32 : u32 u32 : d = a - b; scc = b > a;
s_[add/sub]_i32     i32 : i32 i32 : scc = __builtin_[add/sub]_overflow(a, b, &d);
s_addc_u32          u32 : u32 u32 : const u64 t = u64(a) + b + scc; d = u32(t); scc = t >> 32;
s_subb_u32          u32 : u32 u32 : const u64 t = u64(a) - b - scc; d = u32(t); scc = t >> 63;
s_absdiff_i32       u32 : i32 i32 : d = u32(a > b ? i64(a) - b : i64(b) - a); scc = d != 0;
s_[lshl/lshr]_b32   u32 : u32 u32 : d = a [<</>>] (b & 31); scc = d != 0;
s_[lshl/lshr]_b64   u64 : u64 u32 : d = a [<</>>] (b & 63); scc = d != 0;
s_ashr_[i32/i64]    [i32/i64] : = u32 : d = a >> (b & [31/63]); scc = d != 0;
s_lshl[1/2/3/4]_add_u32 u32 : = = : const u64 t = (u64(a) << [1/2/3/4]) + b; d = u32(t); scc = t >> 32;
s_[min/max]_{i32/u32} {i32/u32} : = = : scc = a [</>] b; d = scc ? a : b;
s_[and/or/xor]_{b32/b64} {u32/u64} : = = : d = a [&/|/^] b; scc = d != 0;
s_[nand/nor/xnor]_{b32/b64} {u32/u64} : = = : d = ~(a [&/|/^] b); scc = d != 0;
s_[and/or]_not1_{b32/b64} {u32/u64} : = = : d = a [&/|] ~b; scc = d != 0;
s_bfe_u32           u32 : u32 u32 : d = u32(low_bits(a >> (b & 31), b >> 16 & 127)); scc = d != 0;
s_bfe_i32           i32 : i32 u32 : d = i32(extracted64(a, b & 31, b >> 16 & 127)); scc = d != 0;
s_bfe_u64           u64 : u64 u32 : d = low_bits(a >> (b & 63), b >> 16 & 127); scc = d != 0;
s_bfe_i64           i64 : i64 u32 : d = extracted64(a, b & 63, b >> 16 & 127); scc = d != 0;
s_bfm_[b32/b64]     [u32/u64] : u32 u32 : d = (([u32/u64](1) << (a & [31/63])) - 1) << (b & [31/63]);
s_mul_i32           u32 : u32 u32 : d = a * b;
s_mul_hi_u32        u32 : u32 u32 : d = u32(u64(a) * b >> 32);
s_mul_hi_i32        u32 : i32 i32 : d = u32(u64(i64(a) * b) >> 32);
s_cselect_[b32/b64] [u32/u64] : = = : d = scc ? a : b;
s_pack_l[l/h]_b32_b16 u32 : u32 u32 : d = (a & 0xffff) | [b << 16/(b & 0xffff0000)];
s_pack_h[l/h]_b32_b16 u32 : u32 u32 : d = a >> 16 | [b << 16/(b & 0xffff0000)];
s_movk_i32          i32 : i16 : d = a;
s_cmovk_i32         i32 : i16 : d = scc ? a : old;
s_addk_i32          i32 : i16 : scc = __builtin_add_overflow(old, a, &d);
s_mulk_i32          u32 : i16 : d = old * u32(a);
s_cmpk_[eq/lg/gt/ge/lt/le]_{i32/u32} : {i32/u32} {i16/u16} : scc = a [==/!=/>/>=/</<=] b;
s_version           none
s_setreg_imm32_b32  mode
s_[round/denorm]_mode mode
s_waitcnt_[vscnt/vmcnt/expcnt/lgkmcnt] none
s_mov_[b32/b64]     [u32/u64] : = : d = a;
s_cmov_[b32/b64]    [u32/u64] : = : d = scc ? a : old;
s_not_[b32/b64]     [u32/u64] : = : d = ~a; scc = d != 0;
s_wqm_b32           u32 : u32 : d = whole_quads(a); scc = d != 0;
s_brev_b32          u32 : u32 : d = reversed(a);
s_brev_b64          u64 : u64 : d = u64(reversed(u32(a))) << 32 | reversed(u32(a >> 32));
s_ctz_i32_[b32/b64] u32 : [u32/u64] : d = a ? u32(__builtin_ctz[/ll](a)) : ~0u;
s_clz_i32_[u32/u64] u32 : [u32/u64] : d = a ? u32(__builtin_clz[/ll](a)) : ~0u;
s_cls_i32           u32 : i32 : d = a == 0 || a == -1 ? ~0u : u32(__builtin_clz(u32(a < 0 ? ~a : a)));
s_sext_i32_[i8/i16] i32 : u32 : d = [i8/i16](a);
s_bitset0_[b32/b64] [u32/u64] : u32 : d = old & ~([u32/u64](1) << (a & [31/63]));
s_bitset1_[b32/b64] [u32/u64] : u32 : d = old | [u32/u64](1) << (a & [31/63]);
s_abs_i32           u32 : i32 : d = a < 0 ? 0 - u32(a) : u32(a); scc = d != 0;
s_bcnt[0/1]_i32_b32 u32 : u32 : d = u32(__builtin_popcount([~/]a)); scc = d != 0;
s_bcnt[0/1]_i32_b64 u32 : u64 : d = u32(__builtin_popcountll([~/]a)); scc = d != 0;
s_getpc_b64         getpc
s_setpc_b64         jump
s_swappc_b64        call
s_cmp_[eq/lg/gt/ge/lt/le]_{i32/u32} : {i32/u32} {i32/u32} : scc = a [==/!=/>/>=/</<=] b;
s_cmp_[eq/lg]_u64   : u64 u64 : scc = a [==/!=] b;
s_bitcmp[0/1]_b32   : u32 u32 : scc = [!/](a >> (b & 31) & 1);
s_bitcmp[0/1]_b64   : u64 u32 : scc = [!/](a >> (b & 63) & 1);
s_[add/sub/mul]_f32 f32 : = = : d = a [+/-/*] b;
s_[min/max]_f32     f32 : = = : d = [least/greatest](a, b);
s_fmac_f32          f32 : = = : d = fma32(a, b, old);
s_fma[ak/mk]_f32    f32 : = = = : d = fma32(a, b, c);
s_[trunc/ceil/floor/rndne]_f32 f32 : = : d = __builtin_[trunc/ceil/floor/rint]f(a);
s_cvt_f32_[i32/u32] f32 : [i32/u32] : d = float(a);
s_cvt_[i32/u32]_f32 [i32/u32] : f32 : d = to_[i32/u32](a);
s_cmp_[lt/eq/le/gt/ge]_f32 : f32 f32 : scc = a [</==/<=/>/>=] b;
s_cmp_n[lt/eq/le/gt/ge]_f32 : f32 f32 : scc = !(a [</==/<=/>/>=] b);
s_cmp_[lg/nlg]_f32  : f32 f32 : scc = [/!](a < b || a > b);
s_cmp_[o/u]_f32     : f32 f32 : scc = [/!](a == a && b == b);
s_nop               none
s_sleep             none
s_delay_alu         none
s_clause            none
s_waitcnt[/_depctr] none
s_wait_[idle/event] none
s_set_inst_prefetch_distance none
s_icache_inv        none
s_sendmsg           sendmsg
s_setprio           none
s_ttracedata        none
s_code_end          end
s_endpgm            end
s_barrier           barrier
s_branch            branch 1
s_cbranch_[scc0/scc1] branch [!/]w.scc
s_cbranch_[vccz/vccnz] branch [!/]w.vcc_mask()
s_cbranch_[execz/execnz] branch [!/]w.exec
s_trap              trap
s_load_b[32/64/128/256/512] smem [1/2/4/8/16]
s_buffer_load_b[32/64/128/256/512] smem [1/2/4/8/16]
s_[dcache/gl1]_inv  none
buffer_gl0_inv      fence w.group->fenced_interval = w.group->interval;
buffer_gl1_inv      fence w.group->fenced = true;
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
