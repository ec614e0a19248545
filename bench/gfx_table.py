"""`python -m bench.gfx_table`: the opcode tables, asked of llvm-mc and ziglang's assembler.

Every opcode of every encoding is disassembled with a register of its own in each field; the text
tells name, operands, their order and widths. Writes tokitai_cli/devices/amdgpu/isa/opcodes.txt.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from tokitai_cli.devices.amdgpu.isa.encodings import Layout
from tokitai_cli.devices.amdgpu.isa.families import GFX9, GFX11, Family


class Asked(msgspec.Struct, frozen=True):
    """How the assemblers are asked of a family."""

    family: Family
    #: Those that llvm-mc is asked for; each stands for all that run the same code.
    arches: tuple[str, ...]
    #: Further words for llvm-mc.
    words: tuple[str, ...]
    #: s_getreg_b32 and s_sendmsg, their constants zero.
    registers: int
    messages: int
    #: Whether operands of 16 bits are halves of registers.
    halved: bool


# gfx1100 stands for gfx1101 to 1103, gfx1151 for gfx1150, 1152 and 1153, gfx942 for gfx940 and 941.
ASKED = {
    "gfx11": Asked(
        GFX11, ("gfx1100", "gfx1151"), ("-mattr=+real-true16",), 0xB8800000, 0xBFB60000, True
    ),
    "gfx9": Asked(GFX9, ("gfx90a", "gfx942", "gfx950"), (), 0xB8800000, 0xBF900000, False),
}
# LLVM 19 does not know gfx950; LLVM 21 ends at some of its words by a fault.
NEWER = {"gfx950": "llvm-mc-22"}
# A field's value in a probe, and how that register is spelled.
PROBES = {
    "D": (10, "v10"), "S": (20, "s20"), "A": (30, "v30"), "B": (50, "v50"), "C": (70, "v70"),
    "X": (90, "v90"), "Y": (110, "v110"), "G": (40, "s40"), "P": (6, "s12"), "R": (15, "s60"),
    "O": (80, "s80"), "K": (0x1234, "0x1234"), "Dy": (57, "v115"),
}  # fmt: skip
SCALARS = {"A": (32, "s32"), "B": (52, "s52"), "C": (72, "s72")}
LITERAL = 0x12345678
# The source that says that a literal stands behind; gfx9 has none of 12 bytes.
LITERAL_BEHIND = 255
# Fields that tell more when they are not zero, and the opcode of a move in VOPD.
MOVE = 8
FILLED = {"glc": 1, "offset0": 3, "offset1": 5, "opy": MOVE, "imm": 1}


TABLE = Path(__file__).resolve().parent.parent / "tokitai_cli/devices/amdgpu/isa/opcodes.txt"
Way = dict[str, tuple[int, str]]


def asked(arch: str) -> Asked:
    """How the assemblers are asked of a processor."""
    return ASKED["gfx11" if arch.startswith("gfx11") else "gfx9"]


def assembler(arch: str) -> str:
    """The llvm-mc that is asked for a processor."""
    return NEWER.get(arch, "llvm-mc-19")


def disassembled(probes: list[bytes], arch: str) -> list[str]:
    """The first instruction of each probe as llvm-mc spells it; empty where it is none."""
    lines = []
    for number, probe in enumerate(probes):
        mark = (0xBF800000 | 20000 + number % 20000).to_bytes(4, "little")
        lines += [",".join(f"{byte:#04x}" for byte in code) for code in (probe + bytes(8), mark)]
    done = subprocess.run(
        [
            *(assembler(arch), "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}"),
            *asked(arch).words,
        ],
        input="\n".join(lines) + "\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    invalid = {
        int(line) // 2 for line in re.findall(r"^<stdin>:(\d+):1: warning", done.stderr, re.M)
    }
    found: list[str] = []
    group: list[str] = []
    for text in done.stdout.splitlines():
        line = text.strip()
        if line == f"s_nop {20000 + len(found) % 20000:#x}":
            first = group[0] if group and len(found) not in invalid else ""
            found.append("" if "Invalid register" in first else first)
            group = []
        elif line and not line.startswith("."):
            group.append(line)
    assert len(found) == len(probes), (len(found), len(probes))
    return found


def probe(layout: Layout, opcode: int, fields: dict[str, int]) -> bytes:
    """An instruction with a literal behind it, which is read if it is wanted."""
    word = layout.encoded(opcode, fields)
    return word.to_bytes(layout.size, "little") + LITERAL.to_bytes(4, "little") * 2


def choices(fields: dict[str, tuple[int, int]], scalar: bool, off: int) -> list[Way]:
    """Ways to fill the fields, the fullest first."""
    options: list[list[tuple[str, int, str]]] = []
    for field in fields:
        if field not in PROBES:
            continue
        value, text = PROBES[field]
        bits = fields[field][1]
        wanted = [(value + 256 if bits == 9 else value, text), (0, "")]
        if field in SCALARS and (bits == 9 or scalar):
            wanted.insert(0 if scalar else 1, SCALARS[field])
        if field == "S" and "op_sel" in fields:  # what VOP3 has there otherwise
            wanted = [(0, "s0")]
        if field == "G":
            wanted[-1] = (off, "")
        options.append([(field, *one) for one in wanted])
    ways = [
        {field: (value, text) for field, value, text in way} for way in itertools.product(*options)
    ]
    return sorted(ways, key=lambda way: sum(not text for _, text in way.values()))


def token(text: str, way: Way) -> str:
    """An operand of the text as the table names it: its field and registers.

    `t` for true16, `a` for one that is an accumulation register by itself.
    """
    if text in {"vcc_lo", "vcc"}:
        return "V"
    if text == f"{LITERAL:#x}" or text == f"{LITERAL & 0xFFFF:#x}":
        return "L"
    if text in {"off", "null", "0", "exec_lo", "exec", "m0"}:
        return ""
    if text.startswith("gpr_idx"):
        return "I"
    match = re.fullmatch(r"([avs])(?:(\d+)(\.[lh])?|\[(\d+):(\d+)\])", text.strip("-|"))
    if match is None:
        return "K"
    first = int(match[2] or match[4])
    count = int(match[5]) - first + 1 if match[4] else 1
    for field, (_, spelled) in way.items():
        letter = "v" if match[1] == "a" else match[1]
        if spelled == f"{letter}{first}" or (spelled == f"v{first}" and field == "D"):
            scalar = match[1] == "s" and field == "D"
            mark = "t" if match[3] else "a" if match[1] == "a" else ""
            return f"{field.lower() if scalar else field}{count}{mark}"
    raise ValueError(f"{text} of no field in {way}")


def operands(text: str) -> list[str]:
    """The operands of an instruction's text, without its modifiers."""
    if re.match(r"s_(wait\w*|delay_alu) ", text):
        return [*text.partition(" ")[2].split(",")[:1], "K"]
    rest = re.sub(r"\(.*?\)", "()", " " + text.partition(" ")[2])
    rest = re.split(r" (?:glc|sc0|offset|op_sel|gds|offen|clamp|dlc|slc|neg_lo|neg_hi|neg)", rest)[
        0
    ]
    return [one.strip() for one in rest.split(",") if one.strip()]


class Found:
    """An instruction that a probe gave."""

    def __init__(self, text: str, way: Way, extra: dict[str, int]) -> None:
        self.name = text.partition(" ")[0]
        self.text = text
        self.fields = {field: value for field, (value, _) in way.items()} | extra
        found = [token(one, way) for one in operands(text)]
        indexes = self.name in {"s_set_gpr_idx_on", "s_set_gpr_idx_mode"}
        self.tokens = ["I" if indexes and one == "K" else one for one in found if one]
        self.flags = ["two"] if "offset0" in text else []


def whole(way: Way, extra: dict[str, int]) -> dict[str, int]:
    """All fields of a probe; nothing is filled where the way fills none."""
    return {field: value for field, (value, _) in way.items()} | (extra if way else {})


def opcodes(name: str, arch: str) -> dict[int, Found]:
    """Every opcode of an encoding; of VOPD those of its first half, of VOPDY those of its second."""
    second = name == "VOPDY"
    family = asked(arch).family
    layout = family.layouts["VOPD" if second else name]
    extra = {field: value for field, value in FILLED.items() if field in layout.fields}
    keys: list[tuple[int, Way]] = []
    for opcode in range(1 << (layout.fields["opy"] if second else layout.op)[1]):
        first = layout.encoded(0 if second else opcode, {}) & 0xFFFFFFFF
        if next(one for one in family.layouts.values() if one.matches(first)) is layout:
            keys += [
                (opcode, way) for way in choices(layout.fields, name.startswith("SO"), family.off)
            ]
            keys.append((opcode, {}))
    probes = []
    for opcode, way in keys:
        fields = whole(way, extra) | ({"opy": opcode} if second else {})
        probes.append(probe(layout, MOVE if second else opcode, fields))
    found: dict[int, Found] = {}
    if name == "DS" and family is GFX9:  # some are there with the global memory alone
        keys += [(opcode, way | {"gds": (1, "")}) for opcode, way in keys if way]
        probes += [probe(layout, opcode, whole(way, extra)) for opcode, way in keys[len(probes) :]]
    for (opcode, way), text in zip(keys, disassembled(probes, arch), strict=True):
        # Without registers nothing tells the operands, but there may be none.
        if text and opcode not in found and (way or not operands(text)):
            found[opcode] = Found(text.split(" :: ")[1 if second else 0], way, extra)
    if name.startswith(("SO", "VOP")) and name not in {"SOPP", "SOPK", "VOPD", "VOPDY"}:
        constants(layout, found, arch)
    if name in {"SOPP", "SOPK"}:
        immediates(layout, found, arch)
    if name == "VOP3":
        op_sel(layout, found, arch)
    return found


def constants(layout: Layout, found: dict[int, Found], arch: str) -> None:
    """Mark sources of 16 bits: `i` where an inline 0.5 is spelled in bits, `f` where as a float."""
    keys = [
        (opcode, field, value)
        for opcode, one in found.items()
        for field in "ABC"
        if one.fields.get(field) and (layout.fields[field][1] == 9 or one.name.startswith("s_"))
        for value in (240, LITERAL_BEHIND)
        if value != LITERAL_BEHIND or layout.size == 4 or asked(arch).halved
    ]
    probes = [
        probe(layout, opcode, found[opcode].fields | {field: value})
        for opcode, field, value in keys
    ]
    for (opcode, field, value), text in zip(keys, disassembled(probes, arch), strict=True):
        mark = {(240, "0x3800"): "i", (LITERAL_BEHIND, f"{LITERAL & 0xFFFF:#x}"): "f"}
        for spelled in operands(text):
            letter = mark.get((value, spelled))
            tokens = found[opcode].tokens
            place = next((i for i, one in enumerate(tokens) if one[0] == field), None)
            if letter and place is not None and tokens[place][-1] not in "if":
                tokens[place] += letter


def immediates(layout: Layout, found: dict[int, Found], arch: str) -> None:
    """Note whether a small constant is spelled as `hex`, and whether a large one is (`big`)."""
    probes = [probe(layout, opcode, one.fields | {"K": 5}) for opcode, one in found.items()]
    for one, text in zip(found.values(), disassembled(probes, arch), strict=True):
        if one.text.endswith(" 0x1234"):
            one.flags.append("hex" if text.endswith(" 0x5") else "big")


def op_sel(layout: Layout, found: dict[int, Found], arch: str) -> None:
    """Note for how many operands op_sel is spelled."""
    probes = [probe(layout, opcode, one.fields | {"op_sel": 9}) for opcode, one in found.items()]
    for one, text in zip(found.values(), disassembled(probes, arch), strict=True):
        if match := re.search(r"op_sel:\[(.*?)\]", text):
            one.flags.append(f"o{match[1].count(',') + 1}")


def halves(found: list[Found]) -> None:
    """Mark operands of 16 bits that llvm-19 spells whole (`q`): those that a newer assembler halves."""
    lines, keys = [], []
    for one in found:
        spelled = operands(one.text)
        places = [i for i, text in enumerate(spelled) if re.fullmatch(r"v\d+", text)]
        for count in range(1, len(places) + 1):
            for some in itertools.combinations(places, count):
                new = [text + ".l" if i in some else text for i, text in enumerate(spelled)]
                lines.append(f"{one.name} {', '.join(new)}".replace(f"{LITERAL:#x}", "0x1234"))
                keys.append((one, [spelled[i] for i in some]))
    for good, (one, chosen) in zip(assembles(lines), keys, strict=True):
        if good:
            for i, text in enumerate(operands(one.text)):
                if text in chosen:
                    one.tokens[i] += "q"


def assembles(lines: list[str]) -> list[bool]:
    """Whether ziglang's assembler (LLVM 21 or later) takes each line for gfx1101 with true16."""
    with tempfile.NamedTemporaryFile("w", suffix=".s") as file:
        file.write("".join(line + "\n" for line in lines))
        file.flush()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "ziglang", "clang", "-cc1as"),
                *("-triple", "amdgcn-amd-amdhsa", "-target-cpu", "gfx1101"),
                *("-target-feature", "+real-true16", "-filetype", "null", "-o", "-", file.name),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    bad = {int(n) for n in re.findall(r"\.s:(\d+):\d+: error", done.stderr)}
    return [number not in bad for number in range(1, len(lines) + 1)]


def rows(arch: str) -> dict[str, dict[str, str]]:
    """Group ("VOP2 D1 A1 B1") to the opcodes in it and their names as printed."""
    groups: dict[str, dict[str, str]] = {}
    ask = asked(arch)
    family = ask.family
    for encoding in (*family.layouts, *(["VOPDY"] if "VOPD" in family.layouts else [])):
        found = opcodes(encoding, arch)
        if ask.halved and encoding in {"VOP1", "VOP2", "VOPC", "VOP3"}:
            halves(list(found.values()))
        for opcode, one in found.items():
            tokens = one.tokens[:1] if encoding == "SOPP" else one.tokens
            group = " ".join([encoding, *tokens, *one.flags])
            groups.setdefault(group, {})[str(opcode)] = one.name
    groups["HWREG"] = names(ask.registers, "hwreg", arch)
    groups["MSG"] = names(ask.messages, "sendmsg", arch)
    return groups


def names(word: int, function: str, arch: str) -> dict[str, str]:
    """What the numbers of hardware registers or messages are called, by an instruction with them."""
    probes = [(word | 31 << 11 | number).to_bytes(4, "little") for number in range(64)]
    if function == "sendmsg":
        probes = [(word | number).to_bytes(4, "little") for number in range(256)]
    found: dict[str, str] = {}
    for number, text in enumerate(disassembled(probes, arch)):
        if match := re.search(function + r"\((\w+)\)", text):
            found |= {} if match[1].isdecimal() else {str(number): match[1]}
    return found


HEADER = """\
# Opcodes: an encoding with its operands, then the opcodes and the mnemonics as listed.
# Written by `python -m bench.gfx_table`; what the letters mean stands in opcode_table.py.
"""


def table() -> str:
    """The whole table: of each family what all its processors share, then what each has of its own."""
    return HEADER + "".join(part for name in ASKED for part in parts(name))


def parts(family: str) -> list[str]:
    """Lines of a family."""
    sets = {arch: rows(arch) for arch in ASKED[family].arches}
    flat = {
        arch: {
            (group, opcode, name) for group, found in one.items() for opcode, name in found.items()
        }
        for arch, one in sets.items()
    }
    shared = set.intersection(*flat.values())
    lines: list[str] = []
    each = {family: shared, **{arch: own - shared for arch, own in flat.items()}}
    for part, entries in each.items():
        lines += [f"[{part}]\n"] if entries else []
        groups: dict[str, dict[int, str]] = {}
        for group, opcode, name in entries:
            groups.setdefault(group, {})[int(opcode)] = name
        for group, found in sorted(groups.items()):
            lines.append(f"{group}\n")
            lines += [f" {opcode} {name}\n" for opcode, name in sorted(found.items())]
    return lines


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
