"""Machine code of a kernel to a C++ function that runs one wave until its next barrier or its end.

A function begins where the wave's pc says; it returns at s_barrier, and now and then from a loop, so
that other waves of the block have their turns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from tokitai_cli.gfx.code.instruction import Instruction, Operand
from tokitai_cli.gfx.run import operands
from tokitai_cli.gfx.run.operands import (
    RefusedError,
    destination,
    row,
    scalar,
    set_scalar,
    source,
    width_of,
)
from tokitai_cli.gfx.run.semantics import Entry, entry_of

_VCC_LOW = Operand("vcc")
# Of s_sendmsg: the wave's vector registers may be given to others.
_DEALLOC_VGPRS = 3


class Translated(msgspec.Struct, frozen=True):
    """Statements of one instruction, and the operations that they call, by name."""

    text: str
    operations: Mapping[str, str] = {}
    places: tuple[int, ...] = ()


class Body(msgspec.Struct, frozen=True):
    """A translated kernel: the C++ function, operations by name, addresses that findings may name."""

    text: str
    operations: Mapping[str, str]
    places: tuple[int, ...]


def refused(instructions: Iterable[Instruction]) -> tuple[str, ...]:
    """Instructions, or forms of them, that cannot be translated: names, in order."""
    found = set()
    for instruction in instructions:
        try:
            statement(instruction)
        except RefusedError as error:
            found.add(str(error))
    return tuple(sorted(found))


def called(instructions: Sequence[Instruction]) -> set[int]:
    """Addresses that code makes of its own place and a literal: those of functions among them."""
    made = set()
    for index, one in enumerate(instructions):
        if one.name != "s_getpc_b64":
            continue
        for add in instructions[index + 1 : index + 5]:
            literal = add.src[-1] if add.name == "s_add_u32" else None
            if literal and literal.kind == "literal" and add.dst[0].index == one.dst[0].index:
                offset = literal.value - (literal.value >> 31 << 32)
                made.add(one.address + one.size + offset)
    return made


def reached(
    instructions: Sequence[Instruction], entry: int, functions: Iterable[int] = ()
) -> list[Instruction]:
    """Those that a wave can come to from `entry`: behind the code, a compiler may put other bytes.

    functions: further addresses that it may call, where it calls any.
    """
    by_address = {one.address: one for one in instructions}
    found: dict[int, Instruction] = {}
    waiting = [entry]
    if any(_kind(one) == "call" for one in instructions):
        waiting += [*called(instructions), *functions]
    while waiting:
        at = waiting.pop()
        one = by_address.get(at)
        if one is None or at in found:
            continue
        found[at] = one
        kind = _kind(one)
        if kind == "branch":
            waiting.append(one.modifiers["target"])
        if kind not in {"end", "trap", "jump"} and one.name != "s_branch":
            waiting.append(at + one.size)
    return [found[at] for at in sorted(found)]


def translate(
    instructions: Sequence[Instruction], function: str, entry: int, functions: Iterable[int] = ()
) -> Body:
    """C++ function of a kernel whose code begins at `entry`. Raises RefusedError.

    instructions: those that are reached, in the order of their addresses.
    """
    targets = {one.modifiers["target"] for one in instructions if "target" in one.modifiers}
    known = {one.address for one in instructions}
    if targets - known:
        raise RefusedError("a branch out of the kernel")
    calls = any(_kind(one) == "call" for one in instructions)
    resumed = {entry, *(known & {*called(instructions), *functions} if calls else ())}
    lines: list[str] = []
    made: dict[str, str] = {}
    places: list[int] = []
    for one in instructions:
        done = statement(one)
        made.update(done.operations)
        places += done.places
        after = one.address + one.size
        kind = _kind(one)
        if kind in {"barrier", "call"}:
            resumed.add(after)
        elif kind == "branch" and one.modifiers["target"] <= one.address:
            resumed.add(one.modifiers["target"])
        lines.append(f"L_{one.address:x}: {done.text}")
    labels = targets | resumed
    dispatch = "".join(f"    case {at:#x}: goto L_{at:x};\n" for at in sorted(resumed))
    body = "\n".join(
        line if at in labels else line.partition(": ")[2]
        for line, at in zip(lines, (one.address for one in instructions), strict=True)
    )
    text = (
        f"static void {function}(Wave& w) {{\n{'dispatch:' if calls else ''}\n"
        f"  switch (w.pc) {{\n{dispatch}"
        f"    default: return lost(w);\n  }}\n{body}\n  lost(w);\n}}\n"
    )
    return Body(text, made, tuple(places))


def _kind(instruction: Instruction) -> str:
    entry = entry_of(instruction.name)
    return entry.kind if entry else ""


def statement(instruction: Instruction) -> Translated:
    """Statements of an instruction. Raises RefusedError, which names it."""
    try:
        if instruction.x is not None and instruction.y is not None:
            return _dual(instruction.x, instruction.y)
        return _single(instruction)
    except RefusedError as error:
        said = str(error)
        name = instruction.name
        raise RefusedError(
            said if said.startswith(name) or not said else f"{name} {said}"
        ) from None


def _single(one: Instruction) -> Translated:
    entry = entry_of(one.name)
    if entry is None:
        raise RefusedError(one.name)
    if entry.kind == "value":
        return _vector(one, entry) if one.name.startswith("v_") else _scalar(one, entry)
    return _KINDS[entry.kind](one, entry)


# --- values


def _scalar(one: Instruction, entry: Entry) -> Translated:
    lines = []
    given = list(one.src)
    for name, kind, operand in zip("ab", entry.src, given, strict=False):
        made, pattern = operands.scalar_type(kind)
        value = pattern.format(scalar(operand, width_of(kind)))
        lines.append(f"const {made} {name} = {value};")
    if len(given) < len(entry.src):
        raise RefusedError("with fewer operands")
    if entry.dst:
        kind = entry.dst[0]
        made, pattern = operands.scalar_type(kind)
        if "old" in entry.code:
            lines.append(
                f"const {made} old = {pattern.format(scalar(one.dst[0], width_of(kind)))};"
            )
        lines.append(f"{made} d;")
    code = entry.code
    if "scc" in code:
        lines.append(f"bool scc = w.scc != 0; {code} w.scc = scc;")
    else:
        lines.append(code)
    if entry.dst:
        width = width_of(entry.dst[0])
        lines.append(set_scalar(one.dst[0], f"u{width}(d)", width))
    return Translated("{ " + " ".join(lines) + " }")


def _vector(one: Instruction, entry: Entry, lanes: Mapping[int, str] | None = None) -> Translated:
    """lanes: what stands for a vector register, by its number, where it was copied."""
    clamp = bool(one.modifiers.get("clamp"))
    saturated = entry_of(f"{one.name}_clamp") if clamp else None
    if saturated is not None:
        entry, clamp = saturated, False
    modifiers = one.modifiers
    picked, to = operands.picked(one, entry)
    given = list(picked)
    if len(given) < len(entry.src) and entry.src[-1] == "mask":
        given.append(_VCC_LOW)
    if len(given) < len(entry.src):
        raise RefusedError("with fewer operands")
    crossed, before, active = _crossed(one, entry)
    sources = []
    for index, (kind, operand) in enumerate(zip(entry.src, given, strict=False)):
        stand_in = crossed if index == 0 else ""
        if lanes and operand.kind == "v":
            stand_in = lanes.get(operand.index, "")
        sources.append(source(operand, kind, modifiers, index, stand_in))
    vector = entry.dst[0] not in ("mask", "exec")
    arguments = []
    if vector and to is not None:
        arguments = [active, destination(to, entry.dst[0], clamp)]
    elif clamp:
        raise RefusedError("with clamp")
    call = f"{entry.name}({', '.join([*arguments, *sources])})"
    masks = [index for index, kind in enumerate(entry.dst) if kind in ("mask", "exec")]
    if masks:
        if masks[0] >= len(one.dst):
            call = set_scalar(_VCC_LOW, f"{call} & w.exec")
        else:
            call = set_scalar(one.dst[masks[0]], f"{call} & w.exec")
    else:
        call += ";"
    return Translated(f"{before}{call}{' }' if before else ''}", {entry.name: _operation(entry)})


# Text of an entry's operation, made once.
_operation = functools.cache(operands.operation)


def _crossed(one: Instruction, entry: Entry) -> tuple[str, str, str]:
    """What stands for the first source's lanes, statements in front, and the active lanes."""
    modifiers = one.modifiers
    if "dpp_ctrl" not in modifiers and "dpp8" not in modifiers:
        return "", "", "w.active.lane"
    lanes = row(one.src[0])
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
        _check_dpp(control)
        allowed = (
            f"dpp(w, t, {lanes}, {control:#x}, {rows}, {banks}, {str(bound).lower()}, {inactive})"
        )
    before = f"{{ u32* t = w.temporary(0); Row r; const u32* active = lanes_of({allowed}, r); "
    return "t", before, "active"


def _check_dpp(control: int) -> None:
    """Raise RefusedError for a control that gfx11 does not have."""
    known = control < 0x100 or control in (0x140, 0x141) or control & 0xFF0 in (0x150, 0x160)
    if not known and not (control & 0xFF0 in (0x100, 0x110, 0x120) and control & 15):
        raise RefusedError(f"with dpp control {control:#x}")


def _dual(x: Instruction, y: Instruction) -> Translated:
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
    done, also = _vector(x, first), _vector(y, second, copies)
    return Translated(
        f"{{ {before}{done.text} {also.text} }}", {**done.operations, **also.operations}
    )


# --- control


def _none(one: Instruction, entry: Entry) -> Translated:
    del one, entry
    return Translated(";")


def _end(one: Instruction, entry: Entry) -> Translated:
    del one, entry
    return Translated("{ w.state = State::ended; return; }")


def _barrier(one: Instruction, entry: Entry) -> Translated:
    del entry
    after = one.address + one.size
    return Translated(f"{{ w.pc = {after:#x}; w.state = State::at_barrier; return; }}")


def _branch(one: Instruction, entry: Entry) -> Translated:
    target = one.modifiers["target"]
    go = f"goto L_{target:x};"
    if target <= one.address:
        go = f"{{ if (!--w.turns) {{ w.pc = {target:#x}; return; }} {go} }}"
    return Translated(f"if ({entry.code}) {go}" if entry.code != "1" else go)


def _sendmsg(one: Instruction, entry: Entry) -> Translated:
    del entry
    if one.modifiers.get("simm16") != _DEALLOC_VGPRS:
        raise RefusedError("of another message than dealloc_vgprs")
    return Translated(";")


def _trap(one: Instruction, entry: Entry) -> Translated:
    del entry
    return Translated(f"return trapped(w, {one.address:#x});", places=(one.address,))


def _saveexec(one: Instruction, entry: Entry) -> Translated:
    before = f"const u32 e = w.exec, a = {scalar(one.src[0], 32)}, made = {entry.code};"
    save = set_scalar(one.dst[0], "e")
    return Translated(f"{{ {before} {save} w.set_exec(made); w.scc = made != 0; }}")


def _wrexec(one: Instruction, entry: Entry) -> Translated:
    before = f"const u32 e = w.exec, a = {scalar(one.src[0], 32)}, made = {entry.code};"
    save = set_scalar(one.dst[0], "made")
    return Translated(f"{{ {before} w.set_exec(made); {save} w.scc = made != 0; }}")


def _getpc(one: Instruction, entry: Entry) -> Translated:
    del entry
    value = f"code_at(w, {one.address + one.size:#x})"
    return Translated(set_scalar(one.dst[0], value, 64))


def _jump(one: Instruction, entry: Entry) -> Translated:
    """To an address in a register; a call keeps the one behind it."""
    lines = [f"const u64 to = {scalar(one.src[0], 64)} - code_at(w, 0);"]
    if entry.kind == "call":
        lines.append(set_scalar(one.dst[0], f"code_at(w, {one.address + one.size:#x})", 64))
    lines.append("w.pc = to >> 32 ? ~0u : u32(to); goto dispatch;")
    return Translated(f"{{ {' '.join(lines)} }}")


# --- lanes


def _readfirstlane(one: Instruction, entry: Entry) -> Translated:
    del entry
    if one.src[0].kind != "v":
        return Translated(set_scalar(one.dst[0], scalar(one.src[0], 32)))
    return Translated(set_scalar(one.dst[0], f"{row(one.src[0])}[first_lane(w)]"))


def _readlane(one: Instruction, entry: Entry) -> Translated:
    del entry
    return Translated(set_scalar(one.dst[0], f"{row(one.src[0])}[{scalar(one.src[1], 32)} & 31]"))


def _writelane(one: Instruction, entry: Entry) -> Translated:
    del entry
    lane = f"{row(one.dst[0])}[{scalar(one.src[1], 32)} & 31]"
    return Translated(f"{lane} = {scalar(one.src[0], 32)};")


def _swap(one: Instruction, entry: Entry) -> Translated:
    kind = "b16" if entry.name.endswith("b16") else "u32"
    first, second = one.dst[0], one.src[0]
    copies = [f"const u32 x = {source(first, kind, {}, 0)}.bits(l)"]
    copies.append(f"y = {source(second, kind, {}, 0)}.bits(l)")
    puts = [
        f"{destination(operand, kind, False)}.put(l, w.active.lane[l], {name});"
        for operand, name in ((first, "y"), (second, "x"))
    ]
    return Translated(f"TOKITAI_LANES {{ {', '.join(copies)}; {' '.join(puts)} }}")


def _movrel(one: Instruction, entry: Entry) -> Translated:
    to, value = row(one.dst[0]), source(one.src[0], "u32", {}, 0)
    moved = "(({} + w.s[125]) & 255)"
    if entry.name == "v_movreld_b32":
        to = f"w.v[{moved.format(one.dst[0].index)}].lane"
    else:
        value = f"V{{w.v[{moved.format(one.src[0].index)}].lane}}"
    return Translated(
        f"{{ const auto from = {value}; const D to{{{to}}}; "
        "TOKITAI_LANES to.put(l, w.active.lane[l], from.bits(l)); }"
    )


def _permlane(one: Instruction, entry: Entry) -> Translated:
    picks = one.modifiers.get("op_sel", 0)
    other = str(entry.name.startswith("v_permlanex")).lower()
    return Translated(
        f"permlane16(w, D{{{row(one.dst[0])}}}, V{{{row(one.src[0])}}}, {scalar(one.src[1], 32)}, "
        f"{scalar(one.src[2], 32)}, {other}, {picks & 1}, {picks >> 1 & 1});"
    )


def _permute(one: Instruction, entry: Entry) -> Translated:
    offset = one.modifiers.get("offset", 0)
    to, address, data = row(one.dst[0]), row(one.src[0]), row(one.src[1])
    return Translated(f"ds_{entry.kind}(w, D{{{to}}}, {address}, {data}, {offset});")


def _swizzle(one: Instruction, entry: Entry) -> Translated:
    del entry
    pattern = one.modifiers.get("offset", 0)
    if pattern >= 0xE000:
        raise RefusedError("of an FFT")
    return Translated(f"ds_swizzle(w, D{{{row(one.dst[0])}}}, {row(one.src[0])}, {pattern:#x});")


# --- memory


def _space(one: Instruction) -> str:
    return {"ds": "Lds", "global": "Global", "flat": "Flat", "scratch": "Scratch"}[
        one.name.partition("_")[0]
    ]


def _address(one: Instruction, offset: int | None = None) -> str:
    """Where each lane accesses memory."""
    space, first, saddr = _space(one), one.src[0], one.src[-1]
    offset = one.modifiers.get("offset", 0) if offset is None else offset
    if one.modifiers.get("gds"):
        raise RefusedError("of GDS")
    if space == "Lds":
        return f"Ranged{{{row(first)}, {offset}u}}"
    based = saddr.kind != "null" and (space == "Scratch" or len(one.src) > 1)
    if space == "Scratch":
        base = (
            f"{scalar(saddr, 32)} + {offset & 0xFFFFFFFF:#x}u"
            if based
            else f"{offset & 0xFFFFFFFF:#x}u"
        )
        return (
            f"Uniform{{u32({base})}}" if first.kind == "null" else f"Narrow{{{row(first)}, {base}}}"
        )
    if space == "Flat" or not based:
        return f"Wide{{{row(first)}, {offset}}}"
    base = f"{scalar(saddr, 64)} + u64(i64({offset}))"
    return f"Uniform{{{base}}}" if first.kind == "null" else f"Based{{{base}, {row(first)}}}"


def _load(one: Instruction, entry: Entry) -> Translated:
    what, place = entry.code.split(",")
    if one.dst[0].half == 1 and place == "whole":
        raise RefusedError("into a high half")
    kinds = f"{_space(one)}, {what}, {place}"
    call = f"load<{kinds}>(w, {one.address:#x}, {row(one.dst[0])}, {_address(one)});"
    return Translated(call, places=(one.address,))


def _store(one: Instruction, entry: Entry) -> Translated:
    size, shift = entry.code.split(",")
    data = one.src[1]
    shift = "16" if data.half == 1 else shift
    kinds = f"{_space(one)}, {size}, {shift}"
    call = f"store<{kinds}>(w, {one.address:#x}, {_address(one)}, V{{{row(data)}}});"
    return Translated(call, places=(one.address,))


def _two(one: Instruction, entry: Entry) -> Translated:
    dwords, scale = (int(word) for word in entry.code.split(","))
    calls = []
    for index, key in enumerate(("offset0", "offset1")):
        address = _address(one, one.modifiers.get(key, 0) * scale)
        if entry.kind == "load2":
            to = f"w.v[{one.dst[0].index + index * dwords}].lane"
            # The address may be overwritten by the first of both.
            address = address.replace(row(one.src[0]), "w.temporary(2)")
            calls.append(f"load<Lds, B{32 * dwords}, whole>(w, {one.address:#x}, {to}, {address});")
        else:
            data = row(one.src[1 + index])
            calls.append(
                f"store<Lds, {4 * dwords}, 0>(w, {one.address:#x}, {address}, V{{{data}}});"
            )
    if entry.kind == "load2":
        calls.insert(0, f"memcpy(w.temporary(2), {row(one.src[0])}, sizeof(Row));")
    return Translated("{ " + " ".join(calls) + " }", places=(one.address,))


def _atomic(one: Instruction, entry: Entry) -> Translated:
    made = _c_type(entry.dst[0])
    data = row(one.src[1])
    to = row(one.dst[0]) if one.dst else "nullptr"
    code = f"const {made} a = from_lane<{made}>(data, l); return {made}({entry.code});"
    call = (
        f"{{ const u32* data = {data}; atomic<{_space(one)}, {made}>(w, {one.address:#x}, {to}, "
        f"{_address(one)}, [=]({made} old, u32 l) {{ (void)old; {code} }}); }}"
    )
    return Translated(call, places=(one.address,))


def _cmpswap(one: Instruction, entry: Entry) -> Translated:
    made = _c_type(entry.dst[0])
    dwords = 2 if made == "u64" else 1
    data = row(one.src[1])
    # Of LDS the second operand is what is compared with, elsewhere the upper half of one.
    compared = row(one.src[2]) if _space(one) == "Lds" else f"{data} + {32 * dwords}"
    to = row(one.dst[0]) if one.dst else "nullptr"
    code = f"return old == from_lane<{made}>(compared, l) ? from_lane<{made}>(data, l) : old;"
    call = (
        f"{{ const u32 *data = {data}, *compared = {compared}; atomic<{_space(one)}, {made}>(w, "
        f"{one.address:#x}, {to}, {_address(one)}, [=]({made} old, u32 l) {{ {code} }}); }}"
    )
    return Translated(call, places=(one.address,))


def _c_type(kind: str) -> str:
    return {"f32": "float"}.get(kind, kind)


def _smem(one: Instruction, entry: Entry) -> Translated:
    to = one.dst[0]
    if to.kind not in ("s", "vcc"):
        raise RefusedError(f"into {to.kind}")
    first = to.index if to.kind == "s" else operands.VCC + to.index
    address = f"{scalar(one.src[0], 64)} + u64(i64({one.modifiers.get('offset', 0)}))"
    for further in one.src[1:]:
        if further.kind not in ("null", "int", "literal", "simm"):
            address += f" + {scalar(further, 32)}"
    call = f"load_scalars(w, {one.address:#x}, {first}, {address}, {entry.code});"
    return Translated(call, places=(one.address,))


_KINDS: dict[str, Callable[[Instruction, Entry], Translated]] = {
    "none": _none,
    "end": _end,
    "barrier": _barrier,
    "branch": _branch,
    "sendmsg": _sendmsg,
    "trap": _trap,
    "saveexec": _saveexec,
    "wrexec": _wrexec,
    "getpc": _getpc,
    "jump": _jump,
    "call": _jump,
    "readfirstlane": _readfirstlane,
    "readlane": _readlane,
    "writelane": _writelane,
    "swap": _swap,
    "movrel": _movrel,
    "permlane": _permlane,
    "bpermute": _permute,
    "permute": _permute,
    "swizzle": _swizzle,
    "load": _load,
    "store": _store,
    "load2": _two,
    "store2": _two,
    "atomic": _atomic,
    "cmpswap": _cmpswap,
    "smem": _smem,
}
