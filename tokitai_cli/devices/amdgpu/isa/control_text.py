"""Constants of scalar instructions as llvm-objdump-19 spells them: waits, delays, messages."""

from __future__ import annotations

from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.opcode_table import ARCHES, Row, rows

INDEXED = ("SRC0", "SRC1", "SRC2", "DST")
# Fields of s_waitcnt, each of one or two runs of bits (shift, bits); one of ones waits for nothing.
WAITS: dict[str, dict[str, tuple[tuple[int, int], ...]]] = {
    "gfx11": {"vmcnt": ((10, 6),), "expcnt": ((0, 3),), "lgkmcnt": ((4, 6),)},
    "gfx9": {"vmcnt": ((0, 4), (14, 2)), "expcnt": ((4, 3),), "lgkmcnt": ((8, 4),)},
}
# Of messages of gfx9, by their numbers.
OPERATIONS = {
    2: ("", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"),
    3: ("GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"),
    15: ("", "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", "SYSMSG_OP_HOST_TRAP_ACK",
         "SYSMSG_OP_TTRACE_PC"),
}  # fmt: skip
DELAYS = (
    *("NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1"),
    *("TRANS32_DEP_2", "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2"),
    "SALU_CYCLE_3",
)
SKIPS = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")
# Name, shift and bits of s_waitcnt_depctr's fields; a field of ones waits for nothing.
DEPCTR = (
    *(("hold_cnt", 7, 1), ("sa_sdst", 0, 1), ("va_vdst", 12, 4), ("va_sdst", 9, 3)),
    *(("va_ssrc", 8, 1), ("va_vcc", 1, 1), ("vm_vsrc", 2, 3)),
)


def control(instruction: Instruction, row: Row) -> list[str]:
    """The constant of SOPP, which some spell by its parts."""
    value = instruction.modifiers["simm16"]
    if not row.slots or (instruction.name == "s_endpgm" and not value):
        return []
    if instruction.name == "s_waitcnt":
        return [_waits(value, instruction.family)]
    if instruction.name == "s_delay_alu":
        return [_delays(value)]
    if instruction.src and instruction.src[0].kind == "gpr_idx":
        return [indexed(instruction.src[0])]
    if instruction.name == "s_waitcnt_depctr":
        return [_dependencies(value)]
    return [immediate(instruction, value, row)]


def indexed(operand: Operand) -> str:
    """What s_set_gpr_idx_on adds an index to."""
    value = operand.value
    if value >> len(INDEXED):
        return str(value) if value <= 64 else f"{value:#x}"
    return f"gpr_idx({','.join(n for bit, n in enumerate(INDEXED) if value >> bit & 1)})"


def immediate(instruction: Instruction, value: int, row: Row) -> str:
    """The field of 16 bits of an instruction."""
    if "getreg" in instruction.name or "setreg" in instruction.name:
        return _hardware_register(value, instruction.family)
    if "sendmsg" in instruction.name:
        return _message(value, instruction.family)
    small = row.immediate == "big" and value <= 64
    return str(value) if small or not row.immediate else f"{value:#x}"


def _hardware_register(value: int, family: str) -> str:
    number, offset, bits = value & 63, value >> 6 & 31, (value >> 11) + 1
    name = _name("HWREG", number, family)
    return f"hwreg({name})" if (offset, bits) == (0, 32) else f"hwreg({name}, {offset}, {bits})"


def _message(value: int, family: str) -> str:
    if family == "gfx9":
        return _older_message(value)
    name = _name("MSG", value & 0xFF, family)
    if name.isdecimal():
        return str(value) if value > 0xFF else f"sendmsg({value}, 0, 0)"
    return f"sendmsg({name})"


def _older_message(value: int) -> str:
    """Message, operation and stream of gfx9."""
    number, operation, stream = value & 15, value >> 4 & 7, value >> 8 & 3
    name = _name("MSG", number, "gfx9")
    known = OPERATIONS.get(number, ())
    if value & ~0x37F:
        return str(value)
    if known and operation < len(known) and known[operation] and (number != 15 or not stream):
        end = f", {stream}" if number != 15 and operation else ""
        return f"sendmsg({name}, {known[operation]}{end})"
    if name.isdecimal() or known or operation or stream:
        return f"sendmsg({number}, {operation}, {stream})"
    return f"sendmsg({name})"


def _name(group: str, number: int, family: str) -> str:
    arch = next(one for one, parts in ARCHES.items() if parts[0] == family)
    row = rows(arch)[group].get(number)
    return row.name if row else str(number)


def _waits(value: int, family: str) -> str:
    found: dict[str, tuple[int, int]] = {}
    for name, runs in WAITS[family].items():
        number = place = 0
        for shift, bits in runs:
            number |= (value >> shift & (1 << bits) - 1) << place
            place += bits
        found[name] = number, (1 << place) - 1
    some = [f"{name}({n})" for name, (n, most) in found.items() if n != most]
    return " ".join(some or [f"{name}({n})" for name, (n, _) in found.items()])


def _delays(value: int) -> str:
    words = []
    for name, shift, bits, known in (
        ("instid0", 0, 15, DELAYS), ("instskip", 4, 7, SKIPS), ("instid1", 7, 15, DELAYS)
    ):  # fmt: skip
        if number := value >> shift & bits:
            bad = f"/* invalid {name.rstrip('01')} value */"
            words.append(f"{name}({known[number] if number < len(known) else bad})")
    return " | ".join(words) or "0"


def _dependencies(value: int) -> str:
    found = [(name, value >> shift & (1 << bits) - 1, bits) for name, shift, bits in DEPCTR]
    waits = [f"depctr_{name}({n})" for name, n, bits in found if n != (1 << bits) - 1]
    return f"{value:#x}" if value & 0x60 else " ".join(waits)
