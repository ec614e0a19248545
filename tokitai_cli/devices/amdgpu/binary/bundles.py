"""Files that carry code objects: themselves, offload bundles, compressed ones, shared libraries."""

from __future__ import annotations

import functools
import io
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tokitai_cli.core import elf
from tokitai_cli.core.errors import CodeError, Location
from tokitai_cli.core.file_kind import ELF, PACKED, PLAIN, USUAL
from tokitai_cli.core.storage import read_plain
from tokitai_cli.devices.amdgpu.binary import objects, processor

# After the magic and two uint16 of version and method: sizes of the file and of what is in it.
# https://clang.llvm.org/docs/ClangOffloadBundler.html#compression-and-decompression
HEADERS = {2: "<II8x", 3: "<QQ8x"}
ZLIB, ZSTD = 0, 1
TARGET = re.compile(r"hip(?:v4)?-amdgcn-.*-(gfx[0-9a-f]+(?:(?:-\d+)*-generic)?(?::[a-z]+[+-])*)")
# What is believed of a file before it is read. The largest library of ROCm unpacks to less.
MAX_FILE, MAX_UNPACKED, MAX_ENTRIES = 1 << 31, 1 << 30, 4096


class Embedded(msgspec.Struct, frozen=True):
    """A code object in a file."""

    #: The processor with features ("gfx1101", "gfx90a:xnack+").
    target: str
    data: bytes

    @property
    def arch(self) -> str:
        """The processor alone."""
        return self.target.partition(":")[0]

    def serves(self, arch: str) -> bool:
        """Whether it is for a processor, of whose features (":xnack-") it may leave any open."""
        wanted, ours = (dict.fromkeys(one.split(":")[1:]) for one in (arch, self.target))
        stated = {one[:-1] for one in wanted}
        return self.arch == arch.partition(":")[0] and all(
            one in wanted for one in ours if one[:-1] in stated
        )


def code_objects(path: Path) -> tuple[Embedded, ...]:
    """Every code object for AMD processors in `path`, in the order of the file; at least one.

    Reads ELF code objects (.hsaco), offload bundles, compressed bundles (CCOB 2 and 3, zstd or
    zlib) and host ELF files with a section .hip_fatbin. Raises CodeError.
    """
    try:
        data = read_plain(path, MAX_FILE)
        found = tuple(_found(data))
    except OSError as error:
        raise CodeError(
            f"cannot be read: {error.strerror or error}", where=Location(path)
        ) from None
    except CodeError as error:
        raise CodeError(error.message, where=Location(path), hint=error.hint) from None
    if not found and elf.machine(data) == elf.CUDA:
        raise CodeError(
            "a cubin, which holds no code for AMD processors",
            where=Location(path),
            hint="--device cuda runs it on an NVIDIA GPU; `cuobjdump -sass` lists it",
        )
    if not found:
        raise CodeError(
            "no code object for an AMD processor in it",
            where=Location(path),
            hint="give an .hsaco, an offload bundle, or a library that hipcc built",
        )
    return found


def read(path: Path, arch: str = "") -> tuple[objects.CodeObject, ...]:
    """The code objects of a file for a processor, read; kept for the next one who asks.

    Without `arch` it is gfx1101, else the first of the file. Raises CodeError.
    """
    try:
        status = path.stat()
    except OSError:
        return _read(path, arch, ())
    return _read(path, arch, (status.st_size, status.st_mtime_ns, status.st_ino))


@functools.lru_cache(maxsize=8)
def _read(path: Path, arch: str, stamp: tuple[int, ...]) -> tuple[objects.CodeObject, ...]:
    del stamp
    carried = code_objects(path)
    known = dict.fromkeys(one.arch for one in carried)
    wanted = arch or (USUAL if USUAL in known else carried[0].arch)
    found = [one for one in carried if one.serves(wanted)]
    if not found:
        raise CodeError(
            f"no code object for {wanted} in it",
            where=Location(path),
            hint=f"--arch takes one of {', '.join(known)}",
        )
    target = next((one.target for one in found if one.target == wanted), found[0].target)
    try:
        return tuple(objects.read_code_object(one.data) for one in found if one.target == target)
    except CodeError as error:
        raise CodeError(error.message, where=Location(path), hint=error.hint) from None


def _found(data: bytes) -> Iterator[Embedded]:
    if data.startswith(ELF):
        if processor.is_code_object(data):
            yield Embedded(objects.target_of(data), data)
        else:
            for section in elf.sections(data, ".hip_fatbin"):
                yield from _bundles(section)
    elif data.startswith((PLAIN, PACKED)):
        yield from _bundles(data)
    else:
        raise CodeError("neither an ELF file nor an offload bundle")


def _bundles(data: bytes) -> Iterator[Embedded]:
    """Bundles one after another, each at the next multiple of 4096 or straight behind."""
    position = 0
    while 0 <= position < len(data):
        rest = data[position:]
        if rest.startswith(PACKED):
            size, inner = _unpacked(rest)
            yield from _entries(inner)[1]
        elif rest.startswith(PLAIN):
            size, entries = _entries(rest)
            yield from entries
        else:
            size = 1
        marks = (data.find(magic, position + size) for magic in (PLAIN, PACKED))
        position = min((mark for mark in marks if mark >= 0), default=-1)


def _unpacked(data: bytes) -> tuple[int, bytes]:
    """A compressed bundle's size in the file, and the bundle."""
    if len(data) < 8:
        raise CodeError("a compressed bundle ends in its header")
    version, method = struct.unpack_from("<HH", data, 4)
    if version not in HEADERS or method not in (ZLIB, ZSTD):
        raise CodeError(f"a compressed bundle of version {version}, method {method}: unknown")
    start = 8 + struct.calcsize(HEADERS[version])
    if len(data) < start:
        raise CodeError("a compressed bundle ends in its header")
    total, unpacked = struct.unpack_from(HEADERS[version], data, 8)
    if not start < total <= len(data) or unpacked > MAX_UNPACKED:
        raise CodeError(f"a compressed bundle claims {total} bytes that unpack to {unpacked}")
    packed = data[start:total]
    inner = _zstd(packed, unpacked) if method == ZSTD else _zlib(packed, unpacked)
    if len(inner) != unpacked:
        raise CodeError(f"a compressed bundle unpacks to {len(inner)} bytes, not {unpacked}")
    return total, inner


def _zlib(packed: bytes, limit: int) -> bytes:
    import zlib

    try:
        return zlib.decompressobj().decompress(packed, limit + 1)
    except zlib.error as error:
        raise CodeError(f"a compressed bundle is damaged: {error}") from None


def _zstd(packed: bytes, limit: int) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as reader:
            return reader.read(limit + 1)
    except zstandard.ZstdError as error:
        raise CodeError(f"a compressed bundle is damaged: {error}") from None


def _entries(data: bytes) -> tuple[int, list[Embedded]]:
    """The size of an offload bundle, and its code objects."""
    if not data.startswith(PLAIN) or len(data) < 32:
        raise CodeError("an offload bundle without its header")
    (count,) = struct.unpack_from("<Q", data, 24)
    if count > MAX_ENTRIES:
        raise CodeError(f"an offload bundle claims {count} entries")
    position, end, found = 32, 32, []
    for _ in range(count):
        if len(data) < position + 24:
            raise CodeError("an offload bundle ends among its entries")
        offset, size, length = struct.unpack_from("<QQQ", data, position)
        name = data[position + 24 : position + 24 + min(length, 256)].decode("utf-8", "replace")
        position += 24 + length
        if offset + size > len(data) or position > len(data):
            raise CodeError(f"an offload bundle ends before its entry {name!r}")
        end = max(end, offset + size)
        target = TARGET.fullmatch(name)
        if target and size:
            found.append(Embedded(target[1], data[offset : offset + size]))
    return max(end, position), found
