"""`tokitai find --run`: drafts that are changed until their kernels come to their end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.runs import tokitai, tokitai_here
from tokitai_cli.core.errors import DYNAMIC_SHARED
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.search import drafts_of
from tokitai_cli.drafts.trial.attempt import OnCpu, TrialResult
from tokitai_cli.drafts.trial.settle import Settled, retry_until_it_runs

KERNELS = {
    "right": """__global__ void k(const int* at, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = at[i];
}""",
    # Nothing in the text bounds what the second index is made of.
    "far": """__device__ int far(int v) {
  int s = 0;
  for (int b = 0; b < 12; b++) s |= (v >> (11 - b) & 1) << b;
  return s;
}
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[1000 * far(i)];
}""",
    "endless": """__global__ void k(const int* parent, int* root, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, p = i;
  if (i >= n) return;
  while (parent[p] != p) p ^= parent[p] ^ p;
  root[i] = p;
}""",
    # Places have to differ, and what is asserted of values has to hold beside.
    "scattered": """#include <cassert>
__global__ void k(const int* at, int* seen, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  assert(seen[at[i]] == -1);
  seen[at[i]] = i;
}""",
    "table": """__global__ void k(unsigned long long* key, int n) {
  int i = threadIdx.x;
  for (int at = i; i < n; at = (at + 1) % n)
    if (atomicCAS(&key[at], ~0ull, (unsigned long long)i) == ~0ull) break;
}""",
    "shared": """__global__ void k(const float* x, float* y, int n) {
  extern __shared__ char bytes[];
  float* row = (float*)bytes;
  int w = n;
  while (w < 9000) w += n;
  row[threadIdx.x + w] = x[threadIdx.x % n];
  if (threadIdx.x < n) y[threadIdx.x] = row[threadIdx.x + w];
}
void host(float* x, float* y, int n) { k<<<1, 64, 64>>>(x, y, n); }""",
    "never": "__global__ void k(float* y, int n) { while (y[0] == y[0]) y[threadIdx.x] = n; }",
    "cached": """template <class T> __device__ T __ldca(const T* p) { return *p; }  // another's own
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < 0) __trap();
  if (i < n) __stcg(y + i, __ldg(x + i) + __ldca(x + i));
  if (i < n / 8) __stwt((float4*)y + i, __ldlu((float4*)y + i));
}
__global__ void cublas(const __nv_bfloat16* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = __bfloat162float(x[threadIdx.x]);
}""",
    "build": """__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * (i % _STEPS_ == 0);
}""",
    # Nothing lies within the border of a grid of one element a side.
    "bordered": """struct Grid { float* at; int size[2]; };
__global__ void k(Grid g, const float* x, int n) {
  int i = threadIdx.x % 4 + 1, row = i > g.size[0] - 2 ? g.size[0] - 2 : i;
  if (threadIdx.x < n) g.at[row * g.size[1] - 1] = x[threadIdx.x];
}""",
    "tensor": """#include <torch/extension.h>
using torch::Tensor;
typedef float* __restrict__ Out;
struct Spec { Tensor data; void check() { TORCH_CHECK(data.size(0) == 2, "two"); } };
struct Packed {
  Packed(Spec& s) : data(s.data.defined() ? s.data.data_ptr<float>() : nullptr), n(s.data.size(0)) {}
  const float* data; int n;
};
__global__ void k(Packed p, Out y) { if (threadIdx.x < p.n) y[threadIdx.x] = p.data[threadIdx.x]; }""",
    # The text's own name for a vector says nothing of where rows begin.
    "vectors": """using Four = float4;
__global__ void k(const float* x, float* y, int planes, int rows, int w) {
  const int row = blockIdx.y * rows + blockIdx.x;
  for (int i = 4 * threadIdx.x; i < w; i += 4 * blockDim.x)
    *reinterpret_cast<Four*>(y + row * w + i) = *reinterpret_cast<const Four*>(x + row * w + i);
}
void host(const float* x, float* y, int planes, int rows, int w) {
  k<<<dim3(rows, planes), 64>>>(x, y, planes, rows, w);
}""",
    # Blocks are counted back from a size that only the host's loop says to be the larger one.
    "back": """__global__ void k(int* a, int cols, int i, int width) {
  int x = blockIdx.x + width - i, y = width - blockIdx.x - 1;
  a[cols * 16 * y + 16 * x + threadIdx.x] += 1;
}
void host(int* a, int cols) {
  dim3 grid;
  for (int i = (cols - 1) / 16 - 1; i >= 1; i--) {
    grid.x = i;
    k<<<grid, 16>>>(a, cols, i, (cols - 1) / 16);
  }
}""",
    "union": """union Bits { unsigned long long whole; unsigned half[2]; };
__global__ void k(Bits* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i].whole = i, to[i].half[1] ^= 3;
}""",
    "unbuilt": "__global__ void k(float* y, int n) { y[0] = nowhere(n); }",
}


def settled(folder: Path, kernel: str, seconds: float = 20.0) -> Settled:
    source = folder / "k.hip"
    source.write_text(f"#include <hip/hip_runtime.h>\n{KERNELS[kernel]}\n")
    place = folder / "drafts" / "k"
    place.mkdir(parents=True)
    found = drafts_of(source, (), place)
    assert isinstance(found, tuple)
    with OnCpu(place, seconds) as run:
        return retry_until_it_runs(found[0][0], run)


def test_a_draft_that_runs_stays_as_it_is(tmp_path: Path) -> None:
    found = settled(tmp_path, "right")
    assert (found.ended, found.runs) == (TrialResult(), 1)


@pytest.mark.parametrize("kernel", ["build", "bordered", "tensor"])
def test_what_build_host_and_structs_lack_is_put_in(tmp_path: Path, kernel: str) -> None:
    found = settled(tmp_path, kernel)
    assert not found.ended.why
    flag = 'flags: ["-D_STEPS_=16"]  # guess: the value of _STEPS_, which nothing here defines'
    assert (flag in found.draft.spec) == (kernel == "build")
    assert ("size: [5, 5]" in found.draft.spec) == (kernel == "bordered")


def test_unions_are_passed_by_their_bytes(tmp_path: Path) -> None:
    found = settled(tmp_path, "union")
    assert not found.ended.why
    assert "to: {dtype: uint8, shape: [n, 8]}" in found.draft.spec


def test_sizes_become_multiples_where_a_vector_is_misaligned(tmp_path: Path) -> None:
    found = settled(tmp_path, "vectors")
    assert not found.ended.why
    spec = yaml.safe_load(found.draft.spec)
    assert spec["params"]["w"]["multiple_of"] % 4 == 0
    assert all(one["shape"]["w"] % 4 == 0 for one in spec["suites"]["quick"])


def test_a_size_grows_that_indices_are_counted_back_from(tmp_path: Path) -> None:
    found = settled(tmp_path, "back")
    assert not found.ended.why
    spec = yaml.safe_load(found.draft.spec)
    assert spec["variants"]["main"]["launches"][0]["grid"] == ["i"]


def test_an_array_grows_to_what_was_reached(tmp_path: Path) -> None:
    found = settled(tmp_path, "far")
    assert not found.ended.why
    line = next(one for one in found.draft.spec.splitlines() if " x: {" in one)
    assert "(large enough for what its indices reached in a run)" in line
    assert int(re.findall(r'"(\d+) \* n"', line)[0]) * 96 > 1000 * 2048
    y = next(one for one in found.draft.spec.splitlines() if " y: {" in one)
    assert "reached in a run" not in y


def test_whole_numbers_are_drawn_so_that_loops_end(tmp_path: Path) -> None:
    found = settled(tmp_path, "endless", seconds=2.0)
    assert not found.ended.why
    assert "inputs: {parent: {kind: arange}}" in found.draft.spec
    assert "with other integers it did not run to its end" in found.draft.spec


def test_places_differ_beside_what_the_text_asks_of_values(tmp_path: Path) -> None:
    found = settled(tmp_path, "scattered")
    assert not found.ended.why
    assert "inputs: {at: {kind: arange}, seen: {kind: constant, value: -1}}" in found.draft.spec


def test_a_table_may_have_to_start_empty(tmp_path: Path) -> None:
    found = settled(tmp_path, "table", seconds=2.0)
    assert not found.ended.why
    assert 'key: {kind: constant, value: "2 ** 64 - 1"}' in found.draft.spec


def test_dynamic_shared_memory_grows(tmp_path: Path) -> None:
    found = settled(tmp_path, "shared")
    assert not found.ended.why
    assert re.search(r'shared: "64 \+ \d{5}"  # guess: large enough', found.draft.spec)


def test_what_never_ends_is_left_as_it_was_drafted(tmp_path: Path) -> None:
    found = settled(tmp_path, "never", seconds=0.5)
    assert "did not run within 0.5 s" in found.ended.why
    assert found.runs > 1
    assert "did not run to its end" not in found.draft.spec


def test_what_does_not_build_is_run_once_and_says_why(tmp_path: Path) -> None:
    found = settled(tmp_path, "unbuilt")
    assert found.runs == 1
    assert found.ended.before
    assert "nowhere" in found.ended.why


def test_words_of_cuda_are_known_where_it_is_not_installed(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        f"#include <cublas_v2.h>\n{KERNELS['cached']}\nint main() {{ cublasCreate(0); }}\n"
    )
    done = tokitai("find", "k.cu", "--run", cwd=tmp_path)
    assert "a spec can be written for 2, 2 run to their end" in " ".join(done.stdout.split()), (
        done.stderr
    )


@pytest.mark.parametrize(
    "ended",
    [
        TrialResult("past", "x", 1 << 20),
        TrialResult("past", DYNAMIC_SHARED, 1 << 20),
        TrialResult("no such array", "z", 10),
        TrialResult("large", large=True),
        TrialResult("slow"),
    ],
)
def test_it_gives_up_where_nothing_helps(tmp_path: Path, ended: TrialResult) -> None:
    source = tmp_path / "k.hip"
    source.write_text(KERNELS["far"])
    found = drafts_of(source, (), tmp_path / "k")
    assert isinstance(found, tuple)
    specs: list[str] = []

    def run(draft: Draft) -> TrialResult:
        specs.append(draft.spec)
        return ended

    result = retry_until_it_runs(found[0][0], run)
    assert result.ended == ended
    assert result.draft.spec == specs[0]
    assert len(specs) == len(set(specs)) == result.runs <= 12


def test_the_command_says_what_runs_and_writes_the_draft_that_did(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for name in ("endless", "unbuilt"):
        text = KERNELS[name].replace(" k(", f" {name}(")
        (tmp_path / "tree" / f"{name}.hip").write_text(f"#include <hip/hip_runtime.h>\n{text}\n")
    words = ["find", "tree", "--run", "--timeout", "2", "--write", "drafts", "--json"]
    done = tokitai(*words, cwd=tmp_path)
    assert done.returncode == 0
    told = {one["name"]: one for one in json.loads(done.stdout)["kernels"]}
    assert told["endless"]["ended"] == ""
    assert told["endless"]["runs"] > 1
    assert "nowhere" in told["unbuilt"]["ended"]
    assert "[1/2] endless: runs to its end" in done.stderr
    assert "arange" in (tmp_path / "drafts" / "endless" / "spec.yaml").read_text()
    assert sorted(one.name for one in (tmp_path / "drafts").iterdir()) == ["endless", "unbuilt"]
    table = tokitai("find", "tree", "--run", "--timeout", "2", cwd=tmp_path).stdout
    assert "2 kernels found; a spec can be written for 2, 1 run to their end" in " ".join(
        table.split()
    )


def test_a_folder_that_cannot_be_written_is_told_before_any_run(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(f"#include <hip/hip_runtime.h>\n{KERNELS['never']}\n")
    (tmp_path / "file").write_text("")
    (tmp_path / "drafts" / "k").mkdir(parents=True)
    (tmp_path / "drafts" / "k" / "formula.py").write_text("mine")
    for place, message, code in (
        ("file", "cannot be written", 2),
        ("drafts", "exists already", 2),
    ):
        done = tokitai("find", "k.hip", "--run", "--write", place, cwd=tmp_path)
        assert (done.returncode, message in done.stderr) == (code, True)
        assert "[1/1]" not in done.stderr
    assert [one.name for one in (tmp_path / "drafts").iterdir()] == ["k"]


BESIDE = """\
struct Graph {
  unsigned nodes{0}; unsigned* ends{nullptr};
  ~Graph() { delete[] ends; }
};
__device__ float fetched(cudaTextureObject_t t, int i) { return float(tex1Dfetch<int2>(t, i).x); }
template <bool TEXTURE> __device__ float one_of(const float* x, int i, cudaTextureObject_t t = 0) {
  return TEXTURE ? fetched(t, i) : x[i];
}
__global__ void plain(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = one_of<false>(x, i);
}
__global__ void textured(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = one_of<true>(x, i);
}
__global__ void owned(const Graph* g, unsigned* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i < g->nodes) y[i] = g->ends[i];
}
"""


def test_textures_and_owners_beside_a_kernel_keep_it_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(BESIDE)
    told = json.loads(tokitai_here("find", tmp_path, "--run", "--json").stdout)["kernels"]
    ended = {one["name"]: one["ended"] for one in told}
    assert (ended["plain"], ended["owned"]) == ("", "")
    assert "a texture that the spec does not bind" in ended["textured"]
