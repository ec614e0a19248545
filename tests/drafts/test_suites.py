"""Shapes of a draft's suite that tell what others hide."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli import spec
from tokitai_cli.core import expressions
from tokitai_cli.drafts.model import SuiteShape
from tokitai_cli.drafts.search import drafts_of

TILED = """__global__ void scan(const float* x, float* y, int rows, int n) {
  float carry = 0;
  for (int b = 0; b < n; b += 4 * blockDim.x)
    for (int j = 0; j < 4; ++j) {
      int i = b + 4 * threadIdx.x + j;
      if (i < n) y[blockIdx.x * n + i] = carry + x[blockIdx.x * n + i];
    }
}
void host(float* x, float* y, int rows, int n) { scan<<<rows, 256>>>(x, y, rows, n); }"""
CAPPED = """#include <algorithm>
__global__ void twice(const float* x, float* y, int n, int channels) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    for (int c = 0; c < channels; ++c) y[i * channels + c] = 2 * x[i * channels + c];
}
void host(float* x, float* y, int n, int channels) {
  twice<<<std::min((n + 63) / 64, 4), 64>>>(x, y, n, channels);
}"""
MANY = """__global__ void moved(const float* x, float* y, int a, int b, int c, int d, int e, int f,
                      int g, int h) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= h) return;
  for (int p = 0; p < a; ++p) for (int q = 0; q < b; ++q) for (int r = 0; r < c; ++r)
    for (int s = 0; s < d; ++s) for (int t = 0; t < e; ++t) for (int u = 0; u < f; ++u)
      for (int v = 0; v < g; ++v)
        y[((((((p * b + q) * c + r) * d + s) * e + t) * f + u) * g + v) * h + i] =
          x[((((((p * b + q) * c + r) * d + s) * e + t) * f + u) * g + v) * h + i];
}"""
ENLARGED = """__global__ void enlarged(const float* x, float* y, int h, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < 2 * w && j < 2 * h) y[j * (2 * w) + i] = x[(j / 2) * w + i / 2];
}
void host(float* x, float* y, int h, int w) {
  enlarged<<<dim3((2 * w + 15) / 16, (2 * h + 15) / 16), dim3(16, 16)>>>(x, y, h, w);
}"""


def shapes(folder: Path, text: str) -> list[SuiteShape]:
    (folder / "k.cu").write_text(text)
    found = drafts_of(folder / "k.cu", (), folder / "spec", room=False)
    assert isinstance(found, tuple)
    model = found[0][0].model
    assert model is not None
    return [*model.suites.value["quick"]]


def test_a_loop_over_tiles_has_three_passes_and_a_tail(tmp_path: Path) -> None:
    last = shapes(tmp_path, TILED)[-1]
    assert last.shows == "large sizes, three passes and a tail"
    assert expressions.holds("n > 3 * 1024 and n % 1024 != 0", last.sizes)


def test_a_grid_is_asked_for_more_than_its_cap(tmp_path: Path) -> None:
    last = shapes(tmp_path, CAPPED)[-1]
    assert expressions.holds("(n + 63) // 64 > 4", last.sizes)


def test_the_tail_is_of_the_size_that_is_tiled(tmp_path: Path) -> None:
    _, tail, _, _ = shapes(tmp_path, CAPPED)
    assert tail.sizes == {"n": 257, "channels": 5}


def test_no_two_of_many_sizes_are_equal(tmp_path: Path) -> None:
    first, *others = shapes(tmp_path, MANY)
    assert set(first.sizes.values()) == {1}
    for one in others[:2]:
        assert len({*one.sizes.values()}) == 8, one


def test_one_of_each_leaves_something_to_tell(tmp_path: Path) -> None:
    first = shapes(tmp_path, ENLARGED)[0]
    assert first.sizes == {"h": 2, "w": 2}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("min((n + 63) // 64, 4)", [("(n + 63) // 64", "4")]),
        ("max(1, min(ceil_div(n, 8), 2 * 16))", [("ceil_div(n, 8)", "2 * 16")]),
        ("min(n, k)", []),
        ("ceil_div(n, 8)", []),
    ],
)
def test_a_cap_is_read_out_of_an_expression(text: str, parts: list[tuple[str, str]]) -> None:
    assert expressions.caps_of(text) == parts


TESTED = """__global__ void mixed(const float* x, float* y, int n, float beta, int window) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float before = beta == 0.0f ? 0.0f : beta * y[i];
  y[i] = window == -1 ? x[i] + before : before;
}"""


def test_numbers_are_what_the_kernel_tests_in_one_shape_each(tmp_path: Path) -> None:
    found = {one.shows: one.sizes for one in shapes(tmp_path, TESTED)[4:]}
    assert found["beta is 0, which the kernel tests"] == {"n": 257, "beta_tenths": 0}
    assert found["window is -1, which the kernel tests"] == {"n": 257, "window_value": 0}
    (tmp_path / "formula.py").write_text("def mixed(params, inputs, scalars):\n    return {}\n")
    text = (tmp_path / "k.cu").with_suffix(".yaml")
    drafted = drafts_of(tmp_path / "k.cu", (), tmp_path, room=False)
    assert isinstance(drafted, tuple)
    text.write_text(drafted[0][0].spec)
    scalars = spec.load(text).spec.variants["main"].scalars
    assert {name: one.value for name, one in scalars.items()} == {
        "beta": "beta_tenths / 10",
        "window": "window_value - 1",
    }


VALUES = """__global__ void lone(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = 1 / (1 + expf(-x[i]));
}
__global__ void varied(const float* x, float* y, int n) {
  float mean = 0, square = 0;
  for (int i = 0; i < n; ++i) { mean += x[i] / n; square += x[i] * x[i] / n; }
  for (int i = 0; i < n; ++i) y[i] = (x[i] - mean) * rsqrtf(square - mean * mean + 1e-5f);
}
__global__ void scaled(const float* x, signed char* y, float* scales, int n) {
  float peak = 0;
  for (int i = 0; i < n; ++i) peak = fmaxf(peak, fabsf(x[i]));
  float scale = peak / 127;
  for (int i = 0; i < n; ++i) y[i] = (signed char)rintf(x[i] / scale);
  scales[0] = scale;
}
__global__ void plain(const float* x, const float* w, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = x[i] / w[i];
}
"""


@pytest.mark.parametrize(
    ("kernel", "profile"),
    [("lone", "steep"), ("varied", "offset"), ("scaled", "zero-rows"), ("plain", "")],
)
def test_draws_reach_what_the_kernel_branches_on(tmp_path: Path, kernel: str, profile: str) -> None:
    (tmp_path / "k.cu").write_text(VALUES)
    found = drafts_of(tmp_path / "k.cu", (), tmp_path / "spec", room=False)
    assert isinstance(found, tuple)
    model = next(one.model for one in found[0] if one.kernel.name == kernel)
    assert model is not None
    assert {*model.profiles.value} & {"steep", "offset", "zero-rows"} == {profile} - {""}


INSTANCES = """template <typename T, int N = 4, bool BIAS = false>
__global__ void scaled(const T* x, const T* bias, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T v = x[i] * N;
  if (BIAS) v += bias[i];
  y[i] = v;
}
__global__ void unpacked(const unsigned* packed, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (packed[i / 8] >> (4 * (i % 8))) & 15;
}
void host(float* x, float* b, float* y, int n) {
  scaled<float><<<(n + 255) / 256, 256>>>(x, b, y, n);
}"""


def test_a_draft_is_as_short_as_its_instance_and_draws_all_bits(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(INSTANCES)
    found = drafts_of(tmp_path / "k.cu", (), tmp_path / "spec", room=False)
    assert isinstance(found, tuple)
    scaled, unpacked = (one.model for one in found[0])
    assert scaled is not None
    assert unpacked is not None
    assert scaled.launch.kernel.value == "scaled<float>"
    assert scaled.launch.args == ["x", None, "y", "n"]
    assert [*scaled.arrays] == ["x", "y"]
    assert unpacked.profiles.value["normal"].inputs.value == {
        "packed": {"kind": "uniform", "lo": 0, "hi": 2**32 - 1}
    }
