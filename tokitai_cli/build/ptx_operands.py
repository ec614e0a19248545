"""Operands of PTX instructions as C++: registers, numbers and special registers."""

from __future__ import annotations

import re

Names = dict[str, tuple[str, str]]

TYPES = {
    "u8": "unsigned char", "u16": "unsigned short", "u32": "unsigned", "u64": "unsigned long long",
    "s8": "signed char", "s16": "short", "s32": "int", "s64": "long long",
    "f32": "float", "f64": "double", "pred": "bool",
}  # fmt: skip
# Numbers of 16 bits, alone and two in a word, and the register that holds each.
HALVES = {
    f"{name}{pair}": kind
    for name in ("f16", "bf16")
    for pair, kind in (("", "unsigned short"), ("x2", "unsigned"))
}
TYPES |= {f"b{bits}": TYPES[f"u{bits}"] for bits in (8, 16, 32, 64)}
_SPECIAL = {
    **{f"%{name}.{axis}": f"{value}.{axis}" for axis in "xyz" for name, value in (
        ("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))},
    "%laneid": "tokitai::lane_index()",
    "%lanemask_eq": "unsigned(__lanemask_eq())",
    "%lanemask_lt": "unsigned(__lanemask_lt())",
    "%lanemask_gt": "unsigned(__lanemask_gt())",
    "%lanemask_le": "unsigned(__lanemask_lt() | __lanemask_eq())",
    "%lanemask_ge": "unsigned(__lanemask_gt() | __lanemask_eq())",
    "%clock": "unsigned(clock64())", "%clock64": "(unsigned long long)clock64()",
    "%globaltimer": "(unsigned long long)wall_clock64()",
}  # fmt: skip
PTX = "tokitai::ptx::"


class Unknown(Exception):  # noqa: N818 - no fault: an instruction that is not in the table
    """An instruction, or a statement, that cannot be translated."""


class Call:
    """An instruction: its words behind the name, and operands as C++."""

    def __init__(
        self, text: str, base: str, words: list[str], parts: list[str], names: Names
    ) -> None:
        self.text, self.base, self.words, self.parts, self.names = text, base, words, parts, names

    @property
    def kind(self) -> str:
        """The C++ type of the last word, which is the operation's. Raises Unknown."""
        return self.type(self.words[-1] if self.words else "")

    def type(self, word: str) -> str:
        """The C++ type of a word. Raises Unknown."""
        if word not in TYPES:
            raise Unknown(self.text)
        return TYPES[word]

    def only(self, *known: str) -> set[str]:
        """The words in front of the type. Raises Unknown where one is not `known`."""
        found = set(self.words[:-1])
        if found - set(known):
            raise Unknown(self.text)
        return found

    def read(self, at: int, kind: str) -> str:
        """An operand as a value of a type. Raises Unknown."""
        if at >= len(self.parts):
            raise Unknown(self.text)
        return value_of(self.parts[at], kind, self.names, self.text)

    def write(self, at: int, value: str) -> str:
        """What puts a value into a register. Raises Unknown."""
        if at >= len(self.parts):
            raise Unknown(self.text)
        register, kind = register_of(self.parts[at], self.names, self.text)
        return f"{register} = {PTX}as<{kind}>({value});"


def declared(text: str, names: Names) -> str:
    """C++ of a `.reg`, whose registers are added to `names`. Raises Unknown."""
    found = re.fullmatch(r"\.reg\s+\.(\w+)\s+([%\w\s,$]+)", text)
    held = TYPES | HALVES
    if found is None or found[1] not in held:
        raise Unknown(text)
    kind, code = held[found[1]], []
    for name in re.split(r"\s*,\s*", found[2].strip()):
        register = "tokitai_" + re.sub(r"\W", "_", name)
        names[name] = (register, kind)
        code.append(f"{kind} {register} = {{}};")
    return " ".join(code)


def register_of(name: str, names: Names, text: str = "") -> tuple[str, str]:
    """C++ name and type of a register. Raises Unknown."""
    if name not in names:
        raise Unknown(text or name)
    return names[name]


def value_of(part: str, kind: str, names: Names, text: str) -> str:
    """What can be read, as a value of a C++ type. Raises Unknown with `text`."""
    if part in names:
        return f"{PTX}as<{kind}>({names[part][0]})"
    if part in _SPECIAL:
        return f"{kind}({_SPECIAL[part]})" if " " not in kind else f"(({kind})({_SPECIAL[part]}))"
    if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", part):
        return f"{PTX}as<{kind}>(__uint_as_float(0x{found[1]}u))"
    if found := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", part):
        return f"{PTX}as<{kind}>(__longlong_as_double(0x{found[1]}ll))"
    if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?", part) and kind not in {"float", "double"}:
        return f"(({kind})({part.removesuffix('U')}ll))"
    raise Unknown(text)


def flushed(value: str, words: set[str]) -> str:
    """A float, 0 where it is subnormal and the instruction says so."""
    return f"{PTX}flushed({value})" if "ftz" in words else value
