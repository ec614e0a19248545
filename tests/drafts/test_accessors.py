"""Sizes of tensor accessors that are one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.tiles import facts_of
from tokitai_cli.cpp.whole import program_of
from tokitai_cli.drafts.accessors import Accessor, same_sizes

HEAD = """__global__ void k(at::PackedTensorAccessor32<float, 2> x,
                  at::PackedTensorAccessor32<float, 1> y, int n, int m)"""
ACCESSORS = [Accessor("x", "x_data", ["x_0", "x_1"]), Accessor("y", "y_data", ["y_0"])]


@pytest.mark.parametrize(
    ("body", "same"),
    [
        ("x[n][m] = x[m][n] + y[m];", {"x_1": "x_0", "y_0": "x_0"}),
        ("for (int i = 0; i < n; ++i) { auto row = x[i]; y[i] = row[m]; }", {"y_0": "x_0"}),
        # Two loops up to one end.
        ("for (int i = 0; i < m; ++i) x[n][i] = 1; for (int j = 0; j < m; ++j) y[j] = 1;",
         {"y_0": "x_1"}),
        ("y[0] = x[n][0] + x[n][2];", {"x_1": "3", "y_0": "1"}),
        ("for (int c = 0; c < 3; ++c) y[n] += x[m][c];", {"x_1": "3"}),
        ("y[n] = x[m][n + 1];", {}),
    ],
)  # fmt: skip
def test_sizes_that_are_one_lead_to_the_first(
    tmp_path: Path, body: str, same: dict[str, str]
) -> None:
    (tmp_path / "k.cu").write_text(f"{HEAD} {{ {body} }}")
    program = program_of(tmp_path / "k.cu", [], {})
    (kernel,) = kernels_of(program)
    assert same_sizes(ACCESSORS, facts_of(program, kernel, {}).accesses) == same
