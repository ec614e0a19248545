"""Reading the operands of one encoded instruction."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from tokitai_cli.devices.amdgpu.isa import opcode_table
from tokitai_cli.devices.amdgpu.isa.encodings import Layout
from tokitai_cli.devices.amdgpu.isa.families import Family
from tokitai_cli.devices.amdgpu.isa.instruction import Kind, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import Row, Slot
from tokitai_cli.devices.amdgpu.isa.selections import Selection

LITERAL = 255
LONG = 8  # bytes of an encoding that has no literal behind it on gfx9
# Inline floats are numbers from 240 on, the last of them 1/(2 pi).
SPECIAL = {*range(235, 240), 251, 252, 254}
FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532)
SOURCES = "ABCXY"
# Encodings with memory's data, which gfx9 may have in accumulation registers, and products of matrices.
MEMORY = ("DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF")
MATRIX = "MAI"


class NoOperandError(Exception):
    """A number that names no operand."""


class OperandReader:
    """An instruction's bits, by its layout and its row of the table."""

    name: str
    layout: Layout
    row: Row

    def __init__(
        self, code: bytes, rows: opcode_table.Rows, family: Family, renamed: Mapping[str, str]
    ) -> None:
        self.code = code
        self.rows = rows
        self.family = family
        self.renamed = renamed
        self.size = 4
        self.selected: Selection | None = None
        self.word = int.from_bytes(code[:4], "little")
        self.modifiers: dict[str, Any] = {}

    def read(self, field: str) -> int:
        """A field of the instruction, unsigned."""
        return self.layout.read(self.word, field)

    def extra(self) -> int:
        """The dword behind, a literal or DPP's; there is one at most."""
        self.size = self.layout.size + 4
        value: int = struct.unpack_from("<I", self.code, self.layout.size)[0]
        return value

    @property
    def mixed(self) -> bool:
        """Whether it is one whose signs in VOP3P are neg and abs."""
        return self.row.name.startswith("v_fma_mix")

    @property
    def is_bitop(self) -> bool:
        """Whether the bits of signs and omod say which operation on bits it is."""
        return self.row.name.startswith("v_bitop3")

    @property
    def split(self) -> bool:
        """Whether a scalar destination takes the bits of abs and op_sel (VOP3SD)."""
        return any(slot.field == "S" for slot in self.row.slots)

    def has_number(self) -> bool:
        """Whether SMEM of gfx9 adds a number."""
        return "imm" in self.layout.fields and bool(self.read("imm") and self.row.slots)

    def operand(self, slot: Slot) -> Operand:
        """The operand of a place of the row. Raises NoOperandError."""
        field = slot.field
        if field == "V":
            compared = self.selected.compared if self.selected is not None else None
            if compared is not None and self.name == "VOPC":
                return self._scalar(compared, Slot("S", self.family.mask))
            return Operand("vcc", 0, self.family.mask)
        if field == "off" or (field == "G" and self.read("G") == self.family.off):
            return Operand("null", self.family.off)
        if field == "I":
            return Operand("gpr_idx", value=self.read("B" if "B" in self.layout.fields else "K"))
        if field == "L":
            return Operand("literal", LITERAL, value=self._literal(slot))
        if field == "K" and self.name == "SMEM" and slot is not self.row.slots[-1]:
            return Operand("simm", value=self.read("S"))  # of s_atc_probe
        if field == "K" and self.name == "SMEM":
            return self._scalar_offset()
        if field == "K":
            return Operand("simm", value=self.read("K" if "K" in self.layout.fields else "A"))
        value = self._raw(slot)
        if value >= 256:
            return self._vector(value - 256, slot)
        operand = self._scalar(value, slot)
        return self._signed(operand, field) if field in SOURCES else operand

    def _scalar_offset(self) -> Operand:
        """The register that SMEM of gfx9 adds, beside a number or instead of it."""
        if self.read("soe"):
            return self._scalar(self.read("O"), Slot("O"))
        if self.has_number():
            return Operand("null", self.family.off)
        return self._scalar(self.read("offset") & 0x7F, Slot("O"))

    def _raw(self, slot: Slot) -> int:
        """The operand's number, of which vector registers start at 256."""
        field, value = slot.field, self.read(slot.field)
        if field == "P":
            return value * 2
        if field == "R":
            return value * 4
        if field == "Dy":
            return 256 + (value << 1 | 1 - (self.read("D") & 1))
        vector = self.name.startswith("VOP") or self.name in (*MEMORY, MATRIX)
        narrow = self.layout.fields[field][1] == 8 and field != "O"
        if field == "B" and self.selected is not None and self.selected.second_is_scalar:
            return value
        return value + 256 if vector and narrow and not slot.scalar else value

    def _vector(self, register: int, slot: Slot) -> Operand:
        half = None
        if slot.half:
            if self.name == "VOP3":
                half = self._picked(slot)
            else:
                half, register = register >> 7, register & 127
        kind: Kind = "a" if slot.accumulates or self._accumulates(slot.field) else "v"
        return self._signed(Operand(kind, register, slot.count, half), slot.field)

    def _accumulates(self, field: str) -> bool:
        """Whether a field says that an operand is an accumulation register."""
        if self.name == MATRIX and not self.row.name.startswith("v_accvgpr"):
            if field in "AB":
                return bool(self.read("acc") >> "AB".index(field) & 1)
            sparse = self.row.name.startswith("v_smfmac")  # its third operand is an index
            return bool(self.read("acc_cd")) and not (field == "C" and sparse)
        return field in "XYD" and self.name in MEMORY and self._is_set("acc")

    def _is_set(self, field: str) -> bool:
        return field in self.layout.fields and bool(self.read(field))

    def _picked(self, slot: Slot) -> int:
        return self.read("op_sel") >> "ABCD".index(slot.field) & 1

    def _signed(self, operand: Operand, field: str) -> Operand:
        """The operand with the signs that the instruction gives it."""
        if field not in "ABC":
            return operand
        bit = "ABC".index(field)
        neg = self.selected.neg if self.selected is not None else 0
        absolute = self.selected.abs if self.selected is not None else 0
        if self.name == "VOP3" and not self.is_bitop:
            neg = self.read("neg")
            absolute = 0 if self.split else self.read("abs")
        elif self.name == "VOP3P" and self.mixed:
            neg, absolute = self.read("neg_lo"), self.read("neg_hi")
        if not (neg | absolute) >> bit & 1:
            return operand
        return msgspec.structs.replace(
            operand, neg=bool(neg >> bit & 1), abs=bool(absolute >> bit & 1)
        )

    def _scalar(self, value: int, slot: Slot) -> Operand:
        """A register or constant by its number below 256."""
        for start, end, kind in self.family.registers:
            if start <= value < end:  # several registers start at an even one, or one of four
                return Operand(kind, value - start & -min(slot.count, 4), slot.count)
        if value == LITERAL and not (self.layout.size == LONG and self.family.name == "gfx9"):
            return Operand("literal", LITERAL, value=self._literal(slot))
        bits = 16 if slot.constant and self.name != "VOP3P" else 64 if slot.count == 2 else 32
        if 128 <= value <= 208:
            number = value - 128 if value <= 192 else 192 - value
            return Operand("int", value, value=number & (1 << bits) - 1)
        if 240 <= value <= 248:
            return Operand("float", value, value=self._float(FLOATS[value - 240], bits, slot))
        if value in SPECIAL:
            return Operand("special", value, slot.count)
        raise NoOperandError

    def _literal(self, slot: Slot) -> int:
        value = self.extra()
        if slot.count == 2:
            if "f64" in self.row.name:
                return value << 32
            if "i64" in self.row.name and value >> 31:
                return value | 0xFFFFFFFF << 32
        return value & 0xFFFF if slot.constant and self.name != "VOP3P" else value

    def _float(self, value: float, bits: int, slot: Slot) -> int:
        """The bits of an inline float; packed ones have it in their low half."""
        name = self.row.name
        if bits == 64:
            return int.from_bytes(struct.pack("<d", value), "little")
        half = bits == 16
        if self.mixed:
            half = bool(self.modifiers["op_sel_hi"] >> "ABC".index(slot.field) & 1)
        elif self.name == "VOP3P":
            half = "f16" in name and (slot.field != "C" or name.startswith("v_pk"))
            if half and "bf16" in name:
                return int.from_bytes(struct.pack("<f", value), "little") >> 16
        return int.from_bytes(struct.pack("<e" if half else "<f", value), "little")
