"""C++ of products of matrices (kernels/gfx/run/matrix.hpp, mfma.hpp)."""

from __future__ import annotations

from tokitai_cli.devices.amdgpu.isa.decode import OCP
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction, Operand
from tokitai_cli.devices.amdgpu.translate.operands import (
    RefusedError,
    Translated,
    Writer,
    inline_float,
    row,
)
from tokitai_cli.devices.amdgpu.translate.semantics import Entry

_IN = {"f16": "InF16", "bf16": "InBf16", "iu8": "InInteger<8>", "iu4": "InInteger<4>"}
_OUT = {"f32": "OutF32", "f16": "OutF16", "bf16": "OutBf16"}


def _wmma(one: Instruction, entry: Entry) -> Translated:
    kind, made = entry.code.split(",")
    a, b, c = one.src
    modifiers = one.modifiers
    picks, signs = modifiers.get("op_sel", 0), modifiers.get("neg_lo", 0)
    if modifiers.get("neg_hi") or (signs and made != "i32") or picks & 3:
        raise RefusedError("with signs or halves of its matrices")
    operands = f"{row(one.dst[0])}, {row(a)}, {row(b)}, {_added(c, made)}"
    start = f"(w, {one.address:#x}, {operands}"
    if made == "i32":
        clamp = str(bool(modifiers.get("clamp"))).lower()
        text = f"multiply_integers<{_IN[kind]}>{start}, {signs & 3}, {clamp});"
    else:
        if modifiers.get("clamp"):
            raise RefusedError("with clamp")
        half = f"<{16 * (picks >> 2)}>" if made != "f32" else ""
        text = f"multiply_matrices<{_IN[kind]}, {_OUT[made]}{half}>{start});"
    return Translated(text, places=(one.address,))


def _added(c: Operand, made: str) -> str:
    """What the products are added to: registers, or the bits of a constant."""
    if c.kind == "v":
        return f"{row(c)}, 0"
    if c.kind not in ("int", "float") or (c.value and made not in ("f32", "i32")):
        raise RefusedError(f"added to {c.kind}")
    return f"nullptr, {c.value & 0xFFFFFFFF:#x}u"


_ELEMENTS = {
    "f32": "InF32",
    "xf32": "InXf32",
    "f16": "InF16",
    "bf16": "InBf16",
    "i8": "InI8",
    "f64": "InF64",
    "fp8": "InF8<3>",
    "bf8": "InF8<2>",
}
_OCP = {"fp8": "InF8<3, true>", "bf8": "InF8<2, true>"}
# By cbsz and blgp of a product of float8, float6 and float4.
_SMALL = (*_OCP.values(), "InSmall<2, 3>", "InSmall<3, 2>", "InSmall<2, 1>")


def _mfma(one: Instruction, entry: Entry) -> Translated:
    first, second, *sizes = entry.code.split(",")
    a, b, c = one.src
    modifiers = one.modifiers
    elements = _ELEMENTS | (_OCP if OCP in modifiers else {})
    spread, block, other = (modifiers.get(name, 0) for name in ("cbsz", "abid", "blgp"))
    if first == "f8f6f4":
        if spread != other or spread >= len(_SMALL):
            raise RefusedError("of matrices of two formats")
        elements, spread, other = {first: _SMALL[spread]}, 0, 0
    if other:
        raise RefusedError("with lanes of B exchanged or signs")
    if 1 << spread > int(sizes[-1]) or block >> spread:
        raise RefusedError("with blocks of A that it does not have")
    if {a.kind, b.kind} != {"v"}:
        raise RefusedError("of a constant")
    added = f"{row(c)}, 0" if c.kind == "v" else f"nullptr, {_everywhere(c, entry.dst[0]):#x}u"
    kinds = f"{elements[first]}, {elements[second]}, {', '.join(sizes)}"
    text = (
        f"multiply_blocks<{kinds}>(w, {one.address:#x}, {row(one.dst[0])}, {row(a)}, {row(b)}, "
        f"{added}, {spread}, {block});"
    )
    return Translated(text, places=(one.address,))


def _everywhere(c: Operand, made: str) -> int:
    """Bits of a constant that the products are added to."""
    if c.kind == "int":
        if c.value and made != "i32":
            raise RefusedError("added to an integer")
        return c.value & 0xFFFFFFFF
    if c.kind != "float" or made == "i32":
        raise RefusedError(f"added to {c.kind}")
    return inline_float(c, "<d" if made == "f64" else "<f")


KINDS: dict[str, Writer] = {"wmma": _wmma, "mfma": _mfma}
