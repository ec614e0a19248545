"""What a kernel's code object and instructions say of it, as facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tokitai_cli.gfx.code.decode import UNKNOWN, decode
from tokitai_cli.gfx.code.instruction import Instruction
from tokitai_cli.gfx.code.objects import Kernel
from tokitai_cli.model.device import Fact

METADATA, DESCRIPTOR = "metadata of the code object", "kernel descriptor"
CODE = "decoded instructions"
# The first that matches tells an instruction's class.
CLASSES = {
    "memory": r"global_|flat_|scratch_|buffer_|ds_|s_(buffer_)?load_|s_dcache|s_gl1",
    "control": r"s_(c?branch|endpgm|barrier|setpc|swappc|call|trap|code_end|.*saveexec|.*wrexec)|v_cmpx",
    "waiting": r"s_(wait|delay|nop|clause|sleep|set_inst|sendmsg|inst_pref)",
    "moves": r"v_(dual_)?(mov|swap|read|write|perm|cndmask|pack)|s_(c?mov|cselect|get|setreg)",
    "conversions": r"[vs]_cvt",
    "compares": r"v_cmp|s_cmp|s_bitcmp",
    "float math": r"[vs]_.*_(f16|f32|f64|bf16|legacy)(_|$)",
    "integer math": r"[vs]_",
}
_CLASSES = {name: re.compile(pattern) for name, pattern in CLASSES.items()}
# A product and a sum rounded once. Division and square root are made of them too.
CONTRACTED = re.compile(
    r"[vs]_(dual_)?(pk_)?(fma|fmac|fmamk|fmaak|mad|dot2\w*)_(mix\w*_)?\w*f(16|32|64)"
)
APPROXIMATE = re.compile(r"v_(exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)_f")
DIVISION = re.compile(r"v_div_(scale|fmas|fixup)_f")
ROUNDING = ("to nearest even", "up", "down", "to zero")
DENORMALS = ("flushed", "flushed on input", "flushed on output", "kept")


def instructions(kernel: Kernel, arch: str) -> list[Instruction]:
    """The kernel's instructions. Raises CodeError for a processor that is not known."""
    return list(decode(kernel.code, kernel.address, arch))


def names(code: Iterable[Instruction]) -> Counter[str]:
    """How often each mnemonic stands there; the halves of VOPD by themselves."""
    return Counter(
        part.name or UNKNOWN
        for one in code
        for part in ((one.x, one.y) if one.x is not None and one.y is not None else (one,))
    )


def classes(code: Iterable[Instruction]) -> dict[str, int]:
    """Instructions by class, in the order of CLASSES; what was not decoded is "unknown"."""
    found: Counter[str] = Counter()
    for name, count in names(code).items():
        found[next((one for one, is_of in _CLASSES.items() if is_of.match(name)), UNKNOWN)] += count
    return {name: found[name] for name in (*CLASSES, UNKNOWN) if found[name]}


def facts(kernel: Kernel, code: Sequence[Instruction]) -> tuple[Fact, ...]:
    """Registers, memory, arguments, float mode and what its instructions are."""
    told, descriptor, mode = kernel.told, kernel.descriptor, kernel.descriptor.mode()
    named = names(code)
    rounding, denormals = ROUNDING[mode["round_32"]], DENORMALS[mode["denorm_32"]]
    half = f"{ROUNDING[mode['round_16_64']]}, denormals {DENORMALS[mode['denorm_16_64']]}"
    entries = [
        ("symbol", kernel.name, METADATA),
        ("vector registers", told.vgpr_count, METADATA),
        ("scalar registers", told.sgpr_count, METADATA),
        ("spilled vector registers", told.vgpr_spill_count, METADATA),
        ("spilled scalar registers", told.sgpr_spill_count, METADATA),
        ("shared bytes", descriptor.lds, DESCRIPTOR),
        ("scratch bytes per thread", descriptor.scratch, DESCRIPTOR),
        ("wave size", descriptor.wave, DESCRIPTOR),
        ("threads of a block at most", told.max_flat_workgroup_size, METADATA),
        ("float32 mode", f"rounds {rounding}, denormals {denormals}", DESCRIPTOR),
        ("float16 and float64 mode", f"rounds {half}", DESCRIPTOR),
        ("argument bytes", told.kernarg_segment_size, METADATA),
        ("arguments", _arguments(kernel), METADATA),
        ("code bytes", len(kernel.code), METADATA),
        ("instructions", len(code), CODE),
        ("of class", ", ".join(f"{name} {count}" for name, count in classes(code).items()), CODE),
        ("rounded once (contracted)", _those(named, CONTRACTED), CODE),
        ("divisions by sequence", _those(named, DIVISION), CODE),
        ("approximate (transcendental)", _those(named, APPROXIMATE), CODE),
    ]
    return tuple(Fact(name, str(value), source) for name, value, source in entries)


def _those(named: Counter[str], wanted: re.Pattern[str]) -> str:
    found = {name: count for name, count in sorted(named.items()) if wanted.match(name)}
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "none"


def _arguments(kernel: Kernel) -> str:
    """Offset and size of each argument; hidden ones by their kind."""
    return (
        ", ".join(f"{one.offset}:{one.size} {one.name or one.value_kind}" for one in kernel.args)
        or "none"
    )
