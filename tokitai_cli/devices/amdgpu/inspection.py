"""What is in a file of machine code: kernels, facts, listings, and which kernels can be executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tokitai_cli.core.errors import CodeError, Location
from tokitai_cli.core.model.device import Fact
from tokitai_cli.core.model.machine import Inspection, SeenKernel
from tokitai_cli.devices.amdgpu.binary import bundles, objects
from tokitai_cli.devices.amdgpu.isa import facts, opcode_table, reach
from tokitai_cli.devices.amdgpu.isa.assembly_text import text
from tokitai_cli.devices.amdgpu.isa.decode import UNKNOWN, decode
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.lacks import Lacks
from tokitai_cli.devices.amdgpu.translate import approximate


def inspect(path: Path, arch: str = "", kernel: str = "") -> Inspection:
    """Read the file. kernel: the one that is wanted, with its listing; else all, and no listing
    unless there is one only. Raises CodeError.
    """
    # First, as a library's code for all processors takes more memory than that for one.
    targets = tuple(dict.fromkeys(one.target for one in bundles.code_objects(path)))
    read = bundles.read(path, arch)
    opcode_table.rows(arch := read[0].arch)
    pairs = [(one, found) for one in read for found in one.kernels]
    if kernel:
        pairs = [_named(path, pairs, kernel)]
    names: Counter[str] = Counter()
    seen = []
    looked = {id(one): Lacks(one) for one in read}
    for one, found in pairs:
        code = list(decode(found.code, found.address, arch))
        counted = facts.names(code)
        names += counted
        lines = tuple(_listing(code, objects.lines(one.data))) if len(pairs) == 1 else ()
        seen.append(
            SeenKernel(
                found.name, found.demangled, tuple(_inventory(one, found, code)), len(code),
                counted[UNKNOWN], looked[id(one)].of(found), lines,
            )
        )  # fmt: skip
    return Inspection(str(path), arch, targets, tuple(seen), dict(sorted(names.items())))


def inventory(code: objects.CodeObject, kernel: objects.Kernel) -> Iterator[Fact]:
    """Facts of a kernel; those of its instructions where the processor is known here."""
    known = code.arch in opcode_table.ARCHES
    return _inventory(code, kernel, facts.instructions(code, kernel) if known else None)


def _inventory(
    code: objects.CodeObject, kernel: objects.Kernel, held: Sequence[Instruction] | None
) -> Iterator[Fact]:
    yield from facts.of_kernel(kernel)
    if held is not None:
        calls = any(one.name == reach.CALL for one in held)
        reached = reach.Code(code).reached(kernel.address) if calls else held
        yield from facts.of_instructions(held, approximate(reached))


def evidence(code: objects.CodeObject, kernels: Iterable[objects.Kernel]) -> Iterator[Fact]:
    """Facts of a code object, and of kernels of it with their names in front."""
    yield from facts.of_code_object(code)
    for kernel in {one.name: one for one in kernels}.values():
        for one in inventory(code, kernel):
            yield Fact(f"{kernel.title}: {one.name}", one.value, one.source)


def _named(
    path: Path, pairs: Sequence[tuple[objects.CodeObject, objects.Kernel]], name: str
) -> tuple[objects.CodeObject, objects.Kernel]:
    """The kernel of that name, with the code object that it is in."""
    try:
        return objects.kernel_of(pairs, name)
    except CodeError as error:
        raise CodeError(error.message, where=Location(path), hint=error.hint) from None


def _listing(code: list[Instruction], places: Mapping[int, tuple[str, int]]) -> Iterator[str]:
    """A line for each instruction; before it the source's, where that is another one."""
    last = None
    for one in code:
        place = places.get(one.address)
        if place is not None and place != last:
            last = place
            yield f"; {place[0]}:{place[1]}"
        target = one.modifiers.get("target")
        yield f"{one.address:8x}  {text(one)}" + (f"  ; to {target:x}" if target else "")
