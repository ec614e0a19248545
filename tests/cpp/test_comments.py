"""Shapes and launches as comments around a kernel say them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.comments import launch_in, shapes_in
from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.whole import program_of

BEFORE = """struct Rows {
  float* x;  // (a, b), of a struct
};
// grid: (7, 7), of what is before
__global__ void other(float* x) { x[0] = 1; }
// grid: (rows / 32, heads), block: 32
"""


def read(folder: Path, parameters: str) -> tuple[dict[str, list[str]], list[str], list[str]]:
    text = f"{BEFORE}__global__ void k({parameters}\n{{\n  float z = 0;  // y: (never)\n}}\n"
    (folder / "k.cu").write_text(text)
    kernel = kernels_of(program_of(folder / "k.cu", [], {}))[-1]
    grid, block = launch_in(text, kernel)
    return shapes_in(text, kernel, {"x": "x", "y": "y"}), grid, block


@pytest.mark.parametrize(
    ("parameters", "shapes"),
    [
        ("const float* x,  // (rows, n)\n  float* y)  // [n]", {"x": ["rows", "n"], "y": ["n"]}),
        ("const float x[],  /* (rows, 3) */\n  float* y)", {"x": ["rows", "3"]}),
        ("const float* x, float* y,  // (rows, n)\n  int n)", {"x": ["a", "b"], "y": ["rows", "n"]}),
        ("const float* x, float* y)", {"x": ["a", "b"]}),
        ("const float x[2 * y],  // (rows)\n  float* y)", {"x": ["a", "b"]}),
    ],
)  # fmt: skip
def test_a_comment_is_of_what_it_stands_behind(
    tmp_path: Path, parameters: str, shapes: dict[str, list[str]]
) -> None:
    found, grid, block = read(tmp_path, parameters)
    assert found == shapes
    assert (grid, block) == (["rows / 32", "heads"], ["32"])
