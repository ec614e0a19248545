"""The opcode table: for every opcode its mnemonic, and which field each of its operands is read from.

`opcodes.txt` holds it, written by `python -m bench.gfx_table`. A group's line has an encoding and
its operands as the assembler orders them: a field (encodings.py), how many registers it takes, and
  t: 16 bits, spelled with its half; q: 16 bits, spelled whole by llvm-19;
  f, i: a constant there is a 16-bit float or integer; a: an accumulation register by itself;
  d: the field D names a scalar register; V: vcc; L: the literal; K: the field of 16 bits, of SMEM the
  offset; I: what s_set_gpr_idx_on indexes.
Flags: two (DS with two offsets), hex and big (how K is spelled), oN (op_sel is spelled for N operands).
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import msgspec

from tokitai_cli.core.errors import CodeError
from tokitai_cli.devices.amdgpu.isa.families import FAMILIES, Family

ARCHES = {
    **dict.fromkeys(("gfx1100", "gfx1101", "gfx1102", "gfx1103"), ("gfx11",)),
    **dict.fromkeys(("gfx1150", "gfx1151", "gfx1152", "gfx1153"), ("gfx11", "gfx1151")),
    "gfx90a": ("gfx9", "gfx90a"),
    **dict.fromkeys(("gfx940", "gfx941", "gfx942"), ("gfx9", "gfx942")),
    "gfx950": ("gfx9", "gfx950"),
}


class Slot(msgspec.Struct, frozen=True):
    """Where an operand is read from."""

    field: str
    count: int = 1
    scalar: bool = False
    #: "t", "q" or none.
    half: str = ""
    #: "f", "i" or none.
    constant: str = ""
    #: Whether it is an accumulation register, whatever other fields say.
    accumulates: bool = False


class Row(msgspec.Struct, frozen=True):
    """An instruction of the table."""

    name: str
    suffix: str
    slots: tuple[Slot, ...]
    two: bool = False
    immediate: str = ""
    #: For how many operands its text spells op_sel.
    op_sel: int = 0


Rows = dict[str, dict[int, Row]]


@functools.cache
def rows(arch: str) -> Rows:
    """The table of a processor: encoding to opcode to row. Raises CodeError for one not in it."""
    if arch not in ARCHES:
        raise CodeError(
            f"machine code of {arch} cannot be decoded", hint=f"known are {', '.join(ARCHES)}"
        )
    found: Rows = {}
    for part in ARCHES[arch]:
        for encoding, entries in _parts()[part].items():
            found.setdefault(encoding, {}).update(entries)
    return found


def family(arch: str) -> Family:
    """The family of a processor. Raises CodeError for one not in the table."""
    rows(arch)
    return FAMILIES[ARCHES[arch][0]]


@functools.cache
def by_name(family: str) -> dict[tuple[str, str], Row]:
    """Encoding and mnemonic to row, of all processors of a family."""
    names = {name for parts in ARCHES.values() if parts[0] == family for name in parts}
    return {
        (encoding, row.name): row
        for name, part in _parts().items()
        if name in names
        for encoding, entries in part.items()
        for row in entries.values()
    }


@functools.cache
def _parts() -> dict[str, Rows]:
    parts: dict[str, Rows] = {}
    part: Rows = {}
    encoding: dict[int, Row] = {}
    words: list[str] = []
    text = Path(__file__).with_name("opcodes.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            part = parts.setdefault(line.strip("[]"), {})
        elif line.startswith(" "):
            opcode, name = line.split()
            encoding[int(opcode)] = _row(name, words)
        elif not line.startswith("#"):
            first, *words = line.split()
            encoding = part.setdefault(first, {})
    return parts


def _row(printed: str, words: list[str]) -> Row:
    name, suffix, _ = re.split(r"(_e32|_e64|$)", printed, maxsplit=1)
    slots, op_sel, immediate = [], 0, ""
    for word in words:
        if word in {"hex", "big"}:
            immediate = word
        elif match := re.fullmatch(r"(Dy|[A-Zd])(\d*)([tqa]?)([fi]?)([tq]?)", word):
            field, count, half, constant, late = match.groups()
            scalar = field == "d"
            bank = half == "a"
            half = late if bank else half or late
            name_of = "D" if scalar else field
            slots.append(Slot(name_of, int(count or 1), scalar, half, constant, bank))
        elif word.startswith("o"):
            op_sel = int(word[1:])
    return Row(name, suffix, tuple(slots), "two" in words, immediate, op_sel)
