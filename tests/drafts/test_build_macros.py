"""Macros that only a build defines are guessed, and marked so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.build_macros import build_macros
from tokitai_cli.cpp.whole import program_of
from tokitai_cli.drafts.search import drafts_of

KERNEL = """#include <hip/hip_runtime.h>
__global__ void sums(const float* x, float* y, int rows) {
  __shared__ float part[_N_];
  part[threadIdx.x] = x[blockIdx.x * _N_ + threadIdx.x];
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < _N_; i++) sum += part[i];
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
void host(const float* x, float* y, int rows) { sums<<<rows, _N_>>>(x, y, rows); }
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (KERNEL, {"_N_": "64"}),
        ("__global__ void k(float* y) { __shared__ float t[SIDE][SIDE]; }", {"SIDE": "16"}),
        ("#ifdef GPU\n#define W 512\n#endif\n__global__ void k(float* y) { float t[W]; }", {"W": "512"}),
        ("__global__ void k(float* y, int n) { constexpr int M = 4; float t[M]; }", {}),
        ("template <int N> struct S { static const int W = N; };\n"
         "template <int N> __global__ void k(float* y) { float t[N], u[S<N>::W], v[warpSize]; }", {}),
        ("enum { SIDE = 4 };\n#define W 3\n__global__ void k(float* y) { float t[SIDE], u[W]; }", {}),
        ("void host() { char name[PATH_MAX]; }\n__global__ void k(float* y) { y[0] = 1; }", {}),
    ],
)  # fmt: skip
def test_names_of_extents_that_nothing_declares(
    tmp_path: Path, text: str, found: dict[str, str]
) -> None:
    (tmp_path / "k.hip").write_text(text, encoding="utf-8")
    assert build_macros(program_of(tmp_path / "k.hip", [])) == found


def test_a_draft_says_which_macros_it_guesses(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(KERNEL, encoding="utf-8")
    found = drafts_of(tmp_path / "k.hip", room=False)
    assert isinstance(found, tuple)
    model = found[0][0].model
    assert model is not None
    assert model.flags.value == ["-D_N_=64"]
    assert model.flags.why == "the value of _N_, which nothing here defines"
    assert model.launch.block.value == ["64"]
    assert list(model.arrays["x"].extents) == ["rows", "64"]
    given = drafts_of(tmp_path / "k.hip", room=False, defines={"_N_": "32"})
    assert isinstance(given, tuple)
    told = given[0][0].model
    assert told is not None
    assert (told.flags.value, told.flags.why) == (["-D_N_=32"], "")
