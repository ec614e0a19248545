"""The real harness and child: kernels that are right, and kernels that go wrong."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.run_cases import make_case, make_cases
from tokitai_cli import build, devices
from tokitai_cli.core.errors import (
    BuildError,
    ChildCrashedError,
    ChildTimeoutError,
    NotRunError,
    TokitaiError,
)
from tokitai_cli.core.fills import held
from tokitai_cli.core.model.case import BufferArg, BufferPlan, Case, Role, RunResult, ScalarValue
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.run.child import Server, debug_command, lay_out

FIXTURES = Path(__file__).parents[1] / "build_fixtures"
OPTIONS = DeviceOptions(threads=2)
CPU = devices.get("cpu")
COUNT = 1000
KERNELS = (
    "scale", "writes_before", "writes_behind", "changes_input", "writes_null", "never_ends",
    "aborts", "leaves", "prints",
)  # fmt: skip

pytestmark = pytest.mark.skipif(not CPU.probe(OPTIONS).buildable, reason="no C++ compiler")


def case_of(*kernels: str, count: int = COUNT, n: int | None = None) -> Case:
    buffers = (
        BufferPlan("x", Role.INPUT, "float32", (count,)),
        BufferPlan("y", Role.OUTPUT, "float32", (count,)),
        BufferPlan("total", Role.INOUT, "float32", (1,)),
        BufferPlan("factors", Role.SYMBOL, "float32", (2,)),
    )
    number = (count if n is None else n).to_bytes(8, "little", signed=True)
    args = (
        BufferArg("x"),
        BufferArg("y"),
        BufferArg("total"),
        ScalarValue("a", "float32", struct.pack("<f", 0.5), "0.5"),
        ScalarValue("n", "", number, str(n)),
    )
    grid = (max(1, -(-count // 256)), 1, 1)
    variants = {"-".join(names): names for names in (*((name,) for name in KERNELS), kernels)}
    cases = make_cases(
        FIXTURES / "faults.hip", buffers, variants, args=args, grid=grid, block=(256, 1, 1)
    )
    return cases["-".join(kernels)]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[build.Artifact]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKITAI_CACHE", str(tmp_path_factory.mktemp("cache")))
        request = build.harness_request(case_of("scale"))
        recipe = CPU.recipe(OPTIONS, dict(request.defines), ())
        yield build.build(request, recipe)


@pytest.fixture
def server(artifact: build.Artifact) -> Iterator[Server]:
    with serve(artifact) as started:
        yield started


def serve(artifact: build.Artifact) -> Server:
    command = CPU.launch_command(artifact.path, OPTIONS)
    return Server(command, CPU.launch_environment(OPTIONS), artifact.request)


def arrays(count: int = COUNT) -> dict[str, NDArray[np.float32]]:
    return {
        "x": np.arange(count, dtype=np.float32),
        "total": np.array([7.0], np.float32),
        "factors": np.array([2.0, 3.0], np.float32),
    }


def run(server: Server, case: Case, timeout: float = 60.0) -> RunResult:
    return server.run(case, arrays(case.buffers[0].elements), timeout=timeout)


@pytest.mark.parametrize("count", [1, 255, 256, 1000, 5000])
def test_inputs_symbols_scalars_and_restored_inouts(server: Server, count: int) -> None:
    case = case_of("scale", "scale", count=count)
    result = server.run(case, arrays(count), repetitions=3, warmups=2)
    assert len(result.times_ns) == 3
    assert all(time > 0 for time in result.times_ns)
    for outputs in result.outputs:
        assert np.array_equal(outputs["y"], np.arange(count, dtype=np.float32) + 3)
        assert outputs["total"].tolist() == [9.0]
    assert result.guards == ()
    assert result.inputs_changed == ()


def test_one_child_serves_cases_of_other_sizes(server: Server) -> None:
    for count in (10, 100_000, 10):
        result = run(server, case_of("scale", count=count))
        assert result.outputs[1]["y"][-1] == count + 2


def test_what_is_not_written_keeps_the_sentinel(server: Server) -> None:
    result = run(server, case_of("scale", n=10))
    for fill, outputs in zip(result.fills, result.outputs, strict=True):
        assert outputs["y"][10:].tobytes() == held("y", fill, 40, 4 * (COUNT - 10)).tobytes()
        assert outputs["y"][9] == 12


@pytest.mark.parametrize(
    ("kernel", "offset", "side"),
    [("writes_before", -4, "front"), ("writes_behind", 4 * COUNT, "back")],
)
def test_writes_outside(server: Server, kernel: str, offset: int, side: str) -> None:
    result = run(server, case_of(kernel))
    assert [(damage.buffer, damage.offset, damage.side) for damage in result.guards] == [
        ("y", offset, side)
    ] * 2


def test_a_changed_input_is_told_and_does_not_stay(server: Server) -> None:
    (damage,) = run(server, case_of("changes_input")).inputs_changed
    assert damage.buffer == "x"
    assert 4 * (COUNT - 1) <= damage.offset < 4 * COUNT
    result = run(server, case_of("scale"))
    assert result.inputs_changed == ()
    assert result.outputs[0]["y"][-1] == COUNT + 2


@pytest.mark.parametrize(
    ("kernel", "words", "error"),
    [
        ("writes_null", "SIGSEGV|segmentation", ChildCrashedError),
        ("aborts", "SIGABRT|abort", ChildCrashedError),
        ("leaves", "exit code 0", ChildCrashedError),
        ("never_ends", "did not run within", ChildTimeoutError),
    ],
)
def test_a_kernel_that_ends_its_child(
    artifact: build.Artifact, kernel: str, words: str, error: type[TokitaiError]
) -> None:
    with serve(artifact) as server:
        with pytest.raises(error, match=words):
            run(server, case_of(kernel), timeout=1.0 if kernel == "never_ends" else 60.0)
        assert not server.alive
        if kernel == "aborts":
            assert "about to abort" in server.log.text


def test_what_a_kernel_prints(server: Server) -> None:
    case = case_of("prints", count=1)
    log = run(server, case).log
    assert log.count("n is 1\n") == 256 * 2


def test_an_integer_that_does_not_fit(server: Server) -> None:
    with pytest.raises(NotRunError, match="does not fit"):
        run(server, case_of("scale", n=2**40))


def test_a_signature_that_the_kernel_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path))
    case = case_of("scale")
    wrong = make_case(FIXTURES / "faults.hip", case.buffers, "scale", args=[BufferArg("x")])
    with pytest.raises(BuildError, match="passes 1 arguments"):
        build.build(build.harness_request(wrong), CPU.recipe(OPTIONS, {}, ()))


def test_the_debug_command_runs_the_case(artifact: build.Artifact, tmp_path: Path) -> None:
    case = case_of("scale")
    command = CPU.launch_command(artifact.path, OPTIONS)
    line = debug_command(command, artifact.request, case, arrays(), tmp_path, artifact.path)
    child = line.partition(" --args ")[2]
    done = subprocess.run(["sh", "-c", child], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    memory = np.fromfile(tmp_path / "memory.bin", np.uint8)
    placed = lay_out(case, 1).buffers[1]
    got = memory[placed.region : placed.region + 4 * COUNT].view(np.float32)
    assert np.array_equal(got, np.arange(COUNT, dtype=np.float32) + 3)
