"""Drafts read what functions load and store, tests for null, and the host's macros in a launch."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.runs import tokitai
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.drafts.search import drafts_of

PROGRAM = """
#include <hip/hip_runtime.h>
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
#define WARP 32U
__global__ void norms(float* __restrict__ out, float* mean, const float* inp, int N, int C) {
  const int lane = threadIdx.x % WARP, row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= N) return;
  const float* x = inp + row * C;
  float* o = out + row * C;
  float sum = 0;
  for (int i = lane; i < C; i += WARP) sum += __ldg(x + i);
  if (lane == 0 && mean != nullptr) __stcs(mean + row, sum / C);
  for (int i = lane; i < C; i += WARP) __stcg(o + i, __ldcs(x + i) - sum);
}
void host(float* out, float* mean, float* inp, int B, int T, int C) {
  const int block_size = 256, N = B * T;
  const int grid_size = CEIL_DIV(N * WARP, block_size);
  norms<<<grid_size, block_size>>>(out, mean, inp, N, C);
}
"""


def test_elements_that_functions_load_and_store_are_read(tmp_path: Path) -> None:
    (tmp_path / "norms.hip").write_text(PROGRAM, encoding="utf-8")
    done = tokitai("new", tmp_path / "norms.hip", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "spec.yaml").read_text("utf-8")
    inputs, _, outputs = text.partition("    outputs:")
    assert "inp: {dtype: float32, shape: [N, C]}" in inputs
    assert "out_: {dtype: float32, shape: [N, C]}" in outputs
    assert "mean: {dtype: float32, shape: [N]}" in outputs
    assert "inout" not in text
    assert 'grid: ["(32 * N + 255) // 256"]' in text
    assert "block: [256]" in text


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("if (mean != nullptr) mean[i] = m;", "outputs"),
        ("if (NULL != mean) mean[i] = m;", "outputs"),
        ("if (mean) mean[i] = m;", "outputs"),
        ("if (far || !mean) return; mean[i] = m;", "outputs"),
        ("const float m = mean ? 1 : 0; mean[i] = m;", "outputs"),
        ("store(mean); mean[i] = m;", "inout"),
        ("if (mean[i] != 0) mean[i] = m;", "inout"),
    ],
)
def test_a_test_for_null_reads_nothing(body: str, role: str, tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(
        f"__global__ void k(float* mean, float m, int i, bool far, float* y) {{ y[i] = m; {body} }}\n"
    )
    found = drafts_of(source)
    assert not isinstance(found, Unread)
    roles = found[0][0].spec.partition("    launches:")[0].partition(f"    {role}:\n")[2]
    assert "      mean: {dtype" in roles.partition("    in")[0]


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("float& to = mean[n]; to = inp[n];", "outputs"),
        ("float& to = mean[n]; to += inp[n];", "inout"),
        ("auto put = [&](int i) { float v = inp[i]; mean[i] = v; }; put(n);", "outputs"),
        ("store(mean, n, inp[n]);", "outputs"),
        ("mean[n] = inp[n]; unknown(mean);", "inout"),
    ],
)
def test_what_is_written_by_references_and_functions_is_an_output(
    body: str, role: str, tmp_path: Path
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(
        "__device__ void store(float* p, int i, float v) { float* q = p; q += i; *q = v; }\n"
        f"__global__ void k(const float* inp, float* mean, int n) {{ {body} }}\n"
    )
    found = drafts_of(source)
    assert not isinstance(found, Unread)
    assert f"    {role}:\n      mean:" in found[0][0].spec


def test_each_of_several_pointers_in_a_struct_has_its_role(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(
        "struct Ends { float* p[3]; int n; };\n"
        "__global__ void k(Ends e, float** rows) {\n"
        "  int i = threadIdx.x;\n"
        "  if (i < e.n) { e.p[0][i] = e.p[1][i]; e.p[2][i] += 1; rows[1][i] = 2; }\n}\n"
    )
    found = drafts_of(source)
    assert not isinstance(found, Unread)
    (variant,) = yaml.safe_load(found[0][0].spec)["variants"].values()
    told = {role: list(variant.get(role, ())) for role in ("inputs", "outputs", "inout")}
    assert told == {"inputs": ["e_p_1"], "outputs": ["e_p_0", "rows_rows"], "inout": ["e_p_2"]}


TILED = """
#include <hip/hip_runtime.h>
namespace tiny {
template <typename OutT_>
struct Args {
  using OutT = OutT_;
  const float* a;
  OutT* d;
  int m, n;
};
template <int M_, int N_>
struct Tile {
  static constexpr int M = M_;
  static constexpr int N = N_;
  static constexpr int kThreads = M_ * N_;
};
template <typename TileT, typename OutT>
__global__ void scaled(const Args<OutT> p) {
  const int row = blockIdx.y * TileT::M + threadIdx.x / TileT::N;
  const int col = blockIdx.x * TileT::N + threadIdx.x % TileT::N;
  if (row < p.m && col < p.n) p.d[row * p.n + col] = static_cast<OutT>(p.a[row * p.n + col]);
}
template <typename OutT>
void run(const Args<OutT>& p) {
  using T = Tile<8, 16>;
  dim3 grid((p.n + T::N - 1) / T::N, (p.m + T::M - 1) / T::M);
  scaled<T, OutT><<<grid, T::kThreads>>>(p);
}
template void run<float>(const Args<float>&);
}  // namespace tiny
"""


def test_members_of_classes_that_template_arguments_name_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "tiled.hip").write_text(TILED, encoding="utf-8")
    done = tokitai("new", tmp_path / "tiled.hip", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "spec.yaml").read_text("utf-8")
    assert 'kernel: "tiny::scaled<tiny::Tile<8, 16>, float>"' in text
    assert 'grid: ["(p_n + 15) // 16", "(p_m + 7) // 8"]' in text
    assert "block: [128]" in text or 'block: ["8 * 16"]' in text
    assert "p_d: {dtype: float32, shape: [p_m, p_n]}" in text
