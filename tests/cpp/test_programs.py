"""Deep-learning kernels in the style of public projects build as they are, host code and all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cpp.test_extract import extract
from tokitai_cli import build, devices
from tokitai_cli.core.errors import BuildError
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.harness import HarnessRequest, KernelArg, KernelEntry
from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.whole import program_of
from tokitai_cli.drafts.draft import drafts

PROGRAMS = sorted((Path(__file__).parents[1] / "kernels" / "programs").iterdir())
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("clang++", "g++", "c++"))), reason="no C++ compiler on PATH"
)


def test_there_are_twenty() -> None:
    assert len(PROGRAMS) == 20


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_every_kernel_is_found_and_nothing_of_the_host_stays(path: Path) -> None:
    program = program_of(path, [])
    found = {one.name for one in kernels_of(program)}
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"(\w+)\s*(?:<[^<>;]*>)?\s*<<<", text))
    named |= set(re.findall(r"hipLaunchKernelGGL\(\s*(\w+)", text))
    assert named <= found or "ADAMW" in text
    taken = extract(path)
    code = re.sub(r"^[ \t]*#[^\n]*", "", taken.text, flags=re.MULTILINE)
    assert not re.search(r"<<<|hipMalloc|PYBIND|\bTEST_P|torch::|\bmain\s*\(", code)
    assert taken.left_out


@needs_compiler
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
@pytest.mark.slow
def test_every_program_builds_for_the_cpu_device(path: Path) -> None:
    device = devices.get("cpu")
    recipe = device.recipe(DeviceOptions(), {}, ())
    artifact = build.build(HarnessRequest(path, ()), recipe)
    done = subprocess.run([artifact.path], check=False, capture_output=True, timeout=60)
    assert done.returncode >= 0
    assert any("left out" in note for note in artifact.record.notes)


MIXED = """\
#include <hip/hip_cooperative_groups.h>
using quad = __attribute__((ext_vector_type(4))) float;
__global__ void scale(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
"""
BARRED = {
    "__global__ void matrix(quad* y) { *y = __builtin_amdgcn_mfma_f32_4x4x1f32(1, 1, *y, 0, 0, 0); }":
    "cannot run __builtin_amdgcn_mfma",
    "__global__ void whole(float* y) { cooperative_groups::this_multi_grid().sync(); y[0] = 1; }":
    "a multi_grid_group waits for other devices",
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("other", BARRED, ids=["matrix", "whole"])
def test_a_kernel_that_cannot_run_stops_no_other_one(other: str, tmp_path: Path) -> None:
    path = tmp_path / "k.hip"
    path.write_text(MIXED + other)
    recipe = devices.get("cpu").recipe(DeviceOptions(), {}, ())
    pointers = (KernelArg("buffer", "float32"),) * 2
    made = build.build(HarnessRequest(path, (KernelEntry("scale", pointers),)), recipe)
    assert re.search(r"left out .* k\.hip:(?:2, )?4$", made.record.notes[0])
    name = "matrix" if "matrix" in other else "whole"
    with pytest.raises(BuildError, match=BARRED[other]):
        build.build(HarnessRequest(path, (KernelEntry(name, pointers[:1]),)), recipe)


def test_most_kernels_of_them_can_be_bound() -> None:
    made = [one for path in PROGRAMS for one in drafts(program_of(path, [], {}))]
    left = {one.kernel.name for one in made if one.reasons}
    assert left <= {"copy_blocks", "lora"}


def test_extents_of_a_grid_are_passed_by_value(tmp_path: Path) -> None:
    text = (
        "__global__ void k(const float* x, float* y, dim3 grid) { y[threadIdx.x] = x[grid.x]; }\n"
    )
    (tmp_path / "k.cu").write_text(text)
    (made,) = drafts(program_of(tmp_path / "k.cu", [], {}))
    assert made.reasons == ()
    assert re.search(r"grid: \{x: \w+, y: \w+, z: \w+\}", made.spec)
