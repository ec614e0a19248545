"""Loops over tiles, as a kernel's body has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.tiles import divided, facts_of, tiles_of
from tokitai_cli.cpp.whole import program_of

NAMES = {"n": "n", "k": "k", "s.len": "s_len", "blockDim.x": "(256)", "gridDim.x": "(8)"}
READS = "y[blockIdx.x * n + at] = x[blockIdx.x * n + at];"


@pytest.mark.parametrize(
    ("body", "tiles"),
    [
        (f"for (int at = threadIdx.x; at < n; at += blockDim.x) {READS}", [("n", "(256)")]),
        (f"int at = threadIdx.x; while (at < n) {{ {READS} at += 2 * blockDim.x; }}",
         [("n", "2 * (256)")]),
        ("for (int b = 0; b < n; b += 64) { int at = b + threadIdx.x; if (at < n) y[at] = x[at]; }",
         [("n", "64")]),
        ("for (int t = 0; t < (k + 15) / 16; ++t) y[16 * t + threadIdx.x] = x[16 * t + threadIdx.x];",
         [("k", "16")]),
        ("for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x)"
         " y[at] = x[at];", [("n", "(256) * (8)")]),
        ("for (int b = 0; b < s.len; b += T) y[b + threadIdx.x] = x[b + threadIdx.x];",
         [("s_len", "32")]),
        # Neither elements one by one, nor a number of passes that is fixed, nor steps backwards.
        ("for (int at = 0; at < n; ++at) y[at] = x[at];", []),
        ("for (int at = 0; at < 512; at += 64) y[at] = x[at];", []),
        ("for (int at = 512; at > 0; at -= 64) y[at] = x[at];", []),
        ("for (int at = 1; at < n; at *= 2) y[at] = x[at];", []),
    ],
)  # fmt: skip
def test_a_loop_by_tiles_is_known(tmp_path: Path, body: str, tiles: list[tuple[str, str]]) -> None:
    file = tmp_path / "k.cu"
    file.write_text(
        "struct S { int len; };\ntemplate <int T>\n"
        f"__global__ void walk(const float* x, float* y, int n, int k, S s) {{ {body} }}\n"
    )
    program = program_of(file, [], {})
    (kernel,) = kernels_of(program)
    found = tiles_of(facts_of(program, kernel, {"T": "32"}), NAMES)
    assert [(one.size, one.step) for one in found] == tiles
    assert {one.at and one.at.line for one in found} <= {3}


ROWS = "y[blockIdx.x * n + 128 * i + threadIdx.x] = 1;"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"for (int i = 0; i < n / 128; i++) {ROWS}", [("n", "128")]),
        (f"int e = (n / 32) / 4; if (e == 0) e = 1; for (int i = 0; i < e; i++) {ROWS}", [("n", "128")]),
        ("*(float4*)(y + blockIdx.x * n + 4 * threadIdx.x) = *(const float4*)(x + 4 * threadIdx.x);",
         [("n", "4")]),
        ("((float2*)y)[blockIdx.x * n + threadIdx.x] = float2(1, 2);", []),
        # Rounded up, or with a loop, or a branch, over what is left.
        (f"for (int i = 0; i < (n + 127) / 128; i++) {ROWS}", []),
        (f"for (int i = 0; i < n / 128; i++) {ROWS}"
         " for (int at = n / 128 * 128 + threadIdx.x; at < n; at += blockDim.x) y[at] = 1;", []),
        (f"for (int i = 0; i < n / 128; i++) {ROWS} if (threadIdx.x < n % 128) y[threadIdx.x] = 1;", []),
    ],
)  # fmt: skip
def test_sizes_that_are_taken_for_multiples(
    tmp_path: Path, body: str, found: list[tuple[str, str]]
) -> None:
    file = tmp_path / "k.cu"
    file.write_text(f"__global__ void walk(const float* x, float* y, int n, int k) {{ {body} }}\n")
    program = program_of(file, [], {})
    (kernel,) = kernels_of(program)
    assert divided(facts_of(program, kernel, {}), NAMES) == found
