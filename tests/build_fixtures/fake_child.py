"""A child that speaks the protocol, and goes wrong as told: `fake_child.py FAULT --request-fd=...`.

Right: every output and in-out buffer of every repetition gets the sum over the bytes of all
inputs, modulo 251, in each byte.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
import time
from array import array
from collections.abc import Callable

PAGE = 4096
FILL = 16372  # bytes after which a fill repeats
WORD = struct.Struct("<Q")
# Around inputs, from their ends outwards: infinity, minus infinity and NaN of float32; 255 of uint8.
ENDS = struct.pack("<3f", float("inf"), float("-inf"), float("nan"))
AROUND = ((ENDS * PAGE)[:PAGE], b"\xff" * PAGE)


def read(fd: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = os.read(fd, count - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data


def send(fd: int, payload: bytes) -> None:
    os.write(fd, WORD.pack(len(payload)) + payload)


def words(payload: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(payload) // 8}Q", payload))


def before_hello(fault: str, response: int) -> None:
    if fault == "no-hello":
        time.sleep(60)
    if fault == "exit-at-start":
        print("cannot open the display")
        sys.exit(3)
    if fault == "bad-hello":
        send(response, b"hello world")
        time.sleep(60)
    if fault == "no-device":
        send(response, b"tokitai-child 1 u64le\nstatus=no-device\nmessage=no GPU\nwarp_size=0\n")
        sys.exit(0)


def then_sleep(*_: object) -> None:
    time.sleep(60)


def die_loudly() -> None:
    print("assertion failed: tile fits", flush=True)
    os.abort()


def chatter() -> None:
    line = b"x" * 65535 + b"\n"
    for _ in range(2000):
        os.write(1, line)


def instead_of_answer(fault: str, response: int, number: int) -> None:
    """Do what the fault does while the tool waits for an answer."""
    deeds: dict[str, Callable[[], object]] = {
        "hang": then_sleep,
        "hang-with-grandchild": lambda: then_sleep(os.fork()),
        "exit": lambda: sys.exit(0),
        "abort": die_loudly,
        "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "null": lambda: os.kill(os.getpid(), signal.SIGSEGV),
        "short": lambda: (os.write(response, WORD.pack(80) + bytes(8)), sys.exit(0)),
        "huge": lambda: then_sleep(os.write(response, WORD.pack(1 << 40))),
        "garbage": lambda: then_sleep(os.write(response, WORD.pack(48) + bytes(range(48)))),
        "chatter": chatter,
        "talk": lambda: print("said by the kernel", flush=True),
    }
    if fault in deeds:
        deeds[fault]()
    if fault == "wrong-number":
        send(response, struct.pack("<3Q", 1, number + 1, 0))
        then_sleep()
    if fault == "close":
        os.close(response)
        then_sleep()
    if fault.startswith("status-"):
        status = int(fault.removeprefix("status-"))
        send(response, struct.pack("<3Q", 1, number, status) + b"the runtime's own words")
        then_sleep()


def serve(fault: str, payload: bytes, memory: int, response: int) -> None:
    message = words(payload)
    _, number, nbytes, _, repetitions = message[:5]
    instead_of_answer(fault, response, number)
    fills = message[5 : 5 + 2 * repetitions : 2]
    position = 5 + 2 * repetitions
    count = message[position]
    buffers = [message[position + 1 + 9 * i : position + 10 + 9 * i] for i in range(count)]
    view = mmap.mmap(memory, nbytes)
    total = 0
    for kind, size, _, content, *_ in buffers:
        if kind == 0:
            behind = view[content + size : content + size + PAGE]
            before = array("I", view[content - PAGE : content])[::-1].tobytes()
            assert behind == before
            assert behind in AROUND
            total += sum(view[content : content + size])
    for kind, size, fill, content, region, stride, front, back, first in buffers:
        for turn in range(repetitions if stride else 1) if region else ():
            start = region + turn * stride
            view[start - front : start] = b"\xc3" * front
            view[start + size : start + size + back] = b"\xc3" * back
            period = view[fills[turn] : fills[turn] + FILL]
            turned = period[first:] + period[:first]
            filled = {1: (turned * (size // FILL + 1))[:size], 2: bytes(size)}
            view[start : start + size] = filled.get(fill) or view[content : content + size]
            if kind in (1, 2) and fault != "never-written":
                view[start : start + size] = bytes([total % 251]) * size
            if fault == "write-before" and kind == 1:
                view[start - 2 : start] = b"ab"
            if fault == "write-after" and kind == 1:
                view[start + size : start + size + 3] = b"abc"
            if fault == "far-after-workspace" and kind == 3:
                view[start + size + back - 1] = 1
    changed = [(3, 16) if fault == "input-changed" and i == 0 else (0, 0) for i in range(count)]
    answer = [1, number, 0, repetitions, *range(1000, 1000 + repetitions), count]
    for pair in changed:
        answer += pair
    send(response, struct.pack(f"<{len(answer)}Q", *answer))


def main() -> None:
    fault = sys.argv[1]
    numbers = dict(option.split("=") for option in sys.argv[2:])
    request, response, memory = (
        int(numbers[f"--{name}-fd"]) for name in ("request", "response", "memory")
    )
    before_hello(fault, response)
    hello = "tokitai-child 1 u64le\nstatus=ok\nmessage=\ndevice=fake\nwarp_size=32\n"
    send(response, (hello + "fact.cores=2|counted\n").encode())
    while True:
        payload = read(request, WORD.unpack(read(request, 8))[0])
        serve(fault, payload, memory, response)


main()
