"""Where the fields of encodings lie, of gfx11 and of gfx9 (MI200, MI300).

Sources: the chapters "Microcode Formats" of AMD's "RDNA3" (February 2023), "CDNA2" (MI200, 2022) and
"CDNA3" (MI300, 2024) Instruction Set Architecture; of gfx950 (MI350) what llvm-mc-22 tells.
"""

from __future__ import annotations

import msgspec


class Layout(msgspec.Struct, frozen=True):
    """An encoding: the bits that tell it, its size without literals, and its fields."""

    size: int
    #: (shift, value): what the first word shifted right holds.
    tell: tuple[int, int]
    #: (shift, bits) of the opcode.
    op: tuple[int, int]
    #: Name to (shift, bits) in the whole of its `size` bytes. The opcode table uses these names: D
    #: vdst, S sdst or sdata, A src0 or address, B src1 or vsrc1, C src2, X data0, Y data1, G saddr, P
    #: sbase (pairs), R srsrc (quads), O soffset, K simm16; the rest are modifiers.
    fields: dict[str, tuple[int, int]]
    #: (shift, value) of two more bits, where they tell FLAT, SCRATCH and GLOBAL apart.
    segment: tuple[int, int] | None = None
    #: The opcodes that tell it from another encoding, where the first bits do not.
    opcodes: frozenset[int] = frozenset()

    def matches(self, word: int) -> bool:
        """Whether a first word is of this encoding."""
        shift, value = self.tell
        if word >> shift & (1 << 32 - shift) - 1 != value:
            return False
        if self.segment is not None and word >> self.segment[0] & 3 != self.segment[1]:
            return False
        return not self.opcodes or self.opcode(word) in self.opcodes

    def read(self, word: int, field: str) -> int:
        """A field of the encoded instruction, unsigned."""
        shift, bits = self.fields[field]
        return word >> shift & (1 << bits) - 1

    def opcode(self, word: int) -> int:
        """The opcode."""
        return word >> self.op[0] & (1 << self.op[1]) - 1

    def encoded(self, opcode: int, fields: dict[str, int]) -> int:
        """The instruction with these fields, the others zero."""
        shift, segment = self.segment or (0, 0)
        word = self.tell[1] << self.tell[0] | opcode << self.op[0] | segment << shift
        for name, value in fields.items():
            word |= value << self.fields[name][0]
        return word


_VOP3 = {"A": (32, 9), "B": (41, 9), "C": (50, 9), "D": (0, 8), "clamp": (15, 1)}
_FLAT = {
    "offset": (0, 13), "dlc": (13, 1), "glc": (14, 1), "slc": (15, 1), "A": (32, 8), "X": (40, 8),
    "G": (48, 7), "sve": (55, 1), "D": (56, 8),
}  # fmt: skip
_MUBUF = {
    "offset": (0, 12), "slc": (12, 1), "dlc": (13, 1), "glc": (14, 1), "A": (32, 8), "X": (40, 8),
    "R": (48, 5), "tfe": (53, 1), "offen": (54, 1), "idxen": (55, 1), "O": (56, 8),
}  # fmt: skip
_VOP3_SIGNS = {
    "abs": (8, 3), "op_sel": (11, 4), "S": (8, 7), "omod": (59, 2), "neg": (61, 3),
}  # fmt: skip
_PACKED = {
    "neg_hi": (8, 3), "op_sel": (11, 3), "op_sel_hi2": (14, 1), "op_sel_hi": (59, 2), "neg_lo": (61, 3),
}  # fmt: skip
_SHARED = {
    "SOP1": Layout(4, (23, 0x17D), (8, 8), {"A": (0, 8), "S": (16, 7)}),
    "SOPC": Layout(4, (23, 0x17E), (16, 7), {"A": (0, 8), "B": (8, 8)}),
    "SOPP": Layout(4, (23, 0x17F), (16, 7), {"K": (0, 16)}),
    "SOPK": Layout(4, (28, 0xB), (23, 5), {"K": (0, 16), "S": (16, 7)}),
    "SOP2": Layout(4, (30, 2), (23, 7), {"A": (0, 8), "B": (8, 8), "S": (16, 7)}),
    "VOP1": Layout(4, (25, 0x3F), (9, 8), {"A": (0, 9), "D": (17, 8)}),
    "VOPC": Layout(4, (25, 0x3E), (17, 8), {"A": (0, 9), "B": (9, 8)}),
    "VOP2": Layout(4, (31, 0), (25, 6), {"A": (0, 9), "B": (9, 8), "D": (17, 8)}),
}
# In the order in which they are tried: what is told by more bits goes first.
LAYOUTS = {
    **_SHARED,
    "SMEM": Layout(
        8, (26, 0x3D), (18, 8),
        {"P": (0, 6), "S": (6, 7), "dlc": (13, 1), "glc": (14, 1), "offset": (32, 21), "O": (57, 7)},
    ),
    "VOP3": Layout(
        8, (26, 0x35), (16, 10),
        {**_VOP3, **_VOP3_SIGNS},
    ),
    "VOP3P": Layout(8, (24, 0xCC), (16, 7), {**_VOP3, **_PACKED}),
    "VOPD": Layout(
        8, (26, 0x32), (22, 4),
        {"opy": (17, 5), "A": (0, 9), "B": (9, 8), "X": (32, 9), "Y": (41, 8), "Dy": (49, 7),
         "D": (56, 8)},
    ),
    "DS": Layout(
        8, (26, 0x36), (18, 8),
        {"offset0": (0, 8), "offset1": (8, 8), "gds": (17, 1), "A": (32, 8), "X": (40, 8),
         "Y": (48, 8), "D": (56, 8)},
    ),
    **{
        name: Layout(8, (26, 0x37), (18, 7), _FLAT, (16, segment))
        for segment, name in enumerate(("FLAT", "SCRATCH", "GLOBAL"))
    },
    "MUBUF": Layout(8, (26, 0x38), (18, 8), _MUBUF),
}  # fmt: skip
# Of gfx9, where `acc` and its like say that an operand is an accumulation register, and a product of
# matrices (MAI) is told from packed ones by its opcode. `glc`, `slc` and `scc` are spelled sc0, nt and
# sc1 on gfx940 and later ones.
_FLAT9 = {
    "glc": (16, 1), "slc": (17, 1), "scc": (25, 1), "A": (32, 8), "X": (40, 8), "acc": (55, 1),
    "D": (56, 8),
}  # fmt: skip
_SEGMENT9 = {"offset": (0, 13), "sve": (13, 1), "G": (48, 7), **_FLAT9}
_MAI = {
    "D": (0, 8), "cbsz": (8, 3), "abid": (11, 4), "acc_cd": (15, 1), "A": (32, 9), "B": (41, 9),
    "C": (50, 9), "acc": (59, 2), "blgp": (61, 3),
}  # fmt: skip
# Of products of matrices: those of gfx950 that have float8 and smaller floats, its others, of all.
_PRODUCTS = (45, 46, *range(53, 64), *range(64, 128))
LAYOUTS9 = {
    **_SHARED,
    "SMEM": Layout(
        8, (26, 0x30), (18, 8),
        {"P": (0, 6), "S": (6, 7), "soe": (14, 1), "glc": (16, 1), "imm": (17, 1), "offset": (32, 21),
         "O": (57, 7)},
    ),
    "MAI": Layout(8, (23, 0x1A7), (16, 7), _MAI, opcodes=frozenset(_PRODUCTS)),
    "VOP3P": Layout(8, (23, 0x1A7), (16, 7), {**_VOP3, **_PACKED}),
    "VOP3": Layout(8, (26, 0x34), (16, 10), {**_VOP3, **_VOP3_SIGNS}),
    "DS": Layout(
        8, (26, 0x36), (17, 8),
        {"offset0": (0, 8), "offset1": (8, 8), "gds": (16, 1), "acc": (25, 1), "A": (32, 8),
         "X": (40, 8), "Y": (48, 8), "D": (56, 8)},
    ),
    "FLAT": Layout(8, (26, 0x37), (18, 7), {"offset": (0, 12), **_FLAT9}, (14, 0)),
    "SCRATCH": Layout(8, (26, 0x37), (18, 7), _SEGMENT9, (14, 1)),
    "GLOBAL": Layout(8, (26, 0x37), (18, 7), _SEGMENT9, (14, 2)),
    "MUBUF": Layout(
        8, (26, 0x38), (18, 7),
        {"offset": (0, 12), "offen": (12, 1), "idxen": (13, 1), "glc": (14, 1), "scc": (15, 1),
         "lds": (16, 1), "slc": (17, 1), "A": (32, 8), "X": (40, 8), "R": (48, 5), "acc": (55, 1),
         "O": (56, 8)},
    ),
}  # fmt: skip
