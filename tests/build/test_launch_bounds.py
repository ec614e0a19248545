"""Blocks that are larger than a kernel's __launch_bounds__ allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run
from tests.spec_example import example, write_example
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.cpp.source.launch_bounds import bound_of
from tokitai_cli.cpp.whole import Program, program_of

TEXT = """
#define WIDTH 64
constexpr int kRows = 4, kOther = 3;
constexpr unsigned kThreads = WIDTH * 4u;
#define TWICE 1
#define TWICE 2
namespace a {
// __launch_bounds__(1) __global__ void plain(
__global__ void __launch_bounds__(256) plain(int* x) {}
__launch_bounds__(kThreads, 2) __global__ void named(int* x) {}
template <typename T, int N = 32, int M = WIDTH>
__global__ __launch_bounds__(N * (M + 1)) void product(T* x) {}
template <class F> __global__ void free(F f) {}
__global__ void __launch_bounds__(TWICE) twice() {}
__global__ void __launch_bounds__(sizeof(int) * 8) sized() {}
}
__global__ void unbound(int* x) {}
"""


@pytest.mark.parametrize(
    ("expr", "bound"),
    [
        ("a::plain", 256),
        ("a::plain(int*)", 256),
        ("a::named", 256),
        ("a::product<float>", 32 * 65),
        ("a::product<other<int, 2>, 2, 3>", 8),
        ("a::product<float, WIDTH>", 64 * 65),
        ("a::product<float, kUnknown>", 0),
        ("a::free<int>", 0),
        ("a::twice", 2),
        ("a::sized", 32),
        ("unbound", 0),
        ("nowhere", 0),
    ],
)
def test_bounds_are_read_from_the_tree(tmp_path: Path, expr: str, bound: int) -> None:
    assert bound_of(program(tmp_path, TEXT), expr) == bound


def test_bounds_may_stand_in_a_header_and_at_a_declaration(tmp_path: Path) -> None:
    (tmp_path / "k.hpp").write_text("__global__ void __launch_bounds__(96) k(int* x);\n")
    text = '#include "k.hpp"\n__global__ void k(int* x) {}\n'
    assert bound_of(program(tmp_path, text), "k") == 96


def test_macros_of_the_spec_count(tmp_path: Path) -> None:
    text = "__global__ void __launch_bounds__(BLOCK) k() {}"
    assert bound_of(program(tmp_path, text, {"BLOCK": "128"}), "k") == 128
    assert bound_of(program(tmp_path, text), "k") == 0


def program(folder: Path, text: str, defines: dict[str, str] | None = None) -> Program:
    (folder / "k.hip").write_text(text)
    return program_of(folder / "k.hip", (), defines)


@pytest.mark.parametrize(("bound", "verdict"), [(256, Verdict.VERIFIED), (255, Verdict.CRASHED)])
def test_a_block_beyond_the_bounds_is_no_launch(
    tmp_path: Path, bound: int, verdict: Verdict
) -> None:
    kernel = example("vector_add.hip").replace(
        "__global__ void", f"__global__ void __launch_bounds__({bound})"
    )
    evidence = run(write_example(tmp_path, kernel=kernel), tmp_path / "out", profile=["normal"])
    assert evidence.verdict is verdict
    if verdict is Verdict.CRASHED:
        assert "256 threads a block, its __launch_bounds__ allow 255" in evidence.reason
