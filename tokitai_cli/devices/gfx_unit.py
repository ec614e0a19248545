"""The C++ unit of a code object's kernels: what the spec passes, and translated machine code."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tokitai_cli.devices import gfx_library, gfx_tables
from tokitai_cli.devices.code_object import variables_fact
from tokitai_cli.errors import NotRunError, UntranslatedError
from tokitai_cli.gfx.code import decode, text
from tokitai_cli.gfx.code.instruction import Instruction
from tokitai_cli.gfx.code.objects import CodeObject, Kernel, lines, read_code_object
from tokitai_cli.gfx.run import approximate
from tokitai_cli.gfx.run.unit import Code, Memory, Registers, Word, unit
from tokitai_cli.model.device import APPROXIMATE, MACHINE_CODE, Fact
from tokitai_cli.model.harness import HarnessRequest, KernelArg
from tokitai_cli.storage import sha256

# Of tokitai_passed (kernels/harness/tokitai_kernel.hpp), in its order.
_PASSED = ("buffer", "buffer", "scalar", "integer")
_SOURCE = "code object"
_EXECUTABLE, _WRITABLE = 1, 2


def translate(code_path: Path, unit_path: Path, request: HarnessRequest) -> tuple[Fact, ...]:
    """Write the unit of the kernels of `request`; facts of the code object.

    Raises UntranslatedError, which names what cannot be executed.
    """
    code = read_code_object(code_path.read_bytes())
    found = list(gfx_tables.kernels(code, len(request.kernels)))
    library = gfx_library.named(code, request.source.parent)
    if library is not None:
        code, theirs = gfx_library.taken(library, code.arch, [kernel for kernel, _ in found])
        found = [(kernel, rows) for kernel, (_, rows) in zip(theirs, found, strict=True)]
        unit_path.with_suffix(".library.d").write_text(f"{unit_path.name}: {library}\n", "utf-8")
    kernels = [
        _code(code, kernel, tuple(_words(kernel, rows, entry.args)))
        for (kernel, rows), entry in zip(found, request.kernels, strict=True)
    ]
    places = gfx_tables.symbols(code, len(request.symbols))
    symbols = [(name, *place) for (name, _), place in zip(request.symbols, places, strict=True)]
    memory = Memory(
        tuple(
            (one.address, one.size, one.data, bool(one.flags & _WRITABLE))
            for one in code.segments
            if not one.flags & _EXECUTABLE
        ),
        code.relocations,
    )
    try:
        made = unit(kernels, memory, symbols, _places(code))
    except NotRunError as error:
        raise UntranslatedError(str(error), mend="docs/gfx.md lists what is executed") from None
    unit_path.write_text(made, encoding="utf-8")
    facts = tuple(_facts(code, zip((kernel for kernel, _ in found), kernels, strict=True)))
    if library is None:
        return facts
    digest = sha256(library.read_bytes())
    return (
        Fact(MACHINE_CODE, f"{library.name} (sha256 {digest})", "file that the source names"),
        *facts,
    )


def _code(code: CodeObject, kernel: Kernel, words: tuple[Word, ...]) -> Code:
    descriptor, told = kernel.descriptor, kernel.told
    if descriptor.wave != 32:
        raise UntranslatedError(f"kernel {_name(kernel)} has waves of {descriptor.wave} lanes")
    return Code(
        name=_name(kernel),
        entry=kernel.address,
        instructions=_instructions(code, kernel),
        words=words,
        hidden=tuple((one.value_kind, one.offset, one.size) for one in kernel.args if one.hidden),
        registers=_registers(descriptor.properties, descriptor.rsrc2),
        vector_registers=((descriptor.rsrc1 & 63) + 1) * 8,
        lds=descriptor.lds,
        scratch=descriptor.scratch,
        # Compilers load whole groups of four dwords, of which one at least is an argument's.
        argument_bytes=descriptor.kernarg + 12,
        most_threads=told.max_flat_workgroup_size,
        float_mode=descriptor.rsrc1 >> 12 & 255,
    )


def _instructions(code: CodeObject, kernel: Kernel) -> list[Instruction]:
    """Those of the kernel; of the whole code object, where it calls functions."""
    own = list(decode.decode(kernel.code, kernel.address, code.arch))
    if not any(one.name == "s_swappc_b64" for one in own):
        return own
    return [
        one
        for part in code.segments
        if part.flags & _EXECUTABLE
        for one in decode.decode(part.data, part.address, code.arch)
    ]


def _registers(properties: int, rsrc2: int) -> Registers:
    """Scalar registers that are set at the start (LLVM, AMDGPU, initial kernel execution state)."""
    at, places = 0, []
    for bit, size in enumerate((4, 2, 2, 2, 2, 2, 1)):
        there = bool(properties >> bit & 1)
        places.append(at if there else -1)
        at += size if there else 0
    return Registers(
        dispatch=places[1],
        arguments=places[3],
        scratch_size=places[6],
        end=rsrc2 >> 1 & 31,
        block=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
    )


def _words(
    kernel: Kernel, rows: Iterable[gfx_tables.Row], args: tuple[KernelArg, ...]
) -> Iterator[Word]:
    places = [
        f"{number}{at}"
        for number, arg in enumerate(args)
        for at, _ in (arg.fields if arg.kind == "struct" else (("", arg),))
    ]
    for row, place in zip(rows, places, strict=True):
        offset = kernel.args[row.parameter].offset + row.offset
        kind = _PASSED[row.kind]
        yield Word(kind, place, offset, row.size, row.lowest, row.highest)


def _places(code: CodeObject) -> Callable[[Instruction], tuple[str, str, int]]:
    """What findings say of an instruction: its text, and the source's file and line."""
    known = lines(code.data)
    starts = sorted(known)

    def place(instruction: Instruction) -> tuple[str, str, int]:
        at = bisect.bisect_right(starts, instruction.address) - 1
        file, line = known[starts[at]] if at >= 0 else ("", 0)
        return text.text(instruction), file if line else "", line

    return place


def _name(kernel: Kernel) -> str:
    return kernel.demangled.partition("(")[0].removeprefix("void ")


def _facts(code: CodeObject, kernels: Iterable[tuple[Kernel, Code]]) -> Iterator[Fact]:
    """What the machine code is and asks for, each kernel of the spec by its name."""
    yield Fact("code object sha256", sha256(code.data), _SOURCE)
    yield Fact("code object for", code.target or code.arch, "metadata of the code object")
    yield from variables_fact(code.data, "symbols of the code object")
    for kernel, made in kernels:
        told, descriptor, name = kernel.told, kernel.descriptor, made.name
        names = [one.name for one in made.instructions]
        counts = Counter(map(_class_of, names))
        mode = ", ".join(f"{key} {value}" for key, value in descriptor.mode().items())
        values = {
            "machine code sha256": (sha256(kernel.code), "bytes of the kernel"),
            "vector registers": (told.vgpr_count, "metadata"),
            "scalar registers": (told.sgpr_count, "metadata"),
            "shared bytes": (descriptor.lds, "descriptor"),
            "scratch bytes per thread": (descriptor.scratch, "descriptor"),
            "spilled vector registers": (told.vgpr_spill_count, "metadata"),
            "spilled scalar registers": (told.sgpr_spill_count, "metadata"),
            "wave size": (descriptor.wave, "descriptor"),
            "float mode": (mode, "descriptor"),
            "instructions": (
                ", ".join(f"{counts[one]} {one}" for one in sorted(counts)),
                "decoded machine code",
            ),
            "contracted": (
                ", ".join(sorted({one for one in names if "fma" in one})) or "nothing",
                "decoded machine code",
            ),
            APPROXIMATE: (
                ", ".join(approximate(made.instructions)) or "none",
                "decoded machine code",
            ),
        }
        for key, (value, source) in values.items():
            yield Fact(f"{name}: {key}", str(value), source)


def _class_of(name: str) -> str:
    """Class of an instruction in the inventory."""
    if name.startswith(("global_", "flat_", "scratch_", "ds_", "buffer_", "s_load_", "s_buffer_")):
        return "memory"
    if name.startswith("v_"):
        return "vector"
    control = (
        "s_branch",
        "s_cbranch",
        "s_endpgm",
        "s_barrier",
        "s_wait",
        "s_nop",
        "s_delay",
        "s_s",
    )
    return "control" if name.startswith(control) else "scalar"
