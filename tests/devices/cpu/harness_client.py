"""Builds harnesses with the compiler on PATH and speaks docs/internals/protocol.md with them.

Written against the protocol alone, so that the child is tested without the tool's own client.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.build.guards import guard_shared_arrays
from tokitai_cli.build.harness_text import harness_context, harness_text
from tokitai_cli.core.model.device import SharedGuards
from tokitai_cli.core.model.harness import HarnessRequest, KernelArg, KernelEntry

ROOT = Path(__file__).resolve().parents[3]
HARNESS = ROOT / "kernels" / "harness"
HOST = ROOT / "kernels" / "host"
BUILT = ROOT / ".pytest_cache" / "cpu-children"
PAGE = 4096
GUARD = 0xC3
FILL = 16372  # bytes after which a fill repeats
KINDS = {"input": 0, "output": 1, "inout": 2, "workspace": 3, "symbol": 4}
FLAGS = (
    "-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno",
    "-fno-strict-aliasing", "-ftls-model=local-exec", "-fdata-sections", "-pthread",
    "-fsanitize=alignment", "-fno-sanitize-recover=alignment",
)  # fmt: skip


def compiler() -> str:
    """The C++ compiler to test with."""
    found = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not found:
        msg = "no C++ compiler on PATH"
        raise RuntimeError(msg)
    return found


def render(
    source: Path,
    kernels: Mapping[str, Sequence[str]],
    symbols: Sequence[tuple[str, str]] = (),
) -> str:
    """Harness text. Argument words: "float32*" a buffer, "float32" a scalar, "int" an integer."""

    def arg(word: str) -> KernelArg:
        if word.endswith("*"):
            return KernelArg("buffer", word[:-1])
        return KernelArg("integer", "") if word == "int" else KernelArg("scalar", word)

    entries = tuple(KernelEntry(name, tuple(map(arg, words))) for name, words in kernels.items())
    return harness_text(harness_context(HarnessRequest(source, entries, tuple(symbols))))


def _command(flags: Sequence[str]) -> list[str]:
    return [compiler(), *FLAGS, *flags, "-I", str(HOST), "-I", str(HARNESS)]


def compile_errors(
    source: Path,
    kernels: Mapping[str, Sequence[str]],
    symbols: Sequence[tuple[str, str]] = (),
) -> str:
    """What the compiler says of a harness that is not kept; empty where it is content."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "harness.cpp"
        file.write_text(render(source, kernels, symbols), encoding="utf-8")
        command = [*_command(["-O0", "-Wall", "-Wno-unknown-pragmas"]), "-c", str(file)]
        command += ["-o", str(Path(scratch) / "harness.o")]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, encoding="utf-8"
        )
    return done.stderr


def tool_files() -> list[Path]:
    """Every file of host headers and harness."""
    return sorted([*HOST.rglob("*.h*"), *HARNESS.glob("*.hpp"), *HARNESS.glob("*.cpp")])


def server(flags: Sequence[str]) -> Path:
    """Object of the unit that serves kernels, built once for its files and flags."""
    command = [*_command(flags), "-c", str(HARNESS / "tokitai_server.cpp")]
    digest = hashlib.sha256(repr(command).encode())
    for path in tool_files():
        digest.update(path.read_bytes())
    made = BUILT / f"{digest.hexdigest()[:24]}.o"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=BUILT) as scratch:
            subprocess.run([*command, "-o", f"{scratch}/server.o"], check=True)
            Path(scratch, "server.o").replace(made)
    return made


def build(
    source: Path,
    kernels: Mapping[str, Sequence[str]],
    symbols: Sequence[tuple[str, str]] = (),
    flags: Sequence[str] = (),
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Compile; the file is named by its content, so that test workers and runs share it."""
    text = render(source, kernels, symbols)
    command = _command(flags)
    digest = hashlib.sha256(repr((text, command)).encode())
    for path in (*tool_files(), *sorted((ROOT / "tests").rglob("*.hip")), source):
        digest.update(path.read_bytes())
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / digest.hexdigest()[:24]
    if program.exists():
        return program, subprocess.CompletedProcess(command, 0, "", "")
    with tempfile.TemporaryDirectory(dir=BUILT) as scratch:
        file, made = Path(scratch) / "harness.cpp", Path(scratch) / "child"
        file.write_text(text)
        compiled = Path(scratch) / "harness.o"
        command += ["-c", str(file), "-o", str(compiled)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            guard_shared_arrays(compiled, SharedGuards(front=256, back=768, last=65536))
            command = [compiler(), "-pthread", *flags, str(compiled), str(server(flags))]
            command += ["-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            made.replace(program)
    return program, done


@dataclasses.dataclass
class Buffer:
    """A buffer of a request. `data` is the content, or for results an array of the wanted shape.

    `start`: byte of the fill that it begins with.
    """

    role: str
    data: NDArray[Any]
    zero: bool = False
    start: int = 0

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    @property
    def is_result(self) -> bool:
        return self.role in {"output", "inout", "workspace"}


def read(data: Any) -> Buffer:
    """An input."""
    return Buffer("input", np.ascontiguousarray(data))


def out(shape: int | tuple[int, ...], dtype: Any, *, zero: bool = False) -> Buffer:
    """An output of the shape."""
    return Buffer("output", np.empty(shape, dtype), zero)


@dataclasses.dataclass
class Launch:
    """One launch: `args` are numbers of buffers as ("b", i), scalars as numpy scalars, integers."""

    kernel: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: Sequence[Any]
    shared: int = 0

    def words(self) -> list[int]:
        grid = (*self.grid, 1, 1)[:3]
        block = (*self.block, 1, 1)[:3]
        words = [self.kernel, *grid, *block, self.shared, len(self.args)]
        for arg in self.args:
            if isinstance(arg, tuple):
                words += [0, arg[1]]
            elif isinstance(arg, np.generic):
                words += [1, int.from_bytes(arg.tobytes(), "little")]
            else:
                words += [2, arg % 2**64]
        return words


@dataclasses.dataclass
class Answer:
    """What came back. `results[r][i]` is buffer i of repetition r; `guards` the damage to guards."""

    status: int
    message: str
    times: list[int] = dataclasses.field(default_factory=list)
    inputs_changed: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    results: list[dict[int, NDArray[Any]]] = dataclasses.field(default_factory=list)
    guards: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)


def _pages(count: int) -> int:
    return -(-count // PAGE) * PAGE


class Child:
    """A running harness."""

    def __init__(self, program: Path, *options: str) -> None:
        request_read, self._request = os.pipe()
        self._response, response_write = os.pipe()
        self.memory = os.memfd_create("arrays", os.MFD_ALLOW_SEALING)
        fcntl.fcntl(self.memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        # F_ADD_SEALS and F_SEAL_SHRINK are Linux's; so is the whole cpu device.
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.process = subprocess.Popen(
            [
                str(program), *options, f"--request-fd={request_read}",
                f"--response-fd={response_write}", f"--memory-fd={self.memory}",
            ],
            pass_fds=(request_read, response_write, self.memory),
            stdout=self.log, stderr=self.log,
        )  # fmt: skip
        os.close(request_read)
        os.close(response_write)
        self._size = 0
        self._number = 0
        hello = (self.receive() or b"").decode()
        self.hello = dict(line.split("=", 1) for line in hello.splitlines()[1:])
        self.greeting = hello.splitlines()[0] if hello else ""

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._request >= 0:
            os.close(self._request)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._response)
        os.close(self.memory)
        self.log.close()

    def close_requests(self) -> int:
        """End the request pipe and wait; the exit code."""
        os.close(self._request)
        self._request = -1
        return self.process.wait(10)

    def logged(self) -> str:
        """What the child printed so far."""
        self.log.seek(0)
        return self.log.read().decode()

    def send(self, payload: bytes) -> None:
        os.write(self._request, struct.pack("<Q", len(payload)) + payload)

    def send_raw(self, data: bytes) -> None:
        os.write(self._request, data)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = os.read(self._response, count - len(data))
            if not part:
                break
            data += part
        return data

    def receive(self) -> bytes | None:
        head = self._read(8)
        if len(head) < 8:
            return None
        return self._read(struct.unpack("<Q", head)[0])

    def request(
        self,
        buffers: Sequence[Buffer],
        launches: Sequence[Launch],
        schedule: Sequence[tuple[int | bytes, int]],
        warmups: int,
        shared_regions: bool,
    ) -> tuple[list[int], list[tuple[int, int, int, int]]]:
        """Lay the buffers out in the memory file; the request's words, and places of results."""
        place = 0
        rows: list[list[int]] = []
        places: list[tuple[int, int, int, int]] = []
        contents: list[tuple[int, Buffer]] = []
        for buffer in buffers:
            front, size = PAGE, buffer.nbytes
            back = _pages(size) - size + PAGE
            span = front + size + back
            content = region = stride = 0
            if buffer.role in {"input", "inout", "symbol"}:
                content = place + front
                contents.append((content, buffer))
                place += span
            if buffer.is_result:
                region = place + front
                stride = 0 if shared_regions else span
                place += span * (1 if shared_regions else len(schedule))
            fill = 0 if not buffer.is_result else 3 if buffer.role == "inout" else 1 + buffer.zero
            row = [KINDS[buffer.role], size, fill, content, region, stride, front, back]
            rows.append([*row, buffer.start])
            places.append((region, stride, front, back))
        fills = [place + PAGE * 4 * turn for turn in range(len(schedule))]
        place += PAGE * 4 * len(schedule)
        if place > self._size:
            os.ftruncate(self.memory, place)
            self._size = place
        for content, buffer in contents:
            filled = bytes([GUARD]) * PAGE
            back = _pages(buffer.nbytes) - buffer.nbytes + PAGE
            os.pwrite(
                self.memory, filled + buffer.data.tobytes() + bytes([GUARD]) * back, content - PAGE
            )
        for at, (held, _) in zip(fills, schedule, strict=True):
            os.pwrite(self.memory, held if isinstance(held, bytes) else bytes([held]) * FILL, at)
        self._number += 1
        words = [1, self._number, place, warmups, len(schedule)]
        words += [
            word for at, (_, seed) in zip(fills, schedule, strict=True) for word in (at, seed)
        ]
        words += [len(buffers), *(word for row in rows for word in row), len(launches)]
        for launch in launches:
            words += launch.words()
        return words, places

    def run(
        self,
        buffers: Sequence[Buffer],
        launches: Sequence[Launch] | Launch,
        schedule: Sequence[tuple[int | bytes, int]] = ((0xA5, 0), (0x5A, 1)),
        warmups: int = 0,
        *,
        shared_regions: bool = False,
    ) -> Answer:
        """One case. Raises EOFError where the child ends without an answer."""
        launches = [launches] if isinstance(launches, Launch) else launches
        words, places = self.request(buffers, launches, schedule, warmups, shared_regions)
        self.send(struct.pack(f"<{len(words)}Q", *words))
        reply = self.receive()
        if reply is None:
            raise EOFError(self.logged())
        opcode, number, status = struct.unpack_from("<3Q", reply)
        assert (opcode, number) == (1, self._number)
        if status:
            return Answer(status, reply[24:].decode())
        count = len(schedule)
        done, *times = struct.unpack_from(f"<{1 + count}Q", reply, 24)
        assert done == count
        at = 24 + 8 * (1 + count)
        assert struct.unpack_from("<Q", reply, at) == (len(buffers),)
        pairs = struct.unpack_from("<" + "Qq" * len(buffers), reply, at + 8)
        message = reply[at + 8 + 16 * len(buffers) :].decode()
        answer = Answer(0, message, times, list(zip(pairs[::2], pairs[1::2], strict=True)))
        self._collect(answer, buffers, places, count)
        return answer

    def _collect(
        self,
        answer: Answer,
        buffers: Sequence[Buffer],
        places: Sequence[tuple[int, int, int, int]],
        count: int,
    ) -> None:
        for repetition in range(count):
            arrays = {}
            for index, (buffer, (region, stride, front, back)) in enumerate(
                zip(buffers, places, strict=True)
            ):
                if not buffer.is_result:
                    continue
                at = region + repetition * stride
                data = os.pread(self.memory, front + buffer.nbytes + back, at - front)
                for offset, byte in enumerate(data[:front]):
                    if byte != GUARD:
                        answer.guards.append((repetition, index, offset - front))
                for offset, byte in enumerate(data[front + buffer.nbytes :]):
                    if byte != GUARD:
                        answer.guards.append((repetition, index, offset + buffer.nbytes))
                payload = data[front : front + buffer.nbytes]
                array = np.frombuffer(payload, buffer.data.dtype).reshape(buffer.data.shape)
                arrays[index] = array
            answer.results.append(arrays)
