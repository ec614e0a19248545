"""What a code object, its kernels and their instructions say, as facts: the one inventory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tokitai_cli.core import elf
from tokitai_cli.core.model.device import APPROXIMATE, WRITABLE, Fact
from tokitai_cli.core.storage import sha256
from tokitai_cli.devices.amdgpu.binary.objects import CodeObject, Kernel
from tokitai_cli.devices.amdgpu.isa.decode import UNKNOWN, decode
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction

SYMBOLS = "symbols of the code object"
METADATA, DESCRIPTOR = "metadata of the code object", "kernel descriptor"
CODE, CODE_BYTES = "decoded machine code", "bytes of the kernel"
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
DIVISION = re.compile(r"v_div_(scale|fmas|fixup)_f")
ROUNDING = ("to nearest even", "up", "down", "to zero")
SWITCHES = ("dx10_clamp", "ieee", "fp16_overflow", "wgp_mode")
DENORMALS = ("flushed", "flushed on output", "flushed on input", "kept")


def instructions(code: CodeObject, kernel: Kernel) -> list[Instruction]:
    """The kernel's own instructions. Raises CodeError for a processor that is not known."""
    return list(decode(kernel.code, kernel.address, code.arch))


def names(code: Iterable[Instruction]) -> Counter[str]:
    """How often each mnemonic stands there; the halves of VOPD by themselves."""
    return Counter(
        part.name or UNKNOWN
        for one in code
        for part in ((one.x, one.y) if one.x is not None and one.y is not None else (one,))
    )


def classes(named: Mapping[str, int]) -> dict[str, int]:
    """Mnemonics by class, in the order of CLASSES; what was not decoded is "unknown"."""
    found: Counter[str] = Counter()
    for name, count in named.items():
        found[next((one for one, is_of in _CLASSES.items() if is_of.match(name)), UNKNOWN)] += count
    return {name: found[name] for name in (*CLASSES, UNKNOWN) if found[name]}


def of_code_object(code: CodeObject) -> Iterator[Fact]:
    """Its digest, its processor, and the variables that its kernels can write."""
    yield Fact("code object sha256", sha256(code.data), "the code object")
    yield Fact("code object for", code.target or code.arch, METADATA)
    yield from variables(code.data, SYMBOLS)


def variables(data: bytes, source: str) -> Iterator[Fact]:
    """A fact that names the variables of an ELF file that kernels can write, if there are any."""
    found = ", ".join(sorted(set(elf.writable(data))))
    if found:
        yield Fact(WRITABLE, found, source)


def of_kernel(kernel: Kernel) -> Iterator[Fact]:
    """Registers, memory, arguments and float mode, for every processor."""
    told, descriptor, mode = kernel.metadata, kernel.descriptor, kernel.descriptor.mode()
    single, half = (
        f"rounds {ROUNDING[mode[f'round_{width}']]}, denormals {DENORMALS[mode[f'denorm_{width}']]}"
        for width in ("32", "16_64")
    )
    switches = ", ".join(name.replace("_", " ") for name in SWITCHES if mode[name]) or "none"
    yield from (
        Fact(name, str(value), source)
        for name, value, source in (
            ("symbol", kernel.name, SYMBOLS),
            ("vector registers", told.vgpr_count, METADATA),
            ("accumulation registers", told.agpr_count, METADATA),
            ("scalar registers", told.sgpr_count, METADATA),
            ("spilled vector registers", told.vgpr_spill_count, METADATA),
            ("spilled scalar registers", told.sgpr_spill_count, METADATA),
            ("shared bytes", descriptor.lds, DESCRIPTOR),
            ("scratch bytes per thread", descriptor.scratch, DESCRIPTOR),
            ("wave size", told.wavefront_size, METADATA),
            ("threads of a block at most", told.max_flat_workgroup_size, METADATA),
            ("float32 mode", single, DESCRIPTOR),
            ("float16 and float64 mode", half, DESCRIPTOR),
            ("mode switches that are on", switches, DESCRIPTOR),
            ("argument bytes", told.kernarg_segment_size, METADATA),
            ("arguments", _arguments(kernel), METADATA),
            ("code bytes", len(kernel.code), METADATA),
            ("machine code sha256", sha256(kernel.code), CODE_BYTES),
        )
        if value is not None
    )


def of_instructions(code: Sequence[Instruction], approximate: Iterable[str]) -> Iterator[Fact]:
    """What the instructions are; `approximate`: those that hardware gives within an error only."""
    named = names(code)
    inventory = ", ".join(f"{name} {count}" for name, count in classes(named).items())
    dual = named.total() - len(code)
    halves = f" ({dual} dual ones as their two halves)" if dual else ""
    yield from (
        Fact(name, value, CODE)
        for name, value in (
            ("instructions", f"{len(code)}: {inventory}{halves}"),
            ("rounded once (contracted)", _those(named, CONTRACTED)),
            ("divisions by sequence", _those(named, DIVISION)),
            (APPROXIMATE, ", ".join(approximate) or "none"),
        )
    )


def _those(named: Counter[str], wanted: re.Pattern[str]) -> str:
    found = {name: count for name, count in sorted(named.items()) if wanted.match(name)}
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "none"


def _arguments(kernel: Kernel) -> str:
    """Offset and size of each argument; hidden ones by their kind."""
    return (
        ", ".join(f"{one.offset}:{one.size} {one.name or one.value_kind}" for one in kernel.args)
        or "none"
    )
