"""The run stage against a child that speaks the protocol and goes wrong as told."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.run_cases import arrays_of, integer, make_case
from tokitai_cli.core.errors import (
    ChildCrashedError,
    ChildTimeoutError,
    InadmissibleError,
    NotRunError,
)
from tokitai_cli.core.fills import NBYTES, WORDS, held, pattern, start_of
from tokitai_cli.core.model.case import BufferArg, BufferPlan, Case, Role, ScalarValue
from tokitai_cli.core.model.harness import HarnessRequest, kernel_entry
from tokitai_cli.run.child import (
    Server,
    available_bytes,
    debug_command,
    lay_out,
    schedule_seeds,
    size_text,
)
from tokitai_cli.run.child.frames import GarbageError, read_answer, read_hello, run_request
from tokitai_cli.run.child.memory_file import Memory, check_fits

SOURCE = Path("/nowhere/k.hip")
FAKE = Path(__file__).parents[1] / "build_fixtures" / "fake_child.py"
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}


def case_of(*buffers: BufferPlan) -> Case:
    return make_case(SOURCE, buffers)


CASE = case_of(
    BufferPlan("x", Role.INPUT, "float32", (5, 3)),
    BufferPlan("table", Role.SYMBOL, "int32", (4,)),
    BufferPlan("y", Role.OUTPUT, "float16", (7,)),
    BufferPlan("state", Role.INOUT, "uint8", (4096,)),
    BufferPlan("scratch", Role.WORKSPACE, "float32", (9,)),
    BufferPlan("counts", Role.OUTPUT, "int32", (2, 2), init="zero"),
)


def harness_of(case: Case) -> HarnessRequest:
    kernels = tuple(kernel_entry(case.variant, launch, 32) for launch in case.variant.launches)
    return HarnessRequest(SOURCE, kernels)


def serve(fault: str, case: Case = CASE, start_timeout: float = 20.0) -> Server:
    command = [sys.executable, "-S", "-E", str(FAKE), fault]
    return Server(command, ENVIRONMENT, harness_of(case), start_timeout=start_timeout)


def expected_byte() -> int:
    return sum(range(60)) % 251


def test_a_right_child_serves_case_after_case() -> None:
    with serve("none") as server:
        assert server.hello.device == "fake"
        assert server.hello.warp_size == 32
        assert [fact.name for fact in server.hello.facts] == ["cores"]
        for repetitions in (2, 5, 2):
            result = server.run(CASE, arrays_of(CASE), repetitions=repetitions)
            assert len(result.outputs) == len(result.times_ns) == repetitions
            for outputs in result.outputs:
                assert set(outputs) == {"y", "state", "counts"}
                for name, view in outputs.items():
                    plan = next(buffer for buffer in CASE.buffers if buffer.name == name)
                    assert view.shape == plan.shape
                    assert view.dtype == np.dtype(plan.dtype)
                    assert not view.flags.writeable
                    assert set(view.tobytes()) == {expected_byte()}
            assert result.guards == ()
            assert result.inputs_changed == ()
            assert result.log == ""
        assert server.alive
    assert not server.alive


def test_outputs_outlive_the_server_and_other_sizes() -> None:
    with serve("none") as server:
        first = server.run(CASE, arrays_of(CASE)).outputs[0]["state"]
        large = case_of(
            BufferPlan("x", Role.INPUT, "uint8", (1,)),
            BufferPlan("y", Role.OUTPUT, "uint8", (1 << 20,)),
        )
        server._harness = harness_of(large)
        second = server.run(large, arrays_of(large)).outputs[1]["y"]
    assert first.shape == (4096,)
    assert int(second.sum()) == 0


def test_never_written_elements_show_the_fill_and_its_complement() -> None:
    with serve("never-written") as server:
        arrays = arrays_of(CASE)
        result = server.run(CASE, arrays, repetitions=3)
    assert result.fills == (0, 1, 2)
    seen = [int.from_bytes(outputs["y"].tobytes(), "little") for outputs in result.outputs]
    assert seen[0] ^ seen[1] == 2 ** (8 * 14) - 1
    for fill, outputs in zip(result.fills, result.outputs, strict=True):
        assert outputs["y"].tobytes() == held("y", fill, 0, 14).tobytes()
        assert not outputs["counts"].any()
        assert np.array_equal(outputs["state"], arrays["state"])


@pytest.mark.parametrize(
    ("fault", "want"),
    [
        ("write-before", {("y", r, -2, 2, "front") for r in (0, 1)}),
        ("write-after", {("y", r, 14, 3, "back") for r in (0, 1)}),
        ("far-after-workspace", {("scratch", 1, 8191, 1, "back")}),
    ],
)
def test_writes_outside_a_buffer_are_told(
    fault: str, want: set[tuple[str, int, int, int, str]]
) -> None:
    with serve(fault) as server:
        result = server.run(CASE, arrays_of(CASE))
    found = {
        (damage.buffer, damage.repetition, damage.offset, damage.bytes_changed, damage.side)
        for damage in result.guards
        if damage.buffer != "counts"
    }
    assert found == want


def test_changed_inputs_are_told() -> None:
    with serve("input-changed") as server:
        result = server.run(CASE, arrays_of(CASE))
    (damage,) = result.inputs_changed
    assert (damage.buffer, damage.offset, damage.bytes_changed) == ("x", 16, 3)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("exit", r"ended with exit code 0 without an answer"),
        ("abort", r"SIGABRT.*assertion failed: tile fits"),
        ("killed", r"ended by SIGKILL"),
        ("null", r"ended by SIGSEGV \(segmentation fault\)"),
        ("short", r"exit code 0 in the middle of a frame \(8 of 80 bytes\)"),
        ("huge", r"broke the protocol: it announces a frame of 1099511627776 bytes"),
        ("garbage", r"broke the protocol: its answer begins with the words"),
        ("wrong-number", r"broke the protocol: its answer begins with the words 1, 2, 0"),
        ("close", r"closed its pipe"),
        ("status-1", r"runtime reports an error: the runtime's own words"),
        ("status-4", r"device was lost: the runtime's own words"),
        ("status-5", r"cannot continue: the runtime's own words"),
        ("status-6", r"kernel crashed: the runtime's own words"),
    ],
)
def test_a_child_that_fails_is_named_and_ended(fault: str, words: str) -> None:
    with serve(fault) as server:
        with pytest.raises(ChildCrashedError, match=words):
            server.run(CASE, arrays_of(CASE))
        assert not server.alive


@pytest.mark.parametrize("status", [2, 3])
def test_what_cannot_run_is_not_a_crash(status: int) -> None:
    with serve(f"status-{status}") as server, pytest.raises(NotRunError, match="own words"):
        server.run(CASE, arrays_of(CASE))


@pytest.mark.parametrize("fault", ["hang", "hang-with-grandchild"])
def test_a_child_that_hangs_is_ended_with_its_group(fault: str) -> None:
    with serve(fault) as server:
        pid = server._child.pid
        with pytest.raises(ChildTimeoutError, match=r"did not run within 0\.3 s"):
            server.run(CASE, arrays_of(CASE), timeout=0.3)
        assert not server.alive
    assert eventually(lambda: group_members(pid) == [])


def test_a_tool_that_is_killed_takes_its_child_along() -> None:
    code = """
    from tests.run.test_child import CASE, arrays_of, serve
    server = serve("hang-with-grandchild")
    print(server._child.pid, flush=True)
    server.run(CASE, arrays_of(CASE))
    """
    tool = [sys.executable, "-c", textwrap.dedent(code)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(tool, stdout=subprocess.PIPE, env=environment) as started:
        assert started.stdout is not None
        group = int(started.stdout.readline())
        assert eventually(lambda: len(group_members(group)) == 2)
        started.kill()
    assert eventually(lambda: group_members(group) == [])


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def group_members(group: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("no-hello", ChildTimeoutError, "did not start within 0.5 s"),
        ("exit-at-start", ChildCrashedError, "exit code 3.*cannot open the display"),
        ("bad-hello", ChildCrashedError, "first frame begins with 'hello world'"),
        ("no-device", InadmissibleError, "no GPU"),
    ],
)
def test_a_child_that_does_not_come_up(fault: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        serve(fault, start_timeout=0.5 if fault == "no-hello" else 20.0)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(NotRunError, match="cannot be started: No such file"):
        Server(["/nowhere/child"], ENVIRONMENT, harness_of(CASE))


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_no_descriptor_is_left_open() -> None:
    before = descriptors()
    for fault in ("none", "abort"):
        with serve(fault) as server:
            if fault == "none":
                server.run(CASE, arrays_of(CASE))
    with pytest.raises(ChildCrashedError):
        serve("exit-at-start")
    # The supervisor's pipe may have been opened by the first of these children.
    assert len(descriptors() - before) <= 1


def test_endless_output_is_counted_and_cut() -> None:
    with serve("chatter") as server:
        result = server.run(CASE, arrays_of(CASE))
    assert result.log_bytes == 2000 * 65536
    assert len(result.log) < 100_000
    assert re.search(r"\d+ bytes left out", result.log)


def test_what_a_kernel_prints_belongs_to_its_case() -> None:
    with serve("talk") as server:
        for _ in range(2):
            assert server.run(CASE, arrays_of(CASE)).log == "said by the kernel\n"


def test_an_array_of_another_shape_is_refused() -> None:
    with serve("none") as server:
        arrays = arrays_of(CASE)
        with pytest.raises(ValueError, match="x is float32"):
            server.run(CASE, {**arrays, "x": arrays["x"].reshape(3, 5)})


def test_memory_cannot_shrink_and_what_does_not_fit_is_not_run() -> None:
    memory = Memory()
    try:
        memory.reserve(8192, "case")
        with pytest.raises(PermissionError):
            os.ftruncate(memory.descriptor, 4096)
        with pytest.raises(NotRunError, match=r"huge needs 1024\.0 TiB of memory"):
            memory.reserve(1 << 50, "huge")
    finally:
        memory.close()
    check_fits(1, 1, "small")
    available = available_bytes()
    assert available is not None
    with pytest.raises(NotRunError, match="are free"):
        check_fits(available, available, "all of it")


@pytest.mark.parametrize("repetitions", [1, 2, 3])
def test_no_two_blocks_overlap_and_all_are_aligned(repetitions: int) -> None:
    layout = lay_out(CASE, repetitions)
    spans = []
    for buffer in layout.buffers:
        starts = [offset for _, offset in buffer.regions(repetitions)]
        starts += [buffer.content] if buffer.content else []
        for start in starts:
            assert start % 4096 == 0
            spans.append((start - buffer.front, start + buffer.plan.nbytes + buffer.back))
            assert spans[-1][1] % 4096 == 0
            assert buffer.back >= 4096
    spans += [(fill, fill + 16384) for fill in layout.fills]
    assert len(layout.fills) == repetitions
    spans.sort()
    assert spans[0][0] == 0
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(spans))
    assert spans[-1][1] == layout.nbytes


def test_an_empty_buffer_has_its_guards() -> None:
    empty = case_of(
        BufferPlan("x", Role.INPUT, "float32", (0,)), BufferPlan("y", Role.OUTPUT, "float16", (0,))
    )
    with serve("none", empty) as server:
        result = server.run(empty, arrays_of(empty))
    assert result.outputs[0]["y"].size == 0


def test_the_words_of_a_request() -> None:
    plans = (
        BufferPlan("x", Role.INPUT, "float16", (3,)),
        BufferPlan("y", Role.OUTPUT, "float32", (2,)),
    )
    args = (
        BufferArg("y"),
        ScalarValue("alpha", "float16", b"\x00\x3c", "1.0"),
        integer("n", -2),
        BufferArg("x"),
    )
    case = make_case(SOURCE, plans, args=args, grid=(2, 3, 4), block=(5, 6, 7))
    layout = lay_out(case, 2)
    payload = run_request(case, harness_of(case), layout, number=9, warmups=1, seeds=[0, 77])
    words = np.frombuffer(payload, "<u8").tolist()
    fills = 16384 + 12288 * 2 - 4096
    assert words[:9] == [1, 9, layout.nbytes, 1, 2, fills, 0, fills + 16384, 77]
    assert layout.nbytes == fills + 2 * 16384
    assert words[9:19] == [2, 0, 6, 0, 4096, 0, 0, 4096, 8186, start_of("x")]
    assert words[19:28] == [1, 8, 1, 0, 16384, 12288, 4096, 8184, start_of("y")]
    assert words[28:37] == [1, 0, 2, 3, 4, 5, 6, 7, 0]
    assert words[37:] == [4, 0, 1, 1, 0x3C00, 2, 2**64 - 2, 0, 0]


def test_schedules_begin_natural_and_reversed_and_are_all_different() -> None:
    seeds = schedule_seeds(50, 3)
    assert seeds[:2] == (0, 2**64 - 1)
    assert schedule_seeds(1, 3) == (0,)
    assert len(set(seeds)) == 50
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert schedule_seeds(50, 4)[2:] != seeds[2:]


def test_fills_are_words_of_four_bytes_and_their_complement() -> None:
    for fill in range(0, 6, 2):
        words = pattern(fill).view(np.uint32)
        assert words.size == WORDS
        values, counts = np.unique(words, return_counts=True)
        assert values.tolist() == [0, 0x5A5A5A5A, 0xA5A5A5A5, 0xFFFFFFFF]
        assert counts.min() > WORDS // 5
        assert np.array_equal(pattern(fill + 1), ~pattern(fill))
    assert not np.array_equal(pattern(0), pattern(2))


@pytest.mark.parametrize("name", ["y", "out", "tickets", "grad_x"])
def test_a_buffer_begins_with_an_extreme_of_the_unsigned_numbers(name: str) -> None:
    """In the first two repetitions a minimum of one element shows, whatever it is compared with."""
    first = [int(held(name, fill, 0, 4).view(np.uint32)[0]) for fill in (0, 1)]
    assert sorted(first) == [0, 2**32 - 1]


def test_a_fill_goes_on_through_a_buffer_of_any_size() -> None:
    whole = held("y", 3, 0, 100_000)
    assert np.array_equal(whole[NBYTES:], whole[:-NBYTES])
    assert np.array_equal(held("y", 3, 50_001, 49_000), whole[50_001:99_001])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"tokitai-child 2 u64le\nstatus=ok\nwarp_size=32",
        b"tokitai-child 1 u64le\nx",
        b"tokitai-child 1 u64le\nstatus=ok\nwarp_size=\xc2\xb2",
    ],
)
def test_a_garbage_hello_is_refused(payload: bytes) -> None:
    with pytest.raises(GarbageError):
        read_hello(payload)


@pytest.mark.parametrize(
    "words",
    [
        [1, 5],
        [2, 5, 0, 1, 7, 1, 0, 0],
        [1, 6, 0, 1, 7, 1, 0, 0],
        [1, 5, 9, 1, 7, 1, 0, 0],
        [1, 5, 0, 1, 7, 1, 0],
        [1, 5, 0, 2, 7, 1, 0, 0],
        [1, 5, 0, 1, 7, 2, 0, 0],
        [1, 5, 0, 1, 7, 1, 0, 0, 0],
    ],
)
def test_a_garbage_answer_is_refused(words: list[int]) -> None:
    good = np.array([1, 5, 0, 1, 7, 1, 2, 2**64 - 1], "<u8").tobytes()
    answer = read_answer(good, number=5, repetitions=1, buffers=1)
    assert answer.times_ns == (7,)
    assert answer.changed == ((2, -1),)
    with pytest.raises(GarbageError):
        read_answer(np.array(words, "<u8").tobytes(), number=5, repetitions=1, buffers=1)


def test_a_saved_case_runs_from_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    command = [sys.executable, "-S", "-E", str(FAKE), "talk"]
    line = debug_command(command, harness_of(CASE), CASE, arrays_of(CASE), folder, FAKE)
    assert line.startswith("gdb -d ")
    assert os.system(line.partition(" --args ")[2] + " >/dev/null") == 0
    memory = np.fromfile(folder / "memory.bin", np.uint8)
    placed = next(item for item in lay_out(CASE, 1).buffers if item.plan.name == "y")
    assert set(memory[placed.region : placed.region + 14]) == {expected_byte()}


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 bytes"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes_in_words(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text
