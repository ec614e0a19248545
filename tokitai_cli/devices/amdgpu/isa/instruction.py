"""One decoded instruction, as data."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal[
    "v", "a", "s", "ttmp", "vcc", "exec", "m0", "null", "scc", "flat_scratch", "xnack_mask", "special",
    "int", "float", "literal", "simm", "gpr_idx",
]  # fmt: skip


class Operand(msgspec.Struct, frozen=True):
    """A register or a constant that an instruction names."""

    #: "v", "a" (accumulation), "s", "ttmp": registers; "vcc", "exec", "flat_scratch", "xnack_mask":
    #: index 0 is the low half, 1 the high one; "m0", "null", "scc"; "gpr_idx": `value` says which
    #: operands an index is added to; "special": `index` is the number in the encoding (apertures,
    #: vccz, ...); "int", "float": inline constants, `index` is the number in the encoding;
    #: "literal": a constant of 32 bits after the instruction; "simm": a field of 16 bits.
    kind: Kind
    #: The first register.
    index: int = 0
    #: Registers of 32 bits.
    count: int = 1
    #: Of an operand of 16 bits in a vector register: 0 its low half, 1 its high half; None where the
    #: instruction takes whole registers, or picks halves by op_sel (VOP3P).
    half: int | None = None
    #: Negated, absolute value (abs first).
    neg: bool = False
    abs: bool = False
    #: The constant's bits at the operand's width, unsigned; an integer is sign extended, a 32-bit
    #: literal of a 64-bit float stands in the upper half. Packed operands (VOP3P) carry an inline
    #: float in their low half, zero above.
    value: int = 0


class Instruction(msgspec.Struct, frozen=True):
    """One instruction. `name` is LLVM's without _e32, _e64, _dpp and their like (`suffix`)."""

    #: Of the first byte, in the code object.
    address: int
    #: bytes.
    size: int
    name: str
    #: "SOP1", "SOP2", "SOPC", "SOPK", "SOPP", "SMEM", "VOP1", "VOP2", "VOPC", "VOP3", "VOP3P",
    #: "VOPD", "DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MAI" (products of matrices of
    #: gfx9); "unknown" for what is none of them, which has no name and its `word` in the modifiers.
    encoding: str
    #: Operands as the assembler orders them; what the listing does not spell is absent (scc; the vcc
    #: that s_cbranch_vccz, v_div_fmas and v_dual_cndmask read), but v_cmpx names exec as its
    #: destination. Memory: dst is the data that a load or a returning atomic writes; src of FLAT,
    #: GLOBAL and SCRATCH holds address, then data, then saddr. An absent address ("off") is kind
    #: "null". MUBUF: vdata is dst of a load and src of the rest, then vaddr, srsrc, soffset.
    dst: tuple[Operand, ...] = ()
    src: tuple[Operand, ...] = ()
    #: Only those that are set: offset, offset0, offset1 (bytes as encoded, signed where the encoding
    #: is signed), glc, slc, dlc, gds, offen, idxen, tfe, lds; clamp (True), omod (1: times 2, 2:
    #: times 4, 3: halved); op_sel, op_sel_hi, neg_lo, neg_hi (int, bit i is source i, bit 3 of op_sel
    #: the destination; in VOP3P always there, in VOP3 as encoded beside the `half` that it picks);
    #: dpp_ctrl, row_mask, bank_mask, bound_ctrl, fi (DPP16, masks always there); dpp8 (a tuple of
    #: eight lanes) and fi; of gfx9: scc, and on gfx940 and later sc0, nt, sc1 instead of glc, slc, scc;
    #: cbsz, abid, blgp (MAI); dst_sel, dst_unused, src0_sel, src1_sel (numbers), sext (bit i is source
    #: i) (SDWA); simm16 (SOPP, SOPK; unsigned), target (of a branch, absolute); of gfx950: bitop3 (the
    #: result by bits of the sources), ocp_float8 (True), op_sel and op_sel_hi of a matrix product's
    #: scales (which byte of each); bound_ctrl and fi of exchanged rows. keeps_half (True) of loads into
    #: half a register in code for processors without SRAM-ECC.
    modifiers: dict[str, Any] = {}
    suffix: str = ""
    #: The name in the listing, where `name` is that of an instruction that does the same (translate).
    spelled: str = ""
    #: Of processors (`families`).
    family: str = "gfx11"
    #: The two halves of a VOPD, each an Instruction of the same address and size.
    x: Instruction | None = None
    y: Instruction | None = None
