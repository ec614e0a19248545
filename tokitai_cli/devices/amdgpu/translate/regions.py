"""C++ of regions: code without a branch in which EXEC stays (kernels/gfx/run/unset.hpp)."""

from __future__ import annotations

from collections.abc import Iterable

from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate.touched import (
    EXEC,
    HALF_SCALAR,
    SCALAR,
    Touched,
    touched,
)

_SCALARS = 131


class Regions:
    """Regions of one kernel, built instruction by instruction."""

    def __init__(self, name: str, vectors: int) -> None:
        self._name = name
        self._vectors = vectors
        self._texts: list[str] = []
        self._taken: list[Touched] = []
        self._steps: list[str] = []
        self._numbers: list[int] = []
        self._cases: list[str] = []
        self._regions: list[str] = []
        self.places: list[int] = []

    def take(self, instruction: Instruction, text: str) -> str:
        """Put an instruction into the region; its text where the region ends with it."""
        told = touched(instruction)
        if told is None:
            return ""
        ended = self.end() if told.always else ""
        number = len(self._steps)
        if told.checks or not told.writes.isdisjoint((HALF_SCALAR + EXEC, HALF_SCALAR + EXEC + 1)):
            self.places.append(instruction.address)
        taken, written = ([], []) if told.once else (told.taken, told.written)
        parts = [
            [self._register(at) for at in taken],
            [self._register(at) for at in written],
            [self._half(at) for at in sorted(told.reads)],
            [self._half(at) for at in sorted(told.writes)],
        ]
        self._cases.append(f"    case {number}: {{ {text} }} break;\n")
        counts = ", ".join(str(len(part)) for part in [*parts, told.checks])
        always = told.always or bool(told.across)
        numbers = f"numbers_{self._name} + {len(self._numbers)}"
        self._steps.append(
            f"  {{{instruction.address:#x}, {_constant(instruction):#x}, {numbers}, {counts}, "
            f"{str(told.once).lower()}, {str(always).lower()}}},\n"
        )
        for part in parts:
            self._numbers += part
        for register, matter, mask in told.checks:
            self._numbers += [self._register(register), matter, mask & 0xFFFF, mask >> 16]
        self._texts.append(text)
        self._taken.append(told)
        return ended + self.end() if told.last else ended

    def end(self) -> str:
        """Text of the region so far, if there is any; what follows is another one."""
        if not self._taken:
            return ""
        reads: set[int] = set()
        across: set[int] = set()
        writes: set[int] = set()
        for one in self._taken:
            reads |= one.reads - writes
            # Lanes that are not active are not written here.
            across |= one.across
            writes |= one.writes
        last = len(self._steps)
        always = str(any(one.always for one in self._taken)).lower()
        self._regions.append(
            f"  {{{self._bits(reads)}, {self._bits(writes)}, {self._bits(across, scalars=False)}, "
            f"{last - len(self._taken)}, {last}, {always}}},\n"
        )
        region = f"regions_{self._name}[{len(self._regions) - 1}]"
        body = "\n".join(self._texts)
        self._texts, self._taken = [], []
        return f"if (begins(w, {region})) {{\n{body}\n}} else run_slowly(w, {region});"

    def _register(self, register: int) -> int:
        """The number of a register in waves that have so many vector registers."""
        return register if register < SCALAR else register - SCALAR + self._vectors

    def _half(self, half: int) -> int:
        """The number of half a vector register, or of a scalar one."""
        if half >= HALF_SCALAR:
            return half - HALF_SCALAR + 2 * self._vectors
        return half if half < SCALAR else half - SCALAR + self._vectors

    def _bits(self, halves: Iterable[int], *, scalars: bool = True) -> str:
        words = -(-(2 * self._vectors + (_SCALARS if scalars else 0)) // 64)
        whole = sum(1 << self._half(at) for at in halves)
        return (
            "{" + ", ".join(f"{whole >> 64 * at & (1 << 64) - 1:#x}" for at in range(words)) + "}"
        )

    def text(self) -> str:
        """Tables of the regions, and the function that runs one step."""
        name = self._name
        return (
            f"constexpr u16 numbers_{name}[] = {{{', '.join(map(str, [*self._numbers, 0]))}}};\n"
            f"constexpr Step steps_{name}[] = {{\n{''.join(self._steps)}  {{}}}};\n"
            f"constexpr Region regions_{name}[] = {{\n{''.join(self._regions)}  {{}}}};\n"
            f"TOKITAI_COLD static void step_{name}(Wave& w, u32 step) {{\n"
            f"  switch (step) {{\n{''.join(self._cases)}  }}\n}}\n"
        )


def _constant(one: Instruction) -> int:
    """A constant among the operands, or 0."""
    kinds = ("int", "float", "literal", "simm")
    return next((each.value & 0xFFFFFFFF for each in one.src if each.kind in kinds), 0)
