"""The table of what instructions do: of every name that can be executed, its section and its entry."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tokitai_cli.devices.amdgpu.isa.encodings import LAYOUTS9
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.isa.opcode_table import by_name, rows
from tokitai_cli.devices.amdgpu.translate import gfx9_table, scalar_table, vector_table
from tokitai_cli.devices.amdgpu.translate.gfx9 import OCP_NAME as OCP
from tokitai_cli.devices.amdgpu.translate.gfx9 import canonical

MANUAL = "AMD, RDNA3 Instruction Set Architecture, 2023"


class Entry(msgspec.Struct, frozen=True):
    """What an instruction does."""

    name: str
    #: Of the manual.
    section: str
    #: "value" for what `code` says in full; others are what translation knows by name.
    kind: str
    #: Types of the operands.
    dst: tuple[str, ...] = ()
    src: tuple[str, ...] = ()
    #: C++ of the values, or a word behind `kind`.
    code: str = ""
    #: The hardware's result is known within 1 ulp ("~"), an absolute error ("~~") or 2^29 ulp ("~~~")
    #: only.
    approximate: str = ""


@functools.cache
def table() -> Mapping[str, Entry]:
    """Every entry by LLVM's name of the instruction."""
    tables = (vector_table.TABLE, scalar_table.TABLE, gfx9_table.TABLE)
    entries = [*(one for text in tables for one in _read(text)), *_compares(), *_saves()]
    entries += [*_memory(), *_matrices()]
    return {entry.name: entry for entry in entries}


def entry_of(name: str) -> Entry | None:
    """Entry of an instruction; a half of VOPD has that of the instruction it is named after."""
    return table().get(name.replace("v_dual_", "v_", 1))


def approximate(instructions: Iterable[Instruction]) -> tuple[str, ...]:
    """Names of instructions whose result the hardware gives within an error only."""
    found = ((name, entry_of(name)) for name in _names(map(canonical, instructions)))
    return tuple(sorted({name for name, entry in found if entry and entry.approximate}))


def _names(instructions: Iterable[Instruction]) -> Iterator[str]:
    for whole in instructions:
        yield from (half.name for half in (whole.x, whole.y) if half)
        if whole.x is None:
            yield whole.name


def _read(text: str) -> Iterator[Entry]:
    for line in (one for family in text.strip().splitlines() for one in _grown(family)):
        name, _, rest = line.partition(" ")
        dst, colon, typed = f"{rest} ".partition(": ")
        if not colon:
            kind, _, code = rest.strip().partition(" ")
            yield Entry(name, section_of(name), kind, code=code)
            continue
        src, _, code = typed.partition(" : ")
        marks = "~" * dst.count("~")
        to = dst.replace("~", "").split()
        types = tuple(to), tuple(to[0] if kind == "=" else kind for kind in src.split())
        yield Entry(name, section_of(name), "value", *types, code.strip(), marks)


def _grown(line: str) -> list[str]:
    """Lines of a family: [A/B] gives one of each part, all such groups in step; so does {C/D}."""
    lines = [line]
    for pattern in (r"\[([^][]*)\]", r"\{([^{}]*)\}"):
        grown = []
        for one in lines:
            groups = [group.split("/") for group in re.findall(pattern, one)]
            for at in range(len(groups[0]) if groups else 1):
                parts = iter(groups)
                grown.append(re.sub(pattern, lambda _, at=at, parts=parts: next(parts)[at], one))
        lines = grown
    return lines


# Chapter 16 of the manual, by encoding: an instruction has the section of the first that it has.
_SECTIONS = {
    "SOP2": "16.1",
    "SOPK": "16.2",
    "SOP1": "16.3",
    "SOPC": "16.4",
    "SOPP": "16.5",
    "SMEM": "16.6",
    "VOP2": "16.7",
    "VOP1": "16.8",
    "VOPC": "16.9",
    "VOP3P": "16.10",
    "VOP3": "16.12",
    "DS": "16.15",
    "MUBUF": "16.16",
    "FLAT": "16.20.1",
    "SCRATCH": "16.20.2",
    "GLOBAL": "16.20.3",
}


def section_of(name: str) -> str:
    """The manual's section that defines an instruction of the opcode table; of one that only gfx9 has
    CDNA3's manual and the encoding.
    """
    known, plain = by_name("gfx11"), name.removesuffix("_clamp").removesuffix(OCP)
    for encoding, where in _SECTIONS.items():
        if (encoding, plain) in known:
            return where
    where = next(one for one in LAYOUTS9 if (one, plain) in by_name("gfx9"))
    older = {
        row.name for arch in ("gfx90a", "gfx942") for row in rows(arch).get(where, {}).values()
    }
    return f"{'CDNA4' if plain not in older or name.endswith(OCP) else 'CDNA3'}, {where}"


_ORDERED = {"eq": "==", "ne": "!=", "lg": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compares() -> Iterator[Entry]:
    """v_cmp_* and v_cmpx_*: of integers, of floats, of classes."""
    found: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {}
    for kind in ("i16", "u16", "i32", "u32", "i64", "u64"):
        both = (kind, kind)
        for name in ("lt", "eq", "le", "gt", "ne", "ge"):
            found[name, kind] = both, f"a {_ORDERED[name]} b"
        if kind[1:] != "16":
            found["f", kind], found["t", kind] = (both, "false"), (both, "true")
    for kind in ("f16", "f32", "f64"):
        both = (kind, kind)
        for name in ("lt", "eq", "le", "gt", "ge"):
            found[name, kind] = both, f"a {_ORDERED[name]} b"
            negated = "neq" if name == "eq" else f"n{name}"
            found[negated, kind] = both, f"!(a {_ORDERED[name]} b)"
        found["lg", kind] = both, "a < b || a > b"
        found["nlg", kind] = both, "!(a < b || a > b)"
        found["o", kind], found["u", kind] = (both, "a == a && b == b"), (both, "a != a || b != b")
        found["f", kind], found["t", kind] = (both, "false"), (both, "true")
        bits = {"f16": "b16", "f32": "u32", "f64": "u64"}[kind]
        found["class", kind] = (bits, "u32"), f"class_{kind}(a) & b"
    for (name, kind), (src, code) in found.items():
        for prefix, dst in (("v_cmp", "mask"), ("v_cmpx", "exec")):
            yield Entry(f"{prefix}_{name}_{kind}", _SECTIONS["VOPC"], "value", (dst,), src, code)


def _saves() -> Iterator[Entry]:
    section = _SECTIONS["SOP1"]
    for width in (32, 64):
        for name, code in scalar_table.SAVED.items():
            yield Entry(f"s_{name}_saveexec_b{width}", section, "saveexec", code=code)
        for name in ("and_not0", "and_not1"):
            code = scalar_table.SAVED[name]
            yield Entry(f"s_{name}_wrexec_b{width}", section, "wrexec", code=code)


# What is loaded and stored, by the name of its type: kinds of kernels/gfx/run/memory.hpp, bytes.
_LOADS = {
    "u8": "U8",
    "i8": "I8",
    "u16": "U16",
    "i16": "I16",
    "b16": "U16",
    "b32": "B32",
    "b64": "B64",
    "b96": "B96",
    "b128": "B128",
}
_WHOLE = ("u8", "i8", "u16", "i16", "b32", "b64", "b96", "b128")
_STORES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
_SPACES = {space: _SECTIONS[space.upper()] for space in ("global", "flat", "scratch", "ds")}
_SPACES["buffer"] = _SECTIONS["MUBUF"]
# Those with atomic operations that are named alike.
_ATOMIC_SPACES = ("global", "flat", "buffer")
# What an atomic operation leaves, of `old` and the operand a.
ATOMICS = {
    "add": ("u32 u64 f32 f64", "old + a"),
    "sub": ("u32 u64", "old - a"),
    "min": ("i32 u32 i64 u64 f32 f64", "low(a, old)"),
    "max": ("i32 u32 i64 u64 f32 f64", "high(a, old)"),
    "and": ("b32 b64", "old & a"),
    "or": ("b32 b64", "old | a"),
    "xor": ("b32 b64", "old ^ a"),
    "inc": ("u32 u64", "old >= a ? 0 : old + 1"),
    "dec": ("u32 u64", "old == 0 || old > a ? a : old - 1"),
}


def _memory() -> Iterator[Entry]:
    """Loads, stores and atomic operations of LDS, flat, scratch, global and buffer memory."""
    for space, section in _SPACES.items():
        lds = space == "ds"
        halves = ("u8", "i8", "u16") if lds else ("u8", "i8", "b16")
        for name in _WHOLE:
            yield Entry(f"{space}_load_{name}", section, "load", code=f"{_LOADS[name]},whole")
        for name in halves:
            for hi, place in (("", "lower"), ("_hi", "upper")):
                full = f"ds_load_{name}_d16{hi}" if lds else f"{space}_load_d16{hi}_{name}"
                yield Entry(full, section, "load", code=f"{_LOADS[name]},{place}")
        for name, size in _STORES.items():
            yield Entry(f"{space}_store_{name}", section, "store", code=f"{size},0")
        for name in ("b8", "b16"):
            full = f"ds_store_{name}_d16_hi" if lds else f"{space}_store_d16_hi_{name}"
            yield Entry(full, section, "store", code=f"{_STORES[name]},16")
    yield from _two_addresses()
    for name in ("bpermute", "permute"):
        yield Entry(f"ds_{name}_b32", _SPACES["ds"], name)
    yield Entry("ds_swizzle_b32", _SPACES["ds"], "swizzle")
    yield from _through_lds()
    yield from _atomics()
    yield from _pairs_added()
    yield from _exchanges()


# Type of the sums, rows, columns, depth, types of the elements. Blocks follow from the registers.
_MFMA = re.compile(
    r"v_mfma_(f32|i32|f64)_(\d+)x(\d+)x(\d+)(?:_\d+b)?_?"
    r"(xf32|f32|f16|bf16|i8|f64|fp8|bf8|f8f6f4)(?:_(fp8|bf8)|_1k)?"
)


def _matrices() -> Iterator[Entry]:
    """Products of matrices: (accumulator, elements). Order and rounding of float sums are not stated."""
    kinds = (
        ("f32", "f16"),
        ("f32", "bf16"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("i32", "iu8"),
        ("i32", "iu4"),
    )
    for made, kind in kinds:
        name, marks = f"v_wmma_{made}_16x16x16_{kind}", "" if made == "i32" else "~~"
        yield Entry(name, _SECTIONS["VOP3P"], "wmma", code=f"{kind},{made}", approximate=marks)
    for (_, name), row in by_name("gfx9").items():
        if match := _MFMA.fullmatch(name):
            made, *sizes, kind, other = match.groups()
            rows, columns, depth = map(int, sizes)
            dwords = 2 if made == "f64" else 1
            blocks = row.slots[0].count * 64 // (rows * columns * dwords)
            code = f"{kind},{other or kind},{rows},{columns},{depth},{blocks}"
            marks = "" if made == "i32" else "~~"
            where = section_of(name)
            yield Entry(name, where, "mfma", (made,), code=code, approximate=marks)


def _two_addresses() -> Iterator[Entry]:
    for size, dwords in (("b32", 1), ("b64", 2)):
        for stride, times in (("", 1), ("stride64_", 64)):
            for verb in ("load", "store"):
                code = f"{dwords},{4 * dwords * times}"
                yield Entry(f"ds_{verb}_2addr_{stride}{size}", _SPACES["ds"], f"{verb}2", code=code)


def _atomics() -> Iterator[Entry]:
    for verb, (kinds, code) in ATOMICS.items():
        for kind in kinds.split():
            yield from _atomic(verb, kind, kind.replace("b", "u"), code)


def _atomic(verb: str, kind: str, operand: str, code: str) -> Iterator[Entry]:
    """An operation on memory in every space; on LDS with and without what was there before."""
    for space in _ATOMIC_SPACES:
        name = f"{space}_atomic_{verb}_{kind}"
        yield Entry(name, _SPACES[space], "atomic", (operand,), code=code)
    for rtn in ("", "rtn_"):
        yield Entry(f"ds_{verb}_{rtn}{kind}", _SPACES["ds"], "atomic", (operand,), code=code)


def _through_lds() -> Iterator[Entry]:
    """Loads of gfx9 that put data into LDS, or transpose it on their way out."""
    for space, encoding in (("global", "GLOBAL"), ("buffer", "MUBUF")):
        for name in ("b32", "b96", "b128"):
            code = str(_STORES[name])
            yield Entry(f"{space}_load_lds_{name}", f"CDNA3, {encoding}", "loadlds", code=code)
    for bits in ("16", "8", "4"):
        yield Entry(f"ds_read_b64_tr_b{bits}", "CDNA4, DS", "loadtransposed", code=bits)


def _pairs_added() -> Iterator[Entry]:
    """Sums of two halves each in memory."""
    for kind in ("f16", "bf16"):
        yield from _atomic("pk_add", kind, f"pair_{kind}", f"pairs_added_{kind}(old, a)")


def _exchanges() -> Iterator[Entry]:
    """What is put in memory in place of what it held."""
    for size in ("32", "64"):
        for space in _ATOMIC_SPACES:
            held = (f"u{size}",)
            yield Entry(f"{space}_atomic_swap_b{size}", _SPACES[space], "atomic", held, code="a")
            yield Entry(f"{space}_atomic_cmpswap_b{size}", _SPACES[space], "cmpswap", held)
        yield Entry(f"ds_storexchg_rtn_b{size}", _SPACES["ds"], "atomic", (f"u{size}",), code="a")
        for rtn in ("", "rtn_"):
            yield Entry(f"ds_cmpstore_{rtn}b{size}", _SPACES["ds"], "cmpswap", (f"u{size}",))
