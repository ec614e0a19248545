"""Types that a program names: their aliases put in, and the dtypes that a spec may pass for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.cpp.source.classes import member_type

if TYPE_CHECKING:
    from tokitai_cli.cpp.program_parts import Part
    from tokitai_cli.cpp.whole import Program


def _held_by(nbytes: int) -> str:
    """Dtypes whose bits programs keep in unsigned integers of so many bytes, the integer first."""
    kinds = ("unsigned", "bool", "float")
    held = [(kinds.index(dtype.kind), name) for name, dtype in DTYPES.items()
            if dtype.nbytes == nbytes and dtype.kind in kinds]  # fmt: skip
    return " ".join(name for _, name in sorted(held, key=lambda row: row[0]))


_BYTE, _WORD = _held_by(1), _held_by(2)
# Formats of 8 bits as HIP and CUDA spell them: e4m3, e4m3_fnuz.
_FLOAT8 = {
    name.removeprefix("float8_").replace("fnuz", "_fnuz").removesuffix("fn"): name
    for name in DTYPES
    if name.startswith("float8_")
}
# Types of C++, HIP and CUDA, and the dtypes that a spec may pass for each: as the harness's `holds`.
ELEMENTS = {
    "float": "float32", "double": "float64", "__half": "float16", "half": "float16",
    "_Float16": "float16", "__fp16": "float16", "hip_bfloat16": "bfloat16",
    "at::Half": "float16", "c10::Half": "float16",
    "at::BFloat16": "bfloat16", "c10::BFloat16": "bfloat16",
    "__hip_bfloat16": "bfloat16", "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16",
    "__bf16": "bfloat16", "bool": "bool", "char": "int8 uint8", "signed char": "int8",
    "unsigned char": _BYTE, "short": "int16", "unsigned short": _WORD,
    "int": "int32", "unsigned": "uint32", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "size_t": "uint64", "ptrdiff_t": "int64",
    "uchar": _BYTE, "ushort": _WORD, "uint": "uint32", "ulong": "uint64",
    "clock_t": "int64", "ssize_t": "int64", "intptr_t": "int64", "uintptr_t": "uint64",
    "__half2": "float16", "half2": "float16",
    "__hip_bfloat162": "bfloat16", "__nv_bfloat162": "bfloat16", "nv_bfloat162": "bfloat16",
    **{f"__{maker}_fp8{lanes}_{kind}": name for kind, name in _FLOAT8.items()
       for maker in ("hip", "nv") for lanes in ("", "x2", "x4")},
    **{f"int{bits}_t": f"int{bits}" for bits in (16, 32, 64)}, "int8_t": "int8",
    "uint8_t": _BYTE, "uint16_t": _WORD, "uint32_t": "uint32",
    "uint64_t": "uint64",
}  # fmt: skip
ENUM = ("int32", "uint32")  # of a parameter that is an enumerator
VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double)[1234]")
_PACKED = re.compile(r"(?:__)?half(2)|(?:__hip|__nv|nv)_bfloat16(2)|__(?:hip|nv)_fp8x([24])_\w+")
FUNCTOR = re.compile(
    r"(?:\w+::)?(?:plus|multiplies|maximum|minimum|negate|identity)<\w*>|hipcub::Sum"
)
# Classes of headers that the tool has; bytes of those that are numbers.
CLASSES = {"complex<float>": 8, "complex<double>": 16}
# Fields of others, T and U what their templates' parameters stand for.
HEADERS = {
    "pair": (("first", "T"), ("second", "U")),
    "dim3": tuple((one, "unsigned") for one in "xyz"),
    "hipPitchedPtr": (("ptr", "void*"), *((one, "size_t") for one in ("pitch", "xsize", "ysize"))),
}
# Views of tensors that are passed by value: PyTorch's, and those of programs that took them from there.
ACCESSOR = re.compile(
    r"(?:(?:torch|at)\s*::\s*)?(?:Generic)?PackedTensorAccessor(32|64|)\s*<(.+)>", re.S
)
_STATE = re.compile(r"(?:hip|roc|cu)rand_?[sS]tate\w*")
DROPPED = re.compile(
    r"\b(?:const|volatile|struct|class|enum|typename|register|mutable)\b|\bstd\s*::"
)


def _spelled(base: str) -> str:
    """A plain type as `ELEMENTS` spells it: `long unsigned int` is unsigned long."""
    words = base.split()
    order = [word for word in words if word != "int" or len(words) == 1]
    if "unsigned" in order or "signed" in order:
        sign = "unsigned" if "unsigned" in order else "signed"
        rest = [word for word in order if word != sign]
        keep = sign == "unsigned" or rest == ["char"]
        order = ([sign] if keep else []) + (rest or ([] if keep else ["int"]))
    return " ".join(order)


def sized(name: str) -> int | None:
    """Bytes of a number, vector or pointer; None where the name is of another type."""
    name = _spelled(" ".join(DROPPED.sub(" ", name).split()))
    if name.endswith("*"):
        return 8
    vector = VECTOR.fullmatch(name)
    dtypes = ELEMENTS.get(vector[1].replace("longlong", "long") if vector else name)
    if dtypes is None:
        return None
    return item_size(dtypes) * lanes(name)


def item_size(dtypes: str) -> int:
    """Bytes of the first of some dtypes: all that one type may be passed for have as many."""
    return DTYPES[dtypes.partition(" ")[0]].nbytes


def lanes(name: str) -> int:
    """Numbers that a vector holds; 1 for a number."""
    packed = _PACKED.fullmatch(name)
    if packed is not None:
        return int(packed[packed.lastindex or 0])
    return int(name[-1]) if VECTOR.fullmatch(name) else 1


def of_header(name: str) -> str:
    """A class of a header without the namespace."""
    return re.sub(r"\s", "", name.removeprefix("thrust::"))


class Types:
    """What the names of types stand for in a program."""

    def __init__(self, program: Program, *, guess: bool = False) -> None:
        self._program = program
        self._aliases: dict[str, dict[str, None]] = {}
        self._guess = guess
        self._classes: set[str] = set()
        self._pointed: set[str] = set()  # typedef struct { ... } *name;
        self._enums: set[str] = set()
        for path, pieces in program.pieces.items():
            parsed = program.texts[path].parsed
            for piece in pieces:
                self._read(piece, parsed[piece.begin : piece.end])
        for name, macro in program.macros.items():
            if not macro.called and macro.bodies:
                known = self._aliases.setdefault(name, {})
                known |= dict.fromkeys(" ".join(b.split()) for b in macro.bodies)

    def _read(self, piece: Part, text: str) -> None:
        if piece.kind == "class":
            self._classes |= piece.names
            self._pointed |= set(re.findall(r"\}\s*\*\s*(\w+)\s*;\s*$", text))
        elif piece.kind == "type" and "enum" in piece.words:
            self._enums |= piece.names
        elif piece.kind == "type" and len(piece.names) == 1:
            (name,) = piece.names
            match = re.fullmatch(rf"using\s+{name}\s*=(.*);", text.strip(), re.S) or re.fullmatch(
                rf"typedef\b(.*?)\b{name}\s*;", text.strip(), re.S
            )
            told = " ".join(match[1].split()) if match else "?"
            if told != f"struct {name}":  # of C, and no other name
                self._aliases.setdefault(name, {})[told] = None

    def resolved(self, text: str, bound: Mapping[str, str]) -> str:
        """`text` with aliases, macros and the template arguments `bound` put in; "" where it is open."""
        for _ in range(8):
            text = " ".join(DROPPED.sub(" ", text).split())
            if text in bound:
                text = bound[text]
            elif len(self._aliases.get(text, ())) == 1 or (self._guess and text in self._aliases):
                text = list(self._aliases[text])[-1]
            elif told := member_type(self._program, text):
                text = told
            elif re.fullmatch(r"(?:\w+::)+\w+", text) and text.rpartition("::")[2] in self._aliases:
                text = text.rpartition("::")[2]
            else:
                shown = f"{text} *" if text in self._pointed else text
                return "" if text in self._aliases else shown
        return ""

    def kind_of(self, base: str) -> tuple[str, tuple[str, ...]]:
        """numbers, vector, struct or unknown, and the dtypes of its elements."""
        name = _spelled(base)
        if name in ELEMENTS:
            return "numbers", tuple(ELEMENTS[name].split())
        vector = VECTOR.fullmatch(name)
        if vector:
            single = vector[1].replace("longlong", "long")
            return "vector", tuple(ELEMENTS[single].split())
        if name in self._enums:
            return "numbers", ENUM
        head = re.split(r"[< ]", name)[0].rpartition("::")[2]
        known = any(one.fullmatch(name) for one in (FUNCTOR, _STATE, ACCESSOR))
        if known or of_header(name) in CLASSES or of_header(name).partition("<")[0] in HEADERS:
            return "struct", ()
        return (
            "struct"
            if head.rpartition("::")[2] in self._classes or name in self._classes
            else "unknown"
        ), ()


def known_types(program: Program, *, guess: bool = False) -> Types:
    """The types of a program; read once."""
    key = ("types", guess)
    if key not in program.memory:
        program.memory[key] = Types(program, guess=guess)
    found: Types = program.memory[key]
    return found
