"""From bytes to instructions, by the opcode table."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from tokitai_cli.devices.amdgpu.isa import opcode_table, selections
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import Slot
from tokitai_cli.devices.amdgpu.isa.operand_reader import MEMORY, NoOperandError, OperandReader

# In these the vdata field is the destination.
BUFFER_LOADS = ("buffer_load", "tbuffer_load")
FLAGS = (
    *("glc", "slc", "dlc", "scc", "gds", "lds", "offen", "idxen", "tfe", "clamp", "omod"),
    *("cbsz", "abid", "blgp"),
)
NUMBERS = ("omod", "cbsz", "abid", "blgp")
UNCACHED = re.compile(r"s_(load|store|buffer|scratch|atomic)")  # of SMEM, with glc
# What flags of memory are called from gfx940 on.
COHERENCE = {"glc": "sc0", "slc": "nt", "scc": "sc1"}
UNKNOWN = "unknown"
# Registers of a matrix of float8, float6 and float4, by cbsz or blgp.
REGISTERS = (8, 8, 6, 6, 4, 8, 8, 8)
# Stands in front of a product of matrices with scales.
SCALES = "v_mfma_ld_scale_b32"
ROW_SWAPS = ("v_permlane16_swap_b32", "v_permlane32_swap_b32")
# A modifier of what has float8, where it is OCP's (gfx950).
OCP = "ocp_float8"
FLOAT8 = re.compile(r"_(?:fp8|bf8)")
# A modifier of a load of half a register, where the code is for processors without SRAM-ECC (LLVM,
# GCNSubtarget::d16PreservesUnusedBits).
KEEPS_HALF = "keeps_half"


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
    """Decodes instructions of a processor one by one; equal bytes once.

    without_ecc: whether the code is for processors whose SRAM-ECC is off.
    """

    def __init__(self, arch: str, *, without_ecc: bool = False) -> None:
        self._rows = opcode_table.rows(arch)
        self._family = opcode_table.family(arch)
        parts = opcode_table.ARCHES[arch]
        older = self._family.name != "gfx9" or "gfx90a" in parts
        self._renamed = {} if older else COHERENCE
        self._ocp = "gfx950" in parts
        self._without_ecc = without_ecc
        self._seen: dict[bytes, Instruction] = {}

    def at(self, code: bytes, position: int, address: int) -> Instruction:
        """The instruction at a place of `code`, which lies at `address`."""
        seen = self._seen
        heads = (code[position : position + size] for size in (4, 8, 12, 16))
        one = next((seen[head] for head in heads if head in seen), None)
        if one is None:
            piece = code[position : position + 16]
            one = _Reader(piece, self._rows, self._family, self._renamed).instruction()
            if self._ocp and FLOAT8.search(one.name):
                one = msgspec.structs.replace(one, modifiers={**one.modifiers, OCP: True})
            if self._without_ecc and "_d16" in one.name:
                one = msgspec.structs.replace(one, modifiers={**one.modifiers, KEEPS_HALF: True})
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


class _Reader(OperandReader):
    """One instruction at address 0 (a branch's target is relative to its end)."""

    def instruction(self) -> Instruction:
        layouts = self.family.layouts
        name = next((one for one, layout in layouts.items() if layout.matches(self.word)), "")
        layout = layouts.get(name)
        if layout is None or len(self.code) < layout.size:
            return self._unknown()
        self.name, self.layout, self.size = name, layout, layout.size
        self.word = int.from_bytes(self.code[: layout.size], "little")
        row = self.rows[name].get(layout.opcode(self.word))
        if row is None or (row.name == "v_illegal" and self.word):
            return self._unknown()
        self.row = row
        try:
            if row.name == SCALES:
                return self._scaled()
            return self._vopd() if name == "VOPD" else self._plain()
        except (NoOperandError, struct.error):
            return self._unknown()

    def _unknown(self) -> Instruction:
        size = min(4, len(self.code))
        word = int.from_bytes(self.code[:size], "little")
        return Instruction(0, size, "", UNKNOWN, modifiers={"word": word}, family=self.family.name)

    def _plain(self) -> Instruction:
        row = self.row
        suffix = row.suffix
        vector = self.name.startswith("VOP")
        if vector and any(slot.field == "A" for slot in row.slots):
            suffix = self._select(suffix)
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
            (dst if wrote else src).append(self.operand(slot))
        if row.name.startswith("v_cmpx"):
            dst.append(Operand("exec"))
        return Instruction(
            *(0, self.size, row.name, self.name, tuple(dst), tuple(src), self.modifiers, suffix),
            family=self.family.name,
        )

    def _vopd(self) -> Instruction:
        second = self.rows["VOPDY"].get(self.read("opy"))
        if second is None:
            return self._unknown()
        halves = []
        for row in (self.row, second):
            self.row = row
            first, *rest = [self.operand(slot) for slot in row.slots]
            halves.append((row.name, (first,), tuple(rest)))
        x, y = (Instruction(0, self.size, name, "VOPD", dst, src) for name, dst, src in halves)
        return Instruction(0, self.size, f"{x.name} :: {y.name}", "VOPD", x=x, y=y)

    def _scaled(self) -> Instruction:
        """A product of matrices behind the scales of both; scales without one are by themselves."""
        scales = self._plain()
        product = _Reader(self.code[8:], self.rows, self.family, self.renamed).instruction()
        if not product.name.endswith("_f8f6f4"):
            return scales
        picks = {name: scales.modifiers[name] for name in ("op_sel", "op_sel_hi")}
        kept = {name: value for name, value in product.modifiers.items() if name != "abid"}
        return msgspec.structs.replace(
            product,
            size=scales.size + product.size,
            name=product.name.replace("v_mfma_", "v_mfma_scale_"),
            src=(*product.src, *scales.src),
            modifiers={**kept, **picks},
        )

    def _slots(self) -> list[Slot]:
        """The row's operands, and those that other fields make come and go."""
        row = self.row
        slots = list(row.slots)
        if self.name in {"GLOBAL", "SCRATCH"} and self._into_lds():
            slots = [slot for slot in slots if slot.field != "D"]
            self.modifiers["lds"] = True
        if row.name.endswith("_f8f6f4"):
            sizes = {"A": REGISTERS[self.read("cbsz")], "B": REGISTERS[self.read("blgp")]}
            slots = [
                msgspec.structs.replace(slot, count=sizes.get(slot.field, slot.count))
                for slot in slots
            ]
        if "atomic" in row.name and "D" in self.layout.fields and self.name != "DS":
            slots = [slot for slot in slots if slot.field != "D" or self.read("glc")]
        if self.name == "GLOBAL" and self.read("G") == self.family.off:
            slots = [Slot("A", 2) if slot.field == "A" else slot for slot in slots]
        if self.name == "SCRATCH":
            at = next(i for i, slot in enumerate(slots) if slot.field != "D")
            slots.insert(at, Slot("A" if self._scratch_address() else "off"))
        if self.name == "MUBUF" and slots:
            both = self.read("offen") + self.read("idxen")
            at = next(i for i, slot in enumerate(slots) if slot.field != "X")
            slots.insert(at, Slot("A", both) if both else Slot("off"))
            if "lds" in self.layout.fields:
                slots = [one for one in slots if one.field != "X" or not self.read("lds")]
            elif self.read("tfe") and at:
                slots[0] = msgspec.structs.replace(slots[0], count=slots[0].count + 1)
        return slots

    def _is_older(self) -> bool:
        """Whether it is of gfx90a, where the bit that later says `sve` says that LDS is loaded."""
        return self.family.name == "gfx9" and not self.renamed

    def _into_lds(self) -> bool:
        return self._is_older() and bool(self.read("sve")) and "load" in self.row.name

    def _scratch_address(self) -> bool:
        """Whether SCRATCH adds a vector register; on gfx90a either that or a scalar one."""
        if self._is_older():
            return self.read("G") == self.family.off
        return bool(self.read("sve"))

    def _modifiers(self) -> None:
        put, fields = self.modifiers, self.layout.fields
        renamed = self.renamed if self.name in MEMORY else {}
        for flag in FLAGS:
            if flag in fields and (value := self.read(flag)) and self._has(flag):
                put[renamed.get(flag, flag)] = value if flag in NUMBERS else True
        put.update(self._offsets())
        if self.name == "VOP3":
            put.update(self._selected_halves())
        elif self.name == "VOP3P":
            high = self.read("op_sel_hi") | self.read("op_sel_hi2") << 2
            put.update(op_sel=self.read("op_sel"), op_sel_hi=high)
            if not self.mixed:
                put.update(neg_lo=self.read("neg_lo"), neg_hi=self.read("neg_hi"))
        elif self.name in {"SOPP", "SOPK"}:
            put["simm16"] = value = self.read("K")
            if self.row.name.startswith(("s_branch", "s_cbranch", "s_call")):
                put["target"] = 4 * (value - (value >> 15 << 16))

    def _selected_halves(self) -> dict[str, Any]:
        """What the bits of op_sel of VOP3 say, and those of signs where they are none."""
        picks = 0 if self.split else self.read("op_sel")
        put: dict[str, Any] = {}
        if self.row.name in ROW_SWAPS:
            flags = enumerate(("fi", "bound_ctrl"))
            put.update({name: True for bit, name in flags if picks >> bit & 1})
        elif picks:
            put["op_sel"] = picks
        if self.is_bitop:
            put["bitop3"] = self.read("neg") | self.read("abs") << 3 | self.read("omod") << 6
        return put

    def _offsets(self) -> dict[str, int]:
        if self.name == "DS":
            if self.row.two:
                return {name: self.read(name) for name in ("offset0", "offset1")}
            return {"offset": self.word & 0xFFFF} if self.word & 0xFFFF else {}
        if "offset" not in self.layout.fields:
            return {}
        offset = self.read("offset")
        if not offset and not (self.name == "SMEM" and self.has_number()):
            return {}
        if self.name == "SMEM" and "imm" in self.layout.fields and not self.has_number():
            return {}
        bits = self.layout.fields["offset"][1]
        signed = self.name in {"SMEM", "GLOBAL", "SCRATCH"}
        return {"offset": offset - (1 << bits) if signed and offset >> bits - 1 else offset}

    def _has(self, flag: str) -> bool:
        """Whether the instruction has a flag of its encoding."""
        if self.row.name.startswith("v_accvgpr") or (flag == "omod" and self.is_bitop):
            return False
        return not (flag == "glc" and self.name == "SMEM") or bool(UNCACHED.match(self.row.name))

    def _select(self, suffix: str) -> str:
        """The new suffix; sets what DPP or SDWA adds."""
        kind = self.read("A")
        if kind not in selections.KINDS[self.family.name]:
            return suffix
        if kind != selections.DPP16 and self.layout.size == 8 and self.family.name == "gfx9":
            return suffix
        found = selections.selection(kind, self.extra(), compares=self.name == "VOPC")
        self.word += (found.first - kind) << self.layout.fields["A"][0]
        self.selected = found
        if found.reserved:
            raise NoOperandError
        self.modifiers.update(found.modifiers)
        if kind == selections.SDWA:
            return "_sdwa"
        if self.layout.size == 8:
            return "_e64_dpp"
        return "" if self.name == "VOPC" else "_dpp"
