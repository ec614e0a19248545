"""Code objects: kernels with their descriptors and metadata, segments, symbols, source lines.

Formats: LLVM, User Guide for AMDGPU Backend (kernel descriptor, code object metadata V3 to V5).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import field

from tokitai_cli.core import elf
from tokitai_cli.core.errors import CodeError, near
from tokitai_cli.core.file_kind import ELF
from tokitai_cli.devices.amdgpu.binary import processor
from tokitai_cli.devices.amdgpu.binary.names import (
    ANONYMOUS,
    demangled,
    parameter_types,
    parts,
    plain,
    title,
)

_WORD = re.compile(r"\w+(?=[<(]|$)")
_SHOWN, _MOST_SHOWN = 5, 400  # names of kernels, and letters, in an error
NOTE_METADATA, EXECUTABLE = 32, 1
MAX_SEGMENT = 1 << 28


class Argument(msgspec.Struct, frozen=True, rename=lambda name: f".{name}"):
    """An argument of a kernel, as its metadata tells it: offset and size in bytes."""

    offset: int
    size: int
    #: "global_buffer", "by_value", "dynamic_shared_pointer", or hidden ("hidden_..."); empty where
    #: the code does not tell whether it is an address.
    value_kind: str
    name: str = ""
    address_space: str = ""
    access: str = ""
    actual_access: str = ""

    @property
    def hidden(self) -> bool:
        """Whether the runtime passes it, not the caller."""
        return self.value_kind.startswith("hidden_")


class _Told(msgspec.Struct, frozen=True, rename=lambda name: f".{name}"):
    """What the metadata says of a kernel."""

    name: str
    symbol: str
    args: list[Argument] = []
    wavefront_size: int = 64
    sgpr_count: int = 0
    vgpr_count: int = 0
    sgpr_spill_count: int = 0
    vgpr_spill_count: int = 0
    kernarg_segment_size: int = 0
    group_segment_fixed_size: int = 0
    private_segment_fixed_size: int = 0
    max_flat_workgroup_size: int = 0
    agpr_count: int | None = None


class _Metadata(msgspec.Struct, frozen=True):
    kernels: list[_Told] = field(name="amdhsa.kernels", default_factory=list)
    target: str = field(name="amdhsa.target", default="")


class Descriptor(msgspec.Struct, frozen=True):
    """A kernel descriptor: bytes of LDS, scratch and arguments, the entry's offset, register words."""

    lds: int
    scratch: int
    kernarg: int
    entry: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int

    @property
    def wave(self) -> int:
        """Lanes of a wave."""
        return 32 if self.properties >> 10 & 1 else 64

    def mode(self) -> dict[str, int]:
        """The float mode: rounding (0 is to nearest even), denormals (3 keeps them), and switches."""
        places = {
            "round_32": (12, 3), "round_16_64": (14, 3), "denorm_32": (16, 3),
            "denorm_16_64": (18, 3), "dx10_clamp": (21, 1), "ieee": (23, 1), "fp16_overflow": (26, 1),
            "wgp_mode": (29, 1),
        }  # fmt: skip
        return {name: self.rsrc1 >> shift & bits for name, (shift, bits) in places.items()}


class Compiled(msgspec.Struct, frozen=True):
    """A kernel that was compiled, by its symbol, for whatever GPU."""

    name: str

    @property
    def args(self) -> tuple[Argument, ...]:
        """Arguments in their order, hidden ones included."""
        raise NotImplementedError

    @property
    def most_threads(self) -> int:
        """Threads that a block of it may have, 0 for no bound."""
        raise NotImplementedError

    @property
    def demangled(self) -> str:
        """Its name as its source spells it."""
        return demangled(self.name)

    @property
    def title(self) -> str:
        """Its name with its template arguments, as `scale<float>`."""
        return title(self.name)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its parameters as its symbol tells them; none where it does not."""
        return parameter_types(self.name)


class Kernel(Compiled, frozen=True):
    """A kernel. address, size: of its code, whose bytes are `code`; told: its metadata."""

    address: int
    code: bytes
    descriptor: Descriptor
    metadata: _Told

    @property
    def args(self) -> tuple[Argument, ...]:
        """Arguments in the order of the metadata, hidden ones included."""
        return tuple(self.metadata.args)

    @property
    def most_threads(self) -> int:
        """As its metadata says."""
        return self.metadata.max_flat_workgroup_size


_C = TypeVar("_C")
_K = TypeVar("_K", bound=Compiled)


class Segment(msgspec.Struct, frozen=True):
    """A part that is loaded: `size` bytes at `address`, of which the file gives the first ones."""

    address: int
    size: int
    data: bytes
    flags: int


class CodeObject(msgspec.Struct, frozen=True):
    """A code object."""

    arch: str
    target: str
    kernels: tuple[Kernel, ...]
    segments: tuple[Segment, ...]
    #: Name to address and size.
    symbols: Mapping[str, tuple[int, int]]
    #: Address to value (64 bits).
    relocations: tuple[tuple[int, int], ...]
    data: bytes

    def read(self, address: int, size: int) -> bytes:
        """Loaded bytes; what the file does not give is zero. Raises CodeError outside segments."""
        return _read(self.segments, address, size)


def kernel_of(every: Sequence[tuple[_C, _K]], name: str) -> tuple[_C, _K]:
    """Of kernels, each behind what it is in, the one of that symbol or demangled name.

    A demangled name may leave out what it returns, its parameters and its template arguments, and
    spaces. Raises CodeError where there is none or several.
    """
    wanted, found = plain(name), list[tuple[_C, _K]]()
    word = _WORD.search(wanted.replace(ANONYMOUS, ""))  # spares demangling all of them
    likely = [pair for pair in every if word is not None and word[0] in pair[1].name]
    for spelled in zip(*(_spellings(one) for _, one in likely), strict=True):
        found = found or [one for one, text in zip(likely, spelled, strict=True) if text == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        told = ", ".join(one.demangled for _, one in found[:_SHOWN])
        raise CodeError(f"{len(found)} kernels are called `{name}`", hint=f"name one of {told}")
    hint = near(name, (one.title for _, one in every))
    many = len(hint) > _MOST_SHOWN
    hint = "`tokitai isa FILE` lists its kernels" if many else hint
    raise CodeError(f"no kernel is called `{name}`", hint=hint)


def read_code_object(data: bytes) -> CodeObject:
    """Read a code object for AMD processors. Raises CodeError for what is none, or damaged."""
    if not data.startswith(ELF) or not processor.is_code_object(data):
        raise CodeError("no code object for an AMD processor")
    with elf.opened(data) as file:
        segments = tuple(
            Segment(one["p_vaddr"], one["p_memsz"], one.data(), one["p_flags"])
            for one in file.iter_segments("PT_LOAD")
        )
        table: Any = file.get_section_by_name(".dynsym")
        listed = [(one.name, one["st_value"], one["st_size"]) for one in table.iter_symbols()]
        notes = [elf.held(file, one) for one in file.iter_sections("SHT_NOTE")]
        relocations = tuple(
            (one["r_offset"], one["r_addend"] + listed[one["r_info_sym"]][1])
            for section in map(_any, file.iter_sections("SHT_RELA"))
            for one in section.iter_relocations()
        )
    if any(one.size > MAX_SEGMENT for one in segments):
        raise CodeError("a damaged code object: a segment of more than 256 MiB")
    symbols = {name: (value, size) for name, value, size in listed if name}
    metadata = _metadata(notes)
    kernels = tuple(_kernel(told, symbols, segments) for told in metadata.kernels)
    arch = _target(metadata, data).partition(":")[0]
    return CodeObject(arch, metadata.target, kernels, segments, symbols, relocations, data)


def target_of(data: bytes) -> str:
    """The processor of a code object with its features, as metadata or header tell it."""
    with elf.opened(data) as file:
        notes = [elf.held(file, one) for one in file.iter_sections("SHT_NOTE")]
    return _target(_metadata(notes), data)


def _target(metadata: _Metadata, data: bytes) -> str:
    return metadata.target.partition("--")[2] or processor.target_of(data)


def _kernel(
    told: _Told, symbols: Mapping[str, tuple[int, int]], segments: tuple[Segment, ...]
) -> Kernel:
    name = told.symbol.removesuffix(".kd")
    if told.symbol not in symbols or name not in symbols:
        raise CodeError(f"a damaged code object: no symbols of the kernel {name!r}")
    at = symbols[told.symbol][0]
    data = _read(segments, at, 64)
    lds, scratch, kernarg, entry = struct.unpack_from("<III4xq", data)
    rsrc3, rsrc1, rsrc2, properties = struct.unpack_from("<IIIH", data, 44)
    descriptor = Descriptor(lds, scratch, kernarg, entry, rsrc1, rsrc2, rsrc3, properties)
    address, size = symbols[name]
    size = size or _up_to_the_next(address, symbols, segments)
    if at + entry != address:
        raise CodeError(f"a damaged code object: {name!r} does not start where its code does")
    return Kernel(name, address, _read(segments, address, size), descriptor, told)


def _up_to_the_next(
    address: int, symbols: Mapping[str, tuple[int, int]], segments: tuple[Segment, ...]
) -> int:
    """Bytes of a symbol that says no size: up to the next one, or the end of its segment."""
    ends = [one.address + one.size for one in segments if one.address <= address]
    behind = [at for at, _ in symbols.values() if at > address]
    return min((end for end in (*behind, *ends) if end > address), default=address) - address


def _read(segments: tuple[Segment, ...], address: int, size: int) -> bytes:
    for one in segments:
        if one.address <= address and address + size <= one.address + one.size:
            start = address - one.address
            return one.data[start : start + size].ljust(size, b"\0")
    raise CodeError(f"a damaged code object: no segment is loaded at {address:#x}")


def _metadata(notes: list[bytes]) -> _Metadata:
    """What the notes say, of which a linker keeps one for each object that it was given."""
    held = [data for one in notes for kind, data in _entries(one) if kind == NOTE_METADATA]
    if not held:
        raise CodeError("a code object without metadata for its kernels")
    try:
        each = [msgspec.msgpack.decode(data, type=_Metadata) for data in held]
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise CodeError(f"a damaged code object: its metadata: {error}") from None
    kernels = {kernel.symbol: kernel for one in each for kernel in one.kernels}
    return msgspec.structs.replace(each[0], kernels=[*kernels.values()])


def _entries(section: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 12 <= len(section):
        name_size, size, kind = struct.unpack_from("<III", section, at)
        start = at + 12 + -(-name_size // 4) * 4
        yield kind, section[start : start + size]
        at = start + -(-size // 4) * 4


def _spellings(kernel: Compiled) -> tuple[str, ...]:
    """What a kernel may be called, the fullest first, without needless spaces."""
    whole, (title, types) = kernel.demangled, parts(kernel.demangled)
    front = whole[: whole.find(title) + len(title)]
    names = (whole, f"{title}({types})", front, title, title.partition("<")[0])
    return kernel.name, *map(plain, names)


def _any(section: Any) -> Any:
    """A section as what pyelftools makes of its kind, which its types do not tell."""
    return section


def lines(data: bytes) -> dict[int, tuple[str, int]]:
    """Address to file and line, out of .debug_line; empty where it was built without -g."""
    found: dict[int, tuple[str, int]] = {}
    with elf.opened(data) as file:
        if not file.has_dwarf_info():
            return found
        info = file.get_dwarf_info()
        for unit in info.iter_CUs():
            program = info.line_program_for_CU(unit)
            if program is None:
                continue
            names = _files(program)
            for entry in program.get_entries():
                state = entry.state
                if state is not None and not state.end_sequence:
                    found[state.address] = (names.get(state.file, "?"), state.line)
    return found


def _files(program: Any) -> dict[int, str]:
    """A line program's files by their numbers, with their folders."""
    header = program.header
    newer = header["version"] >= 5
    folders = [_text(one) for one in header.get("include_directory", ())]
    found = {}
    for number, one in enumerate(header["file_entry"], 0 if newer else 1):
        at = one.get("dir_index", 0) - (0 if newer else 1)
        folder = folders[at] if 0 <= at < len(folders) else ""
        name = _text(one.name)
        found[number] = name if name.startswith("/") or not folder else f"{folder}/{name}"
    return found


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
