"""Changes of a kernel's source: where they are made, and which of them a spec notices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spec_example import example, write_example
from tokitai_cli.adequacy import mutation
from tokitai_cli.adequacy.mutation import Change, End, TrialReport, changes_of, mutate
from tokitai_cli.cli.app import run as run_command
from tokitai_cli.core import resources
from tokitai_cli.core.errors import UsageError
from tokitai_cli.run.run_options import run_options

KERNEL = """\
#include <hip/hip_runtime.h>
#include "more.hpp"
__global__ void unused(float* y) { y[0] = 1.0f; }
template <int width>
__global__ void sums(const float* x, float* y, int n) {
  __shared__ float part[width];
  const int i = blockIdx.x * width + threadIdx.x;  // + here is no operator
  if (i >= n) return;
  part[threadIdx.x] = -x[i];
  __syncthreads();
  y[static_cast<size_t>(i)] = n < 3 ? part[0] : fmaxf(part[threadIdx.x], 0.5f) + kMore;
}
#ifndef TOKITAI
int main() { return 1 + 1; }
#endif
"""

OVERLAPPING = "int i = blockIdx.x * blockDim.y + threadIdx.x;"


def found(folder: Path) -> list[Change]:
    (folder / "kernel.hip").write_text(KERNEL, encoding="utf-8")
    (folder / "more.hpp").write_text("constexpr float kMore = 2.0f;\n", encoding="utf-8")
    changes, _ = changes_of(folder / "kernel.hip", [], {"sums", "64"})
    return changes


def test_every_kind_of_place_is_found_once_and_nothing_else(tmp_path: Path) -> None:
    told = {(one.path.name, one.line, one.after.strip()) for one in found(tmp_path)}
    kernel = "kernel.hip"
    assert (kernel, 6, "__shared__ float part[(width + 1) / 2];") in told
    assert (kernel, 8, "if (i > n) return;") in told
    assert (kernel, 8, "if (false) return;") in told
    assert (kernel, 9, "part[threadIdx.x + 1] = -x[i];") in told
    assert (kernel, 9, "part[threadIdx.y] = -x[i];") in told
    assert (kernel, 9, "part[threadIdx.x] = x[i];") in told
    assert (kernel, 10, ";") in told
    last = KERNEL.splitlines()[10].strip()
    for old, new in (
        ("static_cast<size_t>", "static_cast<unsigned char>"),
        ("n < 3 ? part[0] : fmaxf(part[threadIdx.x], 0.5f) + kMore", "(part[0])"),
        ("fmaxf", "fminf"),
        ("0.5f", "(0.5f * 1.01f)"),
        (" + kMore", " - kMore"),
        ("< 3", "< (3 + 1)"),
    ):
        assert (kernel, 11, last.replace(old, new)) in told, old
    assert ("more.hpp", 1, "constexpr float kMore = (2.0f * 1.01f);") in told
    lines = {line for name, line, _ in told if name == kernel}
    assert lines == {6, 7, 8, 9, 10, 11}  # no kernel that nobody launches, no host code


def test_a_change_names_the_kernels_that_reach_it(tmp_path: Path) -> None:
    (tmp_path / "two.hip").write_text(
        "__device__ float twice(float x) { return x + x; }\n"
        "__global__ void a(float* y) { y[0] = twice(y[0]) * 3; }\n"
        "__global__ void b(float* y) { y[0] = twice(y[0]) / 5; }\n"
    )
    changes, _ = changes_of(tmp_path / "two.hip", (), {"a", "b", "float"})
    by_line = {line: {one.kernels for one in changes if one.line == line} for line in (1, 2, 3)}
    assert by_line == {1: {frozenset("ab")}, 2: {frozenset("a")}, 3: {frozenset("b")}}


def test_a_change_is_applied_where_it_stands(tmp_path: Path) -> None:
    for one in found(tmp_path):
        text = one.path.read_text("utf-8")
        assert one.applied(text).replace(one.after, one.before, 1) == text
        assert one.before in text


def tried(path: Path, **more: Any) -> TrialReport:
    return mutate(run_options(str(path), device="cpu", suite="quick", **more), 2, lambda *_: None)


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> TrialReport:
    """Of a spec whose one shape has no tail, one change of its kernel's listed as equivalent."""
    kernel = example("vector_add.hip").replace(
        "if (i < n) {", "const int zero = i - i;\n    if (i + zero < n) {"
    )
    listed = f"""
equivalent_changes:
  - {{line: "{OVERLAPPING.replace("blockDim.y", "blockDim.x")}", to: "{OVERLAPPING}", reason: one block}}
"""
    whole = example("spec.yaml").partition("suites:")[0] + (
        f"suites:\n  quick:\n    - {{shape: {{n: 256}}, why: one block}}\n{listed}"
    )
    return tried(write_example(tmp_path_factory.mktemp("careless"), kernel=kernel, spec=whole))


@pytest.mark.slow
def test_a_strict_spec_notices(tmp_path: Path) -> None:
    strict = tried(write_example(tmp_path))
    survivors = [one.change.after.strip() for one in strict.trials if one.end is End.SURVIVED]
    assert strict.count(End.NOTICED) >= 6
    # Blocks that overlap write the same twice, and 257 elements are no more than two of them reach.
    assert survivors == [OVERLAPPING]


def test_a_careless_spec_does_not_notice(careless: TrialReport) -> None:
    # Without a tail, nothing shows that the guard is gone.
    lost = {one.change.after.strip() for one in careless.trials if one.end is End.SURVIVED}
    assert any("<=" in line for line in lost), lost
    assert careless.count(End.NOTICED) >= 4
    text = "\n".join(mutation.summary_lines(careless))
    assert "-    if (i + zero < n) {" in text
    assert "+    if (i + zero <= n) {" in text
    assert f"{careless.count(End.NOTICED)} of {careless.tried} changes detected" in text


def test_equivalent_changes_are_listed_with_a_reason_and_not_counted(careless: TrialReport) -> None:
    assert careless.count(End.EQUIVALENT) == 1
    assert "one block" in "\n".join(mutation.summary_lines(careless))


def test_what_is_the_same_code_is_not_counted(careless: TrialReport) -> None:
    same = [one.change.after.strip() for one in careless.trials if one.end is End.SAME]
    assert any("i - zero" in line for line in same), same


def test_a_kernel_that_fails_as_it_is_shows_nothing(tmp_path: Path) -> None:
    kernel = example("vector_add.hip").replace("a[i] + b[i]", "a[i] - b[i]")
    with pytest.raises(UsageError, match="the kernel as it is fails: vector-add/main/n=1/"):
        tried(write_example(tmp_path, kernel=kernel))


@pytest.mark.slow
def test_the_verb_tells_the_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_example(tmp_path)
    assert run_command(["mutate", str(path), "-j", "2", "-q"]) == 6
    text = capsys.readouterr().out
    assert OVERLAPPING in text
    assert " changes detected, " in text
    more = "    - {shape: {n: 1000}, why: four blocks}\n\nnon_claims:"
    write_example(tmp_path, spec=example("spec.yaml").replace("\nnon_claims:", more))
    assert run_command(["mutate", str(path), "-j", "2", "-q"]) == 0
    assert " detected, 100.0 %" in capsys.readouterr().out


def test_shipped_sources_have_places_in_what_they_take_in() -> None:
    source = resources.kernels_dir() / "rmsnorm.hip"
    changes, _ = changes_of(source, [], {"rmsnorm_fwd"})
    assert {one.path.name for one in changes} == {"rmsnorm.hip", "storage.hpp"}
