"""What is in a file of machine code: kernels, facts, listings, and which kernels can be executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tokitai_cli.errors import CodeError, Location
from tokitai_cli.gfx.code import bundles, elf, facts, objects, table
from tokitai_cli.gfx.code.decode import UNKNOWN
from tokitai_cli.gfx.code.instruction import Instruction
from tokitai_cli.gfx.code.text import text
from tokitai_cli.gfx.run import reached, refused
from tokitai_cli.model.machine import Inspection, SeenKernel
from tokitai_cli.storage import open_plain

USUAL = "gfx1101"


def is_machine_code(path: Path) -> bool:
    """Whether a file may carry code objects, by its first bytes."""
    try:
        with open_plain(path) as file:
            return file.read(32).startswith((bundles.PLAIN, bundles.PACKED, elf.MAGIC))
    except OSError:
        return False


def chosen(path: Path, arch: str) -> tuple[str, tuple[str, ...], list[objects.CodeObject]]:
    """The processor, all targets of the file, and the code objects for that processor.

    Without `arch` it is the only one of the file, else gfx1101. Raises CodeError.
    """
    carried = bundles.code_objects(path)
    targets = tuple(dict.fromkeys(one.target for one in carried))
    wanted = arch or (carried[0].arch if len({one.arch for one in carried}) == 1 else USUAL)
    found = [one for one in carried if one.arch == wanted]
    if not found:
        raise CodeError(
            f"no code object for {wanted} in it",
            where=Location(path),
            mend=f"--arch takes one of {', '.join(dict.fromkeys(one.arch for one in carried))}",
        )
    table.rows(wanted)
    try:
        return wanted, targets, [objects.read_code_object(one.data) for one in found]
    except CodeError as error:
        raise CodeError(error.message, where=Location(path), mend=error.mend) from None


def inspect(path: Path, arch: str = "", kernel: str = "") -> Inspection:
    """Read the file. kernel: the one that is wanted, with its listing; else all, and no listing
    unless there is one only. Raises CodeError.
    """
    arch, targets, read = chosen(path, arch)
    pairs = [(one, found) for one in read for found in one.kernels]
    if kernel:
        pairs = [_named(path, read, kernel)]
    names: Counter[str] = Counter()
    seen = []
    for one, found in pairs:
        code = facts.instructions(found, arch)
        counted = facts.names(code)
        names += counted
        lines = tuple(_listing(code, objects.lines(one.data))) if len(pairs) == 1 else ()
        seen.append(
            SeenKernel(
                found.name, found.demangled, facts.facts(found, code), len(code),
                counted[UNKNOWN], refused(reached(code, found.address)), lines,
            )
        )  # fmt: skip
    return Inspection(str(path), arch, targets, tuple(seen), dict(sorted(names.items())))


def _named(
    path: Path, read: list[objects.CodeObject], name: str
) -> tuple[objects.CodeObject, objects.Kernel]:
    """The kernel of that name, with the code object that it is in."""
    errors = []
    for one in read:
        try:
            return one, one.kernel(name)
        except CodeError as error:
            errors.append(error)
    raise CodeError(errors[0].message, where=Location(path), mend=errors[0].mend)


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
