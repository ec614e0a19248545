"""`sanitize` of sources: drafted at the host's sizes, watched, and never changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.devices.sanitizers import suite
from tests.runs import tokitai_here
from tokitai_cli.devices.sanitizers import cpu_watch

PROGRAM = """#include <cuda_runtime.h>
__global__ void sum(const float* x, float* y, int n) {
    __shared__ float part[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.f;
    for (int s = 32; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
__global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
__global__ void differences(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i + 1] - x[i];
}
#define BYTES (n * sizeof(float))
int main() {
    const int n = 3 * 50;
    float *a, *b;
    cudaMalloc((void**)&a, BYTES);
    cudaMalloc(&b, n * sizeof(float));
    sum<<<(n + 63) / 64, 64>>>(a, b, n);
    scale<<<(n + 63) / 64, 64>>>(a, b, 2.f, n);
    differences<<<(n + 63) / 64, 64>>>(a, b, n);
}
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu_watch, "sanitizers", suite.accesses_alone)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.cu").write_text(PROGRAM)


def test_a_source_needs_no_spec_and_no_formula(tmp_path: Path) -> None:
    done = tokitai_here("sanitize", "program.cu", "--json", "-q")
    assert done.returncode == 1, done.stderr
    found = {one["kernel"]: one for one in json.loads(done.stdout)}
    assert [one["outcome"] for one in found.values()] == ["refuted", "no finding", "refuted"]
    assert {one["shape"]["n"] for one in found.values()} == {150}
    kinds = {name: [told["kind"] for told in one["findings"]] for name, one in found.items()}
    assert kinds["sum"][0] == "race"
    assert kinds["differences"] == ["out-of-bounds"]
    assert found["differences"]["findings"][0]["array"] == "x[150] of 150 elements"
    assert found["scale"]["place"] == "program.cu:12"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.cu"]


def test_one_kernel_of_a_source_and_a_folder(tmp_path: Path) -> None:
    done = tokitai_here("sanitize", "program.cu:scale", "-q")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 kernel: 1 no finding")
    (tmp_path / "program.cu").write_text(PROGRAM.replace("part[threadIdx.x] =", "part[0] ="))
    (tmp_path / "none.cu").write_text("__global__ void open(struct unknown s);\n")
    done = tokitai_here("sanitize", ".", "-q")
    assert done.returncode == 1
    assert "race" in done.stdout


def test_what_is_outside_a_guessed_extent_is_inconclusive_with_the_guess(tmp_path: Path) -> None:
    (tmp_path / "program.cu").write_text(PROGRAM.partition("#define")[0])
    done = tokitai_here("sanitize", "program.cu:sum", "-q")
    assert done.returncode == 6
    assert "guessed by the draft: the grid of sum: from the kernel's code" in done.stdout


def test_errors_name_what_helps(tmp_path: Path) -> None:
    done = tokitai_here("sanitize", "program.cu:nobody")
    assert done.returncode == 2
    assert "program.cu has no kernel `nobody`" in done.stderr
    done = tokitai_here("sanitize", "program.cu", "--variant", "main")
    assert done.returncode == 2
    assert "--variant is for a spec, not for a source" in done.stderr


def test_a_spec_whose_formula_nobody_has_written_is_watched(tmp_path: Path) -> None:
    assert tokitai_here("new", "program.cu", "--kernel", "sum", "--out", "check").returncode == 0
    done = tokitai_here("sanitize", "check/spec.yaml", "--n", "100", "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "watch of accesses, race:" in done.stdout
    assert tokitai_here("verify", "check/spec.yaml").returncode == 2


FOUR_BLOCKS = """#include <cuda_runtime.h>
__global__ void columns(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[threadIdx.x] += x[i];
}
int main() {
    float *x, *y;
    cudaMalloc(&x, 1000 * sizeof(float));
    cudaMalloc(&y, 256 * sizeof(float));
    columns<<<4, 256>>>(x, y, 1000);
}
"""


def test_a_launch_that_the_host_says_in_numbers_is_no_guess(tmp_path: Path) -> None:
    (tmp_path / "program.cu").write_text(FOUR_BLOCKS)
    done = tokitai_here("sanitize", "program.cu", "--json", "-q")
    assert done.returncode == 1, done.stdout
    (found,) = json.loads(done.stdout)
    assert (found["outcome"], found["shape"]) == ("refuted", {"n": 1000})
    assert found["findings"][0]["kind"] == "race"
    assert not any("grid" in guess["about"] for guess in found["guesses"])


SIZES_FROM_OUTSIDE = """#include <cuda_runtime.h>
#include <cstdlib>
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
__global__ void tiled(float* c, int m, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    c[(y * n + x) % (m * n)] = 2.f * x + y;
}
__global__ void mirrored(float* x, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) tile[threadIdx.x] = x[i];
    if (i < n) x[i] = tile[63 - threadIdx.x];
}
int main(int count, char** words) {
    int m = atoi(words[1]), n = atoi(words[2]);
    float *a, *c;
    cudaMalloc(&a, m * n * sizeof(float));
    cudaMalloc(&c, m * n * sizeof(float));
    dim3 grid(CEIL_DIV(n, 32), CEIL_DIV(m, 8)), block(32, 8);
    tiled<<<grid, block>>>(c, m, n);
    mirrored<<<CEIL_DIV(n, 64), 64>>>(a, n);
}
"""


def test_what_is_found_at_odd_sizes_alone_hangs_on_the_sizes(tmp_path: Path) -> None:
    (tmp_path / "program.cu").write_text(SIZES_FROM_OUTSIDE)
    done = tokitai_here("sanitize", "program.cu", "--json", "-q")
    found = {one["kernel"]: one for one in json.loads(done.stdout)}
    tiled, mirrored = found["tiled"], found["mirrored"]
    assert tiled["outcome"] == "inconclusive", tiled
    assert {one["kind"] for one in tiled["findings"]} == {"race"}
    assert tiled["guesses"][0]["about"] == "the sizes"
    assert "at m=256,n=256 that is not found" in tiled["reason"]
    assert (mirrored["outcome"], mirrored["guesses"]) == ("refuted", [])
    assert done.returncode == 1


SILENT = """#include <cstdio>
__global__ void greet(int times) { printf("%d times from %d\\n", times, threadIdx.x); }
__global__ void racing() {
  __shared__ int last[2];
  last[threadIdx.x & 1] = threadIdx.x;
  printf("%d\\n", last[0]);
}
int main() { greet<<<2, 4>>>(3); racing<<<1, 64>>>(); }
"""


def test_kernels_that_write_nothing_are_run_and_watched_and_get_no_spec(tmp_path: Path) -> None:
    source = tmp_path / "silent.cu"
    source.write_text(SILENT)
    listing = tokitai_here("find", source, "--run", "--json", "--write", tmp_path / "specs")
    told = json.loads(listing.stdout)
    assert [(one["ended"], one["bindable"]) for one in told["kernels"]] == [("", False)] * 2
    assert told["kernels"][0]["reasons"] == ["it has no array that it could write"]
    assert told["written"] == []
    done = tokitai_here("sanitize", source, "--json")
    verdicts = {one["kernel"]: one["outcome"] for one in json.loads(done.stdout)}
    assert verdicts == {"greet": "no finding", "racing": "refuted"}
    refused = tokitai_here("new", source, "--kernel", "greet")
    assert refused.returncode == 2
    assert "no array that it could write" in refused.stderr


def test_a_kernel_without_parameters_may_be_declared_before(tmp_path: Path) -> None:
    declared = SILENT.replace(
        "__global__ void greet", "__global__ void racing();\n__global__ void greet"
    )
    (tmp_path / "silent.cu").write_text(declared)
    told = json.loads(tokitai_here("find", "silent.cu", "--run", "--json").stdout)["kernels"]
    assert [one["ended"] for one in told] == ["", ""]


FETCHING = """texture<float> line;
__global__ void taken(float* y, int n);
__global__ void taken(float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = tex1Dfetch(line, threadIdx.x);
}
int main() { float* y; taken<<<1, 64>>>(y, 64); }
"""


def test_a_kernel_that_fetches_by_name_may_be_declared_before(tmp_path: Path) -> None:
    (tmp_path / "fetching.cu").write_text(FETCHING)
    told = json.loads(tokitai_here("find", "fetching.cu", "--run", "--json").stdout)["kernels"]
    assert [one["ended"] for one in told] == [""]
