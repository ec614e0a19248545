"""Which instructions a wave can come to, function by function: each is decoded once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tokitai_cli.devices.amdgpu.binary.objects import EXECUTABLE, CodeObject
from tokitai_cli.devices.amdgpu.isa.decode import Decoder
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction

# What ends a function's code, and what may go on at an address of a register.
_ENDS = {"s_endpgm", "s_code_end", "s_trap"}
JUMP, CALL = "s_setpc_b64", "s_swappc_b64"


class Function(msgspec.Struct, frozen=True):
    """Code that is reached from one address without calls."""

    #: Those that are reached, in the order of their addresses.
    instructions: tuple[Instruction, ...]
    #: Addresses that it makes of its own place and a literal: those of functions among them.
    named: frozenset[int]
    #: Whether it calls any function.
    calls: bool


class Code:
    """The code of a code object, decoded where it is looked at."""

    def __init__(self, code: CodeObject) -> None:
        self._decoder = Decoder(code.arch, without_ecc="sramecc-" in code.target.split(":"))
        self._parts = [part for part in code.segments if part.flags & EXECUTABLE]
        self._pointed = [addend for _, addend in code.relocations if self._holds(addend)]
        self._functions: dict[int, Function] = {}

    def _holds(self, address: int) -> bool:
        return any(one.address <= address < one.address + len(one.data) for one in self._parts)

    def at(self, address: int) -> Instruction | None:
        """The instruction at an address; None where nothing is loaded."""
        for one in self._parts:
            offset = address - one.address
            if 0 <= offset < len(one.data):
                return self._decoder.at(one.data, offset, address)
        return None

    def function(self, entry: int) -> Function:
        """What is reached from an address; kept."""
        if entry not in self._functions:
            self._functions[entry] = self._walk(entry)
        return self._functions[entry]

    def _walk(self, entry: int) -> Function:
        found: dict[int, Instruction] = {}
        waiting = [entry]
        while waiting:
            at = waiting.pop()
            one = None if at in found else self.at(at)
            if one is None:
                continue
            found[at] = one
            if "target" in one.modifiers:
                waiting.append(one.modifiers["target"])
            if one.name not in _ENDS and one.name not in ("s_branch", JUMP) and one.name:
                waiting.append(at + one.size)
        code = tuple(found[at] for at in sorted(found))
        calls = any(one.name == CALL for one in code)
        return Function(code, frozenset(called(code)), calls)

    def functions(self, entry: int) -> tuple[tuple[int, Function], ...]:
        """Those that a kernel comes to from its entry, itself first, by their addresses.

        Of those that are called, all whose addresses code makes or relocations hold may be meant.
        """
        found: dict[int, Function] = {}
        waiting = [entry]
        while waiting:
            at = waiting.pop()
            if at in found:
                continue
            found[at] = one = self.function(at)
            if one.calls:
                waiting += self._pointed
            if one.calls or at != entry:
                waiting += [each for each in one.named if self._holds(each)]
        return tuple(found.items())

    def reached(self, entry: int) -> list[Instruction]:
        """Every instruction of `functions`, in the order of their addresses."""
        every = {one.address: one for _, part in self.functions(entry) for one in part.instructions}
        return [every[at] for at in sorted(every)]


def called(instructions: Sequence[Instruction]) -> Iterable[int]:
    """Addresses that code makes of its own place and a literal."""
    for index, one in enumerate(instructions):
        if one.name != "s_getpc_b64":
            continue
        for add in instructions[index + 1 : index + 5]:
            literal = add.src[-1] if add.name == "s_add_u32" else None
            if literal and literal.kind == "literal" and add.dst[0].index == one.dst[0].index:
                offset = literal.value - (literal.value >> 31 << 32)
                yield one.address + one.size + offset
