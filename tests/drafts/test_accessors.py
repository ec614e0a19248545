"""Sizes of tensor accessors that are one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.tiles import facts_of
from tokitai_cli.cpp.whole import program_of
from tokitai_cli.drafts.accessors import Accessor, same_sizes
from tokitai_cli.drafts.search import drafts_of

HEAD = """__global__ void k(at::PackedTensorAccessor32<float, 2> x,
                  at::PackedTensorAccessor32<float, 1> y, int n, int m)"""
ACCESSORS = [
    Accessor("x", "x", "x_data", ["x_0", "x_1"]),
    Accessor("y", "y", "y_data", ["y_0"]),
]


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


def test_strides_are_products_of_the_inner_sizes() -> None:
    found = Accessor("x", "x", "x_data", ["n", "3", "1", "m"]).fields
    assert found["strides_"] == ["3 * m", "m", "m", "1"]


KERNEL = """#include <torch/extension.h>
__global__ void doubled(const torch::PackedTensorAccessor32<float, 2> x,
                        torch::PackedTensorAccessor32<float, 2> y) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col < x.size(1)) y[blockIdx.y][col] = 2 * x[blockIdx.y][col];
}
"""
VIEWS = "t.packed_accessor32<float, 2>(), out.packed_accessor32<float, 2>()"


@pytest.mark.parametrize(
    ("host", "grid", "guessed"),
    [
        # The host asks the tensor for its sizes, from either end, at once or before.
        ("const dim3 blocks((t.size(-1) + 63) / 64, t.size(0));", ["(x_1 + 63) // 64", "x_0"], False),
        ("const int rows = t.size(0);\n  const dim3 blocks((t.size(1) + 63) / 64, rows);",
         ["(x_1 + 63) // 64", "x_0"], False),
        # It says nothing that is known: the size that no index and no comparison has is counted.
        ("const dim3 blocks = best_blocks(t);", ["ceil_div(x_1, 64)", "x_0"], True),
    ],
)  # fmt: skip
def test_blocks_count_sizes_of_the_tensor_that_the_host_hands_over(
    tmp_path: Path, host: str, grid: list[str], guessed: bool
) -> None:
    launch = f"void forward(torch::Tensor t, torch::Tensor out) {{\n  {host}\n  "
    launch += f"doubled<<<blocks, 64>>>({VIEWS});\n}}\n"
    (tmp_path / "k.cu").write_text(KERNEL + launch, encoding="utf-8")
    found = drafts_of(tmp_path / "k.cu", room=False)
    assert isinstance(found, tuple)
    model = found[0][0].model
    assert model is not None
    assert model.launch.grid.value == grid
    assert bool(model.launch.grid.why) is guessed
    assert [*model.arrays["y_data"].extents] == ["x_0", "x_1"]
