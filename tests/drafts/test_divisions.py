"""Sizes that a kernel's indices, its tiles or the host's grid divide are drafted as multiples."""

from __future__ import annotations

import pytest

from tokitai_cli.drafts.model import SpecDraft
from tokitai_cli.drafts.search import drafts_of

SOURCE = """#include <hip/hip_runtime.h>
#define GROUP 128
__global__ void scaled(const float* q, const float* s, float* out, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (c < cols) out[r * cols + c] = q[r * cols + c] * s[r * (cols / GROUP) + c / GROUP];
}
template <int G>
__global__ void scaled_by(const float* q, const float* s, float* out, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y, groups = cols / G;
  if (c < cols) out[r * cols + c] = q[r * cols + c] * s[r * groups + c / G];
}
__global__ void highest(const float* x, float* most, int n, int group) {
  float found = 0;
  for (int i = 0; i < group; i++) found = fmaxf(found, x[blockIdx.x * group + i]);
  most[blockIdx.x] = found;
}
__global__ void stepped(const float* x, float* y, int n, int group) {
  float sum = 0;
  for (int j = 0; j < n; j += group)
    for (int k = 0; k < group; k++) sum += x[blockIdx.x * n + j + k];
  y[blockIdx.x] = sum;
}
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[16][16], bs[16][16];
  int r = blockIdx.y * 16 + threadIdx.y, q = blockIdx.x * 16 + threadIdx.x;
  float v = 0;
  for (int t = 0; t < k; t += 16) {
    as[threadIdx.y][threadIdx.x] = a[r * k + t + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + q];
    __syncthreads();
    for (int i = 0; i < 16; i++) v += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  c[r * n + q] = v;
}
__global__ void with_tail(const float* x, float* y, int n) {
  int whole = n / 4 * 4;
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] + (i < whole ? 1.f : 2.f);
  for (int j = 0; j < n; j += 32) if (j + threadIdx.x < n) y[j + threadIdx.x] += x[j + threadIdx.x];
}
void host(float* x, float* s, float* y, int rows, int cols, int n, int m, int k, int group) {
  scaled<<<dim3((cols + 255) / 256, rows), 256>>>(x, s, y, rows, cols);
  scaled_by<64><<<dim3((cols + 255) / 256, rows), 256>>>(x, s, y, rows, cols);
  highest<<<n / group, 1>>>(x, y, n, group);
  stepped<<<m, 1>>>(x, y, n, group);
  product<<<dim3(n / 16, m / 16), dim3(16, 16)>>>(x, s, y, m, n, k);
  with_tail<<<1, 32>>>(x, y, n);
}
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SpecDraft]:
    file = tmp_path_factory.mktemp("divisions") / "k.hip"
    file.write_text(SOURCE, encoding="utf-8")
    found = drafts_of(file, room=False)
    assert isinstance(found, tuple)
    return {one.kernel.name: one.model for one in found[0] if one.model is not None}


@pytest.mark.parametrize(
    ("kernel", "multiples", "requires"),
    [
        ("scaled", {"cols": 128}, []),
        ("scaled_by", {"cols": 64}, []),
        ("highest", {}, ["n % group == 0"]),
        ("stepped", {}, ["n % group == 0"]),
        ("product", {"m": 16, "n": 16}, []),  # of k only a loop without a tail says it
        ("with_tail", {}, []),
    ],
)
def test_sizes_are_multiples_of_what_divides_them(
    models: dict[str, SpecDraft], kernel: str, multiples: dict[str, int], requires: list[str]
) -> None:
    model = models[kernel]
    told = {name: one.multiple_of for name, one in model.params.items() if one.multiple_of}
    assert told == multiples
    assert list(model.requires.value) == requires
    supposed = {name for name, one in model.params.items() if "no tail" in one.why}
    assert supposed == ({"k"} if kernel == "product" else set())
    for shape in model.suites.value["quick"]:
        for size, part in multiples.items():
            assert shape.sizes[size] % part == 0
        if requires:
            assert shape.sizes["n"] % shape.sizes["group"] == 0


def test_tiles_are_no_limit_and_rows_are_those_that_blocks_count(
    models: dict[str, SpecDraft],
) -> None:
    product, highest = models["product"], models["highest"]
    assert all(one.max is None for one in product.params.values())
    sizes = product.suites.value["quick"][1].sizes
    assert len({*sizes.values()}) == 3  # a transposed operand shows
    assert list(highest.arrays["x"].extents) == ["n // group", "group"]
    assert list(highest.arrays["most"].extents) == ["n // group"]
