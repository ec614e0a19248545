"""Guards and fill of shared arrays: of a file, function, template, struct, two dimensions, dynamic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.devices.cpu.harness_client import Answer, Child, Launch, build, out

SOURCE = Path(__file__).parent / "shared.hip"
SIGNATURES = {
    "write_byte": ["uint8*", "int", "int", "int", "int"],
    "read_byte": ["uint8*", "int", "int"],
}
ARRAYS = ("of_file", "pairs", "items", "items", "rows", "dynamic shared memory")
SIZES = (32, 32, 256, 16, 30, 48)
DYNAMIC = 5


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    program, done = build(SOURCE, SIGNATURES)
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def write(child: Child, which: int, at: int, block: int = 2, thread: int = 37) -> Answer:
    args = [("b", 0), which, at, block, thread]
    return child.run([out(64, np.uint8)], Launch(0, (3,), (64,), args, shared=SIZES[DYNAMIC]))


@pytest.mark.parametrize("which", range(len(ARRAYS)))
def test_a_write_into_a_guard_names_array_block_and_thread(child: Child, which: int) -> None:
    size = SIZES[which]
    for inside in (0, size - 1):
        assert write(child, which, inside).status == 0
    told = f"(the launch asks for {size} bytes)" if which == DYNAMIC else f"({size} bytes)"
    for at, where in (
        (size, "0 bytes past the end of"),
        (size + 700, "700 bytes past the end of"),
        (-1, "1 byte before"),
    ):
        name = ARRAYS[which] if which == DYNAMIC else f"shared array {ARRAYS[which]}"
        answer = write(child, which, at)
        assert (answer.status, answer.message) == (
            1,
            f"write {where} {name} {told} in kernel write_byte, block (2,0,0), thread (37,0,0)",
        )
    assert write(child, which, 0).status == 0


def test_a_write_far_behind_is_found_after_the_launch_and_then_named(child: Child) -> None:
    answer = write(child, DYNAMIC, 20000, block=1, thread=63)
    assert answer.status == 1
    assert "19952 bytes past the end of dynamic shared memory" in answer.message
    assert answer.message.endswith("block (1,0,0), thread (63,0,0)")


@pytest.mark.parametrize("which", range(len(ARRAYS)))
def test_what_is_read_beyond_an_array_shows(child: Child, which: int) -> None:
    size = SIZES[which]
    for at in (0, -1, size, size + 700):
        buffers = [out(64, np.uint8)]
        answer = child.run(
            buffers, Launch(1, (3,), (64,), [("b", 0), which, at], shared=SIZES[DYNAMIC])
        )
        first, second = (int(result[0][0]) for result in answer.results)
        assert first ^ second == 0xFF, at


def test_an_executable_whose_arrays_are_not_known_runs_nothing() -> None:
    program, done = build(SOURCE, SIGNATURES, flags=["-s"])
    assert done.returncode == 0, done.stderr
    with Child(program) as running:
        answer = write(running, 0, 0)
    assert (answer.status, answer.message) == (
        1,
        "the executable has no symbols (-s takes them away)",
    )
