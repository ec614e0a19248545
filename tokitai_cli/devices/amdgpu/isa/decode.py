"""From bytes to instructions, by the opcode table."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from tokitai_cli.devices.amdgpu.isa import opcode_table
from tokitai_cli.devices.amdgpu.isa.encodings import LAYOUTS
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Kind, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import Slot

DPP8, DPP8_FI, DPP16, LITERAL, NULL = 233, 234, 250, 255, 124
# First and last + 1 of the numbers that name registers. Inline floats follow from 240 on, the last
# of them 1/(2 pi).
REGISTERS: tuple[tuple[int, int, Kind], ...] = (
    *((0, 106, "s"), (106, 108, "vcc"), (108, 124, "ttmp"), (NULL, 125, "null")),
    *((125, 126, "m0"), (126, 128, "exec"), (253, 254, "scc")),
)
SPECIAL = {*range(235, 240), 251, 252, 254}
FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532)
SOURCES = "ABCXY"
# In these the vdata field is the destination.
BUFFER_LOADS = ("buffer_load", "tbuffer_load")
UNKNOWN = "unknown"


def decode(code: bytes, address: int, arch: str) -> Iterator[Instruction]:
    """Each instruction of `code`, which lies at `address`; what is none is of encoding "unknown".

    An unknown one has no name, takes four bytes (fewer at the end) and says `word` in its modifiers.
    Raises CodeError for an `arch` that the table does not know.
    """
    decoder = Decoder(arch)
    position = 0
    while position < len(code):
        one = decoder.at(code, position, address + position)
        yield one
        position += one.size


class Decoder:
    """Decodes instructions of a processor one by one; equal bytes once."""

    def __init__(self, arch: str) -> None:
        self._rows = opcode_table.rows(arch)
        self._seen: dict[bytes, Instruction] = {}

    def at(self, code: bytes, position: int, address: int) -> Instruction:
        """The instruction at a place of `code`, which lies at `address`."""
        seen = self._seen
        heads = (code[position : position + size] for size in (4, 8, 12))
        one = next((seen[head] for head in heads if head in seen), None)
        if one is None:
            one = _Reader(code[position : position + 12], self._rows).instruction()
            if one.encoding != UNKNOWN:
                seen[code[position : position + one.size]] = one
        modifiers = one.modifiers
        if "target" in modifiers:
            modifiers = {**modifiers, "target": address + 4 + modifiers["target"]}
        halves = _halves(one, address)
        return msgspec.structs.replace(one, address=address, modifiers=modifiers, **halves)


def _halves(one: Instruction, address: int) -> dict[str, Instruction]:
    if one.x is None or one.y is None:
        return {}
    return {
        "x": msgspec.structs.replace(one.x, address=address),
        "y": msgspec.structs.replace(one.y, address=address),
    }


class _Reader:
    """One instruction at address 0 (a branch's target is relative to its end)."""

    def __init__(self, code: bytes, rows: opcode_table.Rows) -> None:
        self.code = code
        self.rows = rows
        self.size = 4
        self.dpp_neg = self.dpp_abs = 0
        self.word = int.from_bytes(code[:4], "little")
        self.modifiers: dict[str, Any] = {}

    def instruction(self) -> Instruction:
        name = next((one for one, layout in LAYOUTS.items() if layout.matches(self.word)), "")
        layout = LAYOUTS.get(name)
        if layout is None or len(self.code) < layout.size:
            return self._unknown()
        self.name, self.layout, self.size = name, layout, layout.size
        self.word = int.from_bytes(self.code[: layout.size], "little")
        row = self.rows[name].get(layout.opcode(self.word))
        if row is None or (row.name == "v_illegal" and self.word):
            return self._unknown()
        self.row = row
        try:
            return self._vopd() if name == "VOPD" else self._plain()
        except (_NoOperandError, struct.error):
            return self._unknown()

    def _unknown(self) -> Instruction:
        size = min(4, len(self.code))
        word = int.from_bytes(self.code[:size], "little")
        return Instruction(0, size, "", UNKNOWN, modifiers={"word": word})

    def read(self, field: str) -> int:
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
    def split(self) -> bool:
        """Whether a scalar destination takes the bits of abs and op_sel (VOP3SD)."""
        return any(slot.field == "S" for slot in self.row.slots)

    def _plain(self) -> Instruction:
        row = self.row
        suffix = row.suffix
        vector = self.name.startswith("VOP")
        if vector and any(slot.field == "A" for slot in row.slots):
            suffix = self._dpp(suffix)
        self._modifiers()
        dst: list[Operand] = []
        src: list[Operand] = []
        for slot in self._slots():
            wrote = (
                slot.field in {"D", "S"}
                or (slot.field == "V" and not src)
                or (slot.field == "X" and row.name.startswith(BUFFER_LOADS))
            )
            if row.name.startswith(("s_cmpk", "s_setreg", "s_wait")):
                wrote = False
            (dst if wrote else src).append(self._operand(slot))
        if row.name.startswith("v_cmpx"):
            dst.append(Operand("exec"))
        return Instruction(
            0, self.size, row.name, self.name, tuple(dst), tuple(src), self.modifiers, suffix
        )

    def _vopd(self) -> Instruction:
        second = self.rows["VOPDY"].get(self.read("opy"))
        if second is None:
            return self._unknown()
        halves = []
        for row in (self.row, second):
            self.row = row
            first, *rest = [self._operand(slot) for slot in row.slots]
            halves.append((row.name, (first,), tuple(rest)))
        x, y = (Instruction(0, self.size, name, "VOPD", dst, src) for name, dst, src in halves)
        return Instruction(0, self.size, f"{x.name} :: {y.name}", "VOPD", x=x, y=y)

    def _slots(self) -> list[Slot]:
        """The row's operands, and those that other fields make come and go."""
        row = self.row
        slots = list(row.slots)
        if "atomic" in row.name and "D" in self.layout.fields and self.name != "DS":
            slots = [slot for slot in slots if slot.field != "D" or self.read("glc")]
        if self.name == "GLOBAL" and self.read("G") == NULL:
            slots = [Slot("A", 2) if slot.field == "A" else slot for slot in slots]
        if self.name == "SCRATCH":
            at = next(i for i, slot in enumerate(slots) if slot.field != "D")
            slots.insert(at, Slot("A" if self.read("sve") else "off"))
        if self.name == "MUBUF" and slots:
            both = self.read("offen") + self.read("idxen")
            at = next(i for i, slot in enumerate(slots) if slot.field != "X")
            slots.insert(at, Slot("A", both) if both else Slot("off"))
            if self.read("tfe") and at:
                slots[0] = msgspec.structs.replace(slots[0], count=slots[0].count + 1)
        return slots

    def _modifiers(self) -> None:
        put, fields = self.modifiers, self.layout.fields
        for flag in ("glc", "slc", "dlc", "gds", "offen", "idxen", "tfe", "clamp", "omod"):
            if flag in fields and (value := self.read(flag)):
                put[flag] = value if flag == "omod" else True
        put.update(self._offsets())
        if self.name == "VOP3":
            if not self.split and (value := self.read("op_sel")):
                put["op_sel"] = value
        elif self.name == "VOP3P":
            high = self.read("op_sel_hi") | self.read("op_sel_hi2") << 2
            put.update(op_sel=self.read("op_sel"), op_sel_hi=high)
            if not self.mixed:
                put.update(neg_lo=self.read("neg_lo"), neg_hi=self.read("neg_hi"))
        elif self.name in {"SOPP", "SOPK"}:
            put["simm16"] = value = self.read("K")
            if self.row.name.startswith(("s_branch", "s_cbranch", "s_call")):
                put["target"] = 4 * (value - (value >> 15 << 16))

    def _offsets(self) -> dict[str, int]:
        if self.name == "DS":
            if self.row.two:
                return {name: self.read(name) for name in ("offset0", "offset1")}
            return {"offset": self.word & 0xFFFF} if self.word & 0xFFFF else {}
        if "offset" not in self.layout.fields or not (offset := self.read("offset")):
            return {}
        bits = self.layout.fields["offset"][1]
        signed = self.name in {"SMEM", "GLOBAL", "SCRATCH"}
        return {"offset": offset - (1 << bits) if signed and offset >> bits - 1 else offset}

    def _dpp(self, suffix: str) -> str:
        """The new suffix; sets what DPP adds."""
        kind = self.read("A")
        if kind not in {DPP8, DPP8_FI, DPP16}:
            return suffix
        extra = self.extra()
        self.word += (256 + (extra & 0xFF) - kind) << self.layout.fields["A"][0]
        if kind == DPP16:
            self.modifiers.update(
                dpp_ctrl=extra >> 8 & 0x1FF, bank_mask=extra >> 24 & 15, row_mask=extra >> 28
            )
            for flag, shift in (("fi", 18), ("bound_ctrl", 19)):
                if extra >> shift & 1:
                    self.modifiers[flag] = True
            self.dpp_neg = (extra >> 20 & 1) | (extra >> 22 & 1) << 1
            self.dpp_abs = (extra >> 21 & 1) | (extra >> 23 & 1) << 1
        else:
            self.modifiers["dpp8"] = tuple(extra >> 8 + 3 * lane & 7 for lane in range(8))
            if kind == DPP8_FI:
                self.modifiers["fi"] = True
        if self.layout.size == 8:
            return "_e64_dpp"
        return "" if self.name == "VOPC" else "_dpp"

    def _operand(self, slot: Slot) -> Operand:
        field = slot.field
        if field == "V":
            return Operand("vcc")
        if field == "off":
            return Operand("null", NULL)
        if field == "L":
            return Operand("literal", LITERAL, value=self._literal(slot))
        if field == "K":
            return Operand("simm", value=self.read("K" if "K" in self.layout.fields else "A"))
        value = self._raw(slot)
        if value >= 256:
            return self._vector(value - 256, slot)
        operand = self._scalar(value, slot)
        return self._signed(operand, field) if field in SOURCES else operand

    def _raw(self, slot: Slot) -> int:
        """The operand's number, of which vector registers start at 256."""
        field, value = slot.field, self.read(slot.field)
        if field == "P":
            return value * 2
        if field == "R":
            return value * 4
        if field == "Dy":
            return 256 + (value << 1 | 1 - (self.read("D") & 1))
        vector = self.name.startswith("VOP") or self.name in {"DS", "FLAT", "GLOBAL"}
        vector |= self.name in {"SCRATCH", "MUBUF"}
        narrow = self.layout.fields[field][1] == 8 and field != "O"
        return value + 256 if vector and narrow and not slot.scalar else value

    def _vector(self, register: int, slot: Slot) -> Operand:
        half = None
        if slot.half:
            if self.name == "VOP3":
                half = self._picked(slot)
            else:
                half, register = register >> 7, register & 127
        return self._signed(Operand("v", register, slot.count, half), slot.field)

    def _picked(self, slot: Slot) -> int:
        return self.read("op_sel") >> "ABCD".index(slot.field) & 1

    def _signed(self, operand: Operand, field: str) -> Operand:
        """The operand with the signs that the instruction gives it."""
        if field not in "ABC":
            return operand
        bit = "ABC".index(field)
        neg, absolute = self.dpp_neg, self.dpp_abs
        if self.name == "VOP3":
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
        for start, end, kind in REGISTERS:
            if start <= value < end:  # several registers start at an even one, or one of four
                return Operand(kind, value - start & -min(slot.count, 4), slot.count)
        if value == LITERAL:
            return Operand("literal", LITERAL, value=self._literal(slot))
        bits = 16 if slot.constant and self.name != "VOP3P" else 64 if slot.count == 2 else 32
        if 128 <= value <= 208:
            number = value - 128 if value <= 192 else 192 - value
            return Operand("int", value, value=number & (1 << bits) - 1)
        if 240 <= value <= 248:
            return Operand("float", value, value=self._float(FLOATS[value - 240], bits, slot))
        if value in SPECIAL:
            return Operand("special", value, slot.count)
        raise _NoOperandError

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


class _NoOperandError(Exception):
    """A number that names no operand."""
