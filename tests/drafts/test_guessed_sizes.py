"""Which sizes of a draft are guesses: those that neither the kernel nor its host bounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.runs import run
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.search import drafts_of

SOURCE = """\
#include <hip/hip_runtime.h>
#define TILE 16
__global__ void guarded(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
__global__ void beyond(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = x[i];
}
__global__ void left(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i];
}
__global__ void unguarded(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
__global__ void rows_of_blocks(const float* x, float* y, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    y[blockIdx.x * cols + c] = x[blockIdx.x * cols + c];
}
__global__ void by_threads(const float* x, float* y, int rows, int cols) {
  y[blockIdx.x * cols + threadIdx.x] = x[blockIdx.x * cols + threadIdx.x];
}
__global__ void clamped(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[min(i + 1, n - 1)];
}
__global__ void wrapped(const float* x, float* y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i % m];
}
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int r = blockIdx.y * TILE + threadIdx.y, q = blockIdx.x * TILE + threadIdx.x;
  float v = 0;
  for (int t = 0; t < k; t += TILE) {
    as[threadIdx.y][threadIdx.x] = a[r * k + t + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + q];
    __syncthreads();
    for (int i = 0; i < TILE; i++) v += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (r < m && q < n) c[r * n + q] = v;
}
__global__ void with_tail(const float* a, float* c, int m, int k) {
  int r = blockIdx.x;
  float v = 0;
  for (int t = 0; t < k; t += TILE)
    if (t + threadIdx.x < k) v += a[r * k + t + threadIdx.x];
  c[r * TILE + threadIdx.x] = v;
}
__global__ void vectors(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) y[i] = x[i];
}
__global__ void decayed(const float* x, float* y, int n, int parts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / parts;
}
__global__ void halves(const float* x, float* y, int rows, int n) {
  for (int i = threadIdx.x; i < n / 2; i += blockDim.x)
    y[blockIdx.x * n + i] = x[blockIdx.x * n + n / 2 + i];
}
"""


def drafts(folder: Path, source: str) -> dict[str, Draft]:
    (folder / "k.hip").write_text(source, encoding="utf-8")
    found = drafts_of(folder / "k.hip", room=False)
    assert isinstance(found, tuple)
    return {one.kernel.name: one for one in found[0]}


@pytest.fixture(scope="module")
def of_kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Draft]:
    return drafts(tmp_path_factory.mktemp("guessed"), SOURCE)


@pytest.mark.parametrize(
    ("kernel", "guessed"),
    [
        ("guarded", set()),
        ("beyond", set()),  # a comparison, though a wrong one
        ("left", set()),
        ("unguarded", {"n"}),
        ("rows_of_blocks", set()),
        ("by_threads", {"cols"}),
        ("clamped", set()),
        ("wrapped", set()),
        ("product", {"m", "n", "k"}),
        ("with_tail", set()),
        ("vectors", {"n"}),
        ("decayed", {"parts"}),
        ("halves", set()),
    ],
)
def test_sizes_that_no_comparison_bounds_are_guesses(
    of_kernels: dict[str, Draft], kernel: str, guessed: set[str]
) -> None:
    draft = of_kernels[kernel]
    assert draft.model is not None
    assert {name for name, one in draft.model.params.items() if one.why} == guessed, draft.spec
    suites = draft.spec.partition("suites:")[2]
    assert "# guess" not in suites  # one mark a size, not one a shape


@pytest.mark.parametrize(
    ("kernel", "size", "step", "why"),
    [
        ("unguarded", "n", 256, "no tail behind multiples of 256"),
        ("product", "k", 16, "no tail behind multiples of 16"),
        ("vectors", "n", 4, "no tail behind multiples of 4"),
    ],
)
def test_a_kernel_without_a_tail_is_also_drafted_with_one(
    of_kernels: dict[str, Draft], kernel: str, size: str, step: int, why: str
) -> None:
    model = of_kernels[kernel].model
    assert model is not None
    param = model.params[size]
    assert (param.multiple_of, why in param.why) == (None, True)
    rests = [shape.sizes[size] % step for shape in model.suites.value["quick"]]
    assert rests == [*[0] * (len(rests) - 1), 1]


HOST = """
int main() {
  float *a, *c;
  const int rows = 50, cols = 128;
  by_threads<<<rows, 128>>>(a, c, rows, cols);
  unguarded<<<1024 / 256, 256>>>(a, c, 1024);
}
"""


def test_the_host_s_own_numbers_are_no_guesses(tmp_path: Path) -> None:
    found = drafts(tmp_path, SOURCE + HOST)
    by_threads, unguarded = found["by_threads"].model, found["unguarded"].model
    assert by_threads is not None
    assert unguarded is not None
    cols = by_threads.params["cols"]
    assert cols.default == 128
    assert cols.why.startswith("values other than 128, the host's: no comparison keeps")
    assert unguarded.params["n"].multiple_of == 256  # it passes whole blocks


FORMULAS = {
    "guarded": 'return {"y": x}',
    "unguarded": 'return {"y": x}',
    "by_threads": 'return {"y": x}',
}


@pytest.mark.parametrize(
    ("kernel", "change", "verdict", "about"),
    [
        ("guarded", ("", ""), "verified", ""),
        ("guarded", ("y[i] = x[i];\n}", "y[i] = i == n - 1 ? 0 : x[i];\n}"), "refuted", ""),
        ("unguarded", ("", ""), "inconclusive", "n"),
        ("unguarded", ("y[i] =", "y[i] = 2 *"), "refuted", ""),
        ("by_threads", ("", ""), "inconclusive", "cols"),
        ("by_threads", ("y[blockIdx.x * cols + threadIdx.x] =",
                        "y[blockIdx.x * cols + threadIdx.x] = 1 +"), "refuted", ""),
    ],
)  # fmt: skip
def test_a_draft_refutes_what_no_guess_explains(
    kernel: str, change: tuple[str, str], verdict: str, about: str, tmp_path: Path
) -> None:
    whole = re.search(rf"__global__ void {kernel}\(.*?\n}}\n", SOURCE, re.S)
    assert whole is not None
    block = "ceil_div" if kernel != "by_threads" else ""
    host = f"void host(const float* x, float* y, int n, int rows, int cols) {{ {kernel}<<<" + (
        "(n + 255) / 256, 256>>>(x, y, n); }" if block else "rows, 64>>>(x, y, rows, cols); }"
    )
    source = f"#include <hip/hip_runtime.h>\n{whole[0].replace(*change)}{host}\n"
    draft = drafts(tmp_path, source)[kernel]
    (tmp_path / "spec.yaml").write_text(draft.spec)
    head = draft.formula.partition("    # fill in")[0]
    (tmp_path / "formula.py").write_text(f"{head}    {FORMULAS[kernel]}\n")
    found = run(tmp_path / "spec.yaml", tmp_path / "out", suite="quick")
    assert found.verdict == verdict, [one.reason for one in found.cases]
    named = {
        one.about.split()[2] for case in found.cases for one in case.guesses if "size" in one.about
    }
    assert named == ({about} if about else set()), [one.reason for one in found.cases]


SHARED = """\
#include <hip/hip_runtime.h>
enum { MODE_ROWS = 0, MODE_COLS = 1 };
__global__ void halved(float* x, int n) {
  __shared__ float s[512];
  s[threadIdx.x] = 0;
  s[threadIdx.x + blockDim.x] = x[threadIdx.x];
  s[threadIdx.x + 3 * blockDim.x] = x[threadIdx.x];
  x[threadIdx.x] = s[threadIdx.x];
}
__global__ void old_words(const float* in, float* out, int rows, int cols) {
  int c = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x, r = hipBlockIdx_y;
  if (c < cols) out[r * cols + c] = in[r * cols + c];
}
template <int mode, int bytesKB>
__global__ void moded(float* x, int n) {
  static_assert(bytesKB >= 16, "");
  if (threadIdx.x < n) x[threadIdx.x] = mode == MODE_COLS ? 1 : mode == MODE_ROWS ? 2 : *(float*)0;
}
"""


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("halved", "block: [128]  # guess:"),
        ("old_words", "in: {dtype: float32, shape: [rows, cols]}"),
        ("moded", '- kernel: "moded<MODE_ROWS, 48>"  # guess: what mode, bytesKB stand for'),
    ],
)
def test_blocks_modes_and_old_words_of_launches(kernel: str, told: str, tmp_path: Path) -> None:
    assert told in drafts(tmp_path, SHARED)[kernel].spec


ALLOCATED = """\
#include <hip/hip_runtime.h>
__global__ void copied(const float* x, float* y, float* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = z[i] = x[i];
}
int main() {
  const int n = 1000;
  float *x, *y, *z;
  hipMalloc(&x, n * sizeof(float));
  hipMalloc(&y, n * sizeof(float));
  hipMalloc(&z, 2 * n * sizeof(float));
  copied<<<(n + 255) / 256, 256>>>(x, y, z, n);
}
"""


def test_a_shape_that_the_host_allocates_is_no_guess(tmp_path: Path) -> None:
    model = drafts(tmp_path, ALLOCATED)["copied"].model
    assert model is not None
    told = {name: one.why + one.does for name, one in model.arrays.items()}
    writes = "that the kernel only writes it"
    assert told == {"x": "", "y": writes, "z": f"its shape, and {writes}"}


SEARCH = """\
#include <hip/hip_runtime.h>
__global__ void lower(const float* bounds, const float* x, int* y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int lo = 0, hi = m;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (bounds[mid] < x[i]) lo = mid + 1; else hi = mid;
  }
  y[i] = lo;
}
void host(const float* b, const float* x, int* y, int n, int m) {
  lower<<<(n + 255) / 256, 256>>>(b, x, y, n, m);
}
"""


@pytest.mark.parametrize(("sign", "verdict"), [("<", "verified"), (">", "inconclusive")])
def test_what_a_binary_search_goes_over_rises_by_guess(
    sign: str, verdict: str, tmp_path: Path
) -> None:
    draft = drafts(tmp_path, SEARCH)["lower"]
    assert "bounds: {kind: sorted, lo: -3, hi: 3}}  # guess:" in draft.spec
    (tmp_path / "spec.yaml").write_text(draft.spec)
    head = draft.formula.partition("    # fill in")[0]
    counted = f"(bounds.reshape(-1)[:m][None, :] {sign} x[:, None]).sum(axis=1)"
    (tmp_path / "formula.py").write_text(f'{head}    return {{"y": {counted}.astype(np.int32)}}\n')
    found = run(tmp_path / "spec.yaml", tmp_path / "out", suite="quick")
    assert found.verdict == verdict, [one.reason for one in found.cases]
    if verdict == "inconclusive":
        assert found.cases[-1].reason.startswith("the draw of bounds in spec.yaml:")
