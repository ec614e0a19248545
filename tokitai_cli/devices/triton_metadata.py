"""What Triton says of a kernel beside its machine code: files of its cache, and its intermediate code.

A compile leaves NAME.hsaco (AMD) or NAME.cubin and NAME.ptx (NVIDIA), NAME.json (metadata) and NAME.ttir
(intermediate code, with the signature as it was specialised: constants, and integers that are 1, are no
parameters any more) in one folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tokitai_cli.core.errors import CodeError, Location, UsageError
from tokitai_cli.core.storage import read_plain
from tokitai_cli.devices import foreign
from tokitai_cli.devices.amdgpu.binary.objects import Compiled
from tokitai_cli.devices.amdgpu.binary.parameters import passed_arguments

_MOST = 1 << 26  # bytes of a text of Triton's
_ADDRESS = 8  # bytes of it
_FOUR_WARPS = 128  # threads, where nothing tells them
# Its files of machine code; of a folder the first that is there. PTX the driver compiles once more.
_SUFFIXES = (".hsaco", ".cubin", ".ptx")
# Types of its intermediate code.
_DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i1": "bool",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "f8E5M2": "float8_e5m2", "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E4M3FNUZ": "float8_e4m3fnuz",
}  # fmt: skip
_PARAMETER = re.compile(
    r"%(\w+): (!tt\.ptr<([\w.]+)(?:, \d+)?>|\w+)(?: \{[^}]*\})?(?: loc\((?:\"(\w+)\")?)?"
)
_VALUE = re.compile(r"%[\w.#]+")
# Operations that write to an array and that read one, by their first operand: a pointer or a descriptor.
_STORES = r"tt\.(?:store|atomic_(?!load|poll)\w+|descriptor_(?:store|scatter|reduce))"
_LOADS = r"tt\.(?:load|atomic_(?!store)\w+|descriptor_(?:load|gather|reduce))"
# Those whose result leads to the array of their first operand, and those whose result leads to none.
_DERIVED = re.compile(r"tt\.(?:addptr|make_tensor_descriptor) ")
_LOADED = re.compile(r"tt\.(?:load|descriptor_load|descriptor_gather) ")


class _Target(msgspec.Struct, frozen=True):
    backend: str = ""
    arch: str | int = ""
    warp_size: int = 32


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    num_warps: int = 4
    num_ctas: int = 1
    launch_cooperative_grid: bool = False
    shared: int = 0
    target: _Target = _Target()
    global_scratch_size: int = 0
    profile_scratch_size: int = 0
    triton_version: str = ""


class TritonArgument(msgspec.Struct, frozen=True):
    """A parameter of the kernel as it was specialised."""

    #: Its name in the source; of code without one, "arg" and its number.
    name: str
    #: The dtype of the scalar, or of the array's elements; empty where nothing tells it.
    dtype: str
    #: Whether it is an array.
    pointer: bool
    #: Whether the kernel stores to the array, and whether it reads it or adds to it.
    written: bool = False
    read: bool = True


class TritonKernel(msgspec.Struct, frozen=True):
    """A compiled kernel."""

    #: The file with its machine code.
    source: Path
    #: Its symbol.
    name: str
    #: The processor that it was compiled for.
    arch: str
    #: Threads of a program.
    threads: int
    #: Bytes of shared memory of a program.
    shared: int
    #: Parameters that a caller passes.
    arguments: tuple[TritonArgument, ...]
    #: Bytes of a program that each pointer behind them leads to: scratch, mostly none of it.
    scratch: tuple[int, ...]
    #: Triton's version, empty where it does not say it.
    version: str = ""
    #: Whether names and dtypes are Triton's own, and no guesses by sizes.
    has_signature: bool = True
    #: Whether threads and shared memory are Triton's own, and no guesses.
    has_metadata: bool = True


def is_compiled(path: Path) -> bool:
    """Whether a path is a kernel of Triton's: an .hsaco, .cubin or .ptx, or a folder with one."""
    return path.suffix in _SUFFIXES or (
        path.is_dir() and any(any(path.glob(f"*{suffix}")) for suffix in _SUFFIXES)
    )


def read(path: Path) -> TritonKernel:
    """The kernel of a file of machine code or of a folder of Triton's cache.

    Raises UsageError, CodeError.
    """
    source = _code_in(path)
    data = source.with_suffix(".json")
    metadata = _metadata(data) if data.is_file() else _Metadata()
    held = foreign.kernels_in(source)
    if len(held) != 1:
        names = ", ".join(one.name for _, one in held)
        raise CodeError(
            f"{len(held)} kernels ({names}), but one is expected", where=Location(source)
        )
    code, kernel = held[0]
    if metadata.target.backend == "cuda":
        _refuse(metadata, source)
    text = source.with_suffix(".ttir")
    told = tuple(_signature(_text(text), kernel.name)) if text.is_file() else ()
    given = len(passed_arguments(kernel))
    if len(told) > given:
        raise CodeError(
            f"{kernel.name} takes {given} arguments, and {text.name} has {len(told)}",
            where=Location(source),
        )
    if not told:
        told = tuple(_guessed(kernel))
        sizes: tuple[int, ...] = ()
    else:
        sizes = (metadata.global_scratch_size, metadata.profile_scratch_size)
    behind = given - len(told)
    return TritonKernel(
        source=source,
        name=kernel.name,
        arch=code.arch,
        threads=metadata.num_warps * metadata.target.warp_size
        if data.is_file()
        else kernel.most_threads or _FOUR_WARPS,
        shared=metadata.shared,
        arguments=told,
        scratch=(*sizes, *[0] * behind)[:behind],
        version=metadata.triton_version,
        has_signature=text.is_file(),
        has_metadata=data.is_file(),
    )


def _code_in(path: Path) -> Path:
    if not path.is_dir():
        return path
    each = [sorted(path.glob(f"*{suffix}")) for suffix in _SUFFIXES]
    found = next((some for some in each if some), [])
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or f"no {' or '.join(_SUFFIXES)}"
        raise UsageError(f"{path} has {names}", hint="name one of them, with its .json beside it")
    return found[0]


def _refuse(metadata: _Metadata, source: Path) -> None:
    """Raise CodeError for what a launch would need beside grid and block."""
    wants = {
        f"clusters of {metadata.num_ctas} blocks (num_ctas)": metadata.num_ctas > 1,
        "a cooperative launch (launch_cooperative_grid)": metadata.launch_cooperative_grid,
    }
    for what, needed in wants.items():
        if needed:
            raise CodeError(
                f"{source.name} needs {what}, which a spec cannot request", where=Location(source)
            )


def _metadata(path: Path) -> _Metadata:
    try:
        return msgspec.json.decode(_text(path), type=_Metadata)
    except msgspec.MsgspecError as error:
        raise CodeError(f"no metadata of Triton's: {error}", where=Location(path)) from None


def _text(path: Path) -> str:
    try:
        return read_plain(path, _MOST).decode("utf-8", "replace")
    except OSError as error:
        raise CodeError(
            f"cannot be read: {error.strerror or error}", where=Location(path)
        ) from None


def _signature(text: str, name: str) -> Iterator[TritonArgument]:
    """Parameters of the function of that name, with what it does to its arrays."""
    head = re.search(
        rf"tt\.func public @{re.escape(name)}\((.*?)\)(?: attributes.*)? \{{$", text, re.M
    )
    if head is None:
        return
    stores, loads = _reached(text, _STORES), _reached(text, _LOADS)
    for value, kind, element, said in _PARAMETER.findall(head[1]):
        dtype = _DTYPES.get(element or kind, "")
        if not dtype:
            raise CodeError(f"{name} takes %{value} of {kind}, which a spec cannot pass")
        named = said or value
        yield TritonArgument(
            named, dtype, bool(element), f"%{value}" in stores, f"%{value}" in loads
        )


def _reached(text: str, operations: str) -> set[str]:
    """Values that the addresses of operations are made of, however far back."""
    made: dict[str, list[str]] = {}
    waiting: list[str] = []
    for line in text.splitlines():
        left, equal, right = line.partition(" = ")
        if equal and left.strip().startswith("%"):
            operands = _VALUE.findall(right)
            if _LOADED.match(right):
                operands = []
            elif _DERIVED.match(right):
                operands = operands[:1]
            for name in left.replace(":", ",").split(","):
                made.setdefault(name.strip(), []).extend(operands)
        for name, first in re.findall(r"(%\w+) = (%[\w#]+)", right):  # of a loop
            made.setdefault(name, []).append(first)
        if match := re.search(rf"(?:{operations}) (?:\w+, )*(?:\w+, )?(%[\w#]+)", line):
            waiting.append(match[1])
    found: set[str] = set()
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += made.get(one, []) + made.get(one.partition("#")[0], [])
    return found


def _guessed(kernel: Compiled) -> Iterator[TritonArgument]:
    """What the code object alone tells: arrays, and numbers by their sizes."""
    sizes = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
    for at, one in enumerate(passed_arguments(kernel)):
        pointer = one.value_kind == "global_buffer" or (not one.value_kind and one.size == _ADDRESS)
        yield TritonArgument(
            one.name or f"arg{at}", "" if pointer else sizes.get(one.size, ""), pointer
        )
