"""Frames of the protocol: the run request, the hello and the answer (docs/internals/protocol.md)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence

import msgspec

from tokitai_cli.core.linked_folders import LinkedFolders
from tokitai_cli.core.model.case import BufferArg, Case, Role, ScalarValue
from tokitai_cli.core.model.device import Fact
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.run.child.memory_layout import Layout

FIRST_LINE = "tokitai-child 1 u64le"
MAX_FRAME = 1 << 20
LENGTH = struct.Struct("<Q")
_WRITER = re.compile(r"(\d{1,9}) (\d{1,9}) ([^\n]+)")
_RUN = 1
_ARG_BUFFER, _ARG_BITS, _ARG_INTEGER, _ARG_STRUCT = 0, 1, 2, 3
# Of blocks, warps and threads.
_REVERSE = 2**64 - 1
STATUS_OK, STATUS_ERROR, STATUS_ARGUMENT, STATUS_MEMORY = 0, 1, 2, 3
STATUS_LOST, STATUS_BARRIER, STATUS_FAULT, STATUS_UNMODELLED = 4, 5, 6, 7


class GarbageError(Exception):
    """A frame that is none of the protocol."""


class Hello(msgspec.Struct, frozen=True):
    """What a child says of itself once it is up."""

    status: str
    message: str
    device: str
    warp_size: int
    facts: tuple[Fact, ...]


class Answer(msgspec.Struct, frozen=True):
    """What a child says of one case. `changed` is (bytes, offset) for each buffer."""

    status: int
    times_ns: tuple[int, ...] = ()
    changed: tuple[tuple[int, int], ...] = ()
    message: str = ""
    #: Who wrote into a guard of a result, with index of the buffer and repetition, where it knows.
    #: found: what the device found while the kernels ran, by the names of its fields.
    writer: tuple[int, int, str] | None = None
    findings: tuple[Mapping[str, str], ...] = ()


def with_folders(answer: Answer, links: LinkedFolders) -> Answer:
    """The answer with folders in place of links' names, by which the child was built."""
    findings = tuple(
        {key: links.text(text) for key, text in finding.items()} for finding in answer.findings
    )
    writer = answer.writer
    return msgspec.structs.replace(
        answer,
        message=links.text(answer.message),
        findings=findings,
        writer=writer and (*writer[:2], links.text(writer[2])),
    )


def schedule_seeds(repetitions: int, seed: int) -> tuple[int, ...]:
    """Schedule seed of each repetition: natural order, its exact reverse, then others, each its own.

    The mix is that of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, fig. 17).
    """
    seeds = [0, _REVERSE]
    for turn in range(2, repetitions):
        word = (seed + turn * 0x9E3779B97F4A7C15) % 2**64
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
        seeds.append((word ^ (word >> 31)) | 1)
    return tuple(seeds[:repetitions])


def schedule_names(seeds: Sequence[int]) -> tuple[str, ...]:
    """Orders of blocks, warps and threads in words."""
    names = {0: "natural", _REVERSE: "reverse"}
    return tuple(names.get(seed, f"seed {seed:#018x}") for seed in seeds)


def run_request(
    case: Case,
    harness: HarnessRequest,
    layout: Layout,
    *,
    number: int,
    warmups: int,
    seeds: Sequence[int],
    approximation: int = 0,
) -> bytes:
    """Payload of a run request; `seeds` are the schedule seeds of the layout's repetitions.

    approximation: how a device that models instructions within an error evaluates them (gfx alone).
    """
    words: list[int] = [_RUN, number, layout.nbytes, warmups | approximation << 32, len(seeds)]
    for place, seed in zip(layout.fills, seeds, strict=True):
        words += (place, seed)
    words.append(len(layout.buffers))
    positions = {buffer.plan.name: index for index, buffer in enumerate(layout.buffers)}
    for buffer in layout.buffers:
        words += buffer.words()
        words += [(positions[name] << 48) + byte for name, byte in buffer.plan.points]
    words.append(len(case.launches))
    used = {launch.index for launch in case.launches}
    kernels = {index: harness.index_of(case.variant, index, case.warp_size) for index in used}
    for launch in case.launches:
        words += [kernels[launch.index], *launch.grid, *launch.block]
        words += [launch.shared_bytes, len(launch.leaves)]
        for arg in launch.leaves:
            words += _arg_words(arg, positions, layout)
    return struct.pack(f"<{len(words)}Q", *words)


def _arg_words(
    arg: BufferArg | ScalarValue, positions: dict[str, int], layout: Layout
) -> tuple[int, int]:
    if isinstance(arg, BufferArg):
        at = positions[arg.buffer]
        is_struct = layout.buffers[at].plan.role is Role.STRUCT
        return _ARG_STRUCT if is_struct else _ARG_BUFFER, at
    kind = _ARG_BITS if arg.dtype else _ARG_INTEGER
    return kind, int.from_bytes(arg.bits.ljust(8, b"\0"), "little")


def read_hello(payload: bytes) -> Hello:
    """Parse the first frame; raises GarbageError."""
    try:
        lines = payload.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise GarbageError("its first frame is not UTF-8") from error
    if not lines or lines[0] != FIRST_LINE:
        first = lines[0][:60] if lines else ""
        raise GarbageError(f"its first frame begins with {first!r}, not with {FIRST_LINE!r}")
    values: dict[str, str] = {}
    facts: list[Fact] = []
    for line in lines[1:]:
        key, equals, value = line.partition("=")
        if not equals:
            raise GarbageError(f"its first frame has a line without '=': {line[:60]!r}")
        if key.startswith("fact."):
            text, _, source = value.rpartition("|")
            facts.append(Fact(key.removeprefix("fact."), text, source))
        else:
            values[key] = value
    width = values.get("warp_size", "0")
    if "status" not in values or not width.isascii() or not width.isdigit():
        raise GarbageError("its first frame lacks status or warp_size")
    return Hello(
        values["status"],
        values.get("message", ""),
        values.get("device", ""),
        int(width),
        tuple(facts),
    )


def read_answer(payload: bytes, *, number: int, repetitions: int, buffers: int) -> Answer:
    """Parse the answer to case `number`; raises GarbageError where any word is out of place."""
    if len(payload) < 24:
        raise GarbageError(f"its answer has {len(payload)} bytes")
    opcode, echoed, status = struct.unpack_from("<3Q", payload)
    if opcode != _RUN or echoed != number or status > STATUS_UNMODELLED:
        raise GarbageError(f"its answer begins with the words {opcode}, {echoed}, {status}")
    if status != STATUS_OK:
        return Answer(status, message=_message(payload, repetitions, buffers))
    count = 1 + repetitions + 1 + 2 * buffers
    if len(payload) < 24 + 8 * count:
        raise GarbageError(f"its answer ends after {len(payload)} bytes")
    words = struct.unpack_from(f"<{count}Q", payload, 24)
    if words[0] != repetitions or words[1 + repetitions] != buffers:
        raise GarbageError(
            f"its answer describes {words[0]} repetitions and {words[1 + repetitions]} "
            f"buffers instead of {repetitions} and {buffers}"
        )
    pairs = words[2 + repetitions :]
    changed = [
        (pairs[index], pairs[index + 1] - (pairs[index + 1] >> 63 << 64))
        for index in range(0, 2 * buffers, 2)
    ]
    text = payload[24 + 8 * count :]
    found = _found(text) if text.startswith(b"finding\t") else ()
    writer = None if found else _writer(text)
    return Answer(status, words[1 : 1 + repetitions], tuple(changed), writer=writer, findings=found)


def _found(text: bytes) -> tuple[dict[str, str], ...]:
    """Findings, a line each: `finding` and fields NAME=VALUE, parted by tabs."""
    lines = [line.split("\t") for line in text.decode("utf-8", "replace").splitlines()]
    if any(words[0] != "finding" for words in lines):
        raise GarbageError("its answer has lines that are not findings")
    return tuple(dict(word.split("=", 1) for word in words[1:] if "=" in word) for words in lines)


def _writer(text: bytes) -> tuple[int, int, str] | None:
    """Who wrote into a guard: `BUFFER REPETITION words`."""
    if not text:
        return None
    known = _WRITER.fullmatch(text.decode("utf-8", "replace"))
    if known is None:
        raise GarbageError(f"its answer has {len(text)} bytes too many")
    return int(known[1]), int(known[2]), known[3]


def _message(payload: bytes, repetitions: int, buffers: int) -> str:
    """Text behind an error status; the words of a whole answer may stand before it."""
    start = 24
    whole = 24 + 8 * (2 + repetitions + 2 * buffers)
    if len(payload) >= whole:
        done = struct.unpack_from("<Q", payload, 24)[0]
        counted = struct.unpack_from("<Q", payload, 24 + 8 * (1 + repetitions))[0]
        if done <= repetitions and counted == buffers:
            start = whole
    return payload[start:].decode("utf-8", "replace").strip()
