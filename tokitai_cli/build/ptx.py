"""Inline assembly in plain PTX, translated to C++: a table of instructions, and where it stands.

An `asm` statement of which every instruction is known becomes C++ on the same lines; any other stays as
it is, and is refused by name. Source: NVIDIA, Parallel Thread Execution ISA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tokitai_cli.build.ptx_operands import Unknown
from tokitai_cli.build.ptx_table import instruction
from tokitai_cli.cpp.lexing import blank

HEADER = "#include <tokitai_host/ptx.hpp>\n"  # in front of a text with translated statements
_STATEMENT = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__)\s*)?\(")
_LITERAL = re.compile(r'\s*"((?:[^"\\\n]|\\.)*)"')
_OPERAND = re.compile(
    r'\s*(?:\[(?P<name>\w+)\]\s*)?"(?P<way>[=+]?)&?(?P<kind>[hrlfdn])"\s*\((?P<text>.*)\)\s*', re.S
)
_REGISTERS = {"h": "unsigned short", "r": "unsigned", "l": "unsigned long long", "f": "float",
              "d": "double", "n": "long long"}  # fmt: skip
_OPCODE = re.compile(r"(?:@!?\S+\s+)?([a-z]\w*(?:\.[\w:]+)*)")


def translated(text: str) -> str:
    """The text with C++ for every `asm` that is known; lines keep their numbers."""
    if "asm" not in text:
        return text
    plain, parts, done = blank(text), [], 0
    for found in _STATEMENT.finditer(plain):
        end = _closing(plain, found.end())
        if end < 0 or found.start() < done:
            continue
        try:
            code = _statement(*_joined(text[found.end() : end], plain[found.end() : end]))
        except Unknown:
            continue
        lines = text.count("\n", found.start(), end)
        continued = "\\\n" in text[found.start() : end]  # within a macro
        parts += [text[done : found.start()], code, ("\\\n" if continued else "\n") * lines]
        done = end + 1
    return "".join([HEADER, *parts, text[done:]]) if parts else text


def first_instruction(text: str) -> str:
    """The first instruction that is not known of the `asm` that `text` begins with; empty for none."""
    plain = blank(text)
    found = _STATEMENT.search(plain)
    end = _closing(plain, found.end()) if found else -1
    if found is None or end < 0:
        return ""
    try:
        _statement(text[found.end() : end], plain[found.end() : end])
    except Unknown as unknown:
        named = _OPCODE.match(str(unknown))
        return named[1] if named else ""
    return ""


def _joined(text: str, plain: str) -> tuple[str, str]:
    """A statement without the backslashes at its lines' ends, which a macro has."""
    return text.replace("\\\n", "  "), plain.replace("\\\n", "  ")


def _closing(plain: str, begin: int) -> int:
    depth = 1
    for at in range(begin, len(plain)):
        depth += {"(": 1, ")": -1}.get(plain[at], 0)
        if depth == 0:
            return at
    return -1


def _split(text: str, plain: str, mark: str) -> list[str]:
    """Parts of `text` between marks that stand outside of brackets and literals."""
    cuts, depth = [-1], 0
    for at, letter in enumerate(plain):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == mark and depth == 0:
            cuts.append(at)
    ends = [*cuts[1:], len(text)]
    return [text[begin + 1 : end] for begin, end in zip(cuts, ends, strict=True)]


def _template(text: str) -> str:
    """What the literals of a template say together. Raises Unknown for anything else."""
    words, at = [], 0
    while found := _LITERAL.match(text, at):
        words.append(found[1])
        at = found.end()
    if text[at:].strip() or not words:
        raise Unknown("asm")
    joined = "".join(words).replace("\\n", "\n").replace("\\t", " ").replace("\\r", "")
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", joined, flags=re.S)


def _statement(text: str, plain: str) -> str:
    sections = _split(text, plain, ":")
    template, outputs, inputs = _template(sections[0]), sections[1:2], sections[2:3]
    names: dict[str, tuple[str, str]] = {}
    before, after = [], []
    for number, one in enumerate([*_operands(outputs), *_operands(inputs)]):
        found = _OPERAND.fullmatch(one)
        if found is None:
            raise Unknown("asm")
        register, kind = f"tokitai_{number}", _REGISTERS[found["kind"]]
        names[f"%{number}"] = names[f"%[{found['name']}]"] = (register, kind)
        value = f"tokitai::ptx::given<{kind}>({found['text']})"
        before.append(f"{kind} {register} = {value if found['way'] != '=' else '{}'};")
        if found["way"]:
            after.append(f"tokitai::ptx::take({found['text']}, {register});")
    code = _instructions(template, names)
    words = " ".join([*before, *code, *after]).replace("\n", " ")
    return f"do {{ {words} }} while (false)"


def _operands(section: Sequence[str]) -> list[str]:
    if not section or not section[0].strip():
        return []
    return _split(section[0], blank(section[0]), ",")


def _instructions(template: str, names: dict[str, tuple[str, str]]) -> list[str]:
    """C++ of the instructions; a scope of registers is one there too."""
    code: list[str] = []
    scopes: list[dict[str, tuple[str, str]]] = []
    for text in _lines(template.replace("%%", "%")):
        if text == "{":
            scopes.append(dict(names))
            code.append(text)
        elif text == "}":
            if not scopes:
                raise Unknown("asm")
            names.clear()
            names.update(scopes.pop())
            code.append(text)
        else:
            code.append(instruction(text, names))
    if scopes:
        raise Unknown("asm")
    return code


def _lines(template: str) -> Iterator[str]:
    """Instructions and scopes' braces, one by one: a brace within an instruction is of a vector."""
    held, vector = "", False
    for letter in template:
        if letter in "{}" and not held.strip():
            yield letter
            held = ""
        elif letter == ";" and not vector:
            if held.strip():
                yield " ".join(held.split())
            held = ""
        else:
            vector = letter == "{" or (vector and letter != "}")
            held += letter
    if held.strip():
        yield " ".join(held.split())
