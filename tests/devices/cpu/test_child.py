"""The child: frames, guards, fills, and what it says when a kernel goes wrong."""

from __future__ import annotations

import os
import platform
import resource
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.devices.cpu.harness_client import Answer, Buffer, Child, Launch, build, out, read

SOURCE = Path(__file__).parent / "faults.hip"
SIGNATURES: dict[str, list[str]] = {
    "null_write": ["int32*", "int", "int", "int"],
    "far_write": ["int32*", "int"],
    "near_write": ["int32*", "int"],
    "input_write": ["int32*", "int32*", "int"],
    "stack_overflow": ["int32*", "int", "int"],
    "integer_division": ["int32*", "int"],
    "failed_assertion": ["int32*", "int"],
    "leaves": ["int32*", "int"],
    "barrier_in_branch": ["int32*", "int"],
    "shuffle_without_partner": ["int32*"],
    "waits_by_plain_loads": ["int32*"],
    "meets": ["int32*"],
    "shuffles_of_two_sides": ["int32*", "int"],
    "shuffle_of_no_lane": ["int32*"],
    "never_written": ["int32*", "int"],
    "add_to": ["int32*", "int32*"],
    "counts_blocks": ["uint64*"],
    "reaches": ["uint8*", "int", "int"],
}
COUNTS = list(SIGNATURES).index("counts_blocks")
ZEROS = np.zeros(64, np.int32)
X86 = platform.machine() == "x86_64"
# Whether a fault was a read or a write is told by x86-64 alone, and so is a division by zero.
WRITE = "write" if X86 else "access"
traps_division = pytest.mark.skipif(not X86, reason="the processor divides by zero in silence")


@pytest.fixture(scope="module")
def program() -> Path:
    built, done = build(SOURCE, SIGNATURES)
    assert done.returncode == 0, done.stderr
    return built


@pytest.fixture
def child(program: Path) -> Iterator[Child]:
    with Child(program, "--threads=2") as running:
        yield running


def call(
    kernel: str, *args: int | tuple[str, int], grid: int = 1, block: int = 1, shared: int = 0
) -> Launch:
    return Launch(list(SIGNATURES).index(kernel), (grid,), (block,), args, shared)


def line_of(comment: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(comment))


# --- hello, end, garbage ---------------------------------------------------------------------------


def test_hello_and_clean_end(child: Child) -> None:
    assert child.greeting == "tokitai-child 1 u64le"
    assert child.hello["status"] == "ok"
    assert child.hello["device"] == "cpu"
    assert child.hello["warp_size"] == "32"
    assert child.hello["fact.threads"] == "2|--threads"
    assert child.close_requests() == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\x01\x02\x03",
        struct.pack("<Q", 2**20 + 8),
        struct.pack("<Q", 2**63),
        struct.pack("<Q", 7) + b"1234567",
        struct.pack("<QQ", 8, 2),
        struct.pack("<Q6Q", 48, 1, 1, 0, 0, 0, 0),
        struct.pack("<Q4Q", 32, 1, 1, 0, 0),
        struct.pack("<Q2Q", 64, 1, 1),
        struct.pack("<Q", 0),
    ],
)  # fmt: skip
def test_garbage_ends_the_child(child: Child, data: bytes) -> None:
    child.send_raw(data)
    assert child.close_requests() == 3
    assert child.receive() is None
    assert "tokitai child: a frame" in child.logged()


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, 2),  # opcode
        (2, 2**62),  # bytes of the memory file
        (4, 0),  # repetitions
        (4, 2**60),
        (5, 2**40),  # place of a fill
        (9, 2**61),  # buffers
        (10, 5),  # kind of the buffer
        (11, 2**40),  # payload bytes
        (12, 3),  # content for an output
        (14, 0),  # region before its guard
        (15, 2**62),  # stride
        (16, 2**50),  # front guard
        (17, 2**50),  # back guard
        (18, 16372),  # start in a fill
        (20, 15),  # kernel
        (28, 1),  # number of arguments
        (29, 1),  # kind of an argument
        (30, 1),  # a buffer that is not there
    ],
)
def test_a_request_of_another_shape_is_garbage(child: Child, position: int, value: int) -> None:
    launches = [call("near_write", ("b", 0), 0)]
    words, _ = child.request([out(64, np.int32)], launches, [(1, 0), (2, 0)], 0, False)
    assert words[10:12] == [1, 256]
    assert words[28:30] == [2, 0]
    words[position] = value
    child.send(struct.pack(f"<{len(words)}Q", *words))
    assert child.receive() is None
    assert child.close_requests() == 3


def test_the_frame_is_taken_as_it_was_before_it_was_broken(child: Child) -> None:
    answer = child.run([out(64, np.int32)], call("near_write", ("b", 0), 0))
    assert answer.status == 0
    assert answer.results[0][0][0] == 1


def test_options_are_checked(program: Path) -> None:
    with Child(program, "--speed=9") as child:
        assert child.greeting == ""
        assert child.process.wait(10) == 2
        assert "--speed=9" in child.logged()


# --- fills, guards, inputs -------------------------------------------------------------------------


def test_outputs_hold_the_fill_byte_of_the_repetition(child: Child) -> None:
    answer = child.run([out(64, np.int32)], call("never_written", ("b", 0), 5, block=64))
    for repetition, byte in enumerate((0xA5, 0x5A)):
        got = answer.results[repetition][0]
        assert got[:5].tolist() == [7] * 5
        assert got[5:].tobytes() == bytes([byte]) * 236


@pytest.mark.parametrize("start", [0, 4, 16000, 16371])
def test_a_fill_is_written_from_where_the_buffer_begins_in_it(child: Child, start: int) -> None:
    fill = np.random.default_rng(3).integers(0, 256, 16372, np.uint8)
    buffer = out(20_000, np.int32)
    buffer.start = start
    answer = child.run(
        [buffer], call("never_written", ("b", 0), 5, block=64), [(fill.tobytes(), 0)]
    )
    want = np.resize(np.roll(fill, -start), 80_000)
    assert answer.results[0][0].tobytes()[20:] == want.tobytes()[20:]


def test_in_out_buffers_are_restored_and_workspaces_filled(child: Child) -> None:
    values = Buffer("inout", np.arange(64, dtype=np.int32))
    work = Buffer("workspace", np.empty(64, np.int32), zero=True)
    launch = call("add_to", ("b", 0), ("b", 1), block=64)
    for shared_regions in (False, True):
        answer = child.run(
            [values, work], [launch, launch], [(1, 0)] * 3, 2, shared_regions=shared_regions
        )
        for repetition in answer.results:
            assert np.array_equal(repetition[0], np.arange(64) + 2)
            assert np.array_equal(repetition[1], np.full(64, 2))
        assert len(answer.times) == 3
        assert all(time > 0 for time in answer.times)


@pytest.mark.parametrize("offset", [-1, -1024, 64, 64 + 1024 - 1])
def test_writes_into_guards_are_left_to_see(child: Child, offset: int) -> None:
    answer = child.run([out(64, np.int32)], call("near_write", ("b", 0), offset))
    # 1 in little-endian bytes: four bytes of the guard are not 0xC3 any more.
    assert answer.guards == [(r, 0, 4 * offset + i) for r in range(2) for i in range(4)]
    # Who wrote is found by a second run, after which the regions are as the first one left them.
    assert answer.message == "0 0 kernel near_write, block (0,0,0), thread (0,0,0)"
    assert (~answer.results[0][0] == answer.results[1][0]).all()


def test_a_guard_of_a_shared_region_keeps_its_damage(child: Child) -> None:
    launches = [call("near_write", ("b", 0), -1), call("never_written", ("b", 0), 64, block=64)]
    first = child.run([out(64, np.int32)], launches[:1], [(1, 0)], shared_regions=True)
    clean = child.run([out(64, np.int32)], launches[1:], [(1, 0)], shared_regions=True)
    assert len(first.guards) == 4
    assert clean.guards == []


@pytest.mark.parametrize("offset", [0, 63, -1, 64])
def test_changed_inputs_are_told(child: Child, offset: int) -> None:
    data = np.full(64, 5, np.int32)
    buffers = [read(data), out(1, np.int32)]
    answer = child.run(buffers, call("input_write", ("b", 0), ("b", 1), offset))
    assert answer.status == 0
    before = 5 if 0 <= offset < 64 else 0xC3C3C3C3
    changed = [
        i for i in range(4) if (99).to_bytes(4, "little")[i] != before.to_bytes(4, "little")[i]
    ]
    assert answer.inputs_changed[0] == (len(changed), 4 * offset + changed[0])
    # The next case gets the file's content again.
    again = child.run(buffers, call("input_write", ("b", 0), ("b", 1), 1))
    assert again.results[0][1].tolist() == [5]


def test_empty_buffers(child: Child) -> None:
    answer = child.run([read(ZEROS[:0]), out(0, np.int32)], [])
    assert answer.status == 0
    assert answer.guards == []


# --- launches that are refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (call("counts_blocks", ("b", 0), block=1025), "block (1025,1,1)"),
        (Launch(COUNTS, (1,), (32, 33), [("b", 0)]), "block (32,33,1)"),
        (Launch(COUNTS, (0,), (32,), [("b", 0)]), "grid (0,1,1)"),
        (Launch(COUNTS, (1, 1, 1), (32, 0), [("b", 0)]), "block (32,0,1)"),
        (Launch(COUNTS, (2**32,), (1,), [("b", 0)]), "grid (4294967296,1,1)"),
        (
            call("counts_blocks", ("b", 0), shared=65537),
            "0 bytes of static and 65537 bytes of dynamic shared memory",
        ),
    ],
)
def test_impossible_launches_are_runtime_errors(child: Child, launch: Launch, message: str) -> None:
    counter = Buffer("inout", np.zeros(1, np.uint64))
    answer = child.run([counter], launch)
    assert answer.status == 1
    assert message in answer.message
    assert "kernel counts_blocks" in answer.message
    good = child.run([counter], call("counts_blocks", ("b", 0), grid=100_000, block=2))
    assert good.results[0][0].tolist() == [100_000]
    assert good.results[1][0].tolist() == [100_000]


# --- faults ----------------------------------------------------------------------------------------


def fault(child: Child, launch: Launch, death: signal.Signals, schedule: int = 0) -> str:
    """Message of a launch that kills the child, after a check of how it died."""
    buffers = [out(4096, np.int32), read(ZEROS)]
    answer = child.run(buffers, launch, [(1, schedule), (2, 1)])
    assert answer.status == 6
    assert child.process.wait(10) == -death
    assert child.receive() is None
    return answer.message


@pytest.mark.parametrize(
    ("kind", "words", "alignment"),
    [
        (0, "HIP_vector_type", 16),
        (1, "float4'", 16),
        (2, "int2'", 8),
        (3, "__half2'", 4),
        (4, "store to 'unsigned int'", 4),
        (5, "__half'", 2),
        (6, "store to 'double'", 8),
        (7, "atomic operation on 4 bytes", 4),
        (8, "atomic operation on 4 bytes", 4),
        (9, "atomic operation on 8 bytes", 8),
    ],
)
def test_misaligned_accesses_are_faults(
    program: Path, kind: int, words: str, alignment: int
) -> None:
    for offset in (0, alignment):
        with Child(program) as running:
            right = running.run([out(128, np.uint8)], call("reaches", ("b", 0), kind, offset))
            assert right.status == 0, right.message
    above = alignment // 2
    with Child(program) as running:
        message = fault(running, call("reaches", ("b", 0), kind, 32 + above), signal.SIGBUS)
    assert message.startswith("SIGBUS: misaligned ")
    assert words in message
    assert f"which is {above} above a multiple of {alignment}" in message
    assert "kernel reaches, block (0,0,0), thread (0,0,0)" in message


@pytest.mark.parametrize(("kind", "offset"), [(10, 2), (11, 1), (11, 3), (12, 4), (13, 1)])
def test_what_may_lie_anywhere_is_no_fault(child: Child, kind: int, offset: int) -> None:
    answer = child.run([out(128, np.uint8)], call("reaches", ("b", 0), kind, offset))
    assert answer.status == 0, answer.message


@pytest.mark.parametrize("block", [0, 7, 63])
def test_null_write(child: Child, block: int) -> None:
    launch = call("null_write", ("b", 0), 8, block, 3, grid=64, block=64)
    message = fault(child, launch, signal.SIGSEGV)
    assert message == (
        f"SIGSEGV: null pointer {WRITE} at address 0x8 in kernel null_write, "
        f"block ({block},0,0), thread (3,0,0)"
    )


def test_far_write(child: Child) -> None:
    message = fault(child, call("far_write", ("b", 0), 100_000), signal.SIGSEGV)
    assert message.startswith(f"SIGSEGV: {WRITE} of 0x")
    assert f"{100_000 * 4 - 4096 * 4} bytes past the end of buffer 0" in message
    assert message.endswith("in kernel far_write, block (0,0,0), thread (0,0,0)")


@pytest.mark.parametrize(
    ("index", "side"), [(2**32 - 1, "past the end of"), (-(2**32) + 3, "before")]
)
def test_a_wrapped_index_is_told_with_the_array_that_it_is_of(
    child: Child, index: int, side: str
) -> None:
    message = fault(child, call("far_write", ("b", 0), index), signal.SIGSEGV)
    assert f"2^32 elements of 4 bytes {side} buffer 0 (counted from 0): a 32-bit index" in message


def test_write_to_no_address(child: Child) -> None:
    message = fault(child, call("far_write", ("b", 0), 2**60), signal.SIGSEGV)
    assert ("an address that does not exist" in message) == X86


@pytest.mark.parametrize("after_barrier", [0, 1])
def test_stack_overflow(child: Child, after_barrier: int) -> None:
    launch = call("stack_overflow", ("b", 0), 100_000, after_barrier, block=8)
    message = fault(child, launch, signal.SIGSEGV)
    assert "stack overflow of a GPU thread's stack (128 KiB) in kernel stack_overflow" in message
    assert "thread (0,0,0)" in message


def test_deep_but_possible_stack(child: Child) -> None:
    answer = child.run([out(8, np.int32)], call("stack_overflow", ("b", 0), 20, 1, block=8))
    assert answer.status == 0


@traps_division
def test_division_by_zero(child: Child) -> None:
    message = fault(child, call("integer_division", ("b", 0), 0, block=2), signal.SIGFPE)
    assert message.startswith("SIGFPE: division of an integer by zero")


def test_failed_assertion(child: Child) -> None:
    message = fault(child, call("failed_assertion", ("b", 0), 5, block=9), signal.SIGABRT)
    assert message.startswith("SIGABRT: abort or failed assertion")
    assert "thread (5,0,0)" in message
    assert "int(threadIdx.x) < limit" in child.logged()


def test_a_kernel_that_ends_the_process(child: Child) -> None:
    with pytest.raises(EOFError):
        child.run([out(1, np.int32)], call("leaves", ("b", 0), 0))
    assert child.process.wait(10) == 0


@traps_division
def test_many_faults_at_once_give_one_frame(program: Path) -> None:
    with Child(program, "--threads=8") as child:
        launch = call("integer_division", ("b", 0), 0, grid=1000, block=4)
        assert "SIGFPE" in fault(child, launch, signal.SIGFPE)


# --- divergence ------------------------------------------------------------------------------------


def divergence(child: Child, launch: Launch, seed: int) -> str:
    answer: Answer = child.run([out(256, np.int32)], launch, [(1, seed), (2, 1)])
    assert answer.status == 5
    # The child lives on, and its stacks are in order.
    good = child.run([out(64, np.int32)], call("never_written", ("b", 0), 64, block=64))
    assert good.results[0][0].tolist() == [7] * 64
    return answer.message


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_different_barriers(child: Child, seed: int) -> None:
    message = divergence(child, call("barrier_in_branch", ("b", 0), 40, block=128), seed)
    branch = line_of("line of the barrier in the branch")
    other = line_of("line of the barrier on the other side")
    assert message == (
        "divergent barrier in kernel barrier_in_branch, block (0,0,0): the threads of the block wait "
        f"at different barriers; 40 of 128 (threads 0-39) wait in __syncthreads at {SOURCE}:{branch}; "
        f"88 of 128 (threads 40-127) wait in __syncthreads at {SOURCE}:{other}"
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_threads_that_never_come_to_a_barrier(child: Child, seed: int) -> None:
    message = divergence(child, call("shuffle_without_partner", ("b", 0), block=32), seed)
    shuffle = line_of("line of the shuffle")
    barrier = line_of("line of the barrier behind the shuffle")
    assert message == (
        "divergent mask in kernel shuffle_without_partner, block (0,0,0): mask 0xffffffff of a "
        f"shuffle at {SOURCE}:{shuffle} names thread 3, which waits elsewhere; 31 of 32 (threads 0-2, "
        f"4-31) wait in a shuffle at {SOURCE}:{shuffle} with mask 0xffffffff; 1 of 32 (threads 3) waits "
        f"in __syncthreads at {SOURCE}:{barrier}"
    )


def test_shuffles_of_one_mask_meet_across_a_branch_and_others_never_do(child: Child) -> None:
    met = child.run([out(256, np.int32)], call("shuffles_of_two_sides", ("b", 0), 0, block=32))
    assert met.results[0][0][:32].tolist() == [1] * 16 + [2] * 16
    message = divergence(child, call("shuffles_of_two_sides", ("b", 0), 1, block=32), 0)
    first, second = line_of("line of the first side"), line_of("line of the second side")
    assert message.startswith("divergent mask in kernel shuffles_of_two_sides, block (0,0,0)")
    assert f"16 of 32 (threads 0-15) wait in a shuffle at {SOURCE}:{first}" in message
    assert f"16 of 32 (threads 16-31) wait in a vote at {SOURCE}:{second}" in message


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_blocks_wait_for_others(child: Child, seed: int) -> None:
    waited = child.run(
        [out(64, np.int32)], call("waits_by_plain_loads", ("b", 0), grid=2, block=1), [(1, seed)]
    )
    assert waited.results[0][0][:2].tolist() == [3, 2]
    met = child.run([out(64, np.int32)], call("meets", ("b", 0), grid=8, block=32), [(1, seed)])
    assert met.results[0][0][:8].tolist() == [8**3] * 8


def test_a_mask_without_a_lane_is_none_that_was_left_out(child: Child) -> None:
    message = divergence(child, call("shuffle_of_no_lane", ("b", 0), block=32), 0)
    place = f"{SOURCE}:{line_of('line of the shuffle of no lane')}"
    assert message.startswith("mask without its caller in kernel shuffle_of_no_lane, block (0,0,0)")
    assert f"lane 0 is not in mask 0x0 of a shuffle at {place}" in message


def test_a_failed_case_leaves_no_mapping_behind(child: Child) -> None:
    def mappings() -> int:
        return Path(f"/proc/{child.process.pid}/maps").read_text().count("memfd")

    launch = call("shuffles_of_two_sides", ("b", 0), 1, block=32)
    for _ in range(3):
        assert child.run([out(256, np.int32), read(ZEROS)], launch).status == 5
    assert mappings() == 0


def test_answers_when_the_tool_is_gone(program: Path) -> None:
    with Child(program) as child:
        os.close(child._response)
        words, _ = child.request([out(8, np.int32)], [], [(1, 0)], 0, False)
        child.send(struct.pack(f"<{len(words)}Q", *words))
        assert child.process.wait(10) == 5
        child._response = os.open(os.devnull, os.O_RDONLY)


def test_no_memory_for_stacks_is_told(program: Path) -> None:
    # 64 MiB of address space for 1024 stacks of 192 KiB.
    with Child(program, "--threads=1") as child:
        launch = call("stack_overflow", ("b", 0), 1, 1, block=1024)
        assert child.run([out(1024, np.int32)], launch).status == 0
    with Child(program, "--threads=1") as child:
        status = Path(f"/proc/{child.process.pid}/status").read_text()
        used = int(status.split("VmSize:")[1].split()[0]) << 10
        limit = used + (64 << 20)
        resource.prlimit(child.process.pid, resource.RLIMIT_AS, (limit, limit))
        answer = child.run([out(1024, np.int32)], launch)
        assert answer.status == 3
        assert "no memory for the stacks of GPU threads in kernel stack_overflow" in answer.message
        small = child.run([out(64, np.int32)], call("never_written", ("b", 0), 64, block=64))
        assert small.status == 0
