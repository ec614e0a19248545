"""Families of processors: those of one family have the same encodings and numbers of registers."""

from __future__ import annotations

import msgspec

from tokitai_cli.devices.amdgpu.isa.encodings import LAYOUTS, LAYOUTS9, Layout
from tokitai_cli.devices.amdgpu.isa.instruction import Kind

Ranges = tuple[tuple[int, int, Kind], ...]
_VCC, _TTMP, _EXEC, _SCC = 106, 108, 126, 253


class Family(msgspec.Struct, frozen=True):
    """What the decoder has to know of a family."""

    #: As the opcode table names it.
    name: str
    layouts: dict[str, Layout]
    #: First and last + 1 of the numbers that name scalar registers, and what they are.
    registers: Ranges
    #: What `saddr` holds where no scalar register is added.
    off: int
    #: Registers of 32 bits of a mask with a bit for each lane, as of vcc.
    mask: int

    @property
    def lanes(self) -> int:
        """Lanes of a wave of the kernels that are executed."""
        return 32 * self.mask

    @property
    def vectors(self) -> int:
        """Vector registers that a wave may have, accumulation registers included."""
        return 512 if self is GFX9 else 256


GFX11 = Family(
    "gfx11",
    LAYOUTS,
    (
        *((0, 106, "s"), (_VCC, _TTMP, "vcc"), (_TTMP, 124, "ttmp"), (124, 125, "null")),
        *((125, 126, "m0"), (_EXEC, 128, "exec"), (_SCC, 254, "scc")),
    ),
    124,
    1,
)
GFX9 = Family(
    "gfx9",
    LAYOUTS9,
    (
        *((0, 102, "s"), (102, 104, "flat_scratch"), (104, 106, "xnack_mask")),
        *((_VCC, _TTMP, "vcc"), (_TTMP, 124, "ttmp"), (124, 125, "m0"), (125, 126, "null")),
        *((_EXEC, 128, "exec"), (_SCC, 254, "scc")),
    ),
    127,
    2,
)
FAMILIES = {one.name: one for one in (GFX11, GFX9)}
