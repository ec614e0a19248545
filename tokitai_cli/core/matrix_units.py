"""What the sums of matrix units may lose, by architecture.

NVIDIA and AMD document none of it. The figures are those of a model that gives the bits of ten GPUs:
P. Xie, Y. Wang, F. Yang, M. Yang, *MMA-Sim*, arXiv:2511.10909, 2025, read in its code (repository
microsoft/MMA-Sim, c785138). That terms are aligned to the largest and cut was first found by M. Fasi,
N. J. Higham, M. Mikaitis, S. Pranesh, PeerJ Comput. Sci. 7:e330, 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

from tokitai_cli.core.model.spec import MatrixArchitecture, MatrixUnit


class SumsOf(NamedTuple):
    """How a unit adds a block of products and what it has so far.

    All are aligned to the largest of them and cut to `fraction` bits behind its leading one, then added
    exactly. block: fewest products that an instruction adds so. cuts: further cuts at that place, for
    each block: of what it has so far, of a partial sum. result: bits that the sum keeps; one fewer of
    those behind its leading one where it is cut, as many where it is rounded to nearest.
    """

    block: int
    fraction: int
    cuts: int
    result: int

    def lost(self, terms: int) -> float:
        """The largest error of a sum of so many terms, over that of their magnitudes, to first order."""
        blocks = -(-terms // self.block)
        at_the_largest = (terms + self.cuts * blocks) * 2.0**-self.fraction
        return float(at_the_largest + blocks * 2.0**-self.result)


_CUT, _NEAREST = 23, 24  # a float32 that is cut, or rounded
_VOLTA = SumsOf(4, 23, 1, _CUT)
_TURING_ON = SumsOf(4, 24, 1, _CUT)
_HOPPER_ON = SumsOf(4, 25, 1, _CUT)
_CDNA3 = SumsOf(4, 24, 2, _NEAREST)
# Products of 8-bit floats on Ada and Hopper.
_EIGHT_BITS = SumsOf(16, 13, 1, 13)
# An instruction may have as few as 4 products (tf32; 16-bit floats 4 on Volta, 8 after), so that 4 holds
# for all. CDNA1 and CDNA2 add pairs, rounded to nearest: a sum in any order, less than CDNA3 may lose.
_BY_ARCHITECTURE: Mapping[str, SumsOf] = {
    "volta": _VOLTA,
    "turing": _TURING_ON,
    "ampere": _TURING_ON,
    "ada": _TURING_ON,
    "hopper": _HOPPER_ON,
    "blackwell": _HOPPER_ON,
    "cdna1": _CDNA3,
    "cdna2": _CDNA3,
    "cdna3": _CDNA3,
}
# Of RDNA and of CDNA4 no study is known: the widest of all.
_UNSTATED = _VOLTA
_ANY, _EIGHT = "unit", "-8-bit"
SUMS: Mapping[str, SumsOf] = {
    **_BY_ARCHITECTURE,
    _ANY: _UNSTATED,
    **{f"{name}{_EIGHT}": one for name, one in _BY_ARCHITECTURE.items()},
    **{f"{name}{_EIGHT}": _EIGHT_BITS for name in (_ANY, "ada", "hopper")},
}
assert set(_BY_ARCHITECTURE) == set(get_args(MatrixArchitecture))


def sums_named(unit: MatrixUnit, *, eight_bits: bool) -> str:
    """Name of the unit's sums in `SUMS`; eight_bits: of products of 8-bit floats."""
    return f"{unit.architecture or _ANY}{_EIGHT if eight_bits else ''}"
