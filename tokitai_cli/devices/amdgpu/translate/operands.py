"""C++ of what instructions read and write."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping

import msgspec

from tokitai_cli.devices.amdgpu.isa.families import FAMILIES
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.isa.operand_reader import FLOATS
from tokitai_cli.devices.amdgpu.translate.gfx9 import ZEROES
from tokitai_cli.devices.amdgpu.translate.mode import RESULT, SOURCE, USUAL, Mode
from tokitai_cli.devices.amdgpu.translate.semantics import Entry

VCC, M0 = 106, 125
# (shift, bits) of what SDWA selects by a number, of which the last is the whole register.
PARTS = ((0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32))
WHOLE = 6
_SHARED_BASE, _PRIVATE_BASE, _SCC = 235, 237, 253
WIDTHS = {"f16": 16, "u16": 16, "i16": 16, "b16": 16, "f16_hi": 16, "u64": 64, "i64": 64, "f64": 64}
WIDTHS |= {"pk_f32": 64, "pick": 64}  # pairs of registers
# Type -> C++ type, what gives it of the bits of a lane, what gives bits of it.
_TYPES = {
    "f32": ("float", "f32_of({})", "bits_of({})"),
    "f16": ("float", "f32_of_f16({})", "f16_of({})"),
    "f16_hi": ("float", "f32_of_f16({})", "f16_of({})"),
    "f64": ("double", "f64_of({})", "bits_of({})"),
    "u32": ("u32", "{}", "u32({})"),
    "i32": ("i32", "i32({})", "u32({})"),
    "u16": ("u32", "{}", "(u32({}) & 0xffff)"),
    "b16": ("u32", "{}", "(u32({}) & 0xffff)"),
    "i16": ("i32", "i32(i16({}))", "(u32({}) & 0xffff)"),
    "u64": ("u64", "u64({})", "u64({})"),
    "i64": ("i64", "i64({})", "u64({})"),
    "mask": ("bool", "{}", "{}"),
    "iu8": ("u64", "{}", ""),
    "signs": ("u64", "(u64({}) | u64(1) << 32)", ""),
    "pick": ("u32", "u32({})", ""),
    "pair_f16": ("u32", "{}", "{}"),
    "pair_bf16": ("u32", "{}", "{}"),
}
SOURCES = "abcm"
_INLINE = ("int", "float")
_FIRST_FLOAT = 240  # among the numbers of operands
_LEAST_NORMAL = {"f32": "0x1p-126f", "mix": "0x1p-126f", "f16": "0x1p-14f", "f64": "0x1p-1022"}
_SIGN = {16: 0x8000, 32: 0x80000000, 64: 1 << 63}


class RefusedError(Exception):
    """An instruction, or a form of it, that the table does not have; str() names it."""


class Translated(msgspec.Struct, frozen=True):
    """Statements of one instruction, and the operations that they call, by name."""

    text: str
    operations: Mapping[str, str] = {}
    places: tuple[int, ...] = ()


Writer = Callable[[Instruction, Entry], Translated]


def scalar_type(kind: str) -> tuple[str, str]:
    """C++ type of a scalar operand, and the pattern that makes it of the register's bits."""
    return _TYPES[kind][0], _TYPES[kind][1]


def bits_of(kind: str, value: str) -> str:
    """Expression for the bits of a value of a type."""
    return _TYPES[kind][2].format(value)


def width_of(kind: str) -> int:
    """Bits of a type."""
    return WIDTHS.get(kind, 32)


def scalar(operand: Operand, width: int) -> str:
    """Expression for the bits of an operand that is the same in all lanes."""
    kind, index = operand.kind, operand.index
    wide = width == 64
    if kind in ("int", "float", "literal", "simm"):
        return f"u64({operand.value:#x})" if wide else f"{operand.value & 0xFFFFFFFF:#x}u"
    text = ""
    if kind in ("s", "vcc"):
        number = index if kind == "s" else VCC + index
        text = f"w.pair({number})" if wide else f"w.s[{number}]"
    elif kind == "exec":
        text = "u64(w.exec)" if wide else f"mask_part(w.exec, {index})"
    elif kind == "m0":
        text = f"w.s[{M0}]"
    elif kind == "null":
        text = "0u"
    elif kind == "scc" or (kind == "special" and index == _SCC):
        text = "w.scc"
    elif kind == "special" and wide and index in (_SHARED_BASE, _PRIVATE_BASE):
        aperture = "lds_aperture" if index == _SHARED_BASE else "scratch_aperture"
        text = f"u64({aperture}) << 32"
    if not text:
        raise RefusedError(f"reads {kind} {index}")
    return text


def set_scalar(operand: Operand, value: str, width: int = 32) -> str:
    """Statement that writes a scalar destination."""
    kind, index, wide = operand.kind, operand.index, width == 64
    if kind in ("s", "vcc"):
        number = index if kind == "s" else VCC + index
        return f"w.set_pair({number}, {value});" if wide else f"w.s[{number}] = {value};"
    if kind == "exec":
        return f"w.set_exec({value});" if wide else f"w.set_exec_part({value}, {index});"
    if kind == "m0":
        return f"w.s[{M0}] = {value};"
    if kind == "null":
        return f"(void)({value});"
    raise RefusedError(f"writes {kind} {index}")


def row(operand: Operand) -> str:
    """Pointer to the lanes of a vector register."""
    if operand.kind != "v":
        raise RefusedError(f"a {operand.kind} where a vector register is known")
    return f"w.v[{operand.index}].lane"


def source(
    operand: Operand, kind: str, modifiers: dict[str, object], at: int, lanes: str = ""
) -> str:
    """A source of a vector operation; `at` is its number, `lanes` stands for its register's."""
    if kind == "mask":
        return f"Mask{{{scalar(operand, 32 * operand.count)}}}"
    text = _unsigned(operand, kind, modifiers, at, lanes)
    if kind == "mix":
        return _mixed(operand, text, modifiers, at)
    if kind == "pick":
        return f"Pick<decltype({text})>{{{text}, {32 * _bit(modifiers, 'op_sel', at)}}}"
    if kind.startswith(("pk_", "pair_")):
        return _picked(operand, text, modifiers, at, 32 if kind == "pk_f32" else 16)
    if kind == "iu8":
        return f"Bytes<decltype({text})>{{{text}, {_bit(modifiers, 'neg_lo', at)}ull << 32}}"
    return _with_sign(operand, text, width_of(kind))


def _unsigned(
    operand: Operand, kind: str, modifiers: dict[str, object], at: int, lanes: str
) -> str:
    """Bits of a source, of which a sign or a half is taken yet."""
    width = width_of(kind)
    if (part := modifiers.get(f"src{at}_sel", WHOLE)) != WHOLE:
        return _part(operand, lanes, part, bool(_bit(modifiers, "sext", at)), width)
    if operand.kind == "v":
        lanes = lanes or row(operand)
        halved = width == 16 and kind != "mix"
        return f"Half<{16 * (operand.half or 0)}>{{{lanes}}}" if halved else f"V{{{lanes}}}"
    if kind == "pk_f32" and operand.kind in _INLINE:
        return f"S64{{{_lower_float(operand, modifiers, at):#x}}}"
    if width == 16 and operand.kind == "float" and operand.index:
        return f"S{{{inline_float(operand, '<e'):#x}u}}"
    if width == 64:
        return f"S64{{{scalar(operand, 64)}}}"
    bits = scalar(operand, 32)
    shift = f" >> {16 * operand.half}" if operand.half else ""
    return f"S{{({bits}{shift}) & 0xffff}}" if width == 16 else f"S{{{bits}}}"


def _with_sign(operand: Operand, text: str, width: int) -> str:
    if not (operand.neg or operand.abs):
        return text
    sign = _SIGN[width]
    whole = (1 << width) - 1
    keep, flip = whole ^ sign if operand.abs else whole, sign if operand.neg else 0
    name, suffix = ("Signed64", "ull") if width == 64 else ("Signed", "u")
    return f"{name}<decltype({text})>{{{text}, {keep:#x}{suffix}, {flip:#x}{suffix}}}"


def vcc_of(instruction: Instruction) -> Operand:
    """The mask vcc of a wave."""
    return Operand("vcc", 0, FAMILIES[instruction.family].mask)


def _part(operand: Operand, lanes: str, part: object, extended: bool, width: int) -> str:
    """The byte or word of a register that SDWA selects."""
    assert isinstance(part, int)
    text = f"V{{{lanes or row(operand)}}}" if operand.kind == "v" else f"S{{{scalar(operand, 32)}}}"
    if width == 64:
        raise RefusedError("with a part of a double register")
    shift, bits = PARTS[part]
    return f"Part<decltype({text}), {shift}, {bits}, {int(extended)}, {width}>{{{text}}}"


def _bit(modifiers: Mapping[str, object], name: str, at: int) -> int:
    value = modifiers.get(name, 0)
    assert isinstance(value, int)
    return value >> at & 1


def _mixed(operand: Operand, text: str, modifiers: dict[str, object], at: int) -> str:
    half = _bit(modifiers, "op_sel_hi", at)
    sign = _SIGN[16 if half else 32]
    whole = 2 * sign - 1
    absolute = operand.abs or _bit(modifiers, "neg_hi", at)
    negated = operand.neg or _bit(modifiers, "neg_lo", at)
    signs = f"{whole ^ sign if absolute else whole:#x}u, {sign if negated else 0:#x}u"
    if not half:
        return f"MixWhole<decltype({text})>{{{text}, {signs}}}"
    shift = 16 * _bit(modifiers, "op_sel", at)
    if shift and operand.kind in _INLINE:
        raise RefusedError("with op_sel of an inline constant")
    return f"MixHalf<decltype({text})>{{{text}, {shift}, {signs}}}"


def _picked(
    operand: Operand, text: str, modifiers: Mapping[str, object], at: int, size: int
) -> str:
    """The two parts of `size` bits that op_sel picks, with their signs."""
    low, high = size * _bit(modifiers, "op_sel", at), size * _bit(modifiers, "op_sel_hi", at)
    flip = _bit(modifiers, "neg_lo", at) << size - 1
    flip |= _bit(modifiers, "neg_hi", at) << 2 * size - 1
    if operand.neg or operand.abs:
        raise RefusedError("a packed operand with a sign of the whole")
    name, suffix = ("PickedPair", "ull") if size == 32 else ("Picked", "u")
    return f"{name}<decltype({text})>{{{text}, {low}, {high}, {flip:#x}{suffix}}}"


def inline_float(operand: Operand, form: str) -> int:
    """Bits of an inline float in a format of `struct`, of which the decoder may have had another."""
    return int.from_bytes(struct.pack(form, FLOATS[operand.index - _FIRST_FLOAT]), "little")


def _lower_float(operand: Operand, modifiers: Mapping[str, object], at: int) -> int:
    """An inline constant beside pairs of floats, which is one in the lower half."""
    if _bit(modifiers, "op_sel", at) or _bit(modifiers, "op_sel_hi", at):
        raise RefusedError("with the upper half of an inline constant")
    if operand.kind == "int":
        return operand.value & 0xFFFFFFFF
    return inline_float(operand, "<f")


def destination(operand: Operand, kind: str, clamp: bool, modifiers: Mapping[str, object]) -> str:
    """A vector destination."""
    lanes = row(operand)
    part = modifiers.get("dst_sel", WHOLE)
    if part != WHOLE:
        assert isinstance(part, int)
        shift, bits = PARTS[part]
        text = f"PartD<{shift}, {bits}, {modifiers['dst_unused']}>{{{lanes}}}"
    elif width_of(kind) == 16 and modifiers.get(ZEROES):
        text = f"D{{{lanes}}}"
        if clamp and kind == "f16":
            return f"Clamped16<D>{{{text}}}"
    elif width_of(kind) == 16:
        shift = 16 if kind == "f16_hi" else 16 * (operand.half or 0)
        text = f"HalfD<{shift}>{{{lanes}}}"
        if clamp and kind.startswith("f16"):
            return f"Clamped16<HalfD<{shift}>>{{{text}}}"
    else:
        text = f"D{{{lanes}}}"
        if clamp and kind == "f32":
            return f"Clamped32{{{text}}}"
    if clamp:
        raise RefusedError("with clamp")
    return text


def operation(entry: Entry, mode: Mode = USUAL) -> str:
    """The function that does a vector operation in all lanes: a template of its operands' kinds."""
    vector = entry.dst[0] not in ("mask", "exec")
    names = [f"class T{index}" for index in range(len(entry.src))]
    given = [f"T{index} {SOURCES[index]}_" for index in range(len(entry.src))]
    head = ", ".join(["class To"] * vector + names)
    parameters = ", ".join(["const u32* active, To to"] * vector + given)
    masked = any(kind in ("mask", "exec") for kind in entry.dst)
    packed = entry.dst[0].startswith("pk_")
    body = _packed_body(entry, mode) if packed else _body(entry, mode, vector)
    returned = (
        ("LaneMask", "  LaneMask made = 0;\n", "  return made;\n") if masked else ("void", "", "")
    )
    start = f"template <{head}>\n" if head else ""
    return (
        f"{start}TOKITAI_OP {returned[0]} {entry.name}{mode.suffix}({parameters}) {{\n{returned[1]}"
        f"  TOKITAI_LANES {{\n{body}  }}\n{returned[2]}}}\n"
    )


def code_of(entry: Entry, mode: Mode) -> str:
    """C++ of an entry's values in a mode."""
    code = entry.code
    if mode.fp16_overflow:
        code = re.sub(r"\bf8_of<(\d)(, true)?>", _saturated, code)
    if mode.ieee:
        return code
    return re.sub(r"\b(least|greatest|middle_float)\(", r"\1<false>(", code)


def _saturated(made: re.Match[str]) -> str:
    return f"f8_of<{made[1]}{made[2] or ', false'}, true>"


def flushed(kind: str, value: str, mode: Mode, bit: int) -> str:
    """A value of a type, its denormals flushed where the mode does so. bit: SOURCE or RESULT."""
    if mode.denorm_of(kind) >> bit & 1:
        return value
    return f"normal({value}, {_LEAST_NORMAL[kind.removesuffix('_hi')]})"


def rounded_bits(kind: str, value: str, mode: Mode) -> str:
    """Bits of a result in a mode."""
    value = flushed(kind, value, mode, RESULT)
    if mode.fp16_overflow and kind.startswith("f16"):
        return f"f16_saturated({value})"
    return bits_of(kind, value)


def _body(entry: Entry, mode: Mode, vector: bool) -> str:
    """What is done in each lane."""
    lines = [_taken(entry, mode, index) for index in range(len(entry.src))]
    kind = entry.dst[0]
    made, pattern, _ = _TYPES.get(kind, ("", "", ""))
    wide = width_of(kind) == 64
    code = code_of(entry, mode)
    if vector:
        if "old" in code:
            held = f"to.{'wide' if wide else 'bits'}(l)"
            old = flushed(kind, pattern.format(held), mode, SOURCE)
            lines.append(f"const {made} old = {old};")
        lines.append(f"{'double' if entry.approximate == '~' else made} d;")
    masked = len(entry.dst) > vector
    if masked:
        lines.append("bool e;")
    if not code.endswith(";"):
        code = f"d = {code};" if vector else f"e = ({code}) != 0;"
    lines.append(code)
    if vector:
        bits = rounded_bits(kind, "d", mode)
        if entry.approximate in ("~", "~~~"):
            bits = f"near_{kind}({flushed(kind, 'd', mode, RESULT)})"
        lines.append(f"to.{'put_wide' if wide else 'put'}(l, active[l], {bits});")
    if masked:
        lines.append("made |= LaneMask(e) << l;")
    return "".join(f"    {line}\n" for line in lines)


def _taken(entry: Entry, mode: Mode, index: int) -> str:
    """Definition of a source's value in a lane."""
    kind, name = entry.src[index], SOURCES[index]
    if kind == "mix":
        return f"const float {name} = {flushed(kind, f'{name}_.mixed(l)', mode, SOURCE)};"
    made, pattern, _ = _TYPES[kind]
    value = pattern.format(f"{name}_.{'wide' if width_of(kind) == 64 else 'bits'}(l)")
    value = flushed(kind, value, mode, SOURCE)
    if entry.approximate == "~":
        value = f"flushed({value}, {_LEAST_NORMAL[kind]})"
    return f"const {made} {name} = {value};"


def _packed_body(entry: Entry, mode: Mode) -> str:
    """Both halves, each for itself."""
    names = SOURCES[: len(entry.src)]
    size = width_of(entry.dst[0].removeprefix("pk_"))
    word, get, put = ("u64", "wide", "put_wide") if size == 32 else ("u32", "bits", "put")
    mask = "0xffffffff" if size == 32 else "0xffff"
    lines = [f"const {word} {name}w = {name}_.{get}(l);" for name in names]
    if "old" in entry.code:
        lines.append(f"const {word} oldw = to.{get}(l);")
        names += "o"
    lines.append(f"{word} both = 0;")
    lines.append(f"for (int half = 0; half < {2 * size}; half += {size}) {{")
    for index, name in enumerate(names):
        kind = (entry.src[index] if name != "o" else entry.dst[0]).removeprefix("pk_")
        made, pattern, _ = _TYPES[kind]
        whole = "oldw" if name == "o" else f"{name}w"
        part = pattern.format(f"({'u32' if size == 32 else ''}({whole} >> half & {mask}))")
        value = flushed(kind, part, mode, SOURCE)
        lines.append(f"  const {made} {'old' if name == 'o' else name} = {value};")
    bits = rounded_bits(entry.dst[0].removeprefix("pk_"), code_of(entry, mode), mode)
    lines.append(f"  both |= {word}({bits}) << half;")
    lines += ["}", f"to.{put}(l, active[l], both);"]
    return "".join(f"    {line}\n" for line in lines)


def picked(instruction: Instruction, entry: Entry) -> tuple[tuple[Operand, ...], Operand | None]:
    """Sources, and the destination if any, of an instruction with the halves that VOP3's op_sel picks.

    Raises RefusedError for modifiers that change what an instruction does and are not known.
    """
    modifiers = instruction.modifiers
    if modifiers.get("omod"):
        raise RefusedError("with omod")
    to = instruction.dst[0] if instruction.dst else None
    picks = modifiers.get("op_sel", 0)
    if instruction.encoding == "VOP3P" or not picks:
        return instruction.src, to
    sources = list(instruction.src)
    for at, (operand, kind) in enumerate(zip(instruction.src[:3], entry.src, strict=False)):
        if picks >> at & 1:
            if operand.kind in _INLINE:
                raise RefusedError("with op_sel of an inline constant")
            if width_of(kind) != 16:
                raise RefusedError("with op_sel of whole registers")
            sources[at] = msgspec.structs.replace(operand, half=1)
    if picks >> 3:
        if to is None or width_of(entry.dst[0]) != 16:
            raise RefusedError("with op_sel of whole registers")
        to = msgspec.structs.replace(to, half=1)
    return tuple(sources), to
