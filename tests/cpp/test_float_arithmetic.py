"""What bodies compute of floats, and loops whose state each step changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.float_arithmetic import Numerics
from tokitai_cli.cpp.recurrences import divisors, looped, recurrences
from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.tiles import facts_of
from tokitai_cli.cpp.whole import program_of

HEAD = """
struct Moments { float sum, square; };
__device__ float total(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__device__ float most(float v) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  return v;
}
__global__ void k(const float* x, const float* w, float* y, int* at, int n, float eps)"""
ASKED = (
    *("summed_exponentials", "open_exponentials", "maxima", "loaded_maxima"),
    *("places_found", "variances", "normalises", "divisions_by_own", "small_addends"),
)


def facts(folder: Path, body: str) -> Facts:
    file = folder / "k.cu"
    file.write_text(f"{HEAD} {{ int i = threadIdx.x; {body} }}\n")
    program = program_of(file, [], {})
    kernel = kernels_of(program)[-1]
    return facts_of(program, kernel, {})


SUM = "float s = 0; for (int j = 0; j < n; ++j) s += x[j];"
SQUARES = "float q = 0; for (int j = 0; j < n; ++j) q += x[j] * x[j];"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("y[i] = x[i] * w[i];", set()),
        (f"{SUM} y[i] = s;", set()),
        # Exponentials
        ("y[i] = 1 / (1 + expf(-x[i]));", {"open_exponentials"}),
        ("y[i] = x[i] > 20 ? x[i] : log1pf(__expf(x[i]));", {"open_exponentials"}),
        ("y[i] = expf(fminf(x[i], 80.f));", set()),
        ("y[i] = expf(-0.5f) * x[i];", set()),
        ("float s = 0; for (int j = 0; j < n; ++j) s = s + exp2f(x[j]); y[i] = s;",
         {"open_exponentials", "summed_exponentials"}),
        ("__shared__ float p[32]; p[i] = expf(x[i]); __syncthreads(); float s = 0;"
         " for (int j = 0; j < 32; ++j) s += p[j] * w[j]; y[i] = s;",
         {"open_exponentials", "summed_exponentials"}),
        ("y[i] = total(expf(x[i]));", {"open_exponentials", "summed_exponentials"}),
        ("atomicAdd(&y[0], expf(x[i]));", {"open_exponentials", "summed_exponentials"}),
        ("float s = 0; for (int j = 0; j < n; ++j) s += x[j] / (1 + expf(-x[j])); y[i] = s;",
         {"open_exponentials"}),
        # Maxima
        ("y[i] = fmaxf(x[i], 0.f);", set()),
        ("y[i] = fmaxf(x[i], w[i]);", set()),
        ("float m = -1e30f; for (int j = 0; j < n; ++j) m = max(m, x[j]); y[i] = m;",
         {"maxima", "loaded_maxima"}),
        ("float m = 0; for (int j = 0; j < n; ++j) m = fmaxf(m, fabsf(x[j])); y[i] = m;",
         {"maxima"}),
        ("float m = 0; for (int j = 0; j < n; ++j) if (x[j] > m) m = x[j]; y[i] = m;",
         {"maxima", "loaded_maxima", "places_found"}),
        ("float m = 9; for (int j = 0; j < n; ++j) if (x[j] < m) m = x[j]; y[i] = m;",
         {"places_found"}),
        ("y[0] = most(0.5f * x[i]);", {"maxima", "loaded_maxima"}),
        ("float m = -1; for (int j = 0; j < n; ++j) { float d = 0;"
         " for (int l = 0; l < n; ++l) d += x[l] * w[j * n + l]; m = fmaxf(m, d); } y[i] = m;",
         {"maxima"}),
        ("atomicMax(&at[0], __float_as_int(x[i]));", set()),
        ("int b = 0; for (int j = 1; j < n; ++j) if (x[j] > x[b]) b = j; at[i] = b;",
         {"places_found"}),
        ("int c = 0; for (int j = 0; j < n; ++j) c += x[j] < x[i] ? 1 : 0; at[i] = c;",
         {"places_found"}),
        # Variances
        (f"{SUM} {SQUARES} s /= n; y[i] = q / n - s * s;", {"variances", "normalises"}),
        (f"{SUM} float m = s / n, v = 0; for (int j = 0; j < n; ++j) v += (x[j] - m) * (x[j] - m);"
         " y[i] = v / n;", {"variances", "normalises"}),
        (f"{SUM} float m = s / n, v = 0; for (int j = 0; j < n; ++j) v += powf(x[j] - m, 2);"
         " y[i] = v;", {"variances", "normalises"}),
        ("__shared__ float d[32]; float m = total(x[i]) / 32; d[i] = x[i] - m; __syncthreads();"
         " float v = 0; for (int j = 0; j < 32; ++j) v += d[j] * d[j]; y[i] = v;",
         {"variances", "normalises"}),
        ("Moments t = {0, 0}; for (int j = 0; j < n; ++j) { t.sum += x[j]; t.square += x[j] * x[j]; }"
         " y[i] = t.square - t.sum * t.sum / n;", {"variances", "normalises"}),
        ("float v = 0; for (int j = 0; j < n; ++j) { float d = x[j] - w[j]; v += d * d; } y[i] = v;",
         set()),
        (f"{SUM} y[i] = x[i] - s / n;", {"normalises"}),
        # Divisors
        ("y[i] = x[i] / w[i];", set()),
        ("y[i] = x[i] / n;", set()),
        (f"{SQUARES} y[i] = x[i] * rsqrtf(q);", {"normalises", "divisions_by_own"}),
        (f"{SQUARES} y[i] = __fdividef(x[i], sqrtf(q));", {"normalises", "divisions_by_own"}),
        (f"{SQUARES} y[i] = x[i] / fmaxf(sqrtf(q), 1e-12f);", {"normalises", "small_addends"}),
        (f"{SQUARES} y[i] = x[i] * rsqrtf(q / n + 1e-5f);", {"normalises", "small_addends"}),
        (f"{SQUARES} y[i] = x[i] / (sqrtf(q) + eps);", {"normalises", "small_addends"}),
        ("float m = 0; for (int j = 0; j < n; ++j) m = fmaxf(m, fabsf(x[j])); y[i] = x[i] / m;",
         {"maxima", "divisions_by_own"}),
        (f"{SUM} y[i] = s > 0 ? x[i] / s : 0;", {"normalises", "divisions_by_own"}),
        (f"{SUM} y[i] = x[i] / s;", {"normalises"}),
    ],
)  # fmt: skip
def test_what_a_body_computes(tmp_path: Path, body: str, told: set[str]) -> None:
    numerics = Numerics(facts(tmp_path, body), {"x", "w", "y"})
    assert {one for one in ASKED if getattr(numerics, one)} == told


@pytest.mark.parametrize(
    ("body", "rooted"),
    [
        ("float h = y[i] = 0.9f * y[i] + 0.1f * x[i] * x[i]; at[i] = x[i] / (sqrtf(h) + eps);", True),
        ("float v = 0.9f * y[i] + 0.1f * x[i] * x[i]; y[i] = v; at[i] = x[i] / (sqrtf(v) + eps);",
         True),
        (f"{SQUARES.replace('x', 'y')} y[i] = y[i] * rsqrtf(q);", False),
        ("y[i] = sqrtf(y[i] * y[i] + 1);", False),
    ],
)  # fmt: skip
def test_roots_of_what_becomes_of_elements(tmp_path: Path, body: str, rooted: bool) -> None:
    assert Numerics(facts(tmp_path, body), {"x", "w", "y"}).takes_root("y") is rooted


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("float h = 0; for (int t = 0; t < n; ++t) { h = 0.5f * h + x[t]; y[t] = h; }", {"n"}),
        ("float h = 0; for (int t = 0; t < n; ++t) { h = tanhf(h + x[t]); y[t] = h; }", {"n"}),
        ("float h = 0; for (int t = 0; t < n; ++t) { h += x[t]; y[t] = h; }", set()),
        ("float h = 0; for (int t = 0; t < n; ++t) h = 0.5f * h + x[t]; y[i] = h;", set()),
        ("for (int t = 0; t < n; ++t) y[t] = 2 * x[t];", set()),
    ],
)
def test_recurrences_are_told(tmp_path: Path, body: str, told: set[str]) -> None:
    found = facts(tmp_path, body)
    assert recurrences(found, {"n": "n"}, {"y"}) == told
    assert looped(found, {"n": "n"}) == {"n"}


def test_sizes_as_divisors_are_told(tmp_path: Path) -> None:
    found = facts(tmp_path, "y[i] = x[i] / (n * n - 1) + x[i] / w[i] + x[i] / 2;")
    assert divisors(found, {"n": "n"}) == {"n * n - 1", "2"}
