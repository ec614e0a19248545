"""Every barrier of shipped kernels left out in turn: each is missed, at a line of the source."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tokitai_cli.core import resources
from tokitai_cli.core.model.device import Sanitizer
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.devices.sanitizers import cpu_watch
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.sanitizing import sanitize

SOURCES = {
    "gemm": "gemm.hip",
    "layernorm": "layernorm.hip",
    "scan": "reduce.hip",
    "softmax": "softmax.hip",
    "topk-gating": "topk_gating.hip",
    "cross-entropy": "storage.hpp",
}
# Barriers that a second use of their array would need, which no kernel makes.
SPARE = {("softmax.hip", 22), ("storage.hpp", 27)}
BARRIER = "__syncthreads();"


def barriers() -> list[tuple[str, str, int]]:
    """Op, file and line of each barrier that stands by itself."""
    return [
        (op, file, number)
        for op, file in SOURCES.items()
        for number, line in enumerate((resources.kernels_dir() / file).read_text().splitlines(), 1)
        if line.strip().startswith(BARRIER)
    ]


def without(op: str, file: str, line: int, folder: Path) -> Path:
    """A copy of the op's spec and of all kernels, with one barrier left out."""
    for name in ("specs", "kernels", "formulas"):
        source = resources.kernels_dir().parent / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
    path = folder / "kernels" / file
    lines = path.read_text().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(BARRIER, ";")
    path.write_text("".join(lines))
    return folder / "specs" / f"{op}.yaml"


def accesses_alone(device: CpuDevice) -> tuple[Sanitizer, ...]:
    return (cpu_watch._sanitizer(device, cpu_watch.ACCESSES),)


@pytest.mark.slow
@pytest.mark.parametrize(("op", "file", "line"), barriers())
def test_a_barrier_that_is_left_out_is_missed(
    op: str, file: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_watch, "sanitizers", accesses_alone)
    spec = without(op, file, line, tmp_path)
    profile = next(iter(yaml.safe_load(spec.read_text())["profiles"]))
    options = run_options(
        str(spec), device="cpu", profile=profile, out=tmp_path / "out", verb="sanitize"
    )
    evidence = sanitize(options).evidence
    found = [one for case in evidence.cases for one in case.findings]
    near = {int(n) for one in found for n in re.findall(rf"{file}:(\d+)", one.location)}
    if (file, line) in SPARE:
        assert not found
        return
    assert {one.kind for one in found} <= {"race", "uninitialised-read"}
    assert any(abs(number - line) <= 8 for number in near), near
