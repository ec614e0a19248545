"""Files that carry code objects: themselves, offload bundles, compressed ones, shared libraries."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tokitai_cli.errors import CodeError, Location
from tokitai_cli.gfx.code import elf
from tokitai_cli.storage import read_plain

PLAIN, PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
# After the magic and two uint16 of version and method: sizes of the file and of what is in it.
# https://clang.llvm.org/docs/ClangOffloadBundler.html#compression-and-decompression
HEADERS = {2: "<II8x", 3: "<QQ8x"}
ZLIB, ZSTD = 0, 1
TARGET = re.compile(r"hip(?:v4)?-amdgcn-.*-(gfx[0-9a-f]+(?:(?:-\d+)*-generic)?(?::[a-z]+[+-])*)")
# What is believed of a file before it is read. The largest library of ROCm unpacks to less.
MAX_FILE, MAX_UNPACKED, MAX_ENTRIES = 1 << 31, 1 << 30, 4096


class Embedded(msgspec.Struct, frozen=True):
    """A code object in a file. target: the processor with features ("gfx1101", "gfx90a:xnack+")."""

    target: str
    data: bytes

    @property
    def arch(self) -> str:
        """The processor alone."""
        return self.target.partition(":")[0]


def code_objects(path: Path) -> tuple[Embedded, ...]:
    """Every code object for AMD processors in `path`, in the order of the file; at least one.

    Reads ELF code objects (.hsaco), offload bundles, compressed bundles (CCOB 2 and 3, zstd or
    zlib) and host ELF files with a section .hip_fatbin. Raises CodeError.
    """
    try:
        found = tuple(_found(read_plain(path, MAX_FILE)))
    except OSError as error:
        raise CodeError(
            f"cannot be read: {error.strerror or error}", where=Location(path)
        ) from None
    except CodeError as error:
        raise CodeError(error.message, where=Location(path), mend=error.mend) from None
    if not found:
        raise CodeError(
            "no code object for an AMD processor in it",
            where=Location(path),
            mend="give an .hsaco, an offload bundle, or a library that hipcc built",
        )
    return found


def _found(data: bytes) -> Iterator[Embedded]:
    if data.startswith(elf.MAGIC):
        if elf.is_code_object(data):
            yield Embedded(elf.target_of(data), data)
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
    try:
        import zstandard
    except ImportError:
        raise CodeError(
            "the bundle is compressed with zstd, which needs the package zstandard",
            mend="pip install 'tokitai[gfx]'",
        ) from None
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
