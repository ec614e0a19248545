"""Which registers an instruction reads and writes, for what is told of those that nobody has set.

Registers have the numbers of kernels/gfx/run/unset.hpp in a wave that may have accumulation registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tokitai_cli.devices.amdgpu.isa.families import GFX9
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate import operands
from tokitai_cli.devices.amdgpu.translate.gfx9 import FORGETS, ZEROES
from tokitai_cli.devices.amdgpu.translate.operands import width_of
from tokitai_cli.devices.amdgpu.translate.semantics import Entry, entry_of

SCALAR, HALF_SCALAR = 512, 1024
# EXEC is two registers.
SCC, EXEC = 128, 129
_LOW, _HIGH, _BOTH = 1, 2, 3
_HALF_BITS, _PRESERVE = 16, 2  # of dst_unused
_ADDRESS, _STORED, _SHARED = 0, 1, 4


_M0 = (SCALAR + operands.M0, _ADDRESS, 0xFFFFFFFF)
_WHOLE_EXEC = (HALF_SCALAR + EXEC, HALF_SCALAR + EXEC + 1)


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """Of an instruction: halves and scalars that it reads in active lanes, in others, and writes."""

    reads: frozenset[int] = frozenset()
    across: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    #: It is not run with other values.
    once: bool = False
    #: (register, what it matters to, its bits).
    checks: tuple[tuple[int, int, int], ...] = ()
    #: EXEC may change, or what is read afterwards may be unset.
    last: bool = False
    #: Whatever is set, it is looked at alone.
    always: bool = False

    @property
    def written(self) -> list[int]:
        """Registers that it writes."""
        return _registers(self.writes)

    @property
    def taken(self) -> list[int]:
        """Registers that it reads, or writes and may leave in part as they are."""
        return _registers(self.reads | self.across | self.writes)


def _registers(halves: Iterable[int]) -> list[int]:
    """Numbers of registers, of halves and scalars."""
    return sorted({at % SCALAR if at < HALF_SCALAR else at - SCALAR for at in halves})


def _scalars(operand: Operand, dwords: int) -> Iterator[int]:
    """Numbers of an operand's scalar registers, from 0."""
    first = {"s": operand.index, "vcc": operands.VCC + operand.index, "m0": operands.M0}
    if operand.kind in first:
        yield from range(first[operand.kind], first[operand.kind] + dwords)
    elif operand.kind == "scc":
        yield SCC
    elif operand.kind == "exec":
        yield from range(EXEC + operand.index, EXEC + operand.index + dwords)


def _halves(operand: Operand, dwords: int = 1, parts: int = _BOTH) -> Iterator[int]:
    """Halves of vector registers, or scalars."""
    if operand.kind != "v":
        yield from (HALF_SCALAR + at for at in _scalars(operand, dwords))
        return
    for at in range(operand.index, operand.index + dwords):
        yield from (at + SCALAR * high for high in (0, 1) if parts >> high & 1)


def _picked(one: Instruction, kind: str, at: int) -> int:
    """Halves that op_sel or SDWA picks of a source."""
    if (part := one.modifiers.get(f"src{at}_sel", operands.WHOLE)) != operands.WHOLE:
        return _HIGH if operands.PARTS[part][0] >= _HALF_BITS else _LOW
    low, high = (one.modifiers.get(name, 0) >> at & 1 for name in ("op_sel", "op_sel_hi"))
    if kind == "mix" and high:
        return _HIGH if low else _LOW
    return 1 << low | 1 << high if kind.startswith(("pk_", "pair_")) else _BOTH


def _typed(operand: Operand, kind: str, parts: int = _BOTH) -> Iterator[int]:
    """Halves of an operand of a type."""
    width = width_of(kind)
    if kind in ("mask", "exec"):
        yield from _halves(operand, operand.count)
    elif parts != _BOTH or width != 16:
        yield from _halves(operand, 2 if width == 64 else 1, parts)
    else:
        high = kind == "f16_hi" or operand.half
        yield from _halves(operand, 1, _HIGH if high else _LOW)


def touched(instruction: Instruction) -> Touched | None:
    """Of an instruction that can be translated; None of one that has no effect on registers."""
    if instruction.x is not None and instruction.y is not None:
        x, y = touched(instruction.x) or Touched(), touched(instruction.y) or Touched()
        return Touched(reads=x.reads | y.reads, writes=x.writes | y.writes)
    entry = entry_of(instruction.name)
    assert entry is not None
    if entry.kind == "value":
        return _value(instruction, entry)
    if entry.kind in ("saveexec", "wrexec"):
        lanes = instruction.dst[0].count
        reads = frozenset(_halves(instruction.src[0], lanes))
        writes = {HALF_SCALAR + SCC, *_WHOLE_EXEC, *_halves(instruction.dst[0], lanes)}
        return Touched(reads=reads, writes=frozenset(writes), last=True)
    if entry.kind == "index":
        reads = frozenset(_halves(instruction.src[0]))
        return Touched(reads=reads, writes=frozenset({HALF_SCALAR + operands.M0}))
    if entry.kind == "getpc":
        return Touched(writes=frozenset(_halves(instruction.dst[0], 2)))
    if instruction.encoding == "MUBUF" and entry.kind != "fence":
        return _described(instruction, entry)
    if instruction.name.startswith(("global_", "flat_", "scratch_", "ds_", "s_load_", "s_buffer_")):
        return (
            _lanes(instruction, entry)
            if "perm" in entry.kind or entry.kind == "swizzle"
            else _memory(instruction, entry)
        )
    return (
        _lanes(instruction, entry)
        if instruction.name.startswith("v_") and entry.kind != "none"
        else None
    )


def _value(one: Instruction, entry: Entry) -> Touched:
    sources, to = operands.picked(one, entry)
    vcc = operands.vcc_of(one)
    given = [*sources, *([vcc] if entry.src[-1:] == ("mask",) else [])]
    reads = {
        half
        for at, (operand, kind) in enumerate(zip(given, entry.src, strict=False))
        for half in _typed(operand, kind, _picked(one, kind, at))
    }
    written = [to or vcc, *one.dst[1:]]
    if len(written) < len(entry.dst):
        written.append(vcc)
    writes = {at for pair in zip(written, entry.dst, strict=False) for at in _typed(*pair)}
    if entry.dst[:1] == ("exec",):  # older compares have a mask beside it
        writes = {*_WHOLE_EXEC, *(at for each in one.dst for at in _typed(each, "mask"))}
    modifiers, across = one.modifiers, set()
    partial = "old" in entry.code
    part = modifiers.get("dst_sel", operands.WHOLE)
    if part != operands.WHOLE or modifiers.get(ZEROES):
        writes |= {*_halves(written[0])}
        partial = partial or (part != operands.WHOLE and modifiers["dst_unused"] == _PRESERVE)
    if "dpp_ctrl" in modifiers:
        whole = modifiers.get("row_mask", 15) == modifiers.get("bank_mask", 15) == 15
        partial = partial or not (modifiers.get("bound_ctrl") and whole)
    if modifiers.get("fi"):
        across = {*_halves(one.src[0])}
    if partial and entry.dst:
        reads |= (
            {*_typed(written[0], entry.dst[0])} if part == operands.WHOLE else {*_halves(to or vcc)}
        )
    if one.name.startswith("s_") and "scc" in entry.code:
        writes.add(HALF_SCALAR + SCC)
        if "scc ?" in entry.code or "+ scc" in entry.code or "- scc" in entry.code:
            reads.add(HALF_SCALAR + SCC)
    return Touched(
        reads=frozenset(reads),
        across=frozenset(across),
        writes=frozenset(writes),
        last=not writes.isdisjoint(_WHOLE_EXEC),
    )


def _lanes(one: Instruction, entry: Entry) -> Touched:
    """Instructions whose lanes read or write others."""
    reads = {at for operand in one.src for at in _halves(operand)}
    writes = {at for operand in one.dst for at in _halves(operand)}
    if entry.kind == "swap":
        both = frozenset(reads | writes)
        return Touched(reads=both, writes=both)
    if entry.kind == "movrel":
        checks = (_M0,)
        return Touched(
            reads=frozenset(reads | {HALF_SCALAR + operands.M0}),
            writes=frozenset(() if entry.name == "v_movreld_b32" else writes),
            once=True,
            checks=checks,
            last=True,
        )
    if entry.kind == "writelane":
        return Touched(reads=frozenset(reads), writes=frozenset(writes), always=True, last=True)
    if entry.kind == "swaprows":
        both = frozenset(reads | writes)
        return Touched(reads=both, across=both, writes=both)
    if entry.kind in ("wmma", "mfma"):
        reads = {at for operand in one.src for at in _halves(operand, operand.count)}
        writes = {*_halves(one.dst[0], one.dst[0].count)}
        if entry.kind == "wmma" and not entry.code.endswith(
            "32"
        ):  # the halves that are not written stay
            reads |= writes
        return Touched(
            reads=frozenset(reads),
            across=frozenset(at for at in reads if at < HALF_SCALAR),
            writes=frozenset(writes),
        )
    across = reads if entry.kind == "readlane" or one.modifiers.get("op_sel", 0) & 1 else set()
    if entry.kind == "permlane":
        reads |= writes
    return Touched(reads=frozenset(reads), across=frozenset(across), writes=frozenset(writes))


def _checked(
    operand: Operand, dwords: int, matter: int, mask: int = 0xFFFFFFFF
) -> Iterator[tuple[int, int, int]]:
    for at in _registers(_halves(operand, dwords)):
        yield at, matter, mask


def _memory(one: Instruction, entry: Entry) -> Touched:
    """Loads, stores and atomic operations: addresses matter, and what is stored but in scratch."""
    scratch = one.name.startswith("scratch_")
    if entry.kind == "smem":
        checks = [*_checked(one.src[0], one.src[0].count, _ADDRESS)]
        checks += [each for further in one.src[1:] for each in _checked(further, 1, _ADDRESS)]
        return _once(checks, {*_halves(one.dst[0], int(entry.code))})
    address, *further = one.src
    wide = one.name.startswith("flat_") or (one.name.startswith("global_") and address.count == 2)
    checks = [*_checked(address, 2 if wide else 1, _ADDRESS)]
    if not one.name.startswith("ds_") and further and further[-1].kind == "s":
        checks += _checked(further[-1], 1 if scratch else 2, _ADDRESS)
    checks += [_M0] if entry.kind == "loadlds" else []
    writes: set[int] = set()
    if entry.kind == "load":
        writes = {*_halves(one.dst[0], one.dst[0].count, _loaded(one, entry))}
    elif one.dst:
        writes = {*_halves(one.dst[0], one.dst[0].count)}
    # What a flat one stores may go to scratch: that is told when it runs.
    if not entry.kind.startswith("load") and not one.name.startswith(("scratch_", "flat_store_")):
        in_lds = one.name.startswith("ds_")
        data, matter = (further, _SHARED) if in_lds else (further[:1], _STORED)
        size, shift = _stored(one, entry)
        for operand in data:
            checks += _checked(operand, operand.count, matter, (1 << size) - 1 << shift)
    forgets = FORGETS in one.modifiers
    return _once(checks, writes, last=scratch or forgets or one.name.startswith("flat_"))


def _loaded(one: Instruction, entry: Entry) -> int:
    """Halves of a register that a load changes."""
    if FORGETS in one.modifiers:
        return _BOTH
    return {"whole": _BOTH, "lower": _LOW, "upper": _HIGH}[entry.code.split(",")[1]]


def _described(one: Instruction, entry: Entry) -> Touched:
    """Of a buffer: what is stored past its end does not matter, and is looked at when it runs."""
    rest = one.src if entry.kind.startswith("load") else one.src[1:]
    checks = [each for operand in rest for each in _checked(operand, operand.count, _ADDRESS)]
    checks += [_M0] if entry.kind == "loadlds" else []
    parts = _BOTH
    if entry.kind == "load":
        parts = _loaded(one, entry)
    writes = {half for to in one.dst for half in _halves(to, to.count, parts)}
    # On gfx9 it may be the wave's scratch, of which what is loaded may be unset.
    return _once(checks, writes, last=entry.kind != "load" or one.family == GFX9.name)


def _stored(one: Instruction, entry: Entry) -> tuple[int, int]:
    """Bits that a store takes of each register, and the first of them."""
    if entry.kind != "store":
        return 32, 0
    size, shift = (int(word) for word in entry.code.split(","))
    return min(8 * size, 32), 16 if one.src[1].half == 1 else shift


def _once(checks: list[tuple[int, int, int]], writes: set[int], last: bool = False) -> Touched:
    reads = set()
    for number, _, mask in checks:
        if number >= SCALAR:
            reads.add(number + SCALAR)
            continue
        reads |= {number + SCALAR * high for high in (0, 1) if mask >> (16 * high) & 0xFFFF}
    return Touched(
        reads=frozenset(reads),
        writes=frozenset(writes),
        once=True,
        checks=tuple(checks),
        last=last,
    )
