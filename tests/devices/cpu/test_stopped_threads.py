"""The clock may stop a GPU thread at any instruction of its kernel: each still runs once."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from tests.devices.cpu.harness_client import FLAGS, HARNESS, HOST, compiler

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the processor has to trap after each instruction"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stopped") / "stopped"
    source = Path(__file__).parent / "stopped.cpp"
    flags = [flag for flag in FLAGS if "sanitize" not in flag]
    folders = ["-I", str(HOST), "-I", str(HARNESS)]
    subprocess.run([compiler(), *flags, *folders, str(source), "-o", str(made)], check=True)
    return made


def test_a_plain_kernel_may_be_stopped_at_every_instruction(program: Path) -> None:
    done = subprocess.run([program, "plain"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("plain 2x2x1") == 2


@pytest.mark.slow
def test_kernels_with_barriers_and_shuffles_may_be_stopped_anywhere(program: Path) -> None:
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("shuffled 8x1x1") == 2
