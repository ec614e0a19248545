"""Every vector instruction with operands of every kind, from its encoding on."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.devices.gfx.gfx9_reference import BITOP, CALLED, GFX9, GFX950, KEEPS_UPPER, NEWER
from tests.devices.gfx.machine import program, run
from tests.devices.gfx.test_semantics import FROM, MASK_FROM, MASK_TO, TO, WIDTH, _Case
from tokitai_cli.devices.amdgpu.isa.decode import decode
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.isa.opcode_table import by_name, family, rows
from tokitai_cli.devices.amdgpu.translate import table as known
from tokitai_cli.devices.amdgpu.translate.gfx9 import canonical
from tokitai_cli.devices.amdgpu.translate.operands import RefusedError
from tokitai_cli.devices.amdgpu.translate.translation import statement

SCALAR, LITERAL = 40, 0x4A3C5B1D
# Numbers in the encoding: a scalar register, 5, -3, 1.0, -4.0, the constant behind the instruction.
KINDS = {"scalar": SCALAR, "5": 133, "-3": 195, "1.0": 242, "-4.0": 247, "literal": 255}
# Of one program, and states of each.
PART, TURNS = 700, 3
PLAIN_FLOATS = {"f32", "u32", "i32", "iu8", "pk_f32", "signs"}
PAIRS = {"pk_f32"}
#: Sources of encodings of four bytes.
FEW = (["A"], ["A", "B"])


def halved(kind: str) -> bool:
    return kind.startswith(("pk_", "pair_"))


def constant(what: str, kind: str, half: bool) -> int | None:
    """Bits of a constant as a source of a type; None where that is not said."""
    width = 16 if half else WIDTH.get(kind.removesuffix("_hi"), 32)
    if what == "literal":
        if kind == "f64":
            return LITERAL << 32
        return None if width == 64 else LITERAL & 0xFFFF if width == 16 and not half else LITERAL
    if "." not in what:
        return int(what) & (1 << (32 if halved(kind) or kind == "mix" else width)) - 1
    value = float(what)
    whole = int.from_bytes(struct.pack("<f", value), "little")
    if kind == "f64":
        return int.from_bytes(struct.pack("<d", value), "little")
    if "bf16" in kind:
        return whole >> 16
    if kind in ("f16", "pk_f16", "pair_f16") or (kind == "mix" and half):
        return int.from_bytes(struct.pack("<e", value), "little")
    return whole if kind in PLAIN_FLOATS or kind == "mix" else None


class _Form(_Case):
    """An instruction whose source `at` is of another kind, or picked by other halves."""

    def __init__(self, name: str, number: int, at: int, what: str, selection: int) -> None:
        super().__init__(name, number)
        self.at, self.what, self.selection = at, what, selection

    #: Names, or their beginnings, that have forms of their own.
    by_themselves: tuple[str, ...] = ()
    #: Of how many forms there are, all told.
    least = 2000

    @classmethod
    def picks_half(cls, name: str, kind: str) -> bool:
        """Whether op_sel picks a half of a source of this type."""
        del name
        return WIDTH.get(kind) == 16

    def encoded(self) -> bytes | None:
        """Bytes of the instruction; None where its encoding does not have it."""
        name = self.name.removesuffix("_clamp")
        for encoding in ("VOP3", "VOP3P"):
            for opcode, row in rows(self.arch)[encoding].items():
                if row.name == name:
                    return self.of(encoding, opcode, [slot.field for slot in row.slots])
        return None

    def of(self, encoding: str, opcode: int, fields: list[str]) -> bytes:
        layout = family(self.arch).layouts[encoding]
        put = {}
        sources = [field for field in fields if field in "ABC"]
        for at, field in enumerate(sources):
            put[field] = MASK_FROM if self.src[at] == "mask" else 256 + FROM[at]
        put["D"] = MASK_TO if self.dst[0] == "mask" else TO
        if "S" in fields:
            put["S"] = MASK_TO
        put[sources[self.at]] = KINDS.get(self.what, put[sources[self.at]])
        if self.name != self.name.removesuffix("_clamp"):
            put["clamp"] = 1
        if encoding == "VOP3":
            if self.what == "high":
                put["op_sel"] = 1 << self.at
        else:
            low, high = self.picks(self.at)
            usual = sum(1 << at for at in range(len(sources)) if self.picks(at, usual=True)[1])
            usual = usual & ~(1 << self.at) | high << self.at
            put |= {"op_sel": low << self.at, "op_sel_hi": usual & 3, "op_sel_hi2": usual >> 2}
            put["neg_lo"] = self.mixed.get("neg_lo", 0)
        word = layout.encoded(opcode, put).to_bytes(8, "little")
        return word + (LITERAL.to_bytes(4, "little") if self.what == "literal" else b"")

    def picks(self, at: int, usual: bool = False) -> tuple[int, int]:
        """op_sel and op_sel_hi of a source."""
        if "mix" in self.src:
            high = int(at == 0) if usual or self.what == "high" else self.selection
            return int(self.what == "high" and at == self.at), high
        if (
            self.src[at] == "pk_f32"
            and at == self.at
            and self.what in KINDS
            and self.what != "scalar"
        ):
            return 0, 0  # a constant has a lower half alone
        if usual or self.what != "select":
            return 0, 1
        return self.selection & 1, self.selection >> 1

    def kind(self, at: int) -> str:
        if self.src[at] == "mix" and at == self.at:
            return "f16" if self.picks(at)[1] else "f32"
        return super().kind(at)

    def bits(self, before: Any, at: int) -> Any:
        bits = super().bits(before, at)
        kind = self.src[at]
        if at != self.at:
            return bits
        if self.what == "scalar":
            low = np.uint64(before["s"][SCALAR])
            wide = WIDTH.get(kind, 32) == 64 or kind in PAIRS
            value: Any = low | np.uint64(before["s"][SCALAR + 1]) << np.uint64(32) if wide else low
            bits = np.full(self.lanes, value, np.uint64)
        elif self.what in KINDS:
            half = self.picks(at)[1] == 1 if kind == "mix" else halved(kind)
            value = constant(self.what, kind, half)
            assert value is not None
            bits = np.full(self.lanes, value, np.uint64)
        if self.what == "high":
            return bits >> np.uint64(16)
        if halved(kind) and (self.what == "select" or kind == "pk_f32"):
            size = 32 if kind == "pk_f32" else 16
            mask = np.uint64((1 << size) - 1)
            low, high = (bits >> np.uint64(size * one) & mask for one in self.picks(at))
            return low | high << np.uint64(size)
        return bits


class Older(_Form):
    """Of gfx942, whose waves have 64 lanes."""

    lanes, arch = 64, "gfx942"
    by_themselves = ("v_dot2c",)  # no op_sel, and no inline floats
    reference = GFX9

    @staticmethod
    def entry_name(name: str) -> str:
        return CALLED.get(name, name)

    @classmethod
    def picks_half(cls, name: str, kind: str) -> bool:
        return WIDTH.get(kind) == 16 and by_name("gfx9")["VOP3", name].op_sel > 0

    def upper(self) -> bool:
        return self.name in KEEPS_UPPER

    def encoded(self) -> bytes | None:
        """Literals stand behind encodings of four bytes alone."""
        if self.what != "literal":
            return super().encoded()
        if self.at or "mask" in (*self.dst, *self.src):
            return None
        for encoding in ("VOP1", "VOP2"):
            for opcode, row in rows(self.arch)[encoding].items():
                if row.name == self.name and [slot.field for slot in row.slots][1:] in FEW:
                    put = {"A": KINDS["literal"], "D": TO}
                    put |= {"B": FROM[1]} if encoding == "VOP2" else {}
                    word = family(self.arch).layouts[encoding].encoded(opcode, put)
                    return word.to_bytes(4, "little") + LITERAL.to_bytes(4, "little")
        return None


class Newest(Older):
    """Of gfx950, what it alone has."""

    arch = "gfx950"
    reference = GFX950
    least = 100

    @staticmethod
    def entry_name(name: str) -> str:
        return f"{name}_ocp" if f"{name}_ocp" in NEWER else name

    def of(self, encoding: str, opcode: int, fields: list[str]) -> bytes:
        # The scale, which is 1, is the last source.
        sources = [one for one in fields if one in "ABC"]
        scale = sources[-1] if self.name.startswith("v_cvt_scalef32") else ""
        data = super().of(encoding, opcode, [one for one in fields if one != scale])
        word = int.from_bytes(data[:8], "little")
        layout = family(self.arch).layouts[encoding]
        put = {"neg": BITOP & 7, "abs": BITOP >> 3 & 7, "omod": BITOP >> 6}
        put = put if self.name.startswith("v_bitop3") else {scale: KINDS["1.0"]} if scale else {}
        for name, value in put.items():
            word |= value << layout.fields[name][0]
        return word.to_bytes(8, "little") + data[8:]


def forms(form: type[_Form]) -> Iterator[tuple[str, int, str, int]]:
    """Names with a source, what it is, and halves that are picked."""
    for name in sorted(form.reference):
        if not name.startswith(("v_fmamk", "v_fmaak", *form.by_themselves)):
            for at, kind in enumerate(form.reference[name][1].split()):
                if kind != "mask":
                    yield from ((name, at, *one) for one in of_source(form, name, at, kind))


def of_source(form: type[_Form], name: str, at: int, kind: str) -> Iterator[tuple[str, int]]:
    """What one source may be."""
    exact = not known()[form.entry_name(name)].approximate
    for selection in (0, 1) if kind == "mix" else (0,):
        half = selection == 1 if kind == "mix" else halved(kind)
        yield "scalar", selection
        for what in KINDS if exact else ():
            if what != "scalar" and constant(what, kind, half) is not None:
                yield what, selection
    if form.picks_half(name, kind) or (kind == "mix" and at == 0):
        yield "high", 1
    if halved(kind):
        yield from (("select", selection) for selection in range(4))


@pytest.mark.parametrize(
    ("form", "stride"),
    [
        *((form, 17) for form in (_Form, Older)),
        *(pytest.param(form, 1, marks=pytest.mark.slow) for form in (_Form, Older)),
        (Newest, 1),
    ],
)
def test_operands_of_every_kind_are_read(form: type[_Form], stride: int) -> None:
    cases, code = [], list[Instruction]()
    for each in list(forms(form))[::stride]:
        name, at, what, selection = each
        one = form(name, len(code), at, what, selection)
        data = one.encoded()
        if data is None:
            continue
        (made,) = decode(data, 0, form.arch)
        assert made.name == name.removesuffix("_clamp"), each
        try:
            statement(canonical(made))
        except RefusedError as error:
            pytest.fail(f"{each}: {error}")
        cases.append(one)
        code.append(made)
    assert len(code) > form.least // stride
    told = []
    for start in range(0, len(code), PART):
        part = cases[start : start + PART]
        for number, one in enumerate(part):
            one.number = number
        before = np.concatenate([one.states()[:TURNS] for one in part])
        after = run(program(code[start : start + PART], lanes=form.lanes), before)
        for one, first, last in zip(
            np.repeat(np.array(part, object), TURNS), before, after, strict=True
        ):
            told += [
                f"{one.what} at {one.at}, {one.selection}: {x}" for x in one.faults(first, last)
            ]
    assert not told, f"{len(told)}\n" + "\n".join(told[:40])
