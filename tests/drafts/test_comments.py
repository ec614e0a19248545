"""Shapes that comments state, and formulas in comments, which state none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.drafts.writing import new

KERNEL = """// {comment}
__global__ void norm(const float* x, const float* bias, float* y, int n) {{
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[blockIdx.x * n + i] = x[blockIdx.x * n + i] + bias[i];
}}
void host(float* x, float* b, float* y, int rows, int n) {{ norm<<<rows, 64>>>(x, b, y, n); }}
"""


@pytest.mark.parametrize(
    ("comment", "shape"),
    [
        ("y = norm(x + bias) * weight", "y: {dtype: float32, shape: [rows, n]}"),
        ("y: (rows, n)", "y: {dtype: float32, shape: [rows, n]}"),
        ("x and y (rows, n)", "y: {dtype: float32, shape: [rows, n]}"),
    ],
)
def test_a_call_in_a_comment_is_no_shape(comment: str, shape: str, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL.format(comment=comment), encoding="utf-8")
    draft, _, _ = new(source, tmp_path / "draft", "norm", "", (), {})
    assert shape in draft.spec, draft.spec
