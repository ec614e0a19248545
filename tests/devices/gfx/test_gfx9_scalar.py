"""Scalar instructions of gfx9 by their own names and encodings, with operands of every kind.

What each does is said by scalar_reference.py, which was written for the names of gfx11; CALLED says
which of them is meant, from the descriptions of both manuals.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

from tests.devices.gfx.machine import MEMORY, program, run, state_of
from tests.devices.gfx.scalar_reference import SCALAR
from tests.devices.gfx.test_semantics import WIDTH, drawn
from tokitai_cli.devices.amdgpu.isa.decode import decode
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.isa.opcode_table import family, rows
from tokitai_cli.devices.amdgpu.translate import refused, table
from tokitai_cli.devices.amdgpu.translate.gfx9 import canonical

CALLED = {
    **{f"s_{one}n2_b{bits}": f"s_{one}_not1_b{bits}" for one in ("and", "or") for bits in (32, 64)},
    **{f"s_ff1_i32_b{bits}": f"s_ctz_i32_b{bits}" for bits in (32, 64)},
    **{f"s_flbit_i32_b{bits}": f"s_clz_i32_u{bits}" for bits in (32, 64)},
    "s_flbit_i32": "s_cls_i32",
}
ENCODINGS = ("SOP1", "SOP2", "SOPC", "SOPK")
LITERAL = 0x4A3C5B1D
#: Numbers in the encoding: a register, vcc, exec, m0, 5, -3, 1.0, the constant behind the instruction.
KINDS = {
    "register": 0, "vcc": 106, "exec": 126, "m0": 124, "5": 133, "-3": 195, "1.0": 242, "literal": 255,
}  # fmt: skip
SOURCES, TO, IMMEDIATE = (40, 44), 60, 0xFF85
#: Destinations: a register, vcc, m0.
WRITTEN = {"register": TO, "vcc": 106, "m0": 124}
ROUNDS = 4


class Form:
    """An instruction whose source `at` is of a kind, and its destination of another."""

    def __init__(self, name: str, encoding: str, opcode: int, at: int, what: str, to: str) -> None:
        self.name, self.at, self.what, self.to = name, at, what, to
        dst, src, self.function = SCALAR[CALLED.get(name, name)]
        self.dst, self.src = dst, src.split()
        fields = family("gfx942").layouts[encoding].fields
        put = {"A": SOURCES[0], "B": SOURCES[1], "K": IMMEDIATE, "S": WRITTEN[to]}
        put = {field: value for field, value in put.items() if field in fields}
        if not dst:
            put.pop("S", None)
        if encoding == "SOPK" and not dst:  # what is compared
            put["S"] = SOURCES[0]
        if what != "register":
            put["AB"[at]] = KINDS[what]
        word = family("gfx942").layouts[encoding].encoded(opcode, put).to_bytes(4, "little")
        self.code = word + (LITERAL.to_bytes(4, "little") if what == "literal" else b"")

    def instruction(self) -> Instruction:
        (made,) = decode(self.code, 0, "gfx942")
        return made

    def held(self, state: Any, at: int) -> int:
        """A source's value."""
        bits = WIDTH.get(self.src[at], 32)
        if bits == 16:
            value = IMMEDIATE
        elif at != self.at or self.what == "register":
            value = pair(state, SOURCES[at], bits)
        elif self.what in ("vcc", "m0"):
            value = pair(state, 106 if self.what == "vcc" else 125, bits)
        elif self.what == "exec":
            value = int(state["exec"]) % 2**bits
        else:
            value = {"1.0": 0x3F800000, "literal": LITERAL}.get(self.what) or int(self.what)
        value %= 2**bits
        return int(value) - 2**bits if self.src[at][0] == "i" and value >> bits - 1 else int(value)

    def wanted(self, state: Any) -> tuple[int, int]:
        """The destination and scc."""
        asked, more = inspect.signature(self.function).parameters, {}
        if "old" in asked:
            more["old"] = self.written(state)
        if "scc" in asked:
            more["scc"] = int(state["scc"])
        value, scc = self.function(*(self.held(state, at) for at in range(len(self.src))), **more)
        bits = WIDTH.get(self.dst, 32)
        return int(value) % 2**bits, int(state["scc"]) if scc is None else int(scc)

    def written(self, state: Any) -> int:
        bits = WIDTH.get(self.dst, 32)
        value = pair(state, 125 if self.to == "m0" else WRITTEN[self.to], bits)
        return value - 2**bits if self.dst[0] == "i" and value >> bits - 1 else value


def pair(state: Any, at: int, bits: int) -> int:
    return sum(int(state["s"][at + part]) << 32 * part for part in range(bits // 32))


def forms() -> list[Form]:
    """Each source of each kind, and each destination."""
    made = []
    for encoding in ENCODINGS:
        for opcode, row in rows("gfx942")[encoding].items():
            known = SCALAR.get(CALLED.get(row.name, row.name))
            if known is None:
                continue
            dst, src, _ = known
            given = (row.name, encoding, opcode)
            made += [Form(*given, 0, "register", to) for to in destinations(dst, encoding)]
            for at, kind in enumerate(src.split() if encoding != "SOPK" else ()):
                wide = WIDTH.get(kind) == 64
                left = {"register", *(("1.0", "m0") if wide else ())}
                made += [Form(*given, at, what, "register") for what in KINDS.keys() - left]
    return made


def destinations(dst: str, encoding: str) -> list[str]:
    if not dst or encoding == "SOPK":
        return ["register"]
    return ["register", "vcc"] if WIDTH.get(dst) == 64 else [*WRITTEN]


def test_scalar_instructions_do_what_the_manual_says() -> None:
    found = forms()
    assert len({one.name for one in found}) > 80
    before = np.zeros(len(found) * ROUNDS, state_of(64))
    before["case"] = np.repeat(np.arange(len(found)), ROUNDS)
    random = np.random.default_rng(11)
    before["s"] = drawn(random, "u32", before["s"].size).reshape(before["s"].shape)
    before["scc"] = random.integers(0, 2, len(before))
    before["exec"] = random.integers(0, 2**64, len(before), np.uint64)
    after = run(program([one.instruction() for one in found], lanes=64), before)
    told = []
    for first, last in zip(before, after, strict=True):
        one = found[first["case"]]
        value, scc = one.wanted(first)
        got = one.written(last) % 2 ** WIDTH.get(one.dst, 32) if one.dst else value
        if got != value or int(last["scc"]) != scc:
            told.append(
                f"{one.name} {one.what} at {one.at} to {one.to}: {got:#x}, scc {last['scc']}; "
                f"want {value:#x}, {scc}"
            )
    assert not told, f"{len(told)}\n" + "\n".join(told[:40])


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_what_has_no_reference_is_refused_by_its_name_or_steers(arch: str) -> None:
    told = []
    for encoding in ENCODINGS:
        for opcode, row in rows(arch)[encoding].items():
            if CALLED.get(row.name, row.name) in SCALAR:
                continue
            word = family(arch).layouts[encoding].encoded(opcode, {})
            one = next(decode(word.to_bytes(4, "little") + bytes(4), 0, arch))
            names = refused([one])
            if names and names[0].startswith(row.name):
                continue
            if table()[canonical(one).name].kind == "value" or (
                names and not names[0].startswith(row.name)
            ):
                told.append((row.name, names))
    assert not told


# Where a scalar load finds its offset: a number, a register (48: it holds 32), both.
OFFSETS = {
    "number": ({"imm": 1, "offset": 16}, 16),
    "register": ({"offset": 48}, 32),
    "both": ({"imm": 1, "soe": 1, "O": 48, "offset": 16}, 48),
}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_scalars_are_loaded(arch: str) -> None:
    code: list[Instruction] = []
    wanted = []
    for opcode, row in rows(arch)["SMEM"].items():
        match = re.fullmatch(r"s_(?:buffer_)?load_dword(?:x(\d+))?", row.name)
        for fields, at in OFFSETS.values() if match else ():
            put = {"P": 10, "S": 64, **fields}
            word = family(arch).layouts["SMEM"].encoded(opcode, put).to_bytes(8, "little")
            code += decode(word, 0, arch)
            wanted.append((at, int(match[1] or 1) if match else 0))
    assert len(code) == 2 * 5 * len(OFFSETS)
    before = np.zeros(len(code), state_of(64))
    before["case"] = np.arange(len(code))
    random = np.random.default_rng(3)
    before["memory"] = random.integers(0, 256, before["memory"].shape)
    before["s"] = random.integers(0, 2**32, before["s"].shape)
    before["s"][:, 22], before["s"][:, 23], before["s"][:, 48] = MEMORY, 0, 32
    after = run(program(code, lanes=64), before)
    for (at, count), first, last in zip(wanted, before, after, strict=True):
        words = first["memory"].view("<u4")[at // 4 :][:count]
        assert np.array_equal(last["s"][64 : 64 + count], words)
        kept = [*range(20), *range(22, 64), *range(64 + count, 128)]
        assert np.array_equal(last["s"][kept], first["s"][kept])
