"""The float mode of a wave: how results are rounded and what becomes of denormals."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

# Bits of the denormal modes: sources are kept, results are kept.
SOURCE, RESULT = 0, 1
# Fields of the MODE register that a Mode has: name, shift, bits (LLVM, AMDGPU, MODE register).
FIELDS = (
    ("round_32", 0, 2),
    ("round_16_64", 2, 2),
    ("denorm_32", 4, 2),
    ("denorm_16_64", 6, 2),
    ("dx10_clamp", 8, 1),
    ("ieee", 9, 1),
    ("fp16_overflow", 23, 1),
)


class Mode(msgspec.Struct, frozen=True):
    """A float mode, in the numbers of the kernel descriptor."""

    #: Rounding of float32: 0 to nearest even, 1 up, 2 down, 3 to zero.
    round_32: int = 0
    #: Rounding of float16 and float64.
    round_16_64: int = 0
    #: Denormals of float32: bit 0 keeps those of sources, bit 1 those of results.
    denorm_32: int = 3
    #: Denormals of float16 and float64.
    denorm_16_64: int = 3
    #: Whether clamp makes 0 of a NaN.
    dx10_clamp: int = 1
    #: Whether min and max make a signalling NaN a quiet one.
    ieee: int = 1
    #: Whether an overflow of float16 gives the greatest number.
    fp16_overflow: int = 0

    @classmethod
    def of(cls, fields: Mapping[str, int]) -> Mode:
        """The mode that a kernel descriptor says, of its fields by their names."""
        return cls(**{name: fields[name] for name, *_ in FIELDS})

    @property
    def suffix(self) -> str:
        """What tells operations of this mode from others; nothing for the usual one."""
        return "" if self == USUAL else "_" + "".join(str(getattr(self, one)) for one, *_ in FIELDS)

    def round_of(self, kind: str) -> int:
        """How results of a type are rounded."""
        return {32: self.round_32, 16: self.round_16_64}.get(_group(kind), 0)

    def denorm_of(self, kind: str) -> int:
        """What becomes of denormals of a type; 3 where it is no float."""
        return {32: self.denorm_32, 16: self.denorm_16_64}.get(_group(kind), 3)


USUAL = Mode()


def _group(kind: str) -> int:
    """32 of float32, 16 of float16 and float64, else 0."""
    plain = kind.removeprefix("pk_").removesuffix("_hi")
    return {"f32": 32, "mix": 32, "f16": 16, "f64": 16, "pair_f16": 16}.get(plain, 0)
