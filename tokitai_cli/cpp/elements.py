"""Types of elements by their names in C++, HIP and CUDA: bytes, lanes, and dtypes of specs."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tokitai_cli.core.dtypes import DTYPES


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
_HALVES = {"half": "float16", "__half": "float16"}
_BFLOATS = {f"{front}_bfloat16": "bfloat16" for front in ("__hip", "__nv", "nv")}
_FLOATS8 = {
    f"__{maker}_fp8{{}}_{kind}": name for kind, name in _FLOAT8.items() for maker in ("hip", "nv")
}
#: Several numbers in one, without names for its lanes.
PACKED: Mapping[str, int] = {
    **{f"{name}2": 2 for name in (*_HALVES, *_BFLOATS)},
    **{name.format(f"x{count}"): count for name in _FLOATS8 for count in (2, 4)},
}
# Types of C++, HIP and CUDA, and the dtypes that a spec may pass for each: as the harness's `holds`.
ELEMENTS: Mapping[str, str] = {
    "float": "float32", "double": "float64", "_Float16": "float16", "__fp16": "float16",
    "hip_bfloat16": "bfloat16", "at::Half": "float16", "c10::Half": "float16",
    "at::BFloat16": "bfloat16", "c10::BFloat16": "bfloat16", "__bf16": "bfloat16",
    "bool": "bool", "char": "int8 uint8", "signed char": "int8",
    "unsigned char": _BYTE, "short": "int16", "unsigned short": _WORD,
    "int": "int32", "unsigned": "uint32", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "size_t": "uint64", "ptrdiff_t": "int64",
    "uchar": _BYTE, "ushort": _WORD, "uint": "uint32", "ulong": "uint64",
    "cufftReal": "float32", "hipfftReal": "float32", "cufftDoubleReal": "float64",
    "hipfftDoubleReal": "float64",
    "clock_t": "int64", "ssize_t": "int64", "intptr_t": "int64", "uintptr_t": "uint64",
    **_HALVES, **_BFLOATS,
    **{f"{name}2": dtype for name, dtype in (*_HALVES.items(), *_BFLOATS.items())},
    **{name.format(lanes): dtype for name, dtype in _FLOATS8.items() for lanes in ("", "x2", "x4")},
    **{f"int{bits}_t": f"int{bits}" for bits in (16, 32, 64)}, "int8_t": "int8",
    "uint8_t": _BYTE, "uint16_t": _WORD, "uint32_t": "uint32",
    "uint64_t": "uint64",
}  # fmt: skip
_SCALARS = {
    **{name: name for name in ("float", "double", "char", "short", "int", "long", "uchar", "ushort")},
    "uint": "uint", "ulong": "ulong", "longlong": "long", "ulonglong": "ulong",
}  # fmt: skip
#: Vectors whose lanes are x, y, z, w: the type of one, and how many there are.
VECTORS: Mapping[str, tuple[str, int]] = {
    **{
        f"{name}{count}": (scalar, count)
        for name, scalar in _SCALARS.items()
        for count in (1, 2, 3, 4)
    },
    **{
        f"{library}{kind}Complex": (scalar, 2)
        for library in ("cu", "hip", "cufft", "hipfft")
        for kind, scalar in (("", "float"), ("Float", "float"), ("Double", "double"))
    },
}


@functools.lru_cache(maxsize=1 << 12)
def spelled(name: str) -> str:
    """A plain type as `ELEMENTS` spells it: `long unsigned int` is unsigned long."""
    words = name.split()
    order = [word for word in words if word != "int" or len(words) == 1]
    if "unsigned" in order or "signed" in order:
        sign = "unsigned" if "unsigned" in order else "signed"
        rest = [word for word in order if word != sign]
        keep = sign == "unsigned" or rest == ["char"]
        order = ([sign] if keep else []) + (rest or ([] if keep else ["int"]))
    return " ".join(order)


def dtypes_of(name: str) -> tuple[str, ...]:
    """Those that may be passed for a number, or for the lanes of a vector; none for another type."""
    name = spelled(name)
    return tuple(ELEMENTS.get(VECTORS[name][0] if name in VECTORS else name, "").split())


def sized(name: str) -> int | None:
    """Bytes of a number, vector or pointer; None where the name is of another type."""
    if name.rstrip().endswith("*"):
        return 8
    dtypes = dtypes_of(name)
    return DTYPES[dtypes[0]].nbytes * lanes(spelled(name)) if dtypes else None


def lanes(name: str) -> int:
    """Numbers that a vector holds; 1 for a number."""
    return VECTORS[name][1] if name in VECTORS else PACKED.get(name, 1)


def is_vector(name: str) -> bool:
    """Whether a type has lanes that a kernel can name."""
    return name in VECTORS or name in {"half2", "__half2"}


def is_real(name: str) -> bool:
    """Whether a number, or the lanes of a vector, are no whole numbers."""
    return name == "long double" or any("float" in one for one in dtypes_of(name))
