"""C++ of instructions that compute values: scalar ones, vector ones, both halves of VOPD."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from tokitai_cli.devices.amdgpu.isa.families import GFX9
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate import operands
from tokitai_cli.devices.amdgpu.translate.mode import SOURCE, USUAL, Mode
from tokitai_cli.devices.amdgpu.translate.mode_flow import check
from tokitai_cli.devices.amdgpu.translate.operands import (
    RefusedError,
    Translated,
    destination,
    row,
    scalar,
    set_scalar,
    source,
    width_of,
)
from tokitai_cli.devices.amdgpu.translate.semantics import Entry, entry_of

# A conversion to a float8 of MI300.
_TO_FNUZ = re.compile(r"\bf8_of<\d>")


def scalar_value(instruction: Instruction, entry: Entry, mode: Mode = USUAL) -> Translated:
    """C++ of a scalar instruction with a value in its entry. Raises RefusedError."""
    check(entry, mode, clamp=False)
    lines = []
    given = list(instruction.src)
    for name, kind, operand in zip("abc", entry.src, given, strict=False):
        made, pattern = operands.scalar_type(kind)
        value = operands.flushed(
            kind, pattern.format(scalar(operand, width_of(kind))), mode, SOURCE
        )
        lines.append(f"const {made} {name} = {value};")
    if len(given) < len(entry.src):
        raise RefusedError("with fewer operands")
    if entry.dst:
        kind = entry.dst[0]
        made, pattern = operands.scalar_type(kind)
        if "old" in entry.code:
            old = pattern.format(scalar(instruction.dst[0], width_of(kind)))
            lines.append(f"const {made} old = {operands.flushed(kind, old, mode, SOURCE)};")
        lines.append(f"{made} d;")
    code = operands.code_of(entry, mode)
    if "scc" in code:
        lines.append(f"bool scc = w.scc != 0; {code} w.scc = scc;")
    else:
        lines.append(code)
    if entry.dst:
        width = width_of(entry.dst[0])
        bits = operands.rounded_bits(entry.dst[0], "d", mode)
        lines.append(set_scalar(instruction.dst[0], bits, width))
    return Translated("{ " + " ".join(lines) + " }")


def vector_value(
    instruction: Instruction,
    entry: Entry,
    mode: Mode = USUAL,
    lanes: Mapping[int, str] | None = None,
) -> Translated:
    """C++ of a vector instruction in a float mode. Raises RefusedError.

    lanes: what stands for a vector register, by its number, where it was copied.
    """
    clamp = bool(instruction.modifiers.get("clamp"))
    saturated = entry_of(f"{instruction.name}_clamp") if clamp else None
    if saturated is not None:
        entry, clamp = saturated, False
    check(entry, mode, clamp)
    modifiers = instruction.modifiers
    picked, to = operands.picked(instruction, entry)
    given = list(picked)
    if len(given) < len(entry.src) and entry.src[-1] == "mask":
        given.append(operands.vcc_of(instruction))
    if len(given) < len(entry.src):
        raise RefusedError("with fewer operands")
    crossed, before, active = _crossed(instruction, entry)
    sources = []
    for index, (kind, operand) in enumerate(zip(entry.src, given, strict=False)):
        stand_in = crossed if index == 0 else ""
        if lanes and operand.kind == "v":
            stand_in = lanes.get(operand.index, "")
        sources.append(source(operand, kind, modifiers, index, stand_in))
    places: tuple[int, ...] = ()
    finite = ""
    if mode.fp16_overflow and _TO_FNUZ.search(entry.code):
        places = (instruction.address,)
        finite = f"finite_to_float8(w, {places[0]:#x}, {active}, {', '.join(sources)}); "
    vector = entry.dst[0] not in ("mask", "exec")
    arguments = []
    if vector and to is not None:
        arguments = [active, destination(to, entry.dst[0], clamp, modifiers)]
    elif clamp:
        raise RefusedError("with clamp")
    call = f"{entry.name}{mode.suffix}({', '.join([*arguments, *sources])})"
    masks = [index for index, kind in enumerate(entry.dst) if kind in ("mask", "exec")]
    if masks:
        written = instruction.dst[masks[0] :] or (operands.vcc_of(instruction),)
        call = f"{{ const LaneMask m = {call} & w.exec; {' '.join(map(_set_mask, written))} }}"
    else:
        call += ";"
    return Translated(
        f"{before}{finite}{call}{' }' if before else ''}",
        {f"{entry.name}{mode.suffix}": _operation(entry, mode)},
        places,
    )


def _set_mask(operand: Operand) -> str:
    """Statement that writes the mask m."""
    if operand.kind == "exec":
        return "w.set_exec(m);"
    return set_scalar(operand, "m", 32 * operand.count)


# Text of an entry's operation, made once.
_operation = functools.cache(operands.operation)


def _crossed(one: Instruction, entry: Entry) -> tuple[str, str, str]:
    """What stands for the first source's lanes, statements in front, and the active lanes."""
    modifiers = one.modifiers
    if "dpp_ctrl" not in modifiers and "dpp8" not in modifiers:
        return "", "", "w.active.lane"
    lanes = row(one.src[0])
    if width_of(entry.src[0]) == 64:
        raise RefusedError("with lanes of double registers")
    inactive = str(bool(modifiers.get("fi"))).lower()
    if "dpp8" in modifiers:
        picks = sum(lane << (3 * index) for index, lane in enumerate(modifiers["dpp8"]))
        allowed = f"dpp8(w, t, {lanes}, {picks:#x}, {inactive})"
    else:
        bound = bool(modifiers.get("bound_ctrl"))
        rows, banks = modifiers.get("row_mask", 15), modifiers.get("bank_mask", 15)
        if entry.dst[0] in ("mask", "exec") and not (bound and rows == banks == 15):
            raise RefusedError("with lanes that DPP leaves out")
        control = modifiers["dpp_ctrl"]
        _check_dpp(control, one.family)
        allowed = (
            f"dpp(w, t, {lanes}, {control:#x}, {rows}, {banks}, {str(bound).lower()}, {inactive})"
        )
    before = f"{{ u32* t = w.temporary(0); Row r; const u32* active = lanes_of({allowed}, r); "
    return "t", before, "active"


# Controls of a whole wave, and a row's last lane for those behind it.
_WHOLE_WAVE = (0x130, 0x134, 0x138, 0x13C, 0x142, 0x143)


def _check_dpp(control: int, family: str) -> None:
    """Raise RefusedError for a control that processors of the family do not have."""
    older = family == GFX9.name
    known = control < 0x100 or control in (0x140, 0x141) or control & 0xFF0 == 0x150
    known = known or (control in _WHOLE_WAVE if older else control & 0xFF0 == 0x160)
    if not known and not (control & 0xFF0 in (0x100, 0x110, 0x120) and control & 15):
        raise RefusedError(f"with dpp control {control:#x}")


def dual(x: Instruction, y: Instruction, mode: Mode = USUAL) -> Translated:
    """Both halves of VOPD: they read before either writes."""
    written = x.dst[0].index
    copies: dict[int, str] = {}
    before = ""
    if any(operand.kind == "v" and operand.index == written for operand in y.src):
        copies[written] = "w.temporary(1)"
        before = f"memcpy(w.temporary(1), {row(x.dst[0])}, sizeof(Row)); "
    first, second = entry_of(x.name), entry_of(y.name)
    if first is None or second is None:
        raise RefusedError(x.name if first is None else y.name)
    done, also = vector_value(x, first, mode), vector_value(y, second, mode, copies)
    return Translated(
        f"{{ {before}{done.text} {also.text} }}", {**done.operations, **also.operations}
    )
